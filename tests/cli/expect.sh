# Sourced by the scripts here.  `expect CODE 'PATTERN' COMMAND...` runs a command and requires
# its exit status and that its output, both streams, contains the pattern of grep -E.

failures=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

expect() {
	want=$1 pattern=$2
	shift 2
	output=$("$@" 2>&1 </dev/null)
	code=$?
	if [ "$code" != "$want" ] || ! printf '%s\n' "$output" | grep -Eq -- "$pattern"; then
		printf 'FAILED: %s\n  exit %s, expected %s with /%s/\n%s\n' "$*" "$code" "$want" \
			"$pattern" "$output"
		failures=$((failures + 1))
	fi
}

finish() {
	[ "$failures" = 0 ] || exit 1
	echo "all as expected"
}
