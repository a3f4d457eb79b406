# Comparisons and flame graphs: what they say of questions that make no sense, and exit statuses.
weir=$1
. "$(dirname "$0")/expect.sh"
gen=$(dirname "$weir")/../tests/gen-trace
kept=$(cd "$(dirname "$0")/../golden/readme" && pwd)
cd "$scratch" || exit 1
"$gen" -n 4000 -t 2 -s 1 -p a.weir 2>/dev/null || exit 1
"$gen" -n 3000 -t 2 -s 2 -p b.weir 2>/dev/null || exit 1

expect 0 'B took .* where A took' "$weir" diff a.weir b.weir
expect 0 'On devices B took .*, 7\.5 times as fast\), from beginning to end .* where A took' \
	"$weir" diff "$kept/slow.weir" "$kept/fixed.weir"
expect 0 'On devices B took .*, 7\.5 times as long\)' "$weir" diff "$kept/fixed.weir" "$kept/slow.weir"
expect 0 "; of kernels grew most, by 13\.4 ms: softmax_warp_forward" "$weir" diff "$kept/fixed.weir" "$kept/slow.weir"
expect 0 'kernels: [0-9]+ same\.' "$weir" diff a.weir a.weir
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
expect 0 '; [0-9,]+ kernels run in place of [0-9,]+; kernels: ' "$weir" diff a.weir b.weir
expect 0 'and 1 more run:' "$weir" diff a.weir a.weir -- b.weir
expect 0 'several: weir diff A' "$weir" diff a.weir -- b.weir
expect 0 '"gates": \[\]' "$weir" diff --json a.weir b.weir
# What the wall time and the critical path consist of is compared, and adds up to it.
"$weir" diff --json "$kept/slow.weir" "$kept/fixed.weir" >parts.json
expect 0 '^4 times the whole$' python3 -c '
import json
d = json.load(open("parts.json"))
whole = [(side, key) for side in "ab" for key in ("breakdown", "critical_path")
         if sum(row[side] for row in d[key]) == d["totals"]["wall_ns"][side] > 0]
print(len(whole), "times the whole")'
expect 0 ' idle: host in a synchronizing call$' "$weir" diff "$kept/slow.weir" "$kept/fixed.weir"
expect 1 'FAIL +path_host > 1ns' "$weir" diff -f 'path_host > 1ns' "$kept/slow.weir" "$kept/fixed.weir"
expect 2 'there are idle, idle_launching, ' "$weir" diff -f 'idl > 1ns' a.weir b.weir
# A sum of the calls that were timed is not said to be that of all.
expect 0 ' time in driver calls that were timed$' "$weir" diff "$kept/slow.weir" "$kept/fixed.weir"
expect 0 '^ +1,773 .* driver calls that were only counted$' "$weir" diff "$kept/slow.weir" "$kept/fixed.weir"
expect 0 '"untimed_calls": \{"a": 1773, ' "$weir" diff --json "$kept/slow.weir" "$kept/fixed.weir"
expect 0 ' time in driver calls$' "$weir" diff a.weir b.weir
expect 0 'pass +launches > \+5%: -[0-9.]+ %' "$weir" diff -f 'launches > +5%' a.weir b.weir
expect 1 'FAIL +launches < -5%: -[0-9.]+ %' "$weir" diff -f 'launches < -5%' a.weir b.weir
expect 1 'FAIL +count of \*gemm\* > 3: [0-9]+ of ' "$weir" diff -f 'count of *gemm* > 3' a.weir b.weir
expect 1 '"fired": true' "$weir" diff --json -f 'wall > 1ns' -f 'wall > 1000s' a.weir b.weir
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
	# What stands in a column that other profilers do not have is said below it.
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
expect 2 "'slowness' is no metric; there are slower, .*; weir diff --fail-on=help lists all" "$weir" diff -f 'slowness > 3' a.weir b.weir
expect 2 "'peak' is no metric; .*peak_bytes" "$weir" diff -f 'peak > 3' a.weir b.weir
expect 2 "'launchs' is no metric; there are launches, " "$weir" diff -f 'launchs > 3' a.weir b.weir
expect 2 "'krenel' is no metric; there are kernel, " "$weir" diff -f 'krenel p50 > 3' a.weir b.weir
expect 2 "'p90' is no metric; there are p50, p95, p99, " "$weir" diff -f 'call p90 > 3' a.weir b.weir
# Before a row's metric none of the run's can stand, so none is offered.
"$weir" diff -f 'kernel walls > 3' a.weir b.weir 2>said || :
expect 1 '^$' grep -E ' wall,|peak_bytes' said
expect 0 "'walls' is no metric; there are count, total, mean, " cat said
expect 0 '^ +graph_launches +the whole run +3 +launches of graphs$' "$weir" diff --fail-on=help
expect 0 '^ +p50 +each row +10ms +the median time' "$weir" diff -f help a.weir b.weir
expect 2 'write \+5%' "$weir" diff -f 'wall > 5%' a.weir b.weir
expect 2 '--threshold wants a percentage' "$weir" diff -t x a.weir b.weir
expect 2 'nowhere.weir' "$weir" diff a.weir nowhere.weir

expect 0 ';cuLaunchKernel;.* [0-9]+$' "$weir" flame a.weir
expect 0 '' "$weir" flame -o a.svg a.weir
expect 0 '</svg>' cat a.svg
expect 0 '^600$' stat -c %a a.svg
expect 0 'speedscope.app/file-format-schema' "$weir" flame -f speedscope a.weir
expect 0 'GPU activities were not recorded; weir record --gpu records them; --by host has the time of the calls' "$weir" flame --by device a.weir
expect 2 'there are device and host' "$weir" flame --by moon a.weir
expect 2 'is no format: there are svg' "$weir" flame -f png a.weir
expect 2 'choose with --format' "$weir" flame -o a.png a.weir
expect 2 'nowhere.weir' "$weir" flame nowhere.weir
expect 3 "can't be written" "$weir" flame -o no/where.svg a.weir
finish
