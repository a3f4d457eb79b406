# If there is no room for a function's parameters, the driver is not asked about it at each launch,
# and the trace says so.
. "$(dirname "$0")/paths.sh"
need_hook
make_work many_functions
cd "$work" || exit 1
bad=0

WEIR_SIM="log=$work/log.%p" timeout 120 "$weir" record -q --args --sim -o t.weir -- \
	"$programs/many_functions" >out 2>&1 || bad=1
[ "$(cat out)" = "0 failed" ] || bad=1
[ $bad = 0 ] || echo "record: $(cat out)"
asked=$(cat log.* | awk '$1 == "cuFuncGetAttribute" { n += $2 } END { print n + 0 }')
[ "$asked" -gt 10000 ] && [ "$asked" -le $((9000 * 8)) ] || {
	echo "the driver was asked for $asked attributes of 9000 functions"
	bad=1
}
[ "$(recorded_count t.weir cuLaunchKernel)" = 14000 ] || {
	echo "$(recorded_count t.weir cuLaunchKernel) launches recorded of 14000"
	bad=1
}
"$weir" report t.weir | grep -q "no room for more functions" || {
	echo "the trace does not say that there was no room"
	bad=1
}
[ $bad = 0 ] && rm -rf "$work"
exit $bad
