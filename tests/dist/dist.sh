# The portable tree that `make dist` made: dist.sh SOURCE BUILD WHAT.  WHAT is `symbols` (tests/dist/symbols.sh),
# `symbols_can_fail`, or `elsewhere`: unpacked into a read-only folder, the tree works (tests/dist/try.sh).
source=$1 build=$2
here=$(realpath "$(dirname "$0")")
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
. "$here/try.sh"
try_weir "$tree/bin/weir"
expect 0 '' env PYTHONPATH="$tree/lib/weir/python" python3 -c 'import weir; assert weir.open("x.weir")'
sums >"$scratch/after"
expect 0 '^$' diff "$scratch/before" "$scratch/after"
chmod -R u+w "$tree"
finish
