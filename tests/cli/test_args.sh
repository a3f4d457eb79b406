# Kernels' arguments: kept when asked for, switched while a program runs, told by exports.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
program=$build/tests/hostile/programs/launch_args
[ -e "$build/lib/weir/libweir.so" ] && [ -e "$build/lib/weir/sim/libcuda.so.1" ] || exit 0
[ -x "$program" ] || exit 0
cd "$scratch" || exit 1

launches() {
	"$weir" export -f ndjson "$1" | grep '"name":"cuLaunchKernel"'
}

keys() {
	launches "$1" | grep "\"scalars\":\[$2\]" | sed 's/.*"key":"\([^"]*\)".*/\1/' | sort -u | wc -l
}

expect 0 'a scalar: 0' "$weir" record --sim -q --args -o a.weir -- "$program" sim
expect 0 'a scalar: 0' "$weir" record --sim -q --args --no-pack -o raw.weir -- "$program" sim
expect 0 'a scalar: 0' "$weir" record --sim -q -o none.weir -- "$program" sim

# Two launches of each scalar with buffers in two places, and one key.
for trace in a.weir raw.weir; do
	for scalar in 1 2 3; do
		expect 0 '^2$' sh -c "$weir export -f ndjson $trace | grep -c '\"scalars\":\\[0,$scalar\\]'"
		[ "$(keys $trace "0,$scalar")" = 1 ] || expect 0 "one key for $scalar in $trace" false
	done
	[ "$(keys $trace '0,[123]')" = 3 ] || expect 0 "a key a scalar in $trace" false
done
expect 0 'args=\(0,3\)' "$weir" export -f csv a.weir
expect 0 '"scalar_count":512' "$weir" export -f ndjson a.weir
launches none.weir | grep -q '"key"' && expect 0 'no arguments without --args' false
launches a.weir | sed 's/"begin_ns.*"function"/"function"/; s/"function":"[^"]*"//' >packed
launches raw.weir | sed 's/"begin_ns.*"function"/"function"/; s/"function":"[^"]*"//' >plain
expect 0 '^$' cmp packed plain

# Kernels with times as a table, from another tool's trace; a recording without times has none.
expect 0 '15 kernels|' "$weir" import -q -o k.weir "$2/tests/golden/kineto/eager.json"
expect 0 '^trace,app,order,kernel,.*,args7,flops,bytes,ns,contended,sampled$' "$weir" export -f dataset k.weir
expect 0 '^16$' sh -c "$weir export -f dataset k.weir | wc -l"
expect 0 '^\| rows \| 15 \|$' "$weir" export -f dataset-card k.weir
expect 2 'has no kernel with a device time' "$weir" export -f dataset a.weir

# The bit is switched apart from the level, which keeps it.
expect 0 '' "$weir" record --sim -q --no-pack --level=off -o live.weir -- sh -c "
	$weir ctl live.weir args; $weir ctl live.weir status; $weir ctl live.weir work
	$weir ctl live.weir status; $weir ctl live.weir no-args; $weir ctl live.weir status
	$weir ctl live.weir nonsense 2>&1 | grep -o no-args"
printf 'off args\nwork args\nwork\nno-args\n' >wanted
expect 0 '^$' sh -c "printf '%s\n' '$output' | cmp - wanted"
finish
