# Comparisons and flame graphs: what they say of questions that make no sense, and exit statuses.
weir=$1
. "$(dirname "$0")/expect.sh"
gen=$(dirname "$weir")/../tests/gen-trace
kept=$(cd "$(dirname "$0")/../golden/readme" && pwd)
cd "$scratch" || exit 1
"$gen" -n 4000 -t 2 -s 1 -p a.weir 2>/dev/null || exit 1
"$gen" -n 3000 -t 2 -s 2 -p b.weir 2>/dev/null || exit 1

# It begins with three sentences of at most 25 words: is it slower, what changed most, how sure.
begins() { # COMMAND...
	"$@" 2>/dev/null | sed 3q | awk 'NF > 25 || !/[^.]\.$/ || /;/ { print "no sentence: " $0 } END { print NR }'
}
for pair in "a b" "a a" "b a"; do
	expect 0 '^3$' begins "$weir" diff ${pair% *}.weir ${pair#* }.weir
done
expect 0 '^3$' begins "$weir" diff "$kept/slow.weir" "$kept/fixed.weir"
expect 0 'No difference above 3 % was found: one launch call takes .* in A, .* in B, over 45 kernels that both have\.' \
	"$weir" diff a.weir b.weir
expect 0 '^B is shorter because it ran 1,492 launches instead of 1,970\.$' "$weir" diff a.weir b.weir
expect 0 '^B is longer because it ran 1,970 launches instead of 1,492\.$' "$weir" diff b.weir a.weir
expect 0 '^The change is -[0-9.]+ % to \+[0-9.]+ % with 99 % confidence, from 1,682 and 1,276 launches in one recording each\.$' \
	"$weir" diff a.weir b.weir
expect 0 '^Both did the same work \(1,970 launches, 26 steps\)\.$' "$weir" diff a.weir a.weir
expect 0 '^B kept the GPU busy for 3\.54 ms instead of 26\.5 ms \(7\.5 times as fast\) in 2 steps each\.$' \
	"$weir" diff "$kept/slow.weir" "$kept/fixed.weir"
expect 0 '\(7\.5 times as long\) in 2 steps each' "$weir" diff "$kept/fixed.weir" "$kept/slow.weir"
expect 0 'but B ran 95 launches instead of 26, and softmax_warp_forward.* changed most: 0 ns → 6\.72 ms a step\.$' \
	"$weir" diff "$kept/fixed.weir" "$kept/slow.weir"
"$weir" diff --json a.weir b.weir >said.json
expect 0 '^launch same 1970 1492 False 3$' python3 -c '
import json
d = json.load(open("said.json"))
print(d["judged"]["of"], d["judged"]["verdict"], d["work"]["launches_a"], d["work"]["launches_b"], d["work"]["same"],
      len(d["conclusion"]))'

# A recording without a call is no version that became faster: nothing can be judged.
if "$weir" help record >/dev/null 2>&1 && [ -e "$(dirname "$weir")/../lib/weir/libweir.so" ]; then
	"$weir" record -q --sim -o none.weir -- true 2>/dev/null
	expect 0 '^B made no CUDA call, so there is nothing to compare\.$' "$weir" diff a.weir none.weir
	expect 0 '^3$' begins "$weir" diff none.weir none.weir
	expect 2 "'launches > \+5%' can't be judged" "$weir" diff -f 'launches > +5%' a.weir none.weir
	expect 2 '"undecided": true' "$weir" diff --json -f 'launches > +5%' a.weir none.weir
	# One made at level off says nothing of what the program did, not even that it made no call.
	"$weir" record -q --sim --level off -o off.weir -- "$(dirname "$weir")/../examples/vecadd" >/dev/null 2>&1
	expect 0 '^Recording was switched off in B, so there is nothing to compare\.$' "$weir" diff a.weir off.weir
	expect 0 '^3$' begins "$weir" diff off.weir off.weir
	expect 1 '^$' sh -c "'$weir' diff a.weir off.weir | grep -E 'no CUDA call|-100|gone|→ 0'"
	expect 2 "'launches > \+5%' can't be judged" "$weir" diff -f 'launches > +5%' off.weir a.weir
fi
expect 0 '^Kernels: [0-9]+ same.*\.' "$weir" diff a.weir a.weir
# No row says "faster" of a median that is not less by more than the noise beside it.
"$weir" diff -n 0 -t 0 a.weir b.weir >said
awk '$1 == "faster" || $1 == "slower" {
	for (i = 2; i < NF && $i !~ /^±/; i++) ;
	said++
	noise = substr($i, length("±") + 1) + 0
	change = ($1 == "faster" ? -1 : 1) * $(i - 2)
	if (change < noise || change < 0)
		print "contradicts itself: " $0
}' said >wrong
expect 0 '^$' cat wrong
expect 0 '^ +(same|-) .* → .* [0-9,]+ → [0-9,]+ ' cat said
expect 0 '^Totals have no verdict: A and B did different work\.$' "$weir" diff a.weir b.weir
expect 1 '^$' sh -c "'$weir' diff a.weir a.weir | grep 'different work'"
expect 0 'and 1 more run:' "$weir" diff a.weir a.weir -- b.weir
expect 0 'several: weir diff A' "$weir" diff a.weir -- b.weir
expect 0 '"fail_conditions": \[\]' "$weir" diff --json a.weir b.weir
# The parts of the wall time and the critical path are compared, and add up to it.
"$weir" diff --json "$kept/slow.weir" "$kept/fixed.weir" >parts.json
expect 0 '^4 times the whole$' python3 -c '
import json
d = json.load(open("parts.json"))
whole = [(side, key) for side in "ab" for key in ("breakdown", "critical_path")
         if sum(row[side] for row in d[key]) == d["totals"]["wall_ns"][side] > 0]
