# Planted problems on the simulated driver, whose law of times is known: those that do not hang on what
# a real device or the host's own speed does.  tests/gpu/problems.sh runs all.
weir=$1 root=$2
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
[ -e "$build/lib/weir/libweir.so" ] && [ -e "$build/lib/weir/sim/libcupti.so.13" ] || exit 0
cd "$scratch" || exit 1

# A wave takes so long that launching it does not matter.
WEIR_SIM=wave=100us
export WEIR_SIM

for program in block_small small_grid tail occupancy_shared occupancy_cliff lane_efficiency leak fragmentation; do
	hint=$(awk -v p="$program" -F ' *[|] *' '$1 == p { print $2 }' "$root/examples/problems/problems.tbl")
	for fixed in '' --fixed; do
		"$weir" record --sim --gpu -q -o "$program$fixed.weir" -- \
			"$build/examples/problems/$program" $fixed >said 2>&1 || cat said
	done
	expect 0 "  1[.] $hint: " "$weir" hints "$program.weir"
	expect 0 'No rule found anything' "$weir" hints "$program--fixed.weir"
	expect 0 '"hints": \[\]' "$weir" hints --json "$program--fixed.weir"
	expect 0 "  1[.] $hint: " "$weir" report "$program.weir"
done

# All gains of a program together are no more than what its twin saves: the device's time, by the law of the simulator,
# to which occupancy does not matter.
number() { sed -n "s/.*\"$1\": \([0-9][0-9]*\).*/\1/p" | head -n 1; }
for program in tail lane_efficiency; do
	gains=$("$weir" hints --json "$program.weir" | sed -n 's/.*"gain_ns": \([0-9]*\).*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }')
	slow=$("$weir" report --json --only devices "$program.weir" | number busy_ns)
	fixed=$("$weir" report --json --only devices "$program--fixed.weir" | number busy_ns)
	expect 0 yes awk -v g="$gains" -v s="$slow" -v f="$fixed" -v p="$program" \
		'BEGIN { print p, g, s - f, (g > 0 && g <= 1.01 * (s - f) ? "yes" : "no") }'
done

expect 0 '"gain_pct": (5[0-9]|4[0-9])' "$weir" hints --json tail.weir
expect 0 'Analysed: .* may save about [0-9.]+ .?s \([0-9.]+ % of the wall time\)' sh -c "$weir hints -n 1 tail.weir | tr '\n' ' '"
expect 0 'record with weir record --gpu' sh -c "$weir record --sim -q -o plain.weir -- \
	$build/examples/problems/tail >&2 && $weir hints plain.weir"
expect 2 'FILE is missing' "$weir" hints
expect 2 'top=many: give a whole number' "$weir" hints -n many tail.weir

# Why the device was idle has one name in the report, on the page and in the rules about it.
sed -n 's/^\t\[WALL_[A-Z]*\] = "\(idle[:,].*\)",$/\1/p' "$root/src/model/timeline.c" >words
expect 0 '^6$' sed -n '$=' words
while IFS= read -r text; do
	grep -qF "\"$text\"" "$root/viewer/charts.js" || echo "the page does not say: $text"
done <words >unsaid
for rule in launch-bound sync-in-loop idle-host; do
	grep "^$rule " "$root/api/hint.tbl" | grep -qFf words || echo "$rule says otherwise"
done >>unsaid
expect 0 '^$' cat unsaid

# Each rule has a problem, and the README has them all; no program makes a GPU lower its clock (cli.nvml).
problems=$root/examples/problems
rows() { sed '/^#/d; /|/!d' "$1" | awk -F ' *[|] *' -v c="$2" '{ print $c }' | sort -u; }
rows "$root/api/hint.tbl" 1 | grep -vE '^(slow-clock|collective-waits)$' >rules
rows "$problems/problems.tbl" 2 >planted
expect 0 '^$' diff rules planted
sed '/^#/d; /|/!d' "$problems/problems.tbl" | awk -F ' *[|] *' '{ print "| `" $1 "` | `" $2 "` | " $3 " | " $4 " |" }' >want
grep '^| `' "$problems/README.md" >have
expect 0 '^$' diff want have
finish
