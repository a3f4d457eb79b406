# trace and stat from the outside, on the simulated driver.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
[ -e "$build/lib/weir/libweir.so" ] && [ -e "$build/lib/weir/sim/libcuda.so.1" ] || exit 0
"$weir" help trace >/dev/null 2>&1 && "$weir" help stat >/dev/null 2>&1 || exit 0
app=$build/examples/vecadd
cd "$scratch" || exit 1

lines() {
	"$weir" trace --sim -o lines.txt "$@" -- "$app" >/dev/null && grep -c . lines.txt
}

expect 0 'cuInit\(Flags=0\) = 0 <' "$weir" trace --sim -- "$app"
# When it began, process and thread, how long it took.
expect 0 '^ +[0-9]+\.[0-9]{6} \[[0-9]+\.[0-9]+\] cuInit\(Flags=0\) = 0 <[0-9].*s>$' "$weir" trace --sim -- "$app"
expect 0 '^204$' lines -e cuLaunchKernel
expect 0 '^12$' lines -e 'cuMemAlloc*'
expect 0 '^6$' lines -e 'cuMemAlloc*' -e '!*Host*'
expect 1 '^0$' lines -e error
expect 0 '^224$' lines -e launch
expect 37 '^$' "$weir" trace -- sh -c 'exit 37'
expect 127 'no-such-program' "$weir" trace -- ./no-such-program
expect 1 'cuMemAlloc_v2.*= CUDA_ERROR_OUT_OF_MEMORY|cuMemAlloc_v2.*= 2 ' env \
	WEIR_SIM=fault=cuMemAlloc_v2:2:2 "$weir" trace --sim -e error -- "$app"
expect 3 'no-such-dir' "$weir" trace -o no-such-dir/x -- true

# When calls began, and how long they took, in other ways.
expect 0 '^[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{6} \[[0-9]+\.[0-9]+\] cuInit' "$weir" trace --sim -t -- "$app"
expect 0 'cuInit\(Flags=0\) = 0 <[0-9]+\.[0-9]{9}>$' "$weir" trace --sim -T -- "$app"
# Times since the line before add up to those since the begin.
sums() {
	"$weir" trace --sim $1 -o times.txt -- "$app" >/dev/null || return
	awk -v r="$1" '{ at = r == "-r" ? at + $1 : $1; if (at < last) print "backwards" } { last = at } END { print (at > 0 && at < 60) ? "ok" : at }' times.txt
}
expect 0 '^ok$' sums
expect 0 '^ok$' sums -r
expect 2 'Give one' "$weir" trace -t -r -- "$app"
# Counts, of what passes the filters.
expect 0 '^ +204 +- .* cuLaunchKernel$' "$weir" trace --sim -c -- "$app"
expect 0 '"name": "cuLaunchKernel", "count": 204, "errors": 0, "total_ns": [1-9]' "$weir" trace --sim -c --json -- "$app"
expect 0 '^1 calls of 1 function$' sh -c "$weir trace --sim -c --json -e cuInit -o counts.json -- $app >/dev/null &&
	grep -c '\"name\"' counts.json | sed 's/.*/& calls of & function/'"
expect 1 '"name": "cuMemAlloc_v2", "count": 2, "errors": 1' env WEIR_SIM=fault=cuMemAlloc_v2:2:2 \
	"$weir" trace --sim -c --json -- "$app"
# Filters by kernel, time and process.
expect 0 '^204$' lines -k vecadd
expect 0 '^204$' lines -k 'vec*'
expect 0 '^0$' sh -c "$weir trace --sim -k 'add' -k other -e cuMemAlloc_v2 -o lines.txt -- $app >/dev/null; grep -c . lines.txt || :"
expect 0 '^0$' sh -c "$weir trace --sim --longer 1m -o lines.txt -- $app >/dev/null; grep -c . lines.txt || :"
expect 0 '^0$' sh -c "$weir trace --sim --process nobody -o lines.txt -- $app >/dev/null; grep -c . lines.txt || :"
expect 0 '^204$' lines --process vecadd -e cuLaunchKernel
expect 2 'longer=5: give a time' "$weir" trace --longer 5 -- "$app"
# JSON, as export writes it.
is_json() {
	"$weir" trace --sim --json -o lines.json -- "$app" >/dev/null || return
	python3 -c '
import json, sys
calls = [json.loads(line) for line in open("lines.json")]
launches = [c for c in calls if c["name"] == "cuLaunchKernel"]
print(len(launches), launches[0]["args"]["kernel"], launches[0]["args"]["block"], all(c["result"] == 0 for c in launches))'
}
expect 0 '^204 vecadd \[256, 1, 1\] True$' is_json
# A process that is being recorded is followed from where it is: the program parts waits for each step.
parts=$build/tests/cli/programs/parts
if [ -x "$parts" ]; then
	LD_LIBRARY_PATH=$build/lib/weir/sim "$weir" record -q -o followed.weir -- "$parts" go >/dev/null &
	step_on() {
		: >go
		while [ ! -e go.done ]; do sleep 0.02; done
		rm go.done
	}
	step_on
	step_on
	pid=
	while [ -z "$pid" ]; do pid=$(pgrep -P $! parts); done
	# Steps 1 to 3, which were there before, are passed over.
	"$weir" trace -p "$pid" -e launch -o followed.txt 2>followed.err &
	follower=$!
	while ! grep -q "process $pid is followed from now on" followed.err; do sleep 0.02; done
	i=2
	while [ $((i += 1)) -le 10 ]; do step_on; done
	wait $follower
	expect 0 '^149$' grep -c cuLaunchKernel followed.txt
	wait
