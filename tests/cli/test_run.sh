# weir run and weir sched: what they take, what they refuse, what they leave behind.
weir=$1 source=$2
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
if ! [ -e "$build/lib/weir/libweir.so" ]; then exit 0; fi
app=$build/examples/vecadd
cd "$scratch" || exit 1
unset XDG_RUNTIME_DIR CUDA_MPS_PIPE_DIRECTORY
run="$weir run --sim --share $scratch/s"
sched="$weir sched --share $scratch/s"

# Before anybody has shared.
mkdir -m 700 s
expect 0 'no program shares a GPU' $sched status
expect 0 '"programs": \[' $sched status --json
expect 1 'no program has shared' $sched open
expect 2 'is no command of weir sched' $weir sched --share "$scratch" dance

# MPS serves all GPUs, also when the first program may see one.
mkdir bin
printf '%s\n' '#!/bin/sh' 'echo "${CUDA_VISIBLE_DEVICES-all}" >>"$MPS_SEEN"' 'cat >/dev/null' >bin/nvidia-cuda-mps-control
chmod +x bin/nvidia-cuda-mps-control
expect 0 '^1$' env "PATH=$scratch/bin:$PATH" "MPS_SEEN=$scratch/seen" CUDA_VISIBLE_DEVICES=1 \
	$weir run --share "$scratch/mps" -- sh -c 'echo $CUDA_VISIBLE_DEVICES'
expect 0 '^all$' sort -u seen
expect 1 '' grep -v all seen

# Refusals.
expect 2 'PROGRAM is missing' $run
expect 2 "'fast' is no class" $run --class fast -- true
expect 2 'weight=0' $run --weight 0 -- true
expect 2 'max-wait=soon is no duration' $run --max-wait soon -- true
expect 2 'deadline=0ms is no duration' $run --deadline 0ms -- true
expect 2 'sms=' $run --sms= -- true
expect 2 'slowdown=1: give a number' $run --slowdown 1 -- true
expect 2 'slowdown=fast: give a number' $run --slowdown fast -- true
expect 2 'sms=0%' $run --sms 0% -- true
expect 2 'Give one of them' $run --sms 60% --isolated -- true
expect 127 'can.t be run' $run -- ./no-such-program
mkdir -m 777 open
chmod 777 open
expect 3 'others may write' $weir run --sim --share open -- true
mkdir -m 700 old
printf 'something else' >old/sched
expect 3 'damaged. Remove it' $weir run --sim --share old -- true
# A file of another version of Weir, which nobody uses any more, is made anew.
mkdir -m 700 older
printf 'WEIRSHR\n\001\000\000\000\000\020\000\000' >older/sched
expect 0 '' $weir run --sim --share older -- true
printf 'WEIRSHR\n\001\000\000\000\000\020\000\000' >older/sched
expect 0 'no program shares a GPU' $weir sched --share older status
exec 9>older/arbiter
flock 9
printf 'WEIRSHR\n\001\000\000\000\000\020\000\000' >older/sched
expect 3 'another version' $weir run --sim --share older -- true
exec 9>&-
expect 3 'something else has its name|can.t be made' $weir run --sim --share s/sched -- true

# The program's own output and end.
expect 0 '' $run --class latency -- "$app"
expect 0 'sums not checked' $run --class best-effort -- "$app"
expect 7 '' $run -- sh -c 'exit 7'
expect 143 '' sh -c "$run -- sh -c 'kill -TERM \$\$'; exit \$?"

# Nothing is left of who has ended.
expect 0 'no program shares a GPU' $sched status
expect 0 '0600|600' stat -c %a s/sched

# It records beside.
expect 0 ' of them launches, 0 lost' $run -o both.weir -- "$app"
expect 0 'kernels run' $weir report both.weir

# Policies.
expect 0 '^\* fit' $sched policy
expect 0 '' $sched policy strict budget=70us
expect 0 '^\* strict' $sched policy
expect 2 'is no policy' $sched policy kind
expect 2 'no setting of a policy' $sched policy fit cap=0
expect 2 'no setting of a policy' $sched policy fit cap=4294967296
expect 2 'no setting of a policy' $sched policy fit speed=2
expect 0 '"policy": "strict"' $sched status --json
expect 0 '' $sched policy fit
expect 0 '' $sched open
expect 0 'all gates open' $sched status
expect 0 '' $sched close
expect 1 'no process 1 shares a GPU here|process 1 is another user' $sched set 1 latency
expect 2 'name a process and its class' $sched set 1
expect 2 'name a process and its class' $sched set 4294967297 latency
expect 2 "'fast' is no class" $sched set 1 fast
expect 2 "'lat' is no class" $sched set 1 lat

# `weir sched stop` ends the arbiter of `weir sched start`; that of a `weir run` ends with its
# program.
expect 1 'no weir sched start runs' $sched stop
$sched start &
server=$!
until $sched status | grep -q 'an arbiter runs'; do sleep 0.1; done
expect 1 "runs already, as process $server" $sched start
expect 0 '' $sched stop
wait "$server"
expect 1 'no weir sched start runs' $sched stop

