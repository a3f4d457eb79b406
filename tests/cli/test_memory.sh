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
expect 0 '^202$' sh -c "$weir memory --json -n 0 '$leak' | grep -c '\"address\"'"
expect 0 '^100$' sh -c "$weir memory --json '$leak' | grep -c '\"address\"'"

# The report has few of them, and the same option.
expect 0 '^5$' rows_of 'Largest blocks' "$weir" report "$leak"
expect 0 'and 197 more \(-n 0 shows all\)' "$weir" report "$leak"
expect 0 '^2$' rows_of 'Largest blocks' "$weir" report -n 2 "$leak"
expect 0 '^202$' rows_of 'Largest blocks' "$weir" report -n 0 "$leak"
finish
