# A program as users write them, built by nvcc with a runtime of the simulated driver and run: nvcc.sh LIBRARIES FORM.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc -arch=sm_90 -cudart "$2" -L "$1" -o "$work/program" "$(dirname "$0")/nvcc_program.cu"
LD_LIBRARY_PATH=$1 "$work/program"
