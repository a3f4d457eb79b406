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
expect 0 'kernels: [0-9]+ same\.' "$weir" diff a.weir a.weir
expect 0 'and 1 more runs' "$weir" diff a.weir a.weir -- b.weir
expect 0 'several: weir diff A' "$weir" diff a.weir -- b.weir
expect 0 '"gates": \[\]' "$weir" diff --json a.weir b.weir
expect 0 'pass +launches > \+5%: -[0-9.]+ %' "$weir" diff -f 'launches > +5%' a.weir b.weir
expect 1 'FAIL +launches < -5%: -[0-9.]+ %' "$weir" diff -f 'launches < -5%' a.weir b.weir
expect 1 'FAIL +count of \*gemm\* > 3: [0-9]+ of ' "$weir" diff -f 'count of *gemm* > 3' a.weir b.weir
expect 1 '"fired": true' "$weir" diff --json -f 'wall > 1ns' -f 'wall > 1000s' a.weir b.weir
expect 0 'nothing to compare' "$weir" diff -f 'p95 of nobody > 1ns' a.weir b.weir

# A loop whose host is far ahead of the device: what a step takes is told by the device.
build=$(cd "$(dirname "$weir")/.." && pwd)
loop() { # TRACE WAVE
	WEIR_SIM=launch=500ns,wave=$2 "$weir" record --sim --gpu -q -o "$1" -- \
		"$build/tests/cli/programs/phases" 4 || echo "phases: failed"
}
if [ -e "$build/lib/weir/sim/libcupti.so.13" ] && [ -e "$build/tests/cli/programs/phases" ]; then
	loop eager.weir 1142us
	loop compiled.weir 624500ns
	expect 0 'faster +<0.1 % +4.57 ms → 2.50 ms +1.83× +4.57 ms → 2.50 ms .* 20 +forward$' \
		"$weir" diff eager.weir compiled.weir
	expect 0 'slower +<0.1 % +2.50 ms → 4.57 ms +0.55× ' "$weir" diff compiled.weir eager.weir
	expect 0 '45.7 ms → 25.0 ms +1.83× .* 2 +warming up$' "$weir" diff eager.weir compiled.weir
	expect 0 '"name": "forward", .*"span_p50_ns": 4570000, .*"span_p50_ns": 2500000, .*"factor": 1.828,' \
		"$weir" diff --json eager.weir compiled.weir
	expect 0 '2.50 ms +[0-9.]+ [nu]s +nvtx +forward$' "$weir" report compiled.weir
	loop eager2.weir 1142us
	loop compiled2.weir 624500ns
	expect 0 'faster +<0.1 % +45.7 ms → 25.0 ms +1.83× .* 2 +warming up$' \
		"$weir" diff eager.weir eager2.weir -- compiled.weir compiled2.weir
	"$weir" record --sim -q -o host.weir -- "$build/tests/cli/programs/phases" 4
	expect 0 'operators and phases by their time on the host' "$weir" diff eager.weir host.weir
	expect 0 '4.57 ms → - +[0-9.]+× host .* 20 +forward$' "$weir" diff eager.weir host.weir
	expect 1 'FAIL +phase p50 of forward > \+5%: \+82.8 % of forward$' \
		"$weir" diff -f 'phase p50 of forward > +5%' compiled.weir eager.weir
	expect 0 'pass +phase p50 of forward > \+5%' "$weir" diff -f 'phase p50 of forward > +5%' \
		eager.weir compiled.weir
fi

expect 2 'name two recordings' "$weir" diff a.weir
expect 2 'name two recordings' "$weir" diff a.weir b.weir a.weir
expect 2 'name two recordings' "$weir" diff -- a.weir b.weir
expect 2 'A is missing' "$weir" diff
expect 2 "'slowness' is no metric" "$weir" diff -f 'slowness > 3' a.weir b.weir
expect 2 'write \+5%' "$weir" diff -f 'wall > 5%' a.weir b.weir
expect 2 '--threshold wants a percentage' "$weir" diff -t x a.weir b.weir
expect 2 'nowhere.weir' "$weir" diff a.weir nowhere.weir

expect 0 ';cuLaunchKernel;.* [0-9]+$' "$weir" flame a.weir
expect 0 '' "$weir" flame -o a.svg a.weir
expect 0 '</svg>' cat a.svg
expect 0 '^600$' stat -c %a a.svg
expect 0 'speedscope.app/file-format-schema' "$weir" flame -f speedscope a.weir
expect 0 'try --by host' "$weir" flame --by device a.weir
expect 2 'there are device and host' "$weir" flame --by moon a.weir
expect 2 'is no format: there are svg' "$weir" flame -f png a.weir
expect 2 'choose with --format' "$weir" flame -o a.png a.weir
expect 2 'nowhere.weir' "$weir" flame nowhere.weir
expect 3 "can't be written" "$weir" flame -o no/where.svg a.weir
finish
