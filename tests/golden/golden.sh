# Compares what weir says of a generated trace with expected/CASE.
#
#	golden.sh BUILD CASE        one case; exit status 1 and a diff when it differs
#	golden.sh BUILD --update    writes all expected files
set -eu
build=$1 case=$2
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

make_traces() {
	"$build/tests/gen-trace" -n 16000 -t 2 -s 7 -p golden.weir 2>/dev/null
	"$build/tests/gen-trace" -n 0 -t 1 -s 7 empty.weir
	"$build/tests/gen-trace" -n 12000 -t 2 -s 8 -p other.weir 2>/dev/null
	"$weir" import -q -o kineto.weir "$here/kineto/eager.json"
}

# What a case prints; binary formats as hexadecimal of their beginning and a checksum.
say() {
	case $1 in
	text) "$weir" report golden.weir ;;
	all) "$weir" report -n 0 golden.weir ;;
	json) "$weir" report --json golden.weir ;;
	csv | ndjson | chrome) "$weir" export -f "$1" golden.weir | head -n 60 ;;
	perfetto)
		"$weir" export -f perfetto -o out.perfetto golden.weir
		od -A d -t x1 -N 2048 out.perfetto
		cksum <out.perfetto
		;;
	empty) "$weir" report empty.weir ;;
	kineto) "$weir" report -n 0 kineto.weir ;;
	kineto-json) "$weir" report --json kineto.weir ;;
	diff)
		"$weir" diff --fail-on 'p95 > +5%' --fail-on 'launches > 1000000' golden.weir other.weir ||
			echo "exit status $?"
		;;
	diff-json) "$weir" diff --json --fail-on 'errors > 0' golden.weir other.weir kineto.weir -- \
		other.weir golden.weir kineto.weir || [ $? = 1 ] ;;
	flame) "$weir" flame golden.weir ;;
	flame-svg) "$weir" flame -f svg kineto.weir ;;
	flame-json) "$weir" flame -f speedscope kineto.weir ;;
	memory) LC_ALL=C "$weir" memory golden.weir ;;
	memory-blocks) LC_ALL=C.UTF-8 "$weir" memory -n 3 golden.weir ;;
	memory-json) "$weir" memory --json golden.weir | head -n 60 ;;
	rmm) "$weir" export -f rmm golden.weir ;;
	wrong) echo "not what is expected of text" ;;
	esac
}

make_traces
if [ "$case" = --update ]; then
	for name in text all json csv ndjson chrome perfetto empty kineto kineto-json diff diff-json flame flame-svg \
		flame-json memory memory-blocks memory-json rmm; do
		say "$name" >"$here/expected/$name"
	done
	exit 0
fi
say "$case" >got
[ "$case" = wrong ] && case=text
diff -u "$here/expected/$case" got
