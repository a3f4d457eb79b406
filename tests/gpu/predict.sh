#!/bin/sh
# Times that are foretold at the launch, on a real GPU: OPT-125m with prompts of several lengths, first
# with nothing known, then with the trace of that run, then with what a run has left.  Prints what
# weir report says; exits 1 when known launches are far off.
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

run() { # TITLE NAME OPTIONS…
	title=$1 name=$2
	shift 2
	"$weir" record -q "$@" -o "$work/$name.weir" -- python3 "$here/programs/opt_loop.py" 60 \
		>"$work/$name.out" 2>&1 || { echo "$title failed:"; tail -n 3 "$work/$name.out"; failed=1; return; }
	echo "== $title"
	"$weir" report -n 12 "$work/$name.weir" | sed -n '/^Warnings/,/^$/p; /^Foretold times/,/^Kernels by time/p' |
		grep -v '^Kernels by time'
}

run "nothing known" first --predict
run "the trace of that run" warm --predict --history "$work/first.weir"
run "a run that leaves what it learns" left --history "$work/history"
run "what it has left" again --history "$work/history"

for name in first warm again; do
	"$weir" report --json "$work/$name.weir" | python3 -c '
import json, sys
p = json.load(sys.stdin)["prediction"]
exact = [t for t in p["tiers"] if t["tier"] == "exact"]
good = bool(exact) and exact[0]["error_median"] < 0.05 and 0.8 < exact[0]["covered"] <= 1
print("%-4s %s: %d of %d launches exact, off by %.1f %% in the middle, %.1f %% at nine of ten; within t90 %.0f %%" % (
    ("ok" if good else "BAD", sys.argv[1], exact[0]["launches"] if exact else 0, p["measured"]) + tuple(
    100 * exact[0][k] if exact else 0 for k in ("error_median", "error_p90", "covered"))))
sys.exit(not good)' $name || failed=1
done

if [ -x "$build/bin/bench-launch" ]; then
	echo "what it costs (nanoseconds a launch; CUPTI is in all of them):"
	for run in 1 2 3; do
		"$weir" record -q --level=all --predict -o "$work/b.weir" -- "$build/bin/bench-launch" -c params \
			"$work/b.weir"
	done
fi
exit $failed
