# Kernels belong to the call of a library that asked for them, and what it asked for is what they are
# said to have done.
. "$(dirname "$0")/paths.sh"
need_hook
make_work library
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$libs

"$weir" record -q --gpu --sim -o t.weir -- "$programs/library" owned "$libs" >out 2>&1 || {
	echo "record: $(cat out)"
	bad=1
}
"$weir" report --json --top=0 t.weir >report 2>err || bad=1

# expect NAME WHAT: the operator's row has it.
expect() {
	grep -q "{\"name\": \"$1\", \"kind\": \"operator\", .*$2" report && return
	echo "$1: '$2' is not in"
	grep "\"name\": \"$1\"" report
	bad=1
}

expect cublasSgemm_v2 '"count": 5, "device_count": 5,'
expect cublasSgemm_v2 "\"flops\": $((5 * 2 * 64 * 32 * 16)),"
expect cublasSgemm_v2 "\"bytes\": $((5 * 4 * (64 * 16 + 16 * 32 + 64 * 32))),"
expect cublasSgemm_v2 '"unit": "fp32"'
expect cublasStrsm_v2 '"count": 1, "device_count": 1,'
expect cublasStrsm_v2 "\"flops\": $((8 * 8 * 9)), \"bytes\": null,"
[ $bad = 0 ] && rm -rf "$work"
exit $bad
