# libweir.so exports the functions of the tables and its own few names, nothing else and nothing
# less: check-exports.sh ROOT BUILD.
library=$2/lib/weir/libweir.so
[ -f "$library" ] || exit 0
want=$(mktemp) have=$(mktemp)
trap 'rm -f "$want" "$have"' EXIT
{
	awk '!/^#/ && NF { print $2 }' "$1/api/cuda.tbl" "$1/api/cudart.tbl"
	awk -v want=names -f "$1/api/library.awk" "$1/api/library.tbl"
	awk '!/^#/ && NF { print $1 }' "$1/tools/hook-exports.txt"
} | sort -u >"$want"
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$have"
comm -13 "$want" "$have" | sed 's/^/  exported, but in no table: /'
comm -23 "$want" "$have" | sed 's/^/  in a table, but not exported: /'
cmp -s "$want" "$have"
