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
command -v "$cxx" >/dev/null || { echo "there is no C++ compiler, $cxx"; exit 77; }

# Two at a time: compilers, then families.  To optimise would take longer than the programs run.  AddressSanitizer sees
# what the three would see that are left out, and prints the place where another traps.
sanitize='-fsanitize=address,undefined -fno-sanitize=null,object-size,pointer-overflow -fsanitize-undefined-trap-on-error'
for f in $kernels shapes check zoo; do echo "$f"; done | xargs -P2 -I% "$cxx" -std=c++17 -O0 -g1 -w \
	$sanitize -x c++ -c "$here/%.cu" -o %.emu.o
"$cxx" -std=c++17 -O0 -g1 $sanitize -c "$here/emulate.cc" -o emulate.emu.o
"$cxx" -fsanitize=address,undefined ./*.emu.o -o emulated
./emulated --dry-run >dry.txt 2>/dev/null
export ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0:handle_sigill=1
awk 'NR > 1 && !/launches/ { print $1 }' dry.txt | uniq | xargs -P2 -I% sh -c \
	'./emulated --check --family % --shapes '"${3:-1}"' >check.%.txt 2>check.%.err' ||
	{ grep -hv '^ok' check.*.txt check.*.err; exit 1; }
echo "$(cat check.*.txt | grep -c '^ok') kernels agree with their oracles"
tail -n 1 dry.txt

PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
command -v nvcc >/dev/null || { echo "no nvcc here: not built for a GPU"; exit 0; }
# No GPU runs these, so that nvcc need not optimise them.
make -s -j2 -f "$here/Makefile" HERE="$here" CUDART=shared FLAGS='-arch=sm_90 -std=c++17 -O0 -Xptxas -O0 -Xcicc -O0' zoo
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
