# Two programs share a simulated GPU, without Weir and with it: demo-share.sh BUILD.  One answers requests, a
# burst of ten kernels each; the other keeps the GPU busy.  The device is twenty times slower than a real one, so
# that it matters little how fast this machine is.
set -e
build=$(cd "$1" && pwd)
weir=$build/bin/weir load=$build/bench/bench-load
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export WEIR_SIM="gpu=$scratch/gpu,time=real,sharing=slices,speed=0.05,clock=host,kernel=spin:1:1ns"

# The member of a line of JSON that is a number.
number() {
	sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" "$2"
}

# One request program, for so many seconds.
requests() {
	$1 "$load" latency --work kernel,us=240,blocks=64,threads=256,amount=12000 --batch 10 --arrival closed \
		--pause 40000 --seconds "$2"
}

# What runs before each program; then what both did is in lc and be.
together() {
	$2 "$load" best-effort --work kernel,us=620,blocks=264,threads=256,amount=31000 --batch 32 \
		--seconds 11 >"$scratch/be" &
	be=$!
	requests "$1" 1 >/dev/null # both have met
	requests "$1" 7 >"$scratch/lc"
	wait $be
	printf '%s\t%s\t%s\t%s\t%s\n' "$3" "$(number p50_us "$scratch/lc")" "$(number p95_us "$scratch/lc")" \
		"$(number p99_us "$scratch/lc")" \
		"$(number rate_s "$scratch/be")"
}

echo
echo 'Two programs on one simulated GPU: bursts of ten kernels of 0.24 ms beside kernels of 0.62 ms'
printf 'how\tp50 us\tp95 us\tp99 us\tkernels/s of the other\n' >"$scratch/table"
LD_LIBRARY_PATH="$build/lib/weir/sim" together "" "" 'time slices' >>"$scratch/table"
together "$weir run --sim --share $scratch/s --class latency --" \
	"$weir run --sim --share $scratch/s --class best-effort --" 'weir run' >>"$scratch/table"
column -t -s '	' "$scratch/table" 2>/dev/null || cat "$scratch/table"