print(len(whole), "times the whole")'
expect 0 ' idle: host in a synchronizing call$' "$weir" diff "$kept/slow.weir" "$kept/fixed.weir"
expect 1 'FAIL +path_host > 1ns' "$weir" diff -f 'path_host > 1ns' "$kept/slow.weir" "$kept/fixed.weir"
expect 2 'There are idle, idle_launch_bound, ' "$weir" diff -f 'idl > 1ns' a.weir b.weir
# A sum of the calls that were timed is not said to be that of all.
expect 0 ' time in driver calls that were timed$' "$weir" diff "$kept/slow.weir" "$kept/fixed.weir"
expect 0 '^ +1,773 .* driver calls that were only counted$' "$weir" diff "$kept/slow.weir" "$kept/fixed.weir"
expect 0 '"untimed_calls": \{"text": "[^"]*", "a": 1773, ' "$weir" diff --json "$kept/slow.weir" "$kept/fixed.weir"
expect 0 ' time in driver calls$' "$weir" diff a.weir b.weir
# If the work differs, a change of a total of times is that of a step or a launch.
expect 0 'pass +host_total > \+900%: [+-][0-9.]+ % a launch, since A and B did different work$' \
	"$weir" diff -f 'host_total > +900%' a.weir b.weir
expect 0 'pass +host_total > \+900%: \+0.0 %$' "$weir" diff -f 'host_total > +900%' a.weir a.weir
expect 1 'FAIL +wall per launch < \+0%: -[0-9.]+ % a launch$' "$weir" diff -f 'wall per launch < +0%' "$kept/fixed.weir" "$kept/slow.weir"
expect 1 'FAIL +launches per step > \+5%: \+265\.4 % a step$' \
	"$weir" diff -f 'launches per step > +5%' "$kept/fixed.weir" "$kept/slow.weir"
expect 1 'FAIL +step > \+5%: \+[0-9.]+ % of step$' "$weir" diff -f 'step > +5%' "$kept/fixed.weir" "$kept/slow.weir"
expect 0 'pass +launch of \*gemm\* > \+90%: ' "$weir" diff -f 'launch of *gemm* > +90%' a.weir b.weir
expect 0 'pass +request p95 > 1000s: ' "$weir" diff -f 'request p95 > 1000s' a.weir b.weir
expect 2 'per what\? There are launch, step and request' "$weir" diff -f 'wall per day > +1%' a.weir b.weir
expect 0 'pass +launches > \+5%: -[0-9.]+ %' "$weir" diff -f 'launches > +5%' a.weir b.weir
expect 1 'FAIL +launches < -5%: -[0-9.]+ %' "$weir" diff -f 'launches < -5%' a.weir b.weir
expect 1 'FAIL +count of \*gemm\* > 3: [0-9]+ of ' "$weir" diff -f 'count of *gemm* > 3' a.weir b.weir
expect 1 '"failed": true' "$weir" diff --json -f 'wall > 1ns' -f 'wall > 1000s' a.weir b.weir
expect 0 'nothing to compare, no recording has that name' "$weir" diff -f 'p95 of nobody > 1ns' a.weir b.weir
expect 2 "which metric. There are count, total" "$weir" diff -f 'kernel > 5%' a.weir b.weir

