# Planted problems as they were recorded on an H200 (tests/gpu/problems.sh): the right hint comes first,
# and the twin gets none.  problems.sh BUILD [ID]: expects ID instead of what is right.
build=$1 wrong=${2-}
here=$(cd "$(dirname "$0")" && pwd)
table=$here/../../examples/problems/problems.tbl
bad=0 seen=0
for trace in "$here"/problems/*.weir; do
	name=$(basename "$trace" .weir)
	first=$("$build/bin/weir" hints --json "$trace" |
		sed -n 's/.*"id": "\([^"]*\)".*/\1/p' | head -n 1)
	want=
	case $name in
	*.fixed) ;;
	*) want=${wrong:-$(awk -v n="$name" -F ' *[|] *' '$1 == n || $1 == n ".py" { print $2 }' "$table")} ;;
	esac
	seen=$((seen + 1))
	[ "$first" = "$want" ] && continue
	echo "$name: the first hint is '$first', and should be '$want'"
	bad=1
done
[ "$seen" -gt 10 ] || {
	echo "only $seen traces"
	bad=1
}
exit $bad
