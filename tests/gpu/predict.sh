#!/bin/sh
# Times that are predicted at the launch, on a real GPU: OPT-125m with prompts of five lengths in turns,
# first with nothing known, then with the trace of that run, then with what a run has left.  Prints
# what weir report says.
#
# A length comes in twelve of the sixty forwards, a layer twelve times in each; so with nothing known
# three launches in five must be exact, which leaves time to hear of what ran.  Later runs know all but what
# differs from launch to launch: padding in the parameters of one kernel in twelve is whatever was there.
# Seventeen in twenty must be exact.  Exact answers must be off by less than 5 % in the median, and within
# t90 four times in five.  And two CUDA graphs, replayed in turns, of which nine launches in ten must be
# told as a whole, as well as that.  Exits 1 when something is not so.
#
#	sh tests/gpu/predict.sh BUILD [WORK]
#
# Needs a GPU, CUPTI and PyTorch.
set -u
build=$(cd "$1" && pwd)
work=${2:-$(mktemp -d)}
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
failed=0
python3 -c 'import torch' 2>/dev/null || { echo "PyTorch is not installed here"; exit 3; }

program=opt_loop.py rounds=60
run() { # TITLE NAME OPTIONS…
	title=$1 name=$2
	shift 2
	"$weir" record -q "$@" -o "$work/$name.weir" -- python3 "$here/programs/$program" $rounds \
		>"$work/$name.out" 2>&1 || { echo "$title failed:"; tail -n 3 "$work/$name.out"; failed=1; return; }
	echo "== $title"
	"$weir" report -n 12 "$work/$name.weir" | sed -n '/^Warnings/,/^$/p; /^Predicted times/,/^Kernels by time/p' |
		grep -v '^Kernels by time'
}

run "nothing known" first --predict
run "the trace of that run" warm --predict --history "$work/first.weir"
run "a run that leaves what it learns" left --history "$work/history"
run "what it has left" again --history "$work/history"

judge() { # NAME SHARE
	"$weir" report --json "$work/$1.weir" | python3 -c '
import json, sys
name, wanted = sys.argv[1], float(sys.argv[2])
p = json.load(sys.stdin)["prediction"]
exact = [t for t in p["predictors"] if t["predictor"] == "exact"]
exact = exact[0] if exact else {"launches": 0, "error_median": 9, "error_p90": 9, "covered": 0}
asked = p["launches"] + p["unpredicted"]
share = exact["launches"] / (p["measured"] - p["contended"] + p["unpredicted"] or 1)
good = share >= wanted and exact["error_median"] < 0.05 and 0.8 < exact["covered"] <= 1
print("%-4s %s: of %d launches %d had no answer and %d shared the device; of the others %.0f %% exact, off by "
      "median %.1f %%, p90 %.1f %%; within t90 %.0f %%" % (
    ("ok" if good else "BAD", name, asked, p["unpredicted"], p["contended"], 100 * share) + tuple(
    100 * exact[k] for k in ("error_median", "error_p90", "covered"))))
sys.exit(not good)' "$1" "$2" || failed=1
}

judge first 0.6
judge warm 0.85
judge again 0.85

program=graph_loop.py rounds=300
run "graphs, replayed" graphs --predict
"$weir" report --json "$work/graphs.weir" | python3 -c '
import json, sys
g = json.load(sys.stdin)["prediction"].get("graphs") or {"launches": 0, "error_median": 9, "error_p90": 9, "covered": 0}
good = g["launches"] >= 0.9 * 3000 and g["error_median"] < 0.05 and 0.8 < g["covered"] <= 1
print("%-4s graphs: of 3000 launches %d were predicted, relative error: median %.1f %%, p90 %.1f %%; within t90 %.0f %%" % (
    ("ok" if good else "BAD", g["launches"]) + tuple(100 * g[k] for k in ("error_median", "error_p90", "covered"))))
sys.exit(not good)' || failed=1

if [ -x "$build/bin/bench-launch" ]; then
	echo "what it costs (nanoseconds a launch; CUPTI is in all of them):"
	for run in 1 2 3; do
		"$weir" record -q --level=all --predict -o "$work/b.weir" -- "$build/bin/bench-launch" -c params \
			"$work/b.weir"
	done
fi
exit $failed
