"""torch.profiler over all that runs on the GPU: coexist.py OUT.json [late | threads].

Writes the kernels that it was told of, count and nanoseconds, in all and by name, and of each
kernel's launch the thread and the time.  With `late` the driver is at work before the profiler
comes, with kernels that do not run again.  With `threads` four threads work on streams of their own.
"""
import json
import sys
import tempfile
import threading

import torch
from torch.profiler import ProfilerActivity, profile


def work():
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True).cuda().half().eval()
    x = torch.ones(8, 128, 256, device="cuda", dtype=torch.float16)
    with torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(200):
            layer(x)
    torch.cuda.synchronize()


def work_together():
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


if "late" in sys.argv:
    torch.empty(1 << 20, device="cuda").cauchy_()
    torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
    work_together() if "threads" in sys.argv else work()
with tempfile.NamedTemporaryFile(suffix=".json") as trace:
    p.export_chrome_trace(trace.name)
    events = json.load(open(trace.name))["traceEvents"]
kernels, launches = {}, {}
for e in events:
    if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {}):
        launches[e["args"]["correlation"]] = [e["tid"], e["ts"], e["dur"]]
for e in events:
    if e.get("cat") == "kernel":
        row = kernels.setdefault(e["name"], [0, 0])
        row[0] += 1
        row[1] += round(e["dur"] * 1000)
json.dump({"count": sum(k[0] for k in kernels.values()),
           "ns": sum(k[1] for k in kernels.values()), "kernels": kernels,
           "launches": launches}, open(sys.argv[1], "w"))
