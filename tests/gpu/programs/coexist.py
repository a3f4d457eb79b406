"""torch.profiler over all that runs on the GPU: coexist.py OUT.json [late].

Writes the kernels that it was told of: count and nanoseconds, in all and by name.  With `late`
the driver is at work before the profiler comes, with kernels that do not run again.
"""
import json
import sys
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile


def work():
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True).cuda().half().eval()
    x = torch.ones(8, 128, 256, device="cuda", dtype=torch.float16)
    with torch.inference_mode():
        for _ in range(200):
            layer(x)
    torch.cuda.synchronize()


if "late" in sys.argv:
    torch.empty(1 << 20, device="cuda").cauchy_()
    torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
    work()
with tempfile.NamedTemporaryFile(suffix=".json") as trace:
    p.export_chrome_trace(trace.name)
    events = json.load(open(trace.name))["traceEvents"]
kernels = {}
for e in events:
    if e.get("cat") == "kernel":
        row = kernels.setdefault(e["name"], [0, 0])
        row[0] += 1
        row[1] += round(e["dur"] * 1000)
json.dump({"count": sum(k[0] for k in kernels.values()),
           "ns": sum(k[1] for k in kernels.values()), "kernels": kernels}, open(sys.argv[1], "w"))
