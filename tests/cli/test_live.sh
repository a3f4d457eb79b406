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

expect 0 ' 204 .*cuLaunchKernel' "$weir" stat --sim -- "$app"
expect 0 '"name": "cuLaunchKernel".*"count": 204' "$weir" stat --sim --json -- "$app"
expect 37 '' "$weir" stat -- sh -c 'exit 37'

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
finish
