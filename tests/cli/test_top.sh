# weir top for scripts: what it says of programs while they run, and where there are none.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir steady=$build/tests/cli/programs/steady
[ -e "$build/lib/weir/sim/libnvidia-ml.so.1" ] && [ -e "$steady" ] || exit 0
cd "$scratch" || exit 1
mkdir -m 700 s
top="$weir top --share $scratch/s --interval 50ms"

# Nothing to show is an answer.  Other recordings of this user may run meanwhile.
expect 0 'programs": \[' $top --once --json
expect 2 'no terminal' $top
expect 2 'from 50ms' $weir top --interval 1ms
expect 2 'from 50ms' $weir top --interval often

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
# Numbers, and above 0: how large they are depends on the machine.
expect 0 '^0\.0*[1-9]|^[1-9]' of busy '"best-effort"' # its times are looked up while a latency program is there
expect 0 '^[1-9]' of requests_per_s '"latency"' # a request is from the first launch to its synchronisation
expect 0 '^latency$' sh -c "$top --once --json | grep -o '\"class\": \"latency' | sed 's/.*\"//' | head -n 1"
expect 0 '^[1-9]' of calls_per_s '"recorded": true'
expect 0 '^[1-9]' of launches_per_s '"recorded": true'
expect 0 '^null' of class '"recorded": true'
expect 0 'recorded .* steady' $top --once
expect 0 'best-effort .* steady' $top --once

# The GPUs, where there is NVML, and not where it is missing or refuses.
LD_LIBRARY_PATH=$build/lib/weir/sim
export LD_LIBRARY_PATH
expect 0 '"utilization_pct": [0-9]+, "memory_used_bytes": 8589934592' $top --once --json
expect 0 '500 W +64 °C +1980 MHz  Weir simulated GPU' $top --once
expect 0 '"gpus": \[\]' env WEIR_SIM_NVML=refuse $top --once --json

# Those that have ended are gone.
kill "$recorded" "$shared" "$latency"
wait
expect 0 '^0$' sh -c "$top --once --json | grep -c '\"shares\": true'; true"

finish
