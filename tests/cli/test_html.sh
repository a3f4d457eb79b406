# weir html: what it refuses, and that a page is written whole and for its owner only.
weir=$1 source=$2
. "$source/tests/cli/expect.sh"
gen=$(dirname "$weir")/../tests/gen-trace
"$gen" -n 2000 -t 1 -s 7 "$scratch/a.weir" 2>/dev/null || exit 1

expect 2 'FILE is missing' "$weir" html
expect 2 'is given twice' "$weir" html "$scratch/a.weir" "$scratch/a.weir"
expect 2 'no such file|No such file' "$weir" html "$scratch/missing.weir"
expect 2 'items=[a-z0-9]+: give a whole number' "$weir" html --items many "$scratch/a.weir"
expect 2 'items=[a-z0-9]+: give a whole number' "$weir" html --items 10 "$scratch/a.weir"
expect 3 "can't be written" "$weir" html -o "$scratch/no/page.html" "$scratch/a.weir"
expect 0 '<!doctype html>' "$weir" html "$scratch/a.weir"
expect 3 "can't be written" "$weir" html -o /dev/full "$scratch/a.weir"

expect 0 '^$' "$weir" html -o "$scratch/page.html" "$scratch/a.weir"
expect 0 '^600$' stat -c %a "$scratch/page.html"
expect 0 '^</html>$' tail -n 1 "$scratch/page.html"
# The one address is the name of a namespace.
expect 1 '^$' sh -c "grep -E 'https?://' '$scratch/page.html' | grep -v 'NS(.http://www.w3.org/2000/svg'"
expect 0 '^2$' sh -c "ls '$scratch' | wc -l"
finish
