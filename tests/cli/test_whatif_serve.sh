# A server of models that does not run: what weir whatif --serve says of a repository with saved latencies.
weir=$1
. "$(dirname "$0")/expect.sh"
command -v python3 >/dev/null || exit 0
cd "$scratch" || exit 1

# Two models, of 10 and of 60 ms, and one that no server has run yet.
model() {
	mkdir -p "models/$1/1" models/.weir
	: >"models/$1/1/model.onnx"
	cat >"models/$1/config.pbtxt" <<-END
		platform: "onnxruntime_onnx"
		max_batch_size: 32
		parameters { key: "weir.deadline_us" value { string_value: "$2" } }
	END
}
saved() {
	printf '{"input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [-1, 4]}], "output": []}' \
		>"models/.weir/model-$1-1"
	printf 'weir-latency 1\nmargin 0.07 deviation 0.02\nrows 1 ns %s runs 7\nrows 32 ns %s runs 7\n' "$2" "$3" \
		>"models/.weir/latency-$1-1"
}
model quick 10000
model slow 60000
model new 60000
saved quick 460000 2320000
saved slow 3050000 20100000

cat >judge.py <<'END'
import json, sys
answer = json.load(open(sys.argv[1]))
assert [m['model'] for m in answer['models']] == ['quick', 'slow'], answer['models']
assert [m['deadline_ns'] for m in answer['models']] == [10000000, 60000000]
by = {p['policy']: p for p in answer['policies']}
assert list(by) == ['slack', 'delay', 'fifo', 'edf'], by.keys()
for p in by.values():
    assert p['requests'] == by['slack']['requests'] == sum(m['requests'] for m in p['models'])
    for m in [p] + p['models']:
        assert m['met'] + m['late'] + m['shed'] + m['refused'] == m['requests'], m
        assert abs(m['goodput'] - m['met'] / m['requests']) < 1e-5 and m['p50_ns'] <= m['p99_ns']
    assert p['busy_ns'] <= (answer['seconds'] + 1) * 1e9
assert by['slack']['goodput'] > by['fifo']['goodput'] + .03, (by['slack'], by['fifo'])
assert by['slack']['late'] <= .005 * by['slack']['requests']
assert by['fifo']['shed'] == by['fifo']['refused'] == 0
print('as it should be')
END
ask() { "$weir" whatif --serve models --seconds 10 --arrivals quick=poisson:2600/s --arrivals slow=poisson:800 "$@"; }
ask --json >answer.json
expect 0 'as it should be' python3 judge.py answer.json
# A judge that can say no.
sed 's/"shed": 0/"shed": 1/' answer.json >wrong.json
expect 1 'AssertionError' python3 judge.py wrong.json

# The seed decides, and nothing else.
ask --json >again.json
ask --json --seed 2 >other.json
expect 0 '' cmp answer.json again.json
expect 1 'differ' cmp answer.json other.json

# The text begins with the answer.
ask -p slack -p fifo >text
expect 0 '^slack answers [0-9.]+ % of 3[34][0-9]+ requests a second in time, fifo [0-9.]+ %$' head -1 text
expect 0 '^  fifo +[78][0-9.]+ +[0-9.]+ % .* 60.0 ms  slow$' cat text
expect 0 '^no saved latency, left out: new$' cat text
expect 0 '^slack answers 100.00 % of [0-9.]+ requests' "$weir" whatif --serve models --arrivals poisson:20 -p slack

# A model that nobody asks has no row, and without a deadline nothing is late.
"$weir" whatif --serve models --arrivals quick=poisson:20 -p slack >text
expect 0 ' 10.0 ms  quick$' cat text
expect 1 '' grep ' slow$' text
mkdir -p free/.weir
cp -r models/quick free
cp models/.weir/*-quick-1 free/.weir
sed -i '/deadline/d' free/quick/config.pbtxt
expect 0 '^no model has a deadline' "$weir" whatif --serve free --arrivals poisson:20

# Arrivals from a file: two requests of one model at a time run together, and a late one is alone.
printf '# seconds, model\n0.5 quick\n0.5 quick\n0.9 slow\n' >arrivals
"$weir" whatif --serve models --arrivals arrivals --json -p edf >file.json
expect 0 '"model": "quick", "requests": 2, "met": 2, .*"batches": 1, .*"model": "slow", "requests": 1, "met": 1,' \
	cat file.json
printf '0.5 nobody\n' >arrivals
expect 2 'arrivals:1: give SECONDS, or SECONDS MODEL with a model of the repository' \
	"$weir" whatif --serve models --arrivals arrivals

# A configuration that leaves the rest to the model is completed as in the server: 4 rows, and the delay of --delay.
: >models/quick/config.pbtxt
printf '{"input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [-1, 4]}],
	"output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [-1, 4]}]}' >models/.weir/model-quick-1
expect 0 '"timeout_ns": null, "class": 1, "max_rows": 4, "max_queue": 4096, "max_delay_ns": 0, "weight": 1' \
	ask -p delay --json
expect 0 '"max_rows": 4, "max_queue": 4096, "max_delay_ns": 2000000,' ask -p delay --delay=2ms --json
echo 'max_batch_size: 2 dynamic_batching { max_queue_delay_microseconds: 7 priority_levels: 9 default_priority_level: 3
	default_queue_policy { max_queue_size: 5 default_timeout_microseconds: 6 } }' >models/quick/config.pbtxt
expect 0 '"timeout_ns": 6000, "class": 2, "max_rows": 2, "max_queue": 45, "max_delay_ns": 7000,' \
	ask -p delay --delay=2ms --json
echo 'input { name: "Z" }' >models/quick/config.pbtxt
expect 2 'saved latency of quick version 1: .*the model has no input Z; it has X' ask
model quick 10000
expect 2 '--delay=soon: give a time' ask --delay=soon
expect 2 '--delay needs --serve' "$weir" whatif --delay=2ms a.weir

# Questions without an answer.
expect 2 'models has no such model' "$weir" whatif --serve models --arrivals nobody=poisson:3
expect 2 'give requests a second' "$weir" whatif --serve models --arrivals poisson:fast
expect 2 'give poisson:300, MODEL=poisson:300, or a file' "$weir" whatif --serve models --arrivals absent
expect 2 'needs --arrivals' "$weir" whatif --serve models
expect 2 'slack, delay, fifo and edf' "$weir" whatif --serve models --arrivals poisson:3 -p strict
expect 2 'takes no recording' "$weir" whatif --serve models --arrivals poisson:3 a.weir
expect 2 '--seconds needs --serve' "$weir" whatif --seconds 3 a.weir
expect 2 'no request arrives' "$weir" whatif --serve models --arrivals /dev/null
echo wrong >models/.weir/latency-slow-1
expect 2 "the saved latency of slow version 1: line 1 is not 'weir-latency 1'" \
	"$weir" whatif --serve models --arrivals poisson:3
rm -r models/.weir
expect 2 'no model has a saved latency. Run weir serve models once' "$weir" whatif --serve models --arrivals poisson:3
finish