# A loop whose host is far ahead of the device: what a step takes is told by the device.
build=$(cd "$(dirname "$weir")/.." && pwd)
loop() { # TRACE WAVE
	WEIR_SIM=launch=500ns,wave=$2 "$weir" record --sim --gpu -q -o "$1" -- \
		"$build/tests/cli/programs/phases" 4 || echo "phases: failed"
}
if [ -e "$build/lib/weir/sim/libcupti.so.13" ] && [ -e "$build/tests/cli/programs/phases" ]; then
	loop eager.weir 1142us
	loop compiled.weir 624500ns
	expect 0 'faster +<0.1 % +4.57 ms → 2.50 ms +1.83× +±[0-9.]+ % +4.57 ms → 2.50 ms .* 20 +forward$' \
		"$weir" diff eager.weir compiled.weir
	expect 0 'slower +<0.1 % +2.50 ms → 4.57 ms +0.55× ' "$weir" diff compiled.weir eager.weir
	expect 0 '45.7 ms → 25.0 ms +1.83× .* 2 +warming up$' "$weir" diff eager.weir compiled.weir
	expect 0 '"name": "forward", .*"span_p50_ns": 4570000, .*"span_p50_ns": 2500000, .*"factor": 1.828,' \
		"$weir" diff --json eager.weir compiled.weir
	expect 0 '2.50 ms +[0-9.]+ [nu]s +nvtx +forward$' "$weir" report compiled.weir
	# A column that other profilers do not have is explained below it.
	for command in 'report compiled.weir' 'diff eager.weir compiled.weir'; do
		expect 0 'span on device' "$weir" $command
		expect 0 '^Span on device: from the start of the first GPU activity .* to the end of the last,$' \
			"$weir" $command
	done
	loop eager2.weir 1142us
	loop compiled2.weir 624500ns
	expect 0 'faster +<0.1 % +45.7 ms → 25.0 ms +1.83× +±[0-9.]+ % .* 2 +warming up$' \
		"$weir" diff eager.weir eager2.weir -- compiled.weir compiled2.weir
	"$weir" record --sim -q -o host.weir -- "$build/tests/cli/programs/phases" 4
	expect 0 'operators and phases by their time on the host' "$weir" diff eager.weir host.weir
	expect 1 '^$' sh -c "'$weir' report host.weir | grep 'Span on device:'"
	expect 0 '4.57 ms → - +[0-9.]+× host .* 20 +forward$' "$weir" diff eager.weir host.weir
	expect 1 'FAIL +phase p50 of forward > \+5%: \+82.8 % of forward$' \
		"$weir" diff -f 'phase p50 of forward > +5%' compiled.weir eager.weir
	expect 0 'pass +phase p50 of forward > \+5%' "$weir" diff -f 'phase p50 of forward > +5%' \
		eager.weir compiled.weir
fi

expect 2 'name two recordings' "$weir" diff a.weir
expect 2 'name two recordings' "$weir" diff a.weir b.weir a.weir
expect 2 'name two recordings' "$weir" diff -- a.weir b.weir
expect 2 'name two recordings' "$weir" diff
expect 2 "'slowness' is no metric. There are slower, .*.weir diff --fail-on=help. lists all" "$weir" diff -f 'slowness > 3' a.weir b.weir
expect 2 "'peak' is no metric. .*peak_bytes" "$weir" diff -f 'peak > 3' a.weir b.weir
expect 2 "'launchs' is no metric. There are launch, launches, " "$weir" diff -f 'launchs > 3' a.weir b.weir
expect 2 "'krenel' is no metric. There are kernel, " "$weir" diff -f 'krenel p50 > 3' a.weir b.weir
expect 2 "'p90' is no metric. There are p50, p95, p99, " "$weir" diff -f 'call p90 > 3' a.weir b.weir
# Before a row's metric none of the run's can stand, so none is offered.
"$weir" diff -f 'kernel walls > 3' a.weir b.weir 2>said || :
expect 1 '^$' grep -E ' wall,|peak_bytes' said
expect 0 "'walls' is no metric. There are count, total, mean, " cat said
expect 0 '^ +graph_launches +the whole run +3 +launches of graphs$' "$weir" diff --fail-on=help
expect 0 '^ +p50 +each row +10ms +the median time' "$weir" diff -f help a.weir b.weir
expect 2 'write \+5%' "$weir" diff -f 'wall > 5%' a.weir b.weir
expect 2 '--threshold wants a percentage' "$weir" diff -t x a.weir b.weir
expect 2 'nowhere.weir' "$weir" diff a.weir nowhere.weir

# A file that was cut off has lost calls: nothing is said of how much its program did, and nothing is there twice.
whole=$kept/../live/resnet.weir
for size in 40000 90000 140000 190000 240000 280000; do
	head -c $size "$whole" >cut.weir
	expect 0 '^A lost calls or is damaged, so what both did is not compared\.$' "$weir" diff cut.weir "$whole"
	expect 0 '^B lost calls or is damaged, so what both did is not compared\.$' "$weir" diff "$whole" cut.weir
	expect 0 'the file was cut off' "$weir" report cut.weir
	"$weir" report cut.weir >said
	expect 1 '^0$' grep -c 'here twice' said
done

# Calls that are not in the part are not missing.
expect 0 '^Neither A nor B made a CUDA call in the part that was read' "$weir" diff --before=1ns "$whole" "$whole"

expect 0 ';cuLaunchKernel;.* [0-9]+$' "$weir" flame a.weir
expect 0 '' "$weir" flame -o a.svg a.weir
expect 0 '</svg>' cat a.svg
expect 0 '^600$' stat -c %a a.svg
expect 0 'speedscope.app/file-format-schema' "$weir" flame -f speedscope a.weir
expect 0 'GPU activities were not recorded; weir record --gpu records them. --by host has the time of the calls' "$weir" flame --by device a.weir
expect 2 'there are device and host' "$weir" flame --by moon a.weir
expect 2 'is no format: there are svg' "$weir" flame -f png a.weir
expect 2 'choose with --format' "$weir" flame -o a.png a.weir
expect 2 'nowhere.weir' "$weir" flame nowhere.weir
expect 3 "can't be written" "$weir" flame -o no/where.svg a.weir
finish
