#!/bin/sh
# Parts of a run on a GPU: as many launches as the part makes, each with its kernel though CUPTI is switched on and off
# around it, and nothing missing.  By the driver's calls, by a program's ranges, and through PyTorch.
#
#	sh tests/gpu/parts.sh BUILD [WORK]
#
# Needs a GPU and CUPTI; PyTorch for the second half, which is left out without it.
set -u
build=$(cd "$1" && pwd)
work=${2:-$(mktemp -d)}
mkdir -p "$work" && cd "$work" || exit 3
weir=$build/bin/weir
python=${PYTHON:-python3}
failed=0

check() { # LAUNCHES OPTION... -- PROGRAM...
	want=$1
	shift
	"$weir" record --gpu -q -o part.weir "$@" || {
		echo "FAILED: weir record $*"
		failed=1
		return
	}
	have=$("$weir" report --json part.weir | "$python" -c '
import json, sys
r = json.load(sys.stdin)
t = r["totals"]
print(t["launches"], t["device_kernels"], r["join"]["joined"], t["missing"], t["surplus"])')
	echo "$have: $*"
	[ "$have" = "$want $want $want 0 0" ] || {
		echo "FAILED: $want expected"
		failed=1
	}
}

cat >part.py <<'PY'
import torch
x = torch.randn(1024, 1024, device="cuda")
def step(n):
    for _ in range(n):
        x @ x
    torch.cuda.synchronize()
for i in range(3):
    step(10)
torch.cuda.profiler.start()
for i in range(2):
    step(10)
torch.cuda.profiler.stop()
torch.cuda.nvtx.range_push("mine")
for _ in range(500):  # runs on long after the range has ended
    x @ x
torch.cuda.nvtx.range_pop()
torch.cuda.synchronize()
with torch.profiler.record_function("function"):
    step(7)
PY
parts=$build/tests/cli/programs/parts
check 155 -- "$parts"
check 15 --capture=profiler -- "$parts"
check 7 --capture=range:inner -- "$parts"
check 18 --capture=step:5-7 -- "$parts"
check 6 --capture=step:3-10 --until-launches=6 -- "$parts"
if "$python" -c 'import torch; torch.zeros(1).cuda()' 2>/dev/null; then
	check 20 --capture=profiler -- "$python" part.py
	check 500 --capture=range:mine -- "$python" part.py
	check 7 --python --capture=range:function -- "$python" part.py
fi
exit $failed
