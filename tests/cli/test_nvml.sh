# The state of the GPUs beside a recording (weir record --nvml), with the simulated NVML.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
[ -e "$build/lib/weir/sim/libnvidia-ml.so.1" ] && [ -e "$build/lib/weir/libweir.so" ] || exit 0
cd "$scratch" || exit 1
app=$build/examples/vecadd

value() { # KEY FILE: what stands behind the key, on its line
	"$weir" report --json "$2" | grep -o "\"$1\": {[^}]*}" | head -n 1
}
processes() {
	"$weir" report --json "$1" | sed -n '/"processes": \[/,/\]/p' | grep -c '"pid"'
}

# The first sample is when the program begins and the last when it has ended, so there are two at least,
# however quick the program is; of three or more, the second and third have the low clock.
WEIR_SIM_NVML=slow=1-2 "$weir" record --sim -q --nvml=1ms -o slow.weir -- "$app" >out 2>&1 || cat out
# A clock that fell while kernels ran is a hint, and one that did not is none.  The kernels take most of the time, however
# slow the host is: a hint about less than one in a hundred is not given.
for slow in 2-1000000 1000000-1000001; do
	WEIR_SIM=time=real,kernel=vecadd:3:0.2ns WEIR_SIM_NVML=slow=$slow "$weir" record --sim -q --gpu --nvml=1ms -o clock.weir -- "$app" >out 2>&1 || cat out
	"$weir" hints clock.weir >>hints.txt
done
expect 0 'slow-clock: GPU whose clock fell while it was busy' cat hints.txt
expect 0 'kernels ran for .* while the SM clock was below its highest, at 1200 to 1980 MHz.*the driver says: power cap' cat hints.txt
expect 0 '^1$' grep -c '[0-9][.] slow-clock' hints.txt
expect 0 '"min": 60, "median": [0-9]+, "max": [0-9]+' value utilization_pct slow.weir
expect 0 '"min": 8589934592, "median": 8589934592, "max": 8589934592' value memory_used_bytes slow.weir
expect 0 '"min": 1200, "median": [0-9]+, "max": 1980' value sm_clock_mhz slow.weir
expect 0 '"min": 500, "median": [0-9]+, "max": 700' value power_w slow.weir
expect 0 '"min": 1000000' value pcie_tx_bytes_per_s slow.weir
expect 0 'GPU clock below its highest while busy' "$weir" report slow.weir
expect 0 '1,200 +60.6 % +- +power cap' "$weir" report slow.weir
expect 0 '"sm_clock_mhz": 1200, "kernel_ns": null, "reasons": \["power cap"\]' "$weir" report --json slow.weir

# The sampler is none of the recorded processes, and adds no call.
"$weir" record --sim -q -o without.weir -- "$app" >out 2>&1 || cat out
expect 0 '^1$' processes slow.weir
expect 0 "$("$weir" report --json without.weir | grep '"calls": [0-9]')" "$weir" report --json slow.weir
expect 0 '"gpu_state": null' "$weir" report --json without.weir

# Both forms of the file say the same; so does a flight recording.
WEIR_SIM_NVML=slow=1-2 "$weir" record --sim -q --no-pack --nvml=1ms -o raw.weir -- "$app" >out 2>&1
expect 0 '1,200 +60.6 % +- +power cap' "$weir" report raw.weir
WEIR_SIM_NVML=slow=1-2 "$weir" record --sim -q --flight=1M --nvml=1ms -o flight.weir -- "$app" >out 2>&1
expect 0 '1,200 +60.6 % +- +power cap' "$weir" report flight.weir

# An idle GPU's clock is low for no reason that slows a program.  A value that a GPU does not tell
# is not there.
WEIR_SIM_NVML=idle,slow=1-2 "$weir" record --sim -q --nvml=1ms -o idle.weir -- "$app" >out 2>&1
expect 0 '"slow_ns": 0, "slow": \[\]' "$weir" report --json idle.weir
WEIR_SIM_NVML=bare,slow=1-2 "$weir" record --sim -q --nvml=1ms -o bare.weir -- "$app" >out 2>&1
expect 0 '"power_w": null' "$weir" report --json bare.weir
expect 0 '1,200 +60.6 % +- +not said' "$weir" report bare.weir

# If there are several GPUs, those that the program used, if the recording says which.
WEIR_SIM_NVML=gpus=4 "$weir" record --sim --gpu -q --nvml=1ms -o four.weir -- "$app" >out 2>&1
expect 0 '^1$' sh -c "'$weir' report --json four.weir | grep -o '\"samples\": [0-9]*' | wc -l"

# A part of a recording has the samples of that part alone.
expect 0 '"gpu_state": null' "$weir" report --json --before 1ns slow.weir

# Refusals come before the program is run.
expect 2 'nvml=soon: give a time' "$weir" record --sim --nvml=soon -o no.weir -- "$app"
expect 3 "can't begin: Driver Not Loaded" env WEIR_SIM_NVML=refuse "$weir" record --sim --nvml -o no.weir -- "$app"
expect 3 'comes with NVIDIA' env LD_LIBRARY_PATH= "$weir" record --nvml -o no.weir -- "$app"
[ -e no.weir ] && { echo "a refusal left a trace"; failures=$((failures + 1)); }

finish
