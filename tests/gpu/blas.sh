#!/bin/sh
# Calls of cuBLAS and cuBLASLt in recordings: their FLOPs are 2 m n k each, the kernels are theirs,
# and what a recorded call costs more than one without Weir.
#
#	sh tests/gpu/blas.sh BUILD [WORK]
#
# Needs a GPU and the toolkit with cuBLAS; without PyTorch that part is left out, and says so.
# Exits 1 when something is not as it should be, 3 when something is missing.
set -u
build=$(cd "$1" && pwd)
work=${2:-$(mktemp -d)}
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
cuda=${CUDA_HOME:-/usr/local/cuda}
python=${PYTHON:-python3}
failed=0

gcc -O2 -I"$cuda/include" -o "$work/blas" "$here/programs/blas.c" -L"$cuda/lib64" -L"$cuda/lib" \
	-Wl,-rpath,"$cuda/lib64:$cuda/lib" -lcublas -lcublasLt -lcudart || exit 3
"$work/blas" 1 || exit 3

# check REPORT EXPECTED...: NAME=COUNT=FLOPS of operators, or all=FLOPS of everything by cuBLAS.
check() {
	"$python" - "$@" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
rows = {o["name"]: o for o in report["operators"] if o["name"].startswith("cublas")}
kernels = sum(k["count"] for k in report["kernels"] if k.get("device_total_ns"))
bad = False
for name, o in sorted(rows.items()):
    print(f"  {name}: {o['count']} calls, {o['device_count']} pieces of work in {o['device_total_ns']} ns, "
          f"{o['flops']} FLOPs, {o['bytes']} bytes, {o['unit']}, bound by {o['class']}, "
          f"{100 * (o['flops_share'] or 0):.1f} % of the peak")
    if not o["device_count"] >= o["count"] or not o["device_total_ns"]:
        print(f"  {name}: calls without work")
        bad = True
for expected in sys.argv[2:]:
    name, *values = expected.split("=")
    if name == "all":
        have = [sum(o["flops"] or 0 for o in rows.values())]
    else:
        have = [rows[name]["count"], rows[name]["flops"]] if name in rows else []
    if [float(v) for v in values] != have:
        print(f"  {name}: {have}, expected {values}")
        bad = True
print(f"  {sum(o['device_count'] for o in rows.values())} pieces of work are theirs, of {kernels} kernels")
sys.exit(bad)
PY
}

count=10
echo "a C program:"
"$weir" record -q --gpu -o "$work/c.weir" -- "$work/blas" $count || failed=1
"$weir" report --json --top=0 "$work/c.weir" >"$work/c.json" || failed=1
check "$work/c.json" \
	cublasGemmEx=$count=$((count * 2 * 4096 * 2048 * 1024)) \
	cublasSgemm_v2=$count=$((count * 2 * 512 * 256 * 128)) \
	cublasGemmStridedBatchedEx=$count=$((count * 2 * 8 * 256 * 128 * 64)) \
	cublasLtMatmul=$count=$((count * 2 * 1024 * 512 * 2048)) || failed=1
grep -q '"cublasLtMatmul"' "$work/c.json" || failed=1

if "$python" -c 'import torch; torch.zeros(1).cuda()' 2>/dev/null; then
	echo "PyTorch:"
	flops=$("$weir" record -q --gpu -o "$work/t.weir" -- "$python" "$here/programs/blas_torch.py" $count) ||
		failed=1
	"$weir" report --json --top=0 "$work/t.weir" >"$work/t.json" || failed=1
	check "$work/t.json" "all=$flops" || failed=1
else
	echo "PyTorch: not installed here"
fi

# In turns, so that both see the same machine.
echo "a call that launches nothing, ns (alone, recorded, recording off):"
for round in 1 2 3 4 5; do
	# cuBLAS itself prints a line for each call that it refuses.
	"$work/blas" calls 100 | grep -E '^[A-Za-z0-9_]+ +[0-9.]+$' >"$work/alone"
	"$weir" record -q -o "$work/n.weir" -- "$work/blas" calls 100 |
		grep -E '^[A-Za-z0-9_]+ +[0-9.]+$' >"$work/recorded"
	"$weir" record -q --level=off -o "$work/n.weir" -- "$work/blas" calls 100 |
		grep -E '^[A-Za-z0-9_]+ +[0-9.]+$' >"$work/off"
	paste "$work/alone" "$work/recorded" "$work/off" |
		awk '{ printf "  %-6s %8s %8s %8s   +%.1f  %+.1f\n", $1, $2, $4, $6, $4 - $2, $6 - $2 }'
done
exit $failed
