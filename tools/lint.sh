# Runs every check-*.sh: lint.sh BUILD [ROOT].  Each prints what is wrong and where; all run even if
# one fails, as many at a time as there are processors.
tools=$(dirname "$0")
export build=$1 root="${2:-$tools/..}"
printf '%s\n' "$tools"/check-*.sh | xargs -P "$(nproc)" -n 1 sh -c '
	said=$(sh "$1" "$root" "$build" 2>&1)
	status=$?
	word=$([ $status = 0 ] && echo "ok  " || echo BAD)
	printf "%s\n" ${said:+"$said"} "$word $(basename "$1" .sh)"
	exit $status' check
