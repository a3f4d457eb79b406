#!/bin/sh
# Device times of one launch in N, by events, against those of all launches, by CUPTI.  Prints, kernel by kernel, the medians and how far they are apart, which is what the events
# take; exits 1 when kernels are missing, when a sampled median is below CUPTI's by
# more than a microsecond and 5 %, or when there are not about as many samples as there should be.
#
#	sh tests/gpu/sample.sh BUILD [WORK]
#
# Needs a GPU and CUPTI; nvcc for the one program, PyTorch for the other.
set -u
build=$(cd "$1" && pwd)
work=${2:-$(mktemp -d)}
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
python=${PYTHON:-python3}
failed=0

cat >"$work/loop.py" <<'PY'
import torch
layer = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True).half().cuda().eval()
x = torch.randn(8, 128, 512, dtype=torch.half, device="cuda")
with torch.inference_mode():
    for i in range(600):
        layer(x)
        if i % 50 == 49:
            torch.cuda.synchronize()
torch.cuda.synchronize()
PY

cat >"$work/compare.py" <<'PY'
import json, sys
def read(path):
    report = json.load(open(path))
    return report, {k["name"]: k for k in report["kernels"]}
(whole, all_), (part, some) = read(sys.argv[1]), read(sys.argv[2])
rate = part["totals"]["sampled"]
bad = rate != int(sys.argv[3])
timed = launches = 0
print(f"{'runs':>7} {'timed':>6} {'CUPTI p50':>10} {'sampled':>9} {'apart':>8}  kernel")
for name, k in sorted(all_.items(), key=lambda e: -e[1]["count"]):
    if k["device_p50_ns"] is None or k["graph_count"]:
        continue
    s = some.get(name)
    launches += k["count"]
    if s is None or s["device_p50_ns"] is None:
        if k["count"] > 20 * rate:
            print(f"{k['count']:7} {'none':>6} {k['device_p50_ns']:10}  {name[:60]}: BAD")
            bad = True
        continue
    timed += s["device_timed"]
    apart = s["device_p50_ns"] - k["device_p50_ns"]
    low = s["device_timed"] >= 10 and apart < -1000 - k["device_p50_ns"] / 20
    bad |= low
    print(f"{k['count']:7} {s['device_timed']:6} {k['device_p50_ns']:10} {s['device_p50_ns']:9} {apart:+8}  {name[:60]}"
          + (": BAD" if low else ""))
share = timed * rate / launches if launches else 0
print(f"{timed} of {launches} launches timed: {share:.2f} of one in {rate}")
for w in part["warnings"]:
    print("  warning:", w)
sys.exit(bad or not .7 < share < 1.2)
PY

compare() { # TITLE NAME RATE PROGRAM…
	title=$1 name=$2 rate=$3
	shift 3
	for how in "" "=sample:$rate"; do
		"$weir" record -q --gpu$how -o "$work/$name$how.weir" -- "$@" >"$work/$name.out" 2>&1 ||
			{ echo "$title: failed under --gpu$how:"; tail -n 3 "$work/$name.out"; failed=1; return; }
		"$weir" report --json --top=0 "$work/$name$how.weir" >"$work/$name$how.json"
	done
	echo "== $title"
	"$python" "$work/compare.py" "$work/$name.json" "$work/$name=sample:$rate.json" "$rate" || failed=1
}

if nvcc -o "$work/kernels" "$here/programs/kernels.cu" 2>/dev/null; then
	compare "kernels.cu, one launch in 8" kernels 8 "$work/kernels"
else
	echo "no nvcc here: kernels.cu is left out"
fi
if "$python" -c 'import torch; torch.zeros(1).cuda()' 2>/dev/null; then
	compare "a PyTorch layer, one launch in 8" torch 8 "$python" "$work/loop.py"
	compare "a PyTorch layer, one launch in 64" torch64 64 "$python" "$work/loop.py"
else
	echo "no PyTorch with a GPU here: the layer is left out"
fi

exit $failed
