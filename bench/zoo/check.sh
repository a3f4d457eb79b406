#!/bin/sh
# The zoo without a GPU: check.sh WORK [BUILD [SHAPES]].  Compiles the kernels against the emulator
# and compares each with its oracle, with AddressSanitizer around buffers of exactly the right size.
# Then, where nvcc is, compiles them for the GPU; they must list the same launches, and a recording
# on BUILD's simulated driver must have, launch for launch, what the side table says.
#
# Exits 77, which is "skipped" in ctest, without a C++ compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=''
[ $# -lt 2 ] || build=$(cd "$2" && pwd)
mkdir -p "$1"
cd "$1"
cxx=${CXX:-c++}
kernels="memory reduce gemm grid sort"
command -v "$cxx" >/dev/null || exit 77

for f in $kernels shapes check zoo; do
	"$cxx" -std=c++17 -O1 -g -w -fsanitize=address,undefined -fno-sanitize-recover=all -x c++ \
		-c "$here/$f.cu" -o "$f.emu.o" || exit 1
done
"$cxx" -std=c++17 -O1 -g -fsanitize=address,undefined -c "$here/emulate.cc" -o emulate.emu.o
"$cxx" -fsanitize=address,undefined ./*.emu.o -o emulated
ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0 ./emulated --check \
	--shapes "${3:-1}" >check.txt 2>check.err || { cat check.txt check.err; exit 1; }
echo "$(grep -c '^ok' check.txt) kernels agree with their oracles"
./emulated --dry-run >dry.txt
tail -n 1 dry.txt

PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
command -v nvcc >/dev/null || { echo "no nvcc here: not built for a GPU"; exit 0; }
make -s -j2 -f "$here/Makefile" HERE="$here" CUDART=shared zoo
./zoo --dry-run | cmp - dry.txt
echo "nvcc builds them, and they would run the same shapes"

[ -n "$build" ] || exit 0
LD_LIBRARY_PATH=$build/lib/weir/sim "$build/bin/weir" record --sim --gpu --quiet --level=work \
	-o t.weir -- ./zoo --family sort --shapes 3 --seconds 20 --csv side.csv >/dev/null
"$build/bin/weir" export -f dataset -o samples.csv t.weir
[ "$(wc -l <samples.csv)" = "$(wc -l <side.csv)" ] || { echo "kernels are missing"; exit 1; }
python3 "$here/join.py" samples.csv side.csv >joined.csv
sed 's/radix_count/radix_cost/' side.csv >wrong.csv
if python3 "$here/join.py" samples.csv wrong.csv >/dev/null 2>&1; then
	echo "join.py does not see that names differ"
	exit 1
fi
echo "kernels are recorded in the order of the side table"
