# Programs that share a GPU under weir run, and what may happen to one of them, or to the shared file, meanwhile: the others
# end as they would alone.  A program that would hang is ended after a minute; no program of these
# takes a second by itself.
set -u
. "$(dirname "$0")/paths.sh"
need_hook
make_work live
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$sim
run="$weir run --quiet --sim --max-wait 50ms --share $work/share"
sched="$weir sched --share $work/share"

# begin NAME: an empty shared file, a device of its own.
begin() {
	name=$1
	rm -rf share device out.*
	mkdir -m 700 share
	[ -z "${keeper-}" ] || let_go
	keep_share
	export WEIR_SIM="gpu=$work/device,time=real,sharing=mps"
}

failed() {
	echo "$name: $*"
	bad=1
}

# ends COMMAND...: with 0, in time.
ends() {
	timeout 60 "$@" >out 2>&1
	status=$?
	[ $status = 0 ] || failed "$* leaves with $status: $(head -n 3 out)"
}

# The process that has said so of itself, or that is a child of one that runs a program.
child_of() {
	tries=0
	until set -- "$1" $(cat "/proc/$1/task/$1/children" 2>/dev/null) && [ $# = 2 ] || [ $tries = 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	echo "${2-}"
}

# until_is PATTERN COMMAND...: until its output has it; a minute at most.
until_is() {
	pattern=$1 tries=0
	shift
	until "$@" 2>/dev/null | grep -q "$pattern"; do
		tries=$((tries + 1))
		[ $tries != 300 ] || { failed "never '$pattern'"; return 1; }
		sleep 0.1
	done
}

# Nothing is left when the next has looked.
is_clean() {
	$run -- true
	WEIR=share=$work/share "$programs/regulated" clean >out || failed "left: $(cat out)"
}

# A latency program is stopped in the middle of a request: the others go on, by each policy.
for policy in ${STOPPED-strict fit edf fair}; do
	begin "stopped, $policy"
	$sched policy $policy
	$run --class latency --deadline 1ms -- "$programs/gated" stops >out.stops &
	stops=$!
	pid=$(child_of $stops)
	until_is ') T' cat "/proc/$pid/stat"
	ends $run --class best-effort -- "$programs/regulated" work
	ends $run --class latency --deadline 20s -- "$programs/regulated" work
	kill -CONT "$pid"
	wait $stops || failed "the stopped one leaves with $?"
	grep -q 'went on' out.stops || failed "the stopped one did not go on"
	is_clean
done

# A latency program leaves work on a stream that nobody waits for: its requests end all the same, and best effort goes on
# between them.  No launch is let go by the clock.
for policy in ${LEAVES-strict fit "strict hold=100us"}; do
	begin "leaves work, $policy"
	rm -f ends
	$sched policy $policy
	$run --max-wait 100s --class latency -- "$programs/regulated" leaves_work >out.leaves &
	leaves=$!
	until_is serves cat out.leaves
	ends $run --max-wait 100s --class best-effort -- "$programs/regulated" work
	: >ends
	wait $leaves || failed "the latency program leaves with $?"
	is_clean
done

# Classes, policies and gates change all the time.
begin "hammered"
$run --class latency -- "$programs/regulated" work >out.1 &
one=$!
$run --class best-effort -- "$programs/regulated" work >out.2 &
two=$!
pids="$(child_of $one) $(child_of $two)"
for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
	for policy in fair edf "fit cap=$((round * 8))" strict fifo "fit budget=1ns"; do
		$sched policy $policy
		for pid in $pids; do
			for class in latency best-effort; do
				$sched set "$pid" $class >/dev/null 2>&1
			done
		done
		$sched open && $sched close
	done
done
$sched policy fit
wait $one || failed "the latency program leaves with $?"
wait $two || failed "the best-effort program leaves with $?"
is_clean

# The file is written over with nonsense, also in front of an arbiter.
for policy in fit fair edf; do
	begin "nonsense, $policy"
	$sched policy $policy
	ends $run --class best-effort -- "$programs/regulated" nonsense
	grep -q 'synchronised 0' out || failed "$(cat out)"
done

# Launches from handlers of signals, in the middle of the gate: the driver is one that locks nothing.
name=handlers
for round in 1 2 3 4 5 6; do
	for class in latency best-effort; do
		LD_LIBRARY_PATH=$libs/mock ends "$weir" run --quiet --share "$work/share" --class $class -- \
			"$programs/signal_storm"
		grep -q '^0 failed' out || failed "$class: $(cat out)"
	done
done

# More programs than slots: those for whom there is none run, and it is said.
begin "crowd"
export WEIR_SIM=time=virtual
timeout 100 "$weir" run --sim --max-wait 50ms --share "$work/share" -- "$programs/gated" crowd >out 2>err ||
	failed "leaves with $?: $(cat out err)"
grep -q '^0 of 300 failed' out || failed "$(cat out)"
grep -q '44 programs were not scheduled' err || failed "it is not said: $(cat err)"
is_clean

# Two name spaces of process ids, one directory: neither takes the other's for dead, nor believes one that was killed.
begin "name spaces"
export WEIR_SIM=time=virtual
if unshare -Urpf true 2>/dev/null; then
	mkfifo go
	unshare -Urpf --kill-child $run --class latency -- "$programs/gated" holds <go >out.holds &
	holds=$!
	exec 9>go
	until_is inside cat out.holds
	ends $run --class best-effort -- "$programs/regulated" work
	until_is '"inside": true' $sched status --json
	[ "$($sched status --json | grep -c '"pid"')" = 1 ] || failed "its slot is gone"
	exec 9>&-
	wait $holds || failed "the other leaves with $?"
	grep -q 'went on' out.holds || failed "the other did not go on"
	is_clean
	rm -f out.holds
	unshare -Urpf --kill-child $run --class latency -- "$programs/gated" holds <go >out.holds &
	holds=$!
	exec 9>go
	until_is inside cat out.holds
	kill -KILL $holds
	wait $holds 2>/dev/null
	exec 9>&-
	ends $run --class best-effort -- "$programs/regulated" work
else
	echo "name spaces: this machine lets nobody make one; not tried"
fi

# Each call is in the recording, and each launch reached the driver.  With a budget of its own there are no holds, which
# are launches of Weir.
begin "counted"
ends $sched policy fit budget=600us
export WEIR_SIM="gpu=$work/device,time=real,sharing=mps,log=$work/calls.%p"
$run --class latency -- "$programs/regulated" work >out.1 &
one=$!
ends $run --class best-effort -o counted.weir -- "$programs/regulated" work
wait $one
check_readable counted.weir || failed "calls are missing"
[ "$(recorded_count counted.weir cuLaunchKernel)" = 2500 ] || failed "$(recorded_count counted.weir cuLaunchKernel) launches"
for log in calls.*; do
	n=$(awk '$1 == "cuLaunchKernel" { n += $2 } END { print n + 0 }' "$log")
	[ "$n" = 2500 ] || [ "$n" = 0 ] || failed "the driver has seen $n launches in $log"
done

let_go
[ $bad = 1 ] || rm -rf "$work"
exit $bad
