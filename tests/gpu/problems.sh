#!/bin/sh
# The planted problems on a real GPU: the right hint must come first on each, and none on its twin.
# Each is timed without Weir as well, so that the estimate can be compared with what the twin saves.
#
#	sh tests/gpu/problems.sh BUILD OUT [PROGRAM...]
#
# Leaves the table in OUT/problems.txt, the hints in OUT/hints.json.txt, and the traces that are small
# enough to keep in OUT/problems.tar.  Exits 1 unless every row is right; rows of PyTorch programs
# are left out where there is no PyTorch.
set -u
build=$(cd "$1" && pwd)
mkdir -p "$2" && out=$(cd "$2" && pwd)
shift 2
here=$(cd "$(dirname "$0")/../../examples/problems" && pwd)
weir=$build/bin/weir
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/problems" "$work/run"
cp "$here"/*.py "$work/run" # so that the traces speak of no place but this
find "$build/examples/problems" -maxdepth 1 -type f -perm -u+x -exec cp {} "$work/run" \;
python=
python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null && python=yes
ranges=${PROBLEMS_RECORD-} # more options of weir record for the PyTorch programs: --python, say

sed -n '/^#/d; /|/p' "$here/problems.tbl" | awk -F ' *[|] *' '{ print $1, $2 }' >"$work/table"
if [ $# != 0 ]; then
	for wanted; do grep "^$wanted " "$work/table"; done >"$work/chosen"
	mv "$work/chosen" "$work/table"
fi

is_python() { case $1 in *.py) true ;; *) false ;; esac; }

# The hints of one run: ID GAIN a line.
hints() { # PROGRAM VARIANT [--fixed]
	trace=$work/problems/${1%.py}$2.weir
	if is_python "$1"; then
		set -- "$1" "$2" $ranges -- python3 "$1" ${3:-}
	else
		set -- "$1" "$2" --level all -- "./$1" ${3:-}
	fi
	name=$1$2
	shift 2
	(cd "$work/run" && timeout 100 "$weir" record -q --gpu -o "$trace" "$@") >"$work/said" 2>&1 ||
		echo "failed: $(tail -n 1 "$work/said" | cut -c 1-100)"
	"$weir" hints --json "$trace" >"$work/json"
	{ echo "== $name $(stat -c %s "$trace") bytes, $(cat "$work/said" | head -n 2 | tr '\n' ' ')"
		cat "$work/json"; } >>"$out/hints.json.txt"
	sed -n 's/.*"id": "\([^"]*\)".*"gain_pct": \([^,]*\),.*/\1 \2/p' "$work/json"
}

# Microseconds of the hot part of a program: the best of three, without Weir.
hot() {
	for i in 1 2 3; do "$build/examples/problems/$1" $2; done |
		awk '$1 == "hot" && (!n++ || $2 < best) { best = $2 } END { print n ? best : 0 }'
}

: >"$out/hints.json.txt"
: >"$work/times"
while read -r program hint; do
	is_python "$program" || echo "$program $(hot "$program" '') $(hot "$program" --fixed)"
done <"$work/table" >"$work/times"
if [ -n "$python" ]; then
	scripts=$(awk '$1 ~ /\.py$/ { sub(/\.py$/, "", $1); print $1 }' "$work/table")
	[ -z "$scripts" ] || (cd "$here" && timeout 200 python3 measure.py $scripts 2>"$work/complaint" |
		sed 's/ /.py /') >>"$work/times"
	[ ! -s "$work/complaint" ] || tail -n 2 "$work/complaint"
fi

while read -r program hint; do
	is_python "$program" && [ -z "$python" ] && continue
	hints "$program" '' >"$work/sick"
	hints "$program" .fixed --fixed >"$work/well"
	echo "$program $hint $(head -n 1 "$work/sick" | tr ' ' '\t' | cut -f 1,2 | tr '\t' ' ') / $(
		cut -d ' ' -f 1 "$work/well" | tr '\n' ' ')"
done <"$work/table" | awk -v times="$work/times" '
	BEGIN {
		while ((getline line < times) > 0) {
			split(line, t, " ")
			if (t[2] > 0 && t[3] > 0)
				measured[t[1]] = 100 * (1 - t[3] / t[2])
		}
		printf "%-22s %-20s %-20s %9s %9s  %s\n", "program", "expected", "first hint",
			"estimate", "measured", "hints of the twin"
	}
	{
		twin = $0
		sub(/^[^\/]*\/ */, "", twin)
		right = $3 == $2 && twin == ""
		bad += !right
		known = $1 in measured && $4 ~ /^[0-9]/
		printf "%-22s %-20s %-20s %9s %9s  %s%s\n", $1, $2, $3 == "/" ? "none" : $3,
			known || $4 ~ /^[0-9]/ ? sprintf("%.1f %%", $4) : "-",
			$1 in measured ? sprintf("%.1f %%", measured[$1]) : "-", twin == "" ? "none" : twin,
			right ? "" : "  BAD"
		if (known && $3 == $2)
			error[++n] = $4 > measured[$1] ? $4 - measured[$1] : measured[$1] - $4
	}
	END {
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && error[j] < error[j - 1]; j--) {
				x = error[j]
				error[j] = error[j - 1]
				error[j - 1] = x
			}
		if (n)
			printf "estimates: %d compared, off by %.1f points in the median, %.1f at worst\n", n,
				n % 2 ? error[(n + 1) / 2] : (error[n / 2] + error[n / 2 + 1]) / 2, error[n]
		printf "%d of %d rows are right\n", NR - bad, NR
		exit bad != 0
	}' >"$out/problems.txt"
status=$?
cat "$out/problems.txt"
cd "$work/problems" && find . -name '*.weir' -size -600k | sort | tar -cf "$out/problems.tar" -T -
exit $status
