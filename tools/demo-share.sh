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

# One request program, for so many seconds, behind the words that start it.
requests() {
	$1 "$load" latency --work kernel,us=240,blocks=64,threads=256,amount=12000 --batch 10 --arrival closed \
		--pause 25000 --seconds "$2"
}

# The same for the other one.
background() {
	$1 "$load" best-effort --work kernel,us=620,blocks=264,threads=256,amount=31000 --batch 32 --seconds "$2"
}

row() {
	printf '%s\t%s\t%s\t%s\n' "$1" "$(number p50_us "$scratch/lc")" "$(number p95_us "$scratch/lc")" \
		"$(number rate_s "$scratch/be")" >>"$scratch/rows"
}

alone() {
	requests "$1" .6 >"$scratch/lc"
	background "$1" .5 >"$scratch/be"
	row alone
}

# How it is called, and what runs before each program.
together() {
	background "$3" 1.5 >"$scratch/be" &
	be=$!
	requests "$2" .3 >/dev/null # both have met
	requests "$2" .9 >"$scratch/lc"
	wait $be
	row "$1"
}

echo
echo 'Two programs on one simulated GPU: bursts of ten kernels of 0.24 ms beside kernels of 0.62 ms'
plain="env LD_LIBRARY_PATH=$build/lib/weir/sim"
alone "$plain"
together 'time slices' "$plain" "$plain"
together 'weir run' "$weir run --sim --share $scratch/s --class latency --" \
	"$weir run --sim --share $scratch/s --class best-effort --"
{
	printf 'how\tp50 us\tp95 us\tkernels/s of the other\n'
	cat "$scratch/rows"
} >"$scratch/table"
column -t -s '	' "$scratch/table" 2>/dev/null || cat "$scratch/table"
awk -F '\t' '
	{ p50[$1] = $2; p95[$1] = $3; rate[$1] = $4 }
	END {
		if (p95["alone"] > 1.5 * p50["alone"]) {
			printf "This machine is too busy to tell: alone, one burst in twenty took %.1f times as long as the median.\n",
				p95["alone"] / p50["alone"]
			exit
		}
		printf "The median burst takes %.1f times as long as alone with time slices, and %.1f times with weir run.\n",
			p50["time slices"] / p50["alone"], p50["weir run"] / p50["alone"]
		printf "Under weir run the other program keeps %.0f %% of its rate.\n", 100 * rate["weir run"] / rate["alone"]
	}' "$scratch/rows"
