# The critical path of trainings whose forward and backward are launched by two threads.
weir=$1
. "$(dirname "$0")/expect.sh"
source=$(cd "$2" && pwd)
weir=$(cd "$(dirname "$weir")" && pwd)/weir
cd "$scratch" || exit 1

# The GPU never rests: 20 steps of 20 forward and 20 backward kernels of FP32, each of half a millisecond.
cat >make.py <<'END'
import json, sys
events, correlation, host, gpu = [], 0, 0.0, 0.0
def add(cat, name, ts, dur, tid, **args):
    events.append(dict(ph="X", cat=cat, name=name, pid=1, tid=tid, ts=ts, dur=dur, args=args))
for step in range(20):
    for tid, name in ((10, "ampere_sgemm_128x64_nn"), (int(sys.argv[1]), "ampere_sgemm_128x64_tn")):
        for i in range(20):
            correlation += 1
            add("cpu_op", "aten::mm", host + i * 5 - .5, 4.8, tid, **{"Input Dims": [[4096, 4096], [4096, 4096]],
                "Input type": ["float", "float"]})
            add("cuda_runtime", "cudaLaunchKernel", host + i * 5, 4, tid, correlation=correlation, cbid=211)
            start = max(gpu, host + i * 5 + 6)
            add("kernel", name, start, 500, 7, correlation=correlation, device=0, stream=7, context=1, grid=[132, 1, 1],
                block=[256, 1, 1])
            gpu = start + 501
        correlation += 1
        add("cuda_runtime", "cudaStreamSynchronize", host + 110, gpu - host - 105, 10, correlation=correlation, cbid=165)
        host = gpu + 20
json.dump(dict(schemaVersion=1, deviceProperties=[dict(id=0, name="NVIDIA H200", numSms=132, computeMajor=9, computeMinor=0)],
               traceEvents=events), open(sys.argv[2], "w"))
END
python3 make.py 20 two.json && python3 make.py 10 one.json || exit 1
expect 0 '' "$weir" import -o two.weir two.json
expect 0 '' "$weir" import -o one.weir one.json
kernels_are_the_path() {
	"$weir" report --json "$1" | python3 -c '
import json, sys
report = json.load(sys.stdin)
path = {row["name"]: row["ns"] for row in report["critical_path"]}
print(path)
sys.exit(path["computing"] < .99 * report["wall_ns"] or path["unknown"] > 0)'
}
for threads in one two; do
	expect 0 '' kernels_are_the_path $threads.weir
	expect 0 'fp32-matmul|mixed-precision' "$weir" hints $threads.weir
done
expect 0 '' "$weir" diff --fail-on 'path_host > +5%' one.weir two.weir

# Four iterations of ResNet-50 in FP32, with the autograd thread: in steady steps kernels are the path, and the hint comes back.
resnet=$source/tests/golden/live/resnet.weir
expect 0 '9[0-9]\.[0-9] %.*kernels running' "$weir" report --steps 2-4 "$resnet"
expect 0 'fp32-matmul|mixed-precision' "$weir" hints "$resnet"
finish
