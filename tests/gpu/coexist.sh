#!/bin/sh
# torch.profiler inside `weir record --gpu`: both are told of the same kernels, as many and for
# as long within 1 %, and nobody complains.  The profiler also knows the launch of each kernel by
# its number, from records of calls: what Weir joined without those is compared with them.
#
#	sh tests/gpu/coexist.sh BUILD [WORK]
#
# Needs a GPU and PyTorch.  Exits 1 when they disagree, 3 when something is missing.
set -u
build=$(cd "$1" && pwd)
work=${2:-$(mktemp -d)}
mkdir -p "$work" || exit 3
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
python=${PYTHON:-python3}
"$python" -c 'import torch; torch.zeros(1).cuda()' 2>/dev/null || { echo "no PyTorch with a GPU here"; exit 3; }
failed=0

for when in first late threads again onwards; do
	"$python" "$here/programs/coexist.py" "$work/alone.json" $when >"$work/alone.out" 2>&1 ||
		{ cat "$work/alone.out"; exit 3; }
	"$weir" record -q --gpu -o "$work/$when.weir" -- \
		"$python" "$here/programs/coexist.py" "$work/$when.json" $when >"$work/$when.out" 2>&1 ||
		{ echo "$when: the program failed"; cat "$work/$when.out"; failed=1; continue; }
	if grep -Ei 'cupti|buffer|kineto' "$work/$when.out"; then
		echo "$when: somebody complains of CUPTI"
		failed=1
	fi
	"$weir" report --json --top=0 "$work/$when.weir" >"$work/$when.report" || failed=1
	"$python" - "$work/alone.json" "$work/$when.json" "$work/$when.report" $when <<'PY' || failed=1
import json, sys
alone, told, report = (json.load(open(f)) for f in sys.argv[1:4])
names = set(told["kernels"])
seen = [k for k in report["kernels"] if k["device_total_ns"] is not None and "cauchy" not in k["name"]]
count, ns = sum(k["count"] for k in seen), sum(k["device_total_ns"] for k in seen)
join = report.get("join", {})
print(f"{sys.argv[4]}: profiler alone {alone['count']} kernels; with Weir {told['count']} in {told['ns']} ns; "
      f"Weir {count} in {ns} ns; joined {join.get('joined')} of {join.get('work')}, "
      f"{join.get('checked')} checked; clock {report.get('clock')}")
for w in report["warnings"]:
    print("  warning:", w)
bad = alone["count"] != told["count"]
if sys.argv[4] == "onwards":
    bad |= count != 2 * told["count"]
else:
    bad |= count != told["count"] or abs(ns - told["ns"]) > told["ns"] / 100
bad |= join.get("joined", 0) < .99 * join.get("work", 1)
bad |= any("cauchy" in n for n in names)
sys.exit(bad)
PY
	"$weir" export -f sqlite -o "$work/$when.sqlite" "$work/$when.weir" || failed=1
	"$python" - "$work/$when.json" "$work/$when.sqlite" $when <<'PY' || failed=1
import collections, json, sqlite3, statistics, sys
launches = {int(k): v for k, v in json.load(open(sys.argv[1]))["launches"].items()}
rows = sqlite3.connect(sys.argv[2]).execute(
    "SELECT correlationId, c.tid, c.start, c.end FROM work JOIN calls c USING (pid, correlationId) "
    "WHERE kind = 'kernel' AND graphId IS NULL").fetchall()
rows = [(launches[n], tid, start / 1e3, end / 1e3) for n, tid, start, end in rows if n in launches]
shift = statistics.median(start - l[1] for l, _, start, _ in rows) if rows else 0
# For threads of which it knows no operators, the profiler tells another number: one of theirs is
# one of ours.
pairs = collections.Counter((l[0], tid) for l, tid, _, _ in rows)
ours, theirs = {}, {}
for (their, our), _ in pairs.most_common():
    if their not in ours and our not in theirs:
        ours[their], theirs[our] = our, their
thread = sum(n for (their, our), n in pairs.items() if ours.get(their) == our)
inside = sum(l[1] - 20 <= start - shift and end - shift <= l[1] + l[2] + 20 for l, _, start, end in rows)
print(f"{sys.argv[3]}: of {len(rows)} kernels {thread} joined to a call of the right thread, "
      f"{inside} to the call at the right time")
least = .95 if sys.argv[3] == "threads" else .999
sys.exit(not rows or thread < least * len(rows) or inside < least * len(rows))
PY
done
[ $failed = 0 ] && echo "both are told the same"
exit $failed
