#!/bin/sh
# Kernels for tensor cores on the host: emulated.sh ROOT WORK gemm|conv.  Then the controls of each must fail.  The controls
# of products: no order of the ping-pong's warpgroups, a stage that is released before its products have ended, one that is
# read before its copies have come, rows that are read before the launch before has ended, numbers without their low part, and
# sums where products still read.  The controls of convolutions: taps of a column that read the same pixels, no wait for free
# stages, packed images without a frame, a warpgroup that skips as many stages as it took, results in another phase's pixels, and
# a store whose box is larger than the image.
set -eu
root=$1 work=$2 name=$3
mkdir -p "$work"
cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || { echo "there is no C++ compiler, $cxx"; exit 77; }

options="-std=c++17 -O1 -Wall -Wno-unknown-pragmas -Wno-unused-function"
"$cxx" $options -c "$root/bench/zoo/emulate.cc" -o "$work/emulate.o"
build() { # the folder of the source, the program, more options
	"$cxx" $options $3 -I"$1" -I"$root/src/kernels" -I"$root/bench/zoo" \
		"$root/tests/kernels/$name.cc" "$work/emulate.o" -o "$2"
}
build "$root/src/kernels" "$work/$name" ""
"$work/$name"

# Makes a control's change; with it, these cases must fail.
control() {
	at=$work/$1 source=${4-${name}_sm90.cu}
	mkdir -p "$at"
	cp "$root"/src/kernels/*.cu* "$at" # which include each other
	sed "$3" "$root/src/kernels/$source" >"$at/$source"
	! cmp -s "$root/src/kernels/$source" "$at/$source" || { echo "$1: the source has another form"; exit 1; }
	build "$at" "$at/$name" "-DONLY_$2 -DCONTROL"
	if "$at/$name" >"$at/log" 2>&1; then
		echo "the test does not see $1"
		exit 1
	fi
}
case $name in
gemm)
	control race PINGPONG 's/named_sync(3 + w, 256);/;/; s/named_arrive(4 - w, 256);/;/; s/named_arrive(3, 256);/;/'
	control early-release PINGPONG 's/wgmma_wait<1>();/;/'
	control early-read MMA 's/cp_wait<STAGES - 2>();/cp_wait<STAGES - 1>();/' gemm_sm80.cu
	control launch-ahead FEW 's/launch_wait();/;/' gemm_few.cu
	control low-part SPLIT 's/pass == 1 ? p.b_low : p.b/p.b/' gemm_sm90.cu
	control early-sums FEW 's/named_sync(1, Z::MULTIPLIERS);/;/' gemm_few.cu
	;;
conv)
	control taps FEW 's/r \* y.step/0/'
	control full-stages FEW 's/mbarrier_wait(this->empty.*/;/'
	control frame FEW 's/ - g.pad_w;/;/' conv.cu
	control skip FEW 's/self.blocks(t + step)/self.blocks(t)/' gemm_sm90.cu
	control phase FEW 's/, f.d, column/, all.phase[0].d, column/'
	control box FEW 's/p.d = (a->d - first/p.d = (a->d/' conv.cuh
	;;
esac
