#!/bin/sh
# The kernels over rows on the host: rows.sh ROOT WORK.  Then two controls: without its barriers the source must fail, and
# with one place for what the blocks of a cluster send.
set -eu
mkdir -p "$2"
cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || { echo "there is no C++ compiler, $cxx"; exit 77; }

# Without optimisation: the compiler takes far longer than the programs run.
build() { # the root, the folder of the source, more options, the program
	"$cxx" -std=c++17 -O0 -g1 -Wall -Wno-unknown-pragmas $3 -I"$1/bench/zoo" -I"$2" "$1/tests/kernels/rows.cc" "$1/bench/zoo/emulate.cc" -o "$4"
}
export ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0:handle_sigill=1
# AddressSanitizer sees what the three would see that are left out, which take a third of the time, and prints the place
# where another traps: messages take a quarter of the compiler's time.
build "$1" "$1/src/kernels" "-fsanitize=address,undefined -fno-sanitize=null,object-size,pointer-overflow -fsanitize-undefined-trap-on-error" "$2/rows"
"$2/rows"

sed '/^\t__syncthreads();$/d' "$1/src/kernels/rows.cu" >"$2/rows.cu"
sed '/^\t__syncthreads();$/d' "$1/src/kernels/rows_held.cu" >"$2/rows_held.cu"
sed 's/turn & 1, parity = turn >> 1 & 1/0, parity = turn \& 1/' "$1/src/kernels/rows_ring.cu" >"$2/rows_ring.cu"
cp "$1"/src/kernels/*.cuh "$2"
build "$1" "$2" "" "$2/control"
for what in "that the barriers are missing:" "that a block is a row ahead:rings"; do
	if "$2/control" ${what#*:} >/dev/null 2>&1; then
		echo "the test does not see ${what%:*}"
		exit 1
	fi
done
