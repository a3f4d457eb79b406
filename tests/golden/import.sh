# Imports a Kineto trace and holds what weir report says of it against the trace itself:
# import.sh BUILD TRACE [wrong].  With `wrong` the report is of a trace that lacks its last events.
set -eu
build=$1 trace=$2
expected=${trace%.json.gz}.expected.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "${3:-}" = wrong ]; then
	head -c 60000 "$trace" >"$work/cut.json"
	"$build/bin/weir" import -q -o "$work/t.weir" "$work/cut.json" 2>/dev/null
else
	"$build/bin/weir" import -q -o "$work/t.weir" "$trace"
fi
"$build/bin/weir" report --json "$work/t.weir" >"$work/report.json"
[ -f "$expected" ] || expected=
"$build/tests/compare-kineto" "$work/report.json" "$trace" $expected
