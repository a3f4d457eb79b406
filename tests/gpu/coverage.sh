#!/bin/sh
# The kernels that Weir sees against those that CUPTI sees, in the same run, for each way in
# which programs reach the driver.  Prints a Markdown table; exits 1 unless every row is whole.
#
#	sh tests/gpu/coverage.sh BUILD [WORK]
#
# Needs a GPU, nvcc and CUPTI; rows whose Python packages are missing are left out, and say so.
set -u
build=$(cd "$1" && pwd)
work=${2:-$(mktemp -d)}
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
cuda=${CUDA_HOME:-/usr/local/cuda}
failed=0

lib=$(for d in "$cuda/extras/CUPTI/lib64" "$cuda/lib64" "$cuda/lib" "$cuda/targets/x86_64-linux/lib"; do
	ls "$d"/libcupti.so* 2>/dev/null; done | head -n 1)
[ -n "$lib" ] || lib=$(find / -name 'libcupti.so*' -not -path '/proc/*' 2>/dev/null | head -n 1)
[ -n "$lib" ] || { echo "no libcupti here"; exit 3; }
inc=$(for d in "$cuda/extras/CUPTI/include" "$cuda/include" "$cuda/targets/x86_64-linux/include" "$(dirname "$lib")/../include"; do
	[ -f "$d/cupti.h" ] && echo "$d"; done | head -n 1)

gcc -shared -fPIC -O2 -I"$inc" -I"$cuda/include" -o "$work/count_kernels.so" "$here/count_kernels.c" \
	"$lib" -Wl,-rpath,"$(dirname "$lib")" || exit 3
nvcc -o "$work/static" "$here/programs/kernels.cu" || exit 3
nvcc -cudart shared -o "$work/shared" "$here/programs/kernels.cu" || exit 3
nvcc -default-stream per-thread -o "$work/per_thread" "$here/programs/kernels.cu" || exit 3
nvcc -shared -Xcompiler -fPIC -DLIBRARY -o "$work/libkernels.so" "$here/programs/kernels.cu" || exit 3
gcc -o "$work/loader" "$here/programs/loader.c" -ldl || exit 3
gcc -O2 -o "$work/vecadd" "$here/../../examples/vecadd.c" -ldl 2>/dev/null || cp "$build/examples/vecadd" "$work/vecadd"

row() { # NAME PROGRAM…
	name=$1
	shift
	rm -f "$work/count"
	if ! CUDA_INJECTION64_PATH=$work/count_kernels.so CUPTI_COUNT=$work/count \
		"$weir" record -q -o "$work/row.weir" -- "$@" >"$work/out" 2>&1; then
		echo "| $name | - | - | the program failed: $(tail -n 1 "$work/out" | cut -c1-80) |"
		failed=1
		return
	fi
	seen=$("$weir" report --json "$work/row.weir" | python3 -c 'import json,sys; t=json.load(sys.stdin)["totals"]; print(t["launches"], t["lost"], t["calls"])')
	size=$(stat -c %s "$work/row.weir")
	set -- $seen $(cat "$work/count" 2>/dev/null || echo "0 0")
	share=$(awk -v a="$1" -v b="$4" 'BEGIN { printf "%.2f %%", b ? 100 * a / b : 0 }')
	[ "$1" = "$4" ] && [ "$4" != 0 ] && [ "$5" = 0 ] || failed=1
	echo "| $name | $4 | $1 | $share | $2 | $(awk -v s="$size" -v c="$3" 'BEGIN { printf "%.1f", s / c }') |"
}

python_row() { # NAME FILE MODULE
	python3 -c "import $3" 2>/dev/null || { echo "| $1 | not installed here | | | | |"; return; }
	row "$1" python3 "$here/programs/$2"
}

echo "| program | kernels by CUPTI | kernels by Weir | share | calls lost | bytes a call |"
echo "|---|---|---|---|---|---|"
row "static runtime" "$work/static"
LD_LIBRARY_PATH=$cuda/lib64:$cuda/lib:${LD_LIBRARY_PATH:-} row "shared runtime" "$work/shared"
row "per-thread default streams" "$work/per_thread"
row "driver API" "$work/vecadd"
row "RTLD_DEEPBIND" "$work/loader" deepbind "$work/libkernels.so"
row "dlmopen" "$work/loader" dlmopen "$work/libkernels.so"
python_row "PyTorch, eager" torch_eager.py torch
python_row "PyTorch, torch.compile with CUDA graphs" torch_compile.py torch
python_row "JAX, jit" jax_jit.py jax
python_row "CuPy" cupy_ops.py cupy
python_row "Triton" triton_kernel.py triton

# Not preloaded: the driver loads the hook, which listens to CUPTI.  CUPTI's count is that of the
# first row, the same program, since only one library can be injected.
rm -f "$work/injected.weir"
CUDA_INJECTION64_PATH=$build/lib/weir/libweir.so WEIR=record:$work/injected.weir \
	LD_LIBRARY_PATH=$(dirname "$lib"):${LD_LIBRARY_PATH:-} "$work/static" >/dev/null 2>&1
"$weir" report --json "$work/injected.weir" | python3 -c '
import json, sys
t = json.load(sys.stdin)["totals"]
print("| static runtime, by CUDA_INJECTION64_PATH alone | 2350 | %d | %.2f %% | %d | (raw) |" % (
    t["launches"], 100 * t["launches"] / 2350, t["lost"]))
sys.exit(t["launches"] != 2350)' || failed=1

python3 -c 'import torch' 2>/dev/null || exit $failed
python3 "$here/programs/profiled.py" >"$work/alone" 2>/dev/null
"$weir" record -q -o "$work/p.weir" -- python3 "$here/programs/profiled.py" >"$work/recorded" 2>/dev/null
if [ -s "$work/alone" ] && cmp -s "$work/alone" "$work/recorded"; then
	echo
	echo "torch.profiler counts the same $(awk '{ n += $1 } END { print n }' "$work/alone") kernels with and without Weir."
else
	echo
	echo "torch.profiler's counts differ:"
	diff "$work/alone" "$work/recorded"
	failed=1
fi
exit $failed
