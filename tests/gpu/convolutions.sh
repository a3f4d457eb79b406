#!/bin/sh
# FLOPs of convolutions, by what weir report says of a recording with --python=shapes and of a trace of
# torch.profiler, against what PyTorch counts itself; a step back is twice a step forward.  Prints the numbers;
# exits 1 when they differ.
#
#	sh tests/gpu/convolutions.sh BUILD [WORK]
#
# Needs a GPU and PyTorch.
set -u
build=$(cd "$1" && pwd)
work=${2:-$(mktemp -d)}
program=$(cd "$(dirname "$0")" && pwd)/programs/convolutions.py
weir=$build/bin/weir
python=${PYTHON:-python3}

forward=$("$python" "$program" --count 2>/dev/null) || { echo "PyTorch does not count here"; exit 1; }
"$weir" record -q --gpu --python=shapes -o "$work/live.weir" -- "$python" "$program" || exit 1
"$python" "$program" --profile "$work/profiled.json" 2>/dev/null || exit 1
"$weir" import -q -o "$work/profiled.weir" "$work/profiled.json"
failed=0
for trace in live profiled; do
	"$weir" report --json --top=0 "$work/$trace.weir" >"$work/$trace.json"
	"$python" - "$forward" "$trace" "$work/$trace.json" <<'END' || failed=1
import json, sys
forward, trace = int(sys.argv[1]), sys.argv[2]
rows = {o["name"]: o for o in json.load(open(sys.argv[3]))["operators"]}
wanted = {"aten::convolution": forward, "aten::_convolution": forward, "aten::convolution_backward": 2 * forward}
bad = False
for name, flops in wanted.items():
    told = rows.get(name, {}).get("flops")
    bad |= told != flops
    print("%-9s %-28s %12s FLOPs, PyTorch: %12d%s" % (trace, name, told, flops, "" if told == flops else ": BAD"))
sys.exit(bad)
END
done
exit $failed
