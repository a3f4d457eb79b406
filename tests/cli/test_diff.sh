# Comparisons and flame graphs: what they say of questions that make no sense, and exit statuses.
weir=$1
. "$(dirname "$0")/expect.sh"
gen=$(dirname "$weir")/../tests/gen-trace
cd "$scratch" || exit 1
"$gen" -n 4000 -t 2 -s 1 -p a.weir 2>/dev/null || exit 1
"$gen" -n 3000 -t 2 -s 2 -p b.weir 2>/dev/null || exit 1

expect 0 'B took .* where A took' "$weir" diff a.weir b.weir
expect 0 'kernels: [0-9]+ same\.' "$weir" diff a.weir a.weir
expect 0 'and 1 more runs' "$weir" diff a.weir a.weir -- b.weir
expect 0 'several: weir diff A' "$weir" diff a.weir -- b.weir
expect 0 '"gates": \[\]' "$weir" diff --json a.weir b.weir
expect 0 'quiet +launches > \+5%: -[0-9.]+ %' "$weir" diff -f 'launches > +5%' a.weir b.weir
expect 1 'FIRED +launches < -5%: -[0-9.]+ %' "$weir" diff -f 'launches < -5%' a.weir b.weir
expect 1 'FIRED +count of \*gemm\* > 3: [0-9]+ of ' "$weir" diff -f 'count of *gemm* > 3' a.weir b.weir
expect 1 '"fired": true' "$weir" diff --json -f 'wall > 1ns' -f 'wall > 1000s' a.weir b.weir
expect 0 'nothing to compare' "$weir" diff -f 'p95 of nobody > 1ns' a.weir b.weir

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
