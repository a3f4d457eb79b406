#!/bin/sh
# The recordings of an H200 that are kept, reconstructed from some of their launches: busy time within 3 %,
# each of the ten kernels that took longest within 5 % of its own or of all kernels' time.
#
#	sh tests/golden/reconstruction.sh BUILD RATE
build=$1 rate=$2
cd "$(dirname "$0")/problems" || exit 1
set --
for trace in *.weir; do
	[ "$trace" = launch_bound.fixed.weir ] || set -- "$@" "$trace"
done
status=0
"$build/tests/compare-reconstruction" -r "$rate" "$@" || status=1
# Its kernel runs for 1.14 us by itself, which is measured, and for 1.04 us in a graph, which is not.
"$build/tests/compare-reconstruction" -r "$rate" -b 10 -k 10 launch_bound.fixed.weir || status=1
exit $status
