# Unknown or missing things are not said to be 0 or nothing: it is left out, and the reason is given
# with what would have recorded it.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir programs=$build/tests/cli/programs
[ -e "$build/lib/weir/sim/libcuda.so.1" ] && [ -e "$programs/phases" ] || exit 0
cd "$scratch" || exit 1
"$weir" record --sim -q -o plain.weir -- "$programs/phases" >/dev/null || exit 1

# Conditions that are half written are refused, each with what was expected.
refused() { # CONDITION WHY
	expect 2 "is no condition: $2. Give a column, one of = != " \
		"$weir" report --only kernels --filter "$1" plain.weir
}
refused 'name=x=' 'its value ends with an operator'
refused 'name = x <' 'its value ends with an operator'
refused 'name==x' 'its value begins with an operator'
refused 'name ~= x' 'its value begins with an operator'
refused 'name=' 'its value is missing'
refused 'count >' 'its value is missing'
refused 'count > 1 =' 'its value ends with an operator'
expect 2 'is no number. A number may have a unit' "$weir" report --only kernels --filter 'count > inf' plain.weir
# A word for numbers is one too, and an order of texts.
expect 2 '^weir report: count = abc: count has numbers, and abc is none. Give a number' \
	"$weir" report --only kernels --filter 'count = abc' plain.weir
expect 2 'calls has numbers, and many is none' "$weir" report --only totals --csv --filter 'calls != many' plain.weir
expect 2 'duration_ns has numbers' "$weir" report --only api_trace --json --filter 'duration_ns = long' plain.weir
expect 2 'name has texts, which are neither more nor less. They take = != ~ !~$' \
	"$weir" report --only kernels --filter 'name > 5' plain.weir
expect 0 ' nothing$' "$weir" report --only kernels --filter 'device_total_ns = null' plain.weir
expect 0 ' nothing$' "$weir" report --only kernels --filter 'count = 160' --filter 'count ~ 16' plain.weir
expect 0 '^  none' "$weir" report --only kernels --filter 'name ~ <float>' plain.weir
expect 0 '^  none' "$weir" report --only kernels --filter 'name = "x="' plain.weir
expect 0 ' nothing$' "$weir" report --only kernels --filter "name = 'nothing' " plain.weir

