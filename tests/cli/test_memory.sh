# weir memory and the option that limits its tables: what is left out can be asked for.
weir=$1
. "$(dirname "$0")/expect.sh"
"$weir" help memory >/dev/null 2>&1 || exit 0
leak=$2/tests/golden/problems/leak.weir # 202 blocks that are never freed

# The rows below a heading, up to the blank line behind, without the line of column names.
rows_of() { # HEADING COMMAND...
	heading=$1
	shift
	"$@" | awk -v heading="$heading" '$0 ~ "^" heading { on = 1; next } !NF { on = 0 } on && !/…/ { n++ } END { print n - 1 }'
}

expect 0 '^202$' rows_of 'Largest blocks' "$weir" memory -n 0 "$leak"
expect 0 '^202$' rows_of 'Largest blocks' "$weir" memory -n 300 "$leak"
expect 0 '^1$' rows_of 'Largest blocks' "$weir" memory -n 1 "$leak"
expect 0 'and 201 more \(-n 0 shows all\)' "$weir" memory -n 1 "$leak"
expect 0 'and 182 more \(-n 0 shows all\)' "$weir" memory "$leak"
expect 1 '^$' sh -c "$weir memory -n 0 '$leak' | grep 'more (-n'"
expect 0 '^1$' rows_of 'Allocations on the GPU by size' "$weir" memory -n 1 "$leak"
expect 0 '^2$' rows_of 'Allocations on the GPU by size' "$weir" memory -n 0 "$leak"
expect 0 '^202$' sh -c "$weir memory --json -n 0 '$leak' | sed -n '/^[[:space:]]\"live\": /,/^[[:space:]]]/p' | grep -c '\"address\"'"
expect 0 '^100$' sh -c "$weir memory --json '$leak' | sed -n '/^[[:space:]]\"live\": /,/^[[:space:]]]/p' | grep -c '\"address\"'"

# How long calls took, and what was reserved without being live: as text, JSON and CSV.
expect 0 ' 1\.4 % +202 .* cuMemAlloc_v2$' "$weir" memory "$leak"
expect 0 'worst   1.00 MiB of 6.00 MiB reserved were not live' "$weir" memory "$leak"
expect 0 '"unused_bytes": 1048576, "unused_share": 0.166667, "blocks": 2' "$weir" memory --json "$leak"
expect 0 '^name,waits,count,timed_count,' "$weir" report --only allocation_calls --csv "$leak"
expect 0 '^"?cuMemAlloc_v2"?,false,202,202,' "$weir" report --only allocation_calls --csv "$leak"
expect 0 '^961$' sh -c "$weir report --only memory_over_time --csv -n 0 '$leak' | wc -l"

# The report has few of them, and the same option.
expect 0 '^5$' rows_of 'Largest blocks' "$weir" report "$leak"
expect 0 'and 197 more \(-n 0 shows all\)' "$weir" report "$leak"
expect 0 '^2$' rows_of 'Largest blocks' "$weir" report -n 2 "$leak"
expect 0 '^202$' rows_of 'Largest blocks' "$weir" report -n 0 "$leak"

# Other allocators: what is replayed, which, and the picture.
"$weir" import -q -o "$scratch/opt.weir" "$2/tests/golden/alloc/opt-varlen.csv.gz"
expect 0 '^  17,?131 allocations from the program.s own allocator, 1 stream; at most 2.35 GiB' \
	"$weir" memory --replay "$scratch/opt.weir"
expect 0 '^5$' sh -c "$weir memory --replay '$scratch/opt.weir' | grep -c ' ms  [a-z]'"
expect 0 '^1$' sh -c "$weir memory -r'pytorch' '$scratch/opt.weir' | grep -c ' ms  [a-z]'"
expect 0 ' 202 allocations from the driver, 1 stream; at most 205 MiB' "$weir" memory --replay "$leak"
expect 0 'these are its segments' "$weir" memory --replay "$leak"
expect 0 '"minimum_limit_bytes": 2533359616,' "$weir" memory --replay=pool --handle=2M --json "$scratch/opt.weir"
expect 0 '"minimum_limit_bytes": null,' "$weir" memory --replay=driver --json "$scratch/opt.weir"
expect 0 '^  minimum limit of the pool: 2.38 GiB' "$weir" memory --replay -o "$scratch/r.svg" "$scratch/opt.weir"
expect 0 '^5$' sh -c "grep -c '<polyline' '$scratch/r.svg'"
expect 0 '^<svg' "$weir" memory --replay -o - "$scratch/opt.weir"
expect 1 '^$' sh -c "'$weir' memory --replay -o - '$scratch/opt.weir' | grep reserved:"
expect 2 'give a list with commas of pool, pytorch, expandable and driver' "$weir" memory --replay=what "$leak"
expect 2 'of pool, pytorch' "$weir" memory --replay=pool, "$leak"
for size in 3M 1M 128M 0 much; do
	expect 2 'handle=.*: give a (power of two|size from 2.00 MiB to 64.0 MiB)' "$weir" memory --replay --handle=$size "$leak"
done
expect 2 'give --replay too' "$weir" memory -o "$scratch/x.svg" "$leak"
expect 3 "can't write /no/such" "$weir" memory --replay -o /no/such/x.svg "$leak"
[ -e "$scratch/x.svg" ] && { echo "a picture that nobody asked for"; exit 1; }
printf 'action,addr,size\nfree,4096,\n' >"$scratch/none.csv"
"$weir" import -q -o "$scratch/none.weir" "$scratch/none.csv"
expect 2 'has no allocations of device memory to replay' "$weir" memory --replay "$scratch/none.weir"
printf 'action,addr,size\nalloc,4096,140000000000000\n' >"$scratch/huge.csv"
"$weir" import -q -o "$scratch/huge.weir" "$scratch/huge.csv"
expect 3 'more addresses than the pool can have' "$weir" memory --replay=pool "$scratch/huge.weir"
expect 0 ' 127 TiB +100.0 %' "$weir" memory --replay=driver "$scratch/huge.weir"
finish
