# weir top for scripts: what it says of programs while they run, and where there are none.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir steady=$build/tests/cli/programs/steady
[ -e "$build/lib/weir/sim/libnvidia-ml.so.1" ] && [ -e "$steady" ] || exit 0
cd "$scratch" || exit 1
mkdir -m 700 s
top="$weir top --share $scratch/s --interval 50ms"

# Nothing to show is an answer.  Other recordings of this user may run meanwhile, but not in a new space of processes.
expect 0 'programs": \[' $top --once --json
if unshare -pf --mount-proc true 2>/dev/null; then
	expect 0 'no program shares a GPU or is recorded' unshare -pf --mount-proc $top --once
fi
expect 2 'no terminal' $top
expect 2 'from 50.0 ms' $weir top --interval 1ms
expect 2 'from 50.0 ms' $weir top --interval often

program() { # OPTION...: starts it, and waits until it runs
	"$weir" "$@" -- "$steady" >>out 2>&1 &
	while ! grep -q runs out; do :; done
	: >out
}
: >out
program run --sim --share "$scratch/s" --class latency
latency=$!
program run --sim --share "$scratch/s" --class best-effort
shared=$!
program record --sim -q -o r.weir
recorded=$!
of() { # KEY PATTERN-OF-PROGRAM: the number behind the key, in the row of such a program
	$top --once --json | grep '"program": "steady"' | grep "$2" | sed "s/.*\"$1\": \([^,}]*\).*/\1/" | head -n 1
}
# In one interval a program may not have had a processor: what is shown comes in one of many.
shown() { # PATTERN COMMAND...
	for try in $(seq 100); do
		output=$(shift; "$@" 2>&1 </dev/null)
		printf '%s\n' "$output" | grep -Eq -- "$1" && return
	done
	expect 0 "$@"
}
# Numbers, and above 0: how large they are depends on the machine.
shown '^0\.0*[1-9]|^[1-9]' of busy '"best-effort"' # its times are looked up while a latency program is there
shown '^[1-9]' of requests_per_s '"latency"' # a request is from the first launch to its synchronisation
shown '^latency$' sh -c "$top --once --json | grep -o '\"class\": \"latency' | sed 's/.*\"//' | head -n 1"
shown '^[1-9]' of calls_per_s '"recorded": true'
shown '^[1-9]' of launches_per_s '"recorded": true'
shown '^null' of class '"recorded": true'
# Unknown values are not 0: how busy a GPU was, without --gpu; what only a program has that shares.
shown ' recorded +- +[1-9][0-9]* +[1-9][0-9]* +- +- +- +- +steady' $top --once
for class in best-effort latency; do
	shown " $class +[0-9.]+ % +[1-9][0-9]* +- +[0-9.]+ +[0-9.]+ [mun]?s +[0-9.]+ % +0 B +steady" $top --once
	shown '^[1-9]' of launches_per_s "\"$class\""
done
shown '"waits_for": null, "launches_per_s": [0-9.]+, "calls_per_s": [0-9.]+, "lost_calls": 0}' $top --once --json
shown 'best-effort .* steady' $top --once

# The GPUs, where there is NVML, and not where it is missing or refuses.
LD_LIBRARY_PATH=$build/lib/weir/sim
export LD_LIBRARY_PATH
expect 0 '"utilization_pct": [0-9]+, "memory_used_bytes": 8589934592' $top --once --json
expect 0 '500 W +64 °C +1980 MHz  Weir simulated GPU' $top --once
expect 0 '"gpus": \[\]' env WEIR_SIM_NVML=refuse $top --once --json
# A Jetson without NVML has files in its place.
if unshare -m mount -t tmpfs none /sys/devices 2>/dev/null; then
	on_jetson() {
		LD_LIBRARY_PATH= unshare -m sh -c 'mount -t tmpfs none /sys/devices && mkdir /sys/devices/gpu.0 &&
			echo 437 >/sys/devices/gpu.0/load && exec "$@"' jetson "$@"
	}
	expect 0 '"utilization_pct": 44, "memory_used_bytes": [0-9]+, .*"power_mw": null' on_jetson $top --once --json
	expect 0 'nvml +none, files in /sys/devices/gpu.0 in its place' on_jetson "$weir" doctor --sim
	on_jetson "$weir" record --sim -q --nvml -o jetson.weir -- "$build/examples/vecadd" >out 2>&1
	expect 0 '"device": 0, .*' "$weir" report --json --only gpu_state jetson.weir
fi

# Without a quota, too, memory is counted: 64 MiB of weights, and 320 MiB that its pool keeps.
WEIR_SIM=time=real "$weir" run --sim --share "$scratch/s" -- "$build/examples/steps" -1 >>out 2>&1 &
steps=$!
shown ' 384 MiB +steps' $top --once
expect 0 '"memory_used_bytes": 402653184' $top --once --json
expect 0 '"used_bytes": (67108864|402653184)' "$weir" sched --share "$scratch/s" status --json

# Nobody counts the calls of a program that is recorded at level off.
WEIR_SIM=time=real "$weir" record --sim -q -l off -o off.weir -- "$build/examples/steps" -1 >>out 2>&1 &
off=$!
shown ' recorded +- +- +- +- +- +- +- +steps' $top --once
shown '"lost_calls": null' $top --once --json

# Ended programs are gone.
kill "$recorded" "$shared" "$latency" "$steps" "$off"
wait
expect 0 '^0$' sh -c "$top --once --json | grep -c '\"shares\": true'; true"

finish
