#!/bin/sh
# The kernels over rows on the host: rows.sh ROOT WORK.  Then the controls must fail: no barriers, one place for what the
# blocks of a cluster send, and slabs that are filled again before their copies to memory have read them.
set -eu
root=$1 work=$2
mkdir -p "$work"
cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || { echo "there is no C++ compiler, $cxx"; exit 77; }

# Without optimisation: the compiler takes far longer than the programs run.
build() { # the folder of the source, more options, the program
	"$cxx" -std=c++17 -O0 -g1 -Wall -Wno-unknown-pragmas $2 -I"$root/bench/zoo" -I"$1" "$root/tests/kernels/rows.cc" "$root/bench/zoo/emulate.cc" -o "$3"
}
export ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0:handle_sigill=1
# AddressSanitizer sees what the three would see that are left out, which take a third of the time, and prints the place
# where another traps: messages take a quarter of the compiler's time.
build "$root/src/kernels" "-fsanitize=address,undefined -fno-sanitize=null,object-size,pointer-overflow -fsanitize-undefined-trap-on-error" "$work/rows"
"$work/rows"

# The source with a change must fail.
control() { # its name, what sed does, the source
	at=$work/$1
	mkdir -p "$at"
	cp "$root"/src/kernels/*.cu* "$at"
	sed "$2" "$root/src/kernels/$3" >"$at/$3"
	! cmp -s "$root/src/kernels/$3" "$at/$3" || { echo "$1: the source has another form"; exit 1; }
	build "$at" -DCONTROL "$at/rows"
	if "$at/rows" >"$at/log" 2>&1; then
		echo "the test does not see $1"
		exit 1
	fi
}
control barriers '/^\t__syncthreads();$/d' rows.cu
control held-barriers '/^\t__syncthreads();$/d' rows_held.cu
control row-ahead 's/turn & 1, parity = turn >> 1 & 1/0, parity = turn \& 1/' rows_ring.cu
control early-refill 's/tma_wait_read<0>();/;/' rows_ring.cu
