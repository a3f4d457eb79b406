# record, report, export and ctl from the outside, on the simulated driver.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
[ -e "$build/lib/weir/libweir.so" ] && [ -e "$build/lib/weir/sim/libcuda.so.1" ] || exit 0
app=$build/examples/vecadd
cd "$scratch" || exit 1

expect 0 '[0-9,]+ calls, [0-9,]+ of them launches, 0 lost' "$weir" record --sim -- "$app"
[ -s weir.weir ] || expect 0 'the default name' false
# Readers that are told no file read that one, and say so where it is in nobody's way.
for reader in report hints memory 'export -f csv' flame 'html -o page.html'; do
	expect 0 '^weir: no file is named: reading weir.weir$' "$weir" $reader
done
expect 0 '^"vecadd"' sh -c "$weir report --only kernels --columns name --csv 2>/dev/null | tail -n +2"
expect 0 '^$' sh -c "$weir report --json 2>/dev/null >named.json; $weir report --json weir.weir | cmp - named.json"
expect 0 'simulated GPU' "$weir" record --sim -q -o a.weir -- "$app"
expect 0 'cuLaunchKernel' "$weir" report a.weir
expect 0 '"lost": 0' "$weir" report --json a.weir
expect 0 'vecadd' "$weir" report -n 1 a.weir
expect 2 "'x' is no level" "$weir" record --level=x -- true
expect 2 "flight=3: give a size of at least" "$weir" record --flight=3 -- true
expect 3 'no-such-dir' "$weir" record -o no-such-dir/t.weir -- true
expect 127 'no-such-program' "$weir" record -- no-such-program
# The loader may start the program: the auditor then sees the loader's own headers.
expect 0 '' "$weir" record --sim -q -o loader.weir -- "$(ls /lib*/ld-linux-*.so.[12] | head -n 1)" "$app"
expect 126 'Permission denied' "$weir" record -- /etc/passwd
expect 127 'no-such' "$weir" record -o b.weir -- ./no-such
expect 37 'no CUDA call was seen' "$weir" record -q -- sh -c 'exit 37'

# If there was nothing to record, somebody says where to look.
expect 0 'weir doctor -- true. says why. Without a GPU, .weir record --sim. simulates' \
	"$weir" record -o none.weir -- true
expect 0 'weir doctor --sim -- true. says why$' "$weir" record --sim -o none.weir -- true
expect 1 '^0$' sh -c "$weir record --sim --level=off -o none.weir -- $app 2>&1 | grep -c doctor"

# Ways of being started that a launcher must not mind: SIGCHLD ignored, standard streams closed.
expect 37 'no CUDA call was seen' timeout -s KILL 20 env --ignore-signal=CHLD "$weir" record -q -- sh -c 'exit 37'
expect 37 '' timeout -s KILL 20 env --ignore-signal=CHLD "$weir" stat -- sh -c 'exit 37'
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
	expect 0 '' sh -c "$weir record --sim -o closed.weir -- $app $closed"
	expect 0 'cuLaunchKernel' "$weir" report closed.weir
done
expect 0 '^closed$' "$weir" record -q -- sh -c '[ -e /proc/self/fd/3 ] || echo closed' 3<&-
expect 3 'could not be written' sh -c "$weir version >&-"
expect 2 'is no trace' "$weir" ctl "$app" off
expect 1 'finished' "$weir" ctl a.weir off

for format in perfetto chrome csv ndjson sqlite; do
	expect 0 '^$' "$weir" export -f $format -o "out.$format" a.weir
	[ -s "out.$format" ] || expect 0 "$format wrote something" false
done
expect 2 'perfetto' "$weir" export a.weir
expect 2 'is no format' "$weir" export -f excel a.weir

# A flight recording keeps the end, and saves what it has when a call fails.
expect 0 '^$' sh -c "$weir record --sim -q --flight=1M -o fly.weir -- $app >/dev/null"
expect 0 '"mode": "flight"' "$weir" report --json fly.weir
expect 1 'fly2.weir.1' env WEIR_SIM=fault=cuMemAlloc_v2:3:2 \
	"$weir" record --sim --flight=1M -o fly2.weir -- "$app"
expect 0 '"errors": 1' "$weir" report --json fly2.weir.1
expect 0 'CUDA_ERROR_OUT_OF_MEMORY' "$weir" report fly2.weir

# A call that fails by design saves nothing, and the real failure behind it does.
probes=$build/tests/cli/programs/probes
if [ -x "$probes" ]; then
	expect 0 '^$' "$weir" record --sim -q --flight=1M -o probed.weir -- "$probes"
	expect 0 '"probes": 20' "$weir" report --json probed.weir
	expect 0 '^$' find . -name 'probed.weir.*'
	expect 0 'a call failed: saved probed.weir.1' "$weir" record --sim --flight=1M -o probed.weir -- "$probes" fails
	expect 0 '"errors": 21' "$weir" report --json probed.weir.1
	expect 0 '^./probed.weir.1$' find . -name 'probed.weir.*'
fi

# A file that is no trace is said to be none, whatever is asked of it.
: >empty
head -c 300 a.weir >cut
printf 'hello\n' >text
for file in empty cut text .; do
	expect 2 "$file" "$weir" report $file
	expect 2 "$file" "$weir" export -f csv $file
done

# A level takes out what it should, and a live recording can be switched.
expect 0 '"launches": null' sh -c "$weir record --sim -q --level=off -o off.weir -- $app >/dev/null &&
	$weir report --json off.weir"
LD_LIBRARY_PATH=$build/lib/weir/sim "$weir" record -q --no-pack --level=off -o live.weir -- \
	sh -c "while [ ! -e on ]; do sleep 0.02; done; exec $app" >/dev/null &
while [ ! -s live.weir ]; do sleep 0.02; done
expect 0 '^off$' "$weir" ctl live.weir status
expect 0 '^$' "$weir" ctl live.weir work
expect 0 '^work$' "$weir" ctl live.weir status
expect 2 "'nonsense' is no command.* off,.* or status" "$weir" ctl live.weir nonsense
: >on
wait
expect 0 '"launches": [1-9]' "$weir" report --json live.weir
expect 0 '"off_ns": [1-9]' "$weir" report --json live.weir
# The versions that it was recorded with.
"$weir" record --sim -q --args -o with.weir -- "$app" >/dev/null
expect 0 '^  device 0: Weir simulated GPU, 132 SMs at up to 1980 MHz, 141 GiB at [0-9]+ MHz$' "$weir" report with.weir
expect 0 "^  CUDA 1[0-9]\.[0-9]+, Weir $("$weir" version | sed 's/weir //'), level full, clock TSC at [0-9.]+ GHz$" "$weir" report with.weir
expect 0 '"level": "work"' sh -c "$weir record --sim -q --level=work -o with.weir -- $app >/dev/null && $weir report --json with.weir"
finish