# A share over what was measured is shown as it is, and how that can be: no share is cut at 100 %.
cat >over.json <<'EOF'
{"deviceProperties": [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132}], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1000, "dur": 90, "args": {"External id": 1, "Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::Half", "c10::Half"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 1010, "dur": 5, "args": {"correlation": 1, "External id": 1}},
{"ph": "X", "cat": "kernel", "name": "nvjet_sm90_hsh_128x256_64x4_2x1_v_bz_coopA_NNT", "pid": 0, "tid": 7, "ts": 1020, "dur": 160, "args": {"correlation": 1, "External id": 1, "device": 0, "stream": 7, "context": 1, "grid": [132, 1, 1], "block": [384, 1, 1]}},
{"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "python"}}]}
EOF
expect 0 'compute 109 % .*nvjet' "$weir" report over.json
expect 0 'compute 109 % .*aten::mm' "$weir" report over.json
expect 0 '^  over 100 %: faster than what was measured on such a GPU' "$weir" report over.json
expect 0 '"flops_share": 1\.09' "$weir" report --json over.json

# Without device times no time on a device is 0, in whatever form: ranges took some that is not known.
sed '/"cat": "kernel"/d' over.json >host.json
"$weir" record --sim -q -o vecadd.weir -- "$build/examples/vecadd" >/dev/null || exit 1
cat >zeros.py <<'EOF'
import json, sys

def walk(path, value):
    if isinstance(value, dict):
        for key, inside in value.items():
            walk(path + "." + key, inside)
    elif isinstance(value, list):
        for inside in value:
            walk(path + "[]", inside)
    elif value == 0 and not any(of_host in path for of_host in ("clock", "processes[]", "threads[]")) and not path.endswith((".off_ns", ".change_ns", "_realtime_ns")):
        if path.endswith("_ns") or ".device_" in path and not path.endswith(".device_kernels"):
            print(path)

for name in sys.argv[1:]:
    walk(name, json.load(open(name)))
EOF
zeros() { # FILE...
	for file; do
		"$weir" report --json "$file" >report.json && "$weir" diff --json "$file" "$file" >diff.json &&
			python3 zeros.py report.json diff.json || return
	done
}
expect 0 '^$' zeros plain.weir vecadd.weir host.json
expect 0 '"device_total_ns": null' "$weir" report --json plain.weir
expect 0 '^Layers and annotations by time on the host$' "$weir" report plain.weir
expect 0 '^ +- +20 .* forward$' "$weir" report plain.weir
expect 0 '^Operators by their time on the host$' "$weir" report host.json
expect 0 '^ +- +- +- +1 +- .* aten::mm$' "$weir" report host.json
expect 0 '^"forward","nvtx",20,,,,,,[1-9]' "$weir" report --only operators --csv plain.weir
if python3 -c 'import sqlite3' 2>/dev/null; then
	"$weir" export -f sqlite -o plain.sqlite plain.weir
	expect 0 "^\\[\\('forward', None, None\\), \\('warming up', None, None\\)\\]$" python3 -c "
import sqlite3
print(sqlite3.connect('plain.sqlite').execute('SELECT name, activities, deviceSelf FROM operators ORDER BY 1').fetchall())"
fi

# An empty list says why, and what would record it; so does a flame graph without frames.
is_none() { # SECTION FILE WHY
	expect 0 "^  none: $3" "$weir" report --only "$1" "$2"
}
is_none device_activities plain.weir 'GPU activities were not recorded; weir record --gpu records them$'
is_none idle_gaps plain.weir 'GPU activities were not recorded'
is_none hints plain.weir 'GPU activities were not recorded'
is_none range_kernels plain.weir 'GPU activities were not recorded'
for section in breakdown critical_path; do
	expect 2 "this recording has no section $section: GPU activities were not recorded; weir record --gpu" \
		"$weir" report --only $section plain.weir
done
expect 2 'no section gpu_state: .*; weir record --nvml does so$' "$weir" report --only gpu_state plain.weir
expect 2 'no section prediction: .*; weir record --predict' "$weir" report --only prediction plain.weir
expect 2 'no section call_stacks: .*; weir record --stacks' "$weir" report --only call_stacks plain.weir
is_none memcpys plain.weir 'no call copies memory$'
expect 0 '^  none: there is none in the part that is read$' "$weir" report --only memcpys --before 0.1ms vecadd.weir
"$weir" record --sim -q -g -o gpu.weir -- "$programs/leaking" >/dev/null || exit 1
is_none gpu_trace gpu.weir 'the program launched nothing on a GPU$'
is_none operators gpu.weir 'the program marks no range with NVTX; weir record --python names'
is_none failures plain.weir 'no call failed$'
is_none warnings plain.weir 'there is nothing to warn of$'
is_none hints_idle_gaps plain.weir 'GPU activities were not recorded'
is_none allocation_calls plain.weir 'no call allocates or frees memory$'
is_none kernels gpu.weir 'no kernel was launched$'
is_none steps gpu.weir 'no kernel was launched$'
is_none idle_gaps over.json 'no GPU was idle between two activities$'
is_none nccl over.json 'no kernel of NCCL ran, and no range is gloo.s or MPI.s$'
expect 0 '^  none: no row passes --filter$' "$weir" report --only kernels --filter 'name = x' plain.weir
for level in stat off; do
	"$weir" record --sim -q -l $level -o $level.weir -- "$programs/phases" >/dev/null || exit 1
done
for section in operators operators_by_shape steps range_kernels waits; do
	is_none $section stat.weir 'level stat only counts calls; weir record has the level full'
done
for section in calls operators range_pace gpu_trace steps; do
	is_none $section off.weir 'nothing is recorded at level off'
done
"$weir" record --sim -q --gpu=sample:8 -o sampled.weir -- "$programs/phases" >/dev/null || exit 1
for section in devices streams busy_over_time hints_idle_gaps; do
	is_none $section sampled.weir 'only one launch in some was timed; weir record --gpu times all that runs$'
done
expect 0 '^Layers and annotations by time on the host$' "$weir" report sampled.weir
expect 0 '^No CUDA calls were recorded: the level was off' "$weir" report off.weir
for format in folded svg speedscope; do
	expect 0 '^weir flame: the flame graph is empty: level stat only counts calls' \
		"$weir" flame -f $format stat.weir
done
expect 0 'is empty: GPU activities were not recorded; weir record --gpu records them. --by host has' \
	"$weir" flame --by device plain.weir

# Warnings are a list of texts, which is there with them and without.
"$weir" record --sim -q --gpu -o whole.weir -- "$programs/phases" >/dev/null || exit 1
head -c "$(($(wc -c <whole.weir) / 2))" whole.weir >half.weir
expect 0 'damage at byte [0-9]+' "$weir" report --only warnings,totals half.weir
expect 0 'damage at byte [0-9]+' "$weir" report --only warnings --csv half.weir
expect 0 '"warnings": \[$' "$weir" report --only warnings,totals --json half.weir
expect 0 'none: ' "$weir" report --only warnings,totals whole.weir
# If several sections are asked for, the one that this recording lacks says why.
expect 0 'none: .*--gpu' "$weir" report --only totals,breakdown plain.weir
expect 0 '"breakdown": null' "$weir" report --only totals,breakdown --json plain.weir
expect 0 '"idle_gaps": \[\]' "$weir" report --only totals,idle_gaps --json plain.weir
# A kernel of another tool's file that doesn't say its grid and block has none, not (0,0,0).
echo '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2,
	"args": {"device": 0, "context": 1, "stream": 7}}]}' >shapeless.json
expect 0 'of 1 GPU activity the file does not have' "$weir" import -o shapeless.weir shapeless.json
expect 0 '"grid": null, "block": null, "shapes": 0,' "$weir" report --json --only kernels shapeless.weir
finish
