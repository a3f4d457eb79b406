#!/bin/sh
# Convolutions on the host: conv.sh ROOT WORK.  Then two controls: with taps of a column that read the same pixels, and
# without waiting for free stages, the test must fail.
set -eu
mkdir -p "$2"
cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || { echo "there is no C++ compiler, $cxx"; exit 77; }

build() { # the folder of conv_sm90.cu, the program
	"$cxx" -std=c++17 -O2 -Wall -Wno-unknown-pragmas -I"$1" -I"$root/src/kernels" -I"$root/bench/zoo" \
		"$root/tests/kernels/conv.cc" "$root/bench/zoo/emulate.cc" -o "$2"
}
root=$1
build "$root/src/kernels" "$2/conv"
"$2/conv"

# What a control changes, and that it fails with it.
control() {
	mkdir -p "$2/$1"
	sed "$3" "$root/src/kernels/conv_sm90.cu" >"$2/$1/conv_sm90.cu"
	! cmp -s "$root/src/kernels/conv_sm90.cu" "$2/$1/conv_sm90.cu" || { echo "$1: the source has another form"; exit 1; }
	build "$2/$1" "$2/$1/conv"
	if "$2/$1/conv" few >"$2/$1/log" 2>&1; then
		echo "the test does not see $1"
		exit 1
	fi
}
control taps "$2" 's/r \* g.y.step/0/'
control full-stages "$2" 's/mbarrier_wait(this->empty.*/;/'
