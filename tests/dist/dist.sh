# The portable tree that `make dist` made: dist.sh SOURCE BUILD WHAT.  WHAT is `symbols` (tests/dist/symbols.sh),
# `symbols_can_fail`, or `elsewhere`: unpacked into a read-only folder, the tree records, reports and runs.
source=$1 build=$2
here=$(dirname "$0")
. "$here/../cli/expect.sh"
if [ "$3" = symbols_can_fail ]; then # the program of an ordinary build needs more
	expect 1 'weir needs GLIBC_2\.3[0-9]' sh "$here/symbols.sh" "$build/bin"
	finish
	exit
fi
set -- "$3" "$source"/dist/weir-*-linux-"$(uname -m)".tar.zst
[ -e "$2" ] || { echo "no portable tree is here; run: make dist"; exit 77; }
[ $# = 2 ] || { echo "several versions are in dist/; remove the old ones: $*"; exit 1; }
zstd -dc "$2" | tar -C "$scratch" -xf - || exit 1
tree=$(echo "$scratch"/weir-*)

if [ "$1" = symbols ]; then
	expect 0 '^8 programs and libraries$' sh "$here/symbols.sh" "$tree"
	finish
	exit
fi

# Root may write it all the same: that nothing has changed is checked too.
chmod -R a-w "$tree"
sums() {
	(cd "$tree" && find . -type f -exec sha256sum {} + | sort)
}
sums >"$scratch/before"
cd "$scratch" || exit 1
cat >program.py <<'EOF'
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
memory = ctypes.c_void_p()
context = ctypes.c_void_p()
for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
               cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)), cuda.cuMemFree_v2(memory)):
    assert result == 0
EOF
weir=$tree/bin/weir
export PYTHONDONTWRITEBYTECODE=1
expect 0 '^weir [0-9.]+$' "$weir" version
expect 0 '' "$weir" record --sim -q -o x.weir -- python3 program.py
expect 0 ' cuMemAlloc_v2$' "$weir" report x.weir
expect 0 ' cuMemAlloc_v2$' "$weir" stat --sim -- python3 program.py
expect 0 '' "$weir" run --sim -- python3 program.py
expect 0 '' env PYTHONPATH="$tree/lib/weir/python" python3 -c 'import weir; assert weir.open("x.weir")'
sums >"$scratch/after"
expect 0 '^$' diff "$scratch/before" "$scratch/after"
chmod -R u+w "$tree"
finish
