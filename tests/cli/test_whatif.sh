# Recorded programs on a shared GPU: what weir whatif says of two that the simulated driver was recorded with.  Judged
# by orderings that hold however fast this machine is, and by sums.
weir=$1 source=$2
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
load=$build/bench/bench-load
if ! [ -e "$build/lib/weir/libweir.so" ] || ! [ -e "$load" ]; then exit 0; fi
command -v python3 >/dev/null || exit 0
cd "$scratch" || exit 1

# One sends ten kernels of 30 us on half of the SMs, the other many of 400 us that fill the device.
record() {
	name=$1
	shift
	expect 0 '' env WEIR_SIM=kernel=spin:1:1ns "$weir" record -q --sim --gpu -o "$name.weir" -- "$load" "$@"
}
record lc latency --work kernel,blocks=64,amount=30000 --batch 10 --requests 60 --pause 2000
record be best-effort --work kernel,blocks=2000,amount=50000 --batch 32 --seconds .1

cat >judge.py <<'END'
import json, sys
answer = json.load(open(sys.argv[1]))
lc, be = answer['programs']
assert lc['class'] == 'latency' and be['class'] == 'best-effort', answer['programs']
assert lc['left_out'] == be['left_out'] == lc['untimed'] == be['untimed'] == 0
way = {(w['policy'], s): w['programs'] for w in answer['ways'] for s in ('slices', 'mps') if w['sharing'] in (s, 'both')}
assert len(way) == 10, way.keys()
assert all(w['finished'] for w in answer['ways'])
for programs in way.values():
    assert programs[0]['answered'] == 100
    assert programs[0]['p50_ns'] <= programs[0]['p95_ns'] <= programs[0]['p99_ns']
    assert programs[0]['p50_ratio'] > .98 and 0 < programs[1]['share'] < 1.02, programs
    assert programs[0]['work_ns'] == way[None, 'mps'][0]['work_ns'], 'the same requests each time'
    assert programs[1]['expired'] == 0
assert way[None, 'slices'] == way['fifo', 'slices'], 'fifo is what the driver does'
for sharing in ('slices', 'mps'):
    none, strict, fit = (way[p, sharing] for p in (None, 'strict', 'fit'))
    assert none[1]['waits'] == 0 < strict[1]['waits']
    assert strict[0]['p99_ratio'] < none[0]['p99_ratio'] and fit[0]['p99_ratio'] < none[0]['p99_ratio']
    assert strict[1]['share'] < none[1]['share'] + .02
assert 2 * way['strict', 'mps'][0]['p50_ratio'] < way[None, 'mps'][0]['p50_ratio'] > 3
print('as it should be')
END
"$weir" whatif --json --arrivals closed:2ms lc.weir be.weir >answer.json
expect 0 'as it should be' python3 judge.py answer.json
expect 0 '' sh -c "'$weir' whatif --json --arrivals closed:2ms lc.weir be.weir | cmp - answer.json"
# A judge that can say no.
sed 's/"answered": 100/"answered": 99/' answer.json >wrong.json
expect 1 'AssertionError' python3 judge.py wrong.json

# Open arrivals: the seed decides.
random() { "$weir" whatif --json -p strict --arrivals poisson:200 --seed "$1" lc.weir be.weir; }
random 1 >one.json
random 1 >again.json
random 2 >two.json
expect 0 '' cmp one.json again.json
expect 1 'differ' cmp one.json two.json
expect 0 '"answered": 250,' "$weir" whatif --json --arrivals periodic:5ms -n 250 lc.weir be.weir

# The table.
expect 0 '^latency:     lc, 100 requests replayed alone: median [0-9.]+ [mu]s; 6[0-9] recorded: median [0-9.]+ [mu]s$' "$weir" whatif lc.weir be.weir
expect 0 '^  strict +mps( +[0-9.,]+ [mu]s){3}( +[0-9.]+){2} +[0-9.]+%  lc$' "$weir" whatif -p strict lc.weir be.weir
expect 0 '%' "$weir" whatif --class best-effort,best-effort lc.weir be.weir
expect 0 '^best effort: lc, ' "$weir" whatif -p fit --class best-effort,latency lc.weir be.weir
expect 0 '^  fit +both' "$weir" whatif -p fit be.weir
expect 0 '^alone: +one program .* name a second recording, or this one twice' "$weir" whatif lc.weir
expect 0 '^0$' sh -c "'$weir' whatif lc.weir lc.weir | grep -c ^alone:; true"

