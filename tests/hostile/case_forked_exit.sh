# Device work is in the trace once: a forked child that leaves by exit() runs the handlers that its
# parent registered, and has its parent's buffers.
. "$(dirname "$0")/paths.sh"
need_hook
make_work forked_exit
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$libs

"$weir" record -q --gpu --sim -o t.weir -- "$programs/fork_exit" >out 2>&1 || {
	echo "record: $(cat out)"
	bad=1
}
check_readable t.weir || bad=1
grep -q '"device_kernels": 110$' report.json || {
	echo "110 kernels ran, and the trace has: $(grep '"device_kernels"' report.json)"
	bad=1
}
[ $bad = 0 ] && rm -rf "$work"
exit $bad
