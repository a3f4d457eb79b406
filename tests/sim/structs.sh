# The structures of the simulated driver against cuda.h: structs.sh SOURCE.  The compiler checks all of it.
toolkit=${CUDA_HOME:-/usr/local/cuda}/include
[ -e "$toolkit/cuda.h" ] || {
	echo "there is no $toolkit/cuda.h"
	exit 77
}
exec cc -std=gnu17 -fsyntax-only -I "$1/api" -isystem "$toolkit" "$1/tests/sim/structs.c"