fi
expect 2 'no number of a process' "$weir" trace -p abc
expect 1 'is not being recorded .*started with .weir record. can be followed' "$weir" trace -p $$
expect 2 'there is no process 2147483647$' "$weir" trace -p 2147483647
expect 2 'there is no process 2147483647$' "$weir" ctl 2147483647 off
cat /proc/1/maps >/dev/null 2>&1 || expect 3 'may not look at process 1: .* Ask as its user, or as root' "$weir" trace -p 1
expect 2 'not both' "$weir" trace -p 1 -- "$app"
rm -f followed.weir followed.txt followed.err times.txt counts.json lines.json go go.done

expect 0 ' 204 .*cuLaunchKernel' "$weir" stat --sim -- "$app"
expect 0 '"name": "cuLaunchKernel".*"count": 204' "$weir" stat --sim --json -- "$app"
expect 37 '' "$weir" stat -- sh -c 'exit 37'

# Several runs: means, and how far they lie apart.  The simulated driver makes the same calls each time.
expect 0 ' 204 +± 0.0 % +- .* ± [0-9.]+ % +- +cuLaunchKernel$' "$weir" stat --sim -r 3 -- "$app"
expect 0 'means of 3 runs, ± their standard deviation' "$weir" stat --sim -r 3 -- "$app"
expect 0 '"count": 204, .*"count_deviation": 0, "total_ns_deviation": [1-9]' "$weir" stat --sim --json -r 3 -- "$app"
# One of two runs makes 204 launches, the other none: the mean is 102, the deviation 144.25.
expect 0 '"count": 102, .*"count_deviation": 144.25,' "$weir" stat --sim --json -r 2 -- \
	sh -c "[ -e once ] && exit 0; : >once; exec $app"
expect 5 '' "$weir" stat --sim -r 2 -- sh -c 'exit 5'
expect 2 'repeat=0: give a whole number' "$weir" stat -r 0 -- "$app"
expect 2 'interval=1: give a time' "$weir" stat -I 1 -- "$app"
# The counts of intervals add up to all of it.
intervals() {
	"$weir" stat --sim --json -I 5ms -o intervals.json -- sh -c "$app; $app" >/dev/null || return
	python3 -c '
import collections, json
lines = [json.loads(line) for line in open("intervals.json")]
sums = collections.Counter()
for line in lines[:-1]:
    for call in line["calls"]:
        sums[call["name"]] += call["count"]
print(sums == {call["name"]: call["count"] for call in lines[-1]["calls"]}, lines[-1]["totals"]["launches"],
      all(a["at_ns"] < b["at_ns"] for a, b in zip(lines, lines[1:-1])))'
}
expect 0 '^True 440 True$' intervals
expect 0 '^ +[0-9]+\.[0-9]{6} +[0-9]+ calls +[0-9.]+ [a-z]+  cuLaunchKernel$' "$weir" stat --sim -I 2ms -- "$app"
rm -f intervals.json once

# The program's standard output is its own, and the counts can have a file of their own.
"$app" >alone.txt 2>/dev/null || env LD_LIBRARY_PATH="$build/lib/weir/sim" "$app" >alone.txt
out_of() {
	"$weir" stat --sim "$@" -- "$app" 2>/dev/null
}
apart() {
	out_of "$@" >beside.txt && cmp alone.txt beside.txt && echo same
}
counts_in() {
	"$weir" stat --sim "$@" -o counts -- "$app" 2>stderr.txt >/dev/null || return
	grep -c cuLaunchKernel stderr.txt
	cat counts
}
expect 0 '^same$' apart
expect 0 '^same$' apart --json
expect 0 '"name": "cuLaunchKernel".*"count": 204' counts_in --json
expect 0 '^0$' counts_in --json
expect 0 ' 204 .*cuLaunchKernel' counts_in
expect 0 '^600$' stat -c %a counts
expect 3 'no-such-dir/x can.t be written: No such file' "$weir" stat --sim -o no-such-dir/x -- "$app"
expect 3 ' 204 .*cuLaunchKernel' "$weir" stat --sim -o no-such-dir/x -- "$app"
rm -f alone.txt beside.txt counts stderr.txt

# Nothing is left behind.
[ "$(ls)" = lines.txt ] || expect 0 'only lines.txt' ls
# A program that is killed takes along what CUPTI had not handed over: the report says so, unless
# nobody had asked for it.  Ranges, which say how the timeline is written, do not ask.
steady=$build/tests/cli/programs/steady
if [ -x "$steady" ] && [ -e "$build/lib/weir/sim/libcupti.so.13" ]; then
	report_killed() { # OPTION...
		"$weir" record --sim "$@" -q -o killed.weir -- "$steady" killed ranges >killed.out 2>&1
		"$weir" report killed.weir
	}
	lost='kernels have no device times: the program did not end in order'
	expect 0 "$lost" report_killed --gpu
	# Buffers of 37 kernels bring all but the last of 1,000.
	expect 0 " 1 of 1000 $lost" env WEIR_SIM_CUPTI=buffer=37 sh -c \
		"$weir record --sim --gpu -q -o killed.weir -- $steady killed; $weir report killed.weir"
	expect 0 ' nvtx +some$' report_killed
	expect 1 '^$' sh -c 'printf "%s\n" "$1" | grep "$2"' sh "$output" "$lost"
	rm -f killed.weir killed.out
fi
finish
