#!/bin/sh
# The recordings of an H200 that are kept, reconstructed from some of their launches: busy time within 3 %,
# each of the ten kernels that took longest within 5 % of its own or of all kernels' time.
#
#	sh tests/golden/reconstruction.sh BUILD RATE
build=$(cd "$1" && pwd) rate=$2
cd "$(dirname "$0")/problems" || exit 1
exec "$build/tests/compare-reconstruction" -r "$rate" ./*.weir
