# Runs every check-*.sh: lint.sh BUILD [ROOT].  Each prints what is wrong and where; all run even if
# one fails.
tools=$(dirname "$0")
build=$1 root=${2:-$tools/..}
bad=0
for check in "$tools"/check-*.sh; do
	name=$(basename "$check" .sh)
	if sh "$check" "$root" "$build"; then
		printf 'ok   %s\n' "$name"
	else
		printf 'BAD  %s\n' "$name"
		bad=1
	fi
done
exit $bad