# A running program: its class changes, and it can be seen.
$run --class best-effort -- "$build/bench/bench-load" best-effort --work kernel --batch 4 --seconds 100 >be.txt 2>&1 &
runner=$!
tries=0
until $sched status --json | grep -q '"pid"' || [ $tries = 200 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
pid=$($sched status --json | sed -n 's/.*"pid": \([0-9]*\),.*/\1/p')
expect 0 'best-effort' $sched status
expect 1 "the arbiter is process $runner, a weir run" $sched stop
expect 0 '' $sched set "$pid" latency
expect 0 '"class": "latency"' $sched status --json
expect 0 '' $sched policy fit slowdown=1.3
tries=0
until $sched status --json | grep -q '"target": 1.3' || [ $tries = 200 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
expect 0 '"slowdown": .*"target": 1.3' $sched status --json
expect 0 'as multiples of alone' $sched status
expect 0 '' $sched policy fit
kill "$runner"
wait "$runner"
expect 0 'no program shares a GPU' $sched status

# Requests of 25 ms: a run beside best effort, under MPS, learns that.  The next ones needn't get far.
load="$build/bench/bench-load"
answer="$load latency --work kernel,amount=1 --pause 1000 --requests 100000"
export WEIR_SIM="gpu=$scratch/slow,time=real,sharing=mps,delay=cuStreamSynchronize:25ms"
$run --class best-effort -- "$load" best-effort --work kernel,amount=1 --batch 4 --seconds 100 >be.txt 2>&1 &
beside=$!
$run --class latency -- $answer >latency.txt 2>&1 &
until [ -s s/alone ]; do
	kill -0 $! || break
	sleep 0.1
done
kill $! $beside
wait $! $beside
expect 1 '' grep 'without MPS' latency.txt
WEIR_SIM=fault=cuInit:1:100,$WEIR_SIM
expect 3 'requests of .*bench-load took [0-9]+ ms, .* without MPS' $run --class latency -- $answer
expect 1 '' sh -c "$run -q --class latency -- $answer 2>&1 | grep 'without MPS'"
expect 1 '' sh -c "$run --class latency --sms 100% -- $answer 2>&1 | grep 'without MPS'"
expect 1 '' sh -c "$run --class best-effort -- $answer 2>&1 | grep 'without MPS'"
unset WEIR_SIM

# A quota of device memory: of 512 MiB a context has 96 here; a quota within it, and one that is larger.
fill=$build/tests/storm/quota
if [ -x "$fill" ]; then
	q="env LD_LIBRARY_PATH=$build/lib/weir/sim $run --quiet"
	expect 2 'memory=1K: give a size' $q --memory 1K -- true
	expect 0 '^6$' $q --memory 512M -- "$fill" fill 64
	expect 0 '^6$' $q --memory 512M -- $weir run --quiet --sim --memory 1G -- "$fill" fill 64
	expect 0 '^2$' $q --memory 512M -- $weir run --quiet --sim --memory 256M -- "$fill" fill 64
	expect 0 '^6$' $q --memory 512M -- $weir run --quiet --sim -- "$fill" fill 64
	expect 2 'at most two hold' $q --memory 1G -- $weir run --quiet --sim --memory 512M -- \
		$weir run --quiet --sim --memory 256M -- true
	expect 0 'no program shares a GPU' $sched status

	expect 0 '^6$' $q --memory 512M -- $weir record -q --sim -o inner.weir -- "$fill" fill 64
	expect 0 'cuMemAlloc_v2' $weir memory inner.weir

	# The recording has the refusals, and who had the memory.
	expect 0 '^6$' $q --memory 512M -o refused.weir -- "$fill" fill 64
	expect 0 '1 refused; of a quota of 512 MiB, 384 MiB were live' $weir memory refused.weir
	expect 0 '384 MiB had process [0-9]*, quota' $weir memory refused.weir
	expect 0 '"program": "quota"' $weir memory --json refused.weir
fi

# A program that the library can't be loaded into has no quota, so none is promised.
printf 'int main(void) { return 0; }\n' >static.c
if cc -static -o static static.c 2>/dev/null; then
	expect 3 'static can.t be held to a quota: it is linked statically' $run --memory 1G -- ./static
	expect 3 'can.t be held to a quota' $run --memory 1G -- $weir run --sim --share "$scratch/s" -- ./static
	expect 0 '1 program ran without its class and quota' $run --memory 1G --best-effort-quota -- ./static
	expect 0 '1 program ran without its class and quota' $run -- ./static
fi
cp /bin/true raised
chmod 4755 raised
expect 3 'raised can.t be held to a quota: it gains rights' $run --memory 1G -- ./raised
expect 0 '1 program ran without' $run --memory 1G --best-effort-quota -- ./raised

# The GPU with the least to do.
expect 0 '^CUDA_VISIBLE_DEVICES=GPU-' env WEIR_SIM=devices=2 $run --device auto -- env
expect 0 '^CUDA_VISIBLE_DEVICES=1$' $run --device 1 -- env
expect 3 'no GPU is seen' env WEIR_SIM=devices=0 $run --device auto -- true

# Without MPS that is said, and the program runs.
expect 0 'take turns' env PATH=/usr/bin:/bin $weir run --share "$scratch/s" -- true
expect 0 '^$' env PATH=/usr/bin:/bin $weir run --share "$scratch/s" --isolated -- true

finish
