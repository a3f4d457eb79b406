#!/bin/sh
# Products on the host: gemm.sh ROOT WORK.  Then two controls: without the order of the ping-pong's warpgroups, and with a
# stage that is released before its products have ended, the test must fail.
set -eu
mkdir -p "$2"
cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || { echo "there is no C++ compiler, $cxx"; exit 77; }

build() { # the folder of gemm_sm90.cu, the program
	"$cxx" -std=c++17 -O2 -Wall -Wno-unknown-pragmas -I"$1" -I"$root/src/kernels" -I"$root/bench/zoo" \
		"$root/tests/kernels/gemm.cc" "$root/bench/zoo/emulate.cc" -o "$2"
}
root=$1
build "$root/src/kernels" "$2/gemm"
"$2/gemm"

# What a control changes, and that it fails with it.
control() {
	mkdir -p "$2/$1"
	sed "$3" "$root/src/kernels/gemm_sm90.cu" >"$2/$1/gemm_sm90.cu"
	! cmp -s "$root/src/kernels/gemm_sm90.cu" "$2/$1/gemm_sm90.cu" || { echo "$1: the source has another form"; exit 1; }
	build "$2/$1" "$2/$1/gemm"
	if "$2/$1/gemm" pingpong >"$2/$1/log" 2>&1; then
		echo "the test does not see $1"
		exit 1
	fi
}
control race "$2" 's/named_sync(3 + w, 256);/;/; s/named_arrive(4 - w, 256);/;/; s/named_arrive(3, 256);/;/'
control early-release "$2" 's/wgmma_wait<1>();/;/'