# A recording of torch.profiler, as all readers take it; and a recording without a launch that could
# be a request.
golden=$(cd "$(dirname "$0")/../golden" && pwd)
cp "$golden/kineto/eager.json" "$golden/variants/rocm.json" .
"$weir" import -q -o eager.weir eager.json
expect 0 '^latency:     eager, ' "$weir" whatif eager.weir
expect 0 '' sh -c "'$weir' whatif eager.json >json.out 2>err && '$weir' whatif eager.weir >weir.out && cmp json.out weir.out"
"$weir" import -q -o rocm.weir rocm.json 2>err
expect 2 'rocm.weir has no request to replay: .* Record the program with weir record --gpu, or say --class=best-effort' \
	timeout 60 "$weir" whatif rocm.weir rocm.weir
expect 0 '^device: .* as of an H200: the number of its own GPU is not recorded' "$weir" whatif --class=best-effort rocm.weir
expect 0 'the replay of a request takes [0-9.]+ times as long as recorded' "$weir" whatif "$golden/live/unet.weir"

# Launches of which one in four was timed.
expect 0 '' env WEIR_SIM=kernel=spin:1:1ns "$weir" record -q --sim --gpu=sample:4 -o sampled.weir -- "$load" best-effort \
	--work kernel,blocks=2000,amount=50000 --batch 32 --seconds .02
expect 0 ' launches were not timed' "$weir" whatif -p strict -n 5 lc.weir sampled.weir

# The truth: both recorded on a device of a fiftieth of the speed, so that the host hardly counts,
# and run there together.  BE runs while its input is open.  Its first batch may be in flight before
# LC is there, and no policy takes that back: the later half of the requests counts.
slow=kernel=spin:1:1ns,time=real,speed=.02,clock=host,sharing=mps
kernels=kernel,blocks=2000,amount=50000
requests="latency --work kernel,blocks=64,amount=30000 --batch 10 --requests 12 --pause 40000"
expect 0 '' env WEIR_SIM="$slow,gpu=$scratch/one" "$weir" record -q --sim --gpu -o slow-lc.weir -- "$load" $requests
expect 0 '' env WEIR_SIM="$slow,gpu=$scratch/two" "$weir" record -q --sim --gpu -o slow-be.weir -- "$load" best-effort \
	--work $kernels --batch 32 --seconds .1
together() {
	export WEIR_SIM="$slow,gpu=$scratch/gpu"
	mkfifo "orders.$1" "ready.$1"
	"$weir" run --sim --share "$scratch/share" -- "$load" best-effort --controlled --work $kernels --batch 32 \
		<"orders.$1" >"ready.$1" &
	exec 9>"orders.$1"
	read -r _ <"ready.$1"
	"$weir" sched --share "$scratch/share" policy "$1"
	echo run >&9
	"$weir" run --sim --share "$scratch/share" --class latency -- "$load" $requests >"live.$1"
	exec 9>&-
	wait
	unset WEIR_SIM
}
together fifo >log 2>&1
together strict >>log 2>&1
"$weir" whatif --json --arrivals closed:40ms slow-lc.weir slow-be.weir >slow.json
cat >compare.py <<'END'
import json
live = {p: json.load(open('live.' + p)) for p in ('fifo', 'strict')}
assert all(run['answered'] == 12 for run in live.values()), live
seen = live['fifo']['late_p50_us'] / live['strict']['late_p50_us']
said = {w['policy']: w['programs'][0]['p50_ns'] for w in json.load(open('slow.json'))['ways'] if w['sharing'] == 'mps'}
expected = said[None] / said['strict']
print('fifo takes %.1f times as long as strict, and %.1f were predicted' % (seen, expected))
assert seen > 1.5 < expected and expected / 3 < seen < expected * 3, said
END
expect 0 'were predicted' python3 compare.py

# Questions without an answer.
expect 0 '' "$weir" record -q --sim -o untimed.weir -- "$build/examples/vecadd"
expect 2 'untimed.weir has no device times.*weir record --gpu' "$weir" whatif lc.weir untimed.weir
expect 2 'FILE is missing' "$weir" whatif
expect 2 'none.weir' "$weir" whatif none.weir
expect 2 'there are fifo, strict, fair, edf and fit' "$weir" whatif -p best lc.weir
expect 2 'give recorded, closed:2ms, periodic:20ms or poisson:100' "$weir" whatif --arrivals poisson:often lc.weir
expect 2 'for each of the 2 recordings' "$weir" whatif --class latency lc.weir be.weir
expect 2 'latency or best-effort for the one recording' "$weir" whatif --class urgent lc.weir
expect 2 'whole number' "$weir" whatif --requests 0 lc.weir
finish
