# Exports a generated trace as a snapshot for pytorch.org/memory_viz and has Python read it as the
# viewer does: memory_viz.sh BUILD.
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$build/tests/gen-trace" -n 160000 -t 2 -s 7 a.weir 2>/dev/null
"$build/bin/weir" export -f memory_viz -o a.pickle a.weir
peak=$("$build/bin/weir" memory --json a.weir | sed -n 's/^	"peak_bytes": \([0-9]*\),*/\1/p')
python3 "$here/memory_viz.py" a.pickle "$peak"
# The check must be able to fail.
! python3 "$here/memory_viz.py" a.pickle 1 2>/dev/null
