# A device timeline that is reconstructed from some launches (--gpu=predict), on the simulated driver.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
program=$build/tests/cli/programs/timeline
[ -x "$program" ] && [ -e "$build/lib/weir/sim/libcupti.so.13" ] || exit 0
cd "$scratch" || exit 1
WEIR_SIM='time=real,launch=1us,kernel=work_*:0:1us'
export WEIR_SIM

# Each launch timed both ways, in one run: events time what they do, CUPTI says what ran.  The
# timeline that is reconstructed of some of the events and the first launches that CUPTI saw is held
# against the whole.  How long the device was idle is no matter of the law's but of this machine:
# when a host is held up in the middle of a launch, nothing says on which side of it; nor is how
# much of what is on several streams runs at one time.
for shape in one streams legacy graph gaps copies noise syncs; do
	LD_LIBRARY_PATH=$build/lib/weir/sim LD_PRELOAD=$build/lib/weir/libweir.so \
		WEIR=gpu=predict:16,window=100000000,args,record:$scratch/$shape.weir "$program" $shape || echo "$shape failed"
done
expect 0 '^noise' "$build/tests/compare-reconstruction" -i 100 -r 16 -w 64 one.weir graph.weir gaps.weir copies.weir \
	syncs.weir noise.weir
expect 0 '^streams' "$build/tests/compare-reconstruction" -i 100 -b 100 -r 16 -w 64 legacy.weir streams.weir

# Four streams on a device that has no room for all of them, as it shares its blocks out: what a kernel waits for room is
# not taken for its own time.
WEIR_SIM="$WEIR_SIM,gpu=$scratch/device,speed=0.2" LD_LIBRARY_PATH=$build/lib/weir/sim LD_PRELOAD=$build/lib/weir/libweir.so \
	WEIR=gpu=predict:16,window=100000000,args,record:$scratch/crowd.weir "$program" crowd || echo "crowd failed"
for rate in 8 16 32; do
	expect 0 '^crowd' "$build/tests/compare-reconstruction" -i 100 -b 100 -k 3 -r $rate crowd.weir
done

# Readers get a whole timeline, and say what it is.
record() { # TRACE OPTION...
	trace=$1
	shift
	"$weir" record --sim -o "$trace" "$@" -- "$program" noise 2>"$trace.said" || echo "weir record $* failed"
}
total() { "$weir" report --json "$2" | sed -n '/"totals": /,/}/p' | sed -n "s/.*\"$1\": \([0-9a-z]*\).*/\1/p"; }
record all.weir --gpu
record some.weir --gpu=predict:16
expect 0 'device timeline reconstructed: 800 launches, memcpys and memsets, [0-9]* of them timed, 0 guessed' cat some.weir.said
expect 0 '^800$' total device_kernels some.weir
expect 0 '^null$' total sampled some.weir
expect 0 '^[1-9][0-9]*$' total reconstructed some.weir
expect 0 '^null$' total reconstructed all.weir
expect 0 'the device timeline is reconstructed: of 800 launches' "$weir" report some.weir
expect 0 'GPU activities are reconstructed, and off by' "$weir" report some.weir
expect 0 'Where the wall time went' "$weir" report some.weir
expect 0 'calibration' "$weir" report some.weir
expect 0 '"reconstructed": ?true, ?"uncertainty_ns": ?[0-9]' "$weir" export -f ndjson some.weir
expect 0 '"reconstructed, off by \(ns\)"' "$weir" export -f chrome some.weir
expect 0 'stream [0-9]*, reconstructed' sh -c "'$weir' export -f perfetto -o /dev/stdout some.weir | tr -d '\000'"
expect 1 '^$' sh -c "'$weir' export -f ndjson all.weir | grep reconstructed"

# A set that has returned is not said to be under way, whatever it was timed by.
for option in -q --gpu=predict:16; do
	"$weir" record --sim -q -o sets.weir $option -- "$program" sets
	expect 0 '^1$' sh -c "'$weir' report --only calls --json sets.weir | grep -c cuMemsetD8Async"
	expect 1 '^$' sh -c "'$weir' report sets.weir | grep returned"
done

# Activities that CUPTI measured in its window are not reconstructed, and say what the driver did.
measured() { "$weir" export -f ndjson some.weir | grep '"api":"device"' | grep -vc reconstructed; }
expect 0 '^(1[0-9][0-9]|2[0-9][0-9])$' measured

# A trace that is not packed, or without CUPTI.
record raw.weir --gpu=predict:16 --no-pack
expect 0 '^16$' total sampled raw.weir
expect 0 'raw.weir has samples alone' cat raw.weir.said
both() { "$weir" export -f ndjson raw.weir | grep -c '"api":"device".*"kernel\|"api":"device"'; }
once() { echo $(($(both) - $(total device_kernels raw.weir))); }
expect 0 '^(19|2[0-9])[0-9]$' once # in the window: at its edge a launch may be timed one way only
WEIR_SIM_CUPTI=refuse record alone.weir --gpu=predict:16
expect 0 '^800$' total device_kernels alone.weir
expect 0 'launches are timed with events alone' "$weir" report alone.weir

expect 2 'learns from times that were measured' "$weir" record --sim --gpu=predict --predict -o x.weir -- "$program" one
expect 2 'needs the whole run' "$weir" record --sim --gpu=predict --flight=8M -o x.weir -- "$program" one
expect 2 'gpu=predict:0' "$weir" record --sim --gpu=predict:0 -o x.weir -- "$program" one
# Between its windows CUPTI is ended: what it numbers in the next is 2^32 later.
many=$build/bench/bench-load
windows() {
	"$weir" export -f ndjson "$1" | grep -o '"correlation": *5[0-9]*' | grep -o '5[45][0-9]\{3\}' | sort -u |
		grep -c '^5\(497\|540\|583\|626\)'
}
if [ -x "$many" ]; then
	WEIR_SIM=kernel=spin:1:1ns "$weir" record --sim --gpu=predict:4 --no-pack -q -o many.weir -- "$many" latency \
		--work kernel,blocks=64,amount=3000 --batch 10 --requests 1000 --pause 1 >many.out 2>many.said
	expect 0 '^[2-9]$' windows many.weir
fi

# It stays in a program that has made a graph while it was there.
"$weir" record --sim --gpu=predict:1 --no-pack -q -o replays.weir -- "$program" replays 2>replays.said
expect 0 '^1$' windows replays.weir
expect 0 '      [2-4]  .*calibration' "$weir" report replays.weir
finish
