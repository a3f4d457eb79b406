# weir run --pool: blocks hold what was put there, answers are the driver's, and idle memory goes to who wants it.
weir=$1 source=$2
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
pooled=$build/tests/cli/programs/pooled
if ! [ -e "$build/lib/weir/libweir.so" ] || ! [ -e "$pooled" ]; then exit 0; fi
cd "$scratch" || exit 1
mkdir -m 700 run
export XDG_RUNTIME_DIR="$scratch/run"
run="$weir run --sim --share $scratch/s"
sched="$weir sched --share $scratch/s"
mkdir -m 700 s

# Random use on three streams, with room and without; also while it is recorded.
for seed in 1 2 3; do
	expect 0 'had what was put there; memory was never out' $run --pool -- "$pooled" random $seed 5000
	expect 0 'had what was put there; memory was sometimes out' $run --pool --memory 190M -- "$pooled" random $seed 5000
done
expect 0 'had what was put there' $run --pool --memory 240M -o t.weir -- "$pooled" random 4 2000
expect 0 ' 0 lost|cuMemAllocAsync' "$weir" report --top 0 t.weir
expect 0 'had what was put there; memory was never out' $run -- "$pooled" random 5 2000

# The driver's own answers.
$run -- "$pooled" answers >driver.txt 2>&1
expect 0 '' $run --pool -- "$pooled" answers
$run --pool -- "$pooled" answers >pool.txt 2>&1
expect 0 '' diff driver.txt pool.txt
expect 0 '' $run --pool --memory 512M -- "$pooled" answers
$run --pool --memory 512M -- "$pooled" answers >both.txt 2>&1
expect 0 '' diff driver.txt both.txt
expect 0 'captured' $run --pool -- "$pooled" capture

# Ranks give memory to each other: the driver serves them, and the recording says so.
expect 0 '^weir: the pool served no memory' env WORLD_SIZE=2 $run --pool -- "$pooled" random 1 200
expect 0 'had what was put there' env WORLD_SIZE=2 $run --pool -o r.weir -- "$pooled" random 1 200
expect 0 'one of several ranks' "$weir" report r.weir

# Two programs whose quotas are more than the device has.  One has had most of it and needs it no more.
export WEIR_SIM="@$scratch/sim"
echo "gpu=$scratch/small,time=real,memory=600M" | tr , '\n' >sim
$run --pool --memory 400M -- "$pooled" hold held >hold.txt 2>&1 &
holder=$!
tries=0
until [ -e held ] || [ $tries = 500 ]; do
	tries=$((tries + 1))
	sleep 0.02
done
expect 0 '"used_bytes": 268435456, "idle_bytes": 26843' $sched status --json
expect 0 '^asked: 0$' $run --pool --memory 400M --wait-memory 20s -- "$pooled" ask 250
expect 0 '"given_bytes": [1-9]' $sched status --json
expect 0 '"pool_hits": [1-9]' $sched status --json
expect 0 '^asked: 2$' $run --pool --memory 400M -- "$pooled" ask 350
rm held
wait $holder
expect 0 '' test $? = 0
expect 0 '' cat hold.txt

# Two that each need most of the card, again and again, and have room for one: each goes on when the other has freed.
steps="$build/examples/steps"
WEIR_SIM="gpu=$scratch/card,time=real,memory=700M" $run --pool --memory 600M --wait-memory 100s -- "$steps" 10 >one.txt 2>&1 &
one=$!
expect 0 '^10 steps are done$' env WEIR_SIM="gpu=$scratch/card,time=real,memory=700M" \
	$run --pool --memory 600M --wait-memory 100s -- "$steps" 10
wait $one
expect 0 '^10 steps are done$' cat one.txt

# An allocation that waited and was then granted was not refused.
$run --memory 300M --wait-memory 100s -o w.weir -- sh -c '"$1" keep kept 150 & until [ -e kept ]; do sleep 0.02; done; "$1" ask 100; wait' sh "$pooled" >asked.txt 2>&1 &
both=$!
tries=0
until [ "$($sched status --json | grep -c '"pid"')" = 2 ] || [ $tries = 500 ]; do
	tries=$((tries + 1))
	sleep 0.02
done
rm kept
wait $both
expect 0 '^asked: 0$' cat asked.txt
expect 1 '' sh -c '"$1" report --top 0 w.weir | grep "memory refused"' sh "$weir"
expect 2 'wait-memory=soon is no duration' $run --wait-memory soon -- true
finish
