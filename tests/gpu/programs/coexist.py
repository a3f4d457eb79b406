"""torch.profiler over all that runs on the GPU: coexist.py OUT.json [late | threads | again | onwards].

Writes the kernels that it was told of, count and nanoseconds, in all and by name, and of each
kernel's launch the thread and the time.  With `late` the driver is at work before the profiler
comes, with kernels that do not run again.  With `threads` four threads work on streams of their own.
With `again` the profiler comes twice, with pauses while and between, and with those kernels between.
With `onwards` the same work is done once more when it has gone, until the program ends.
"""
import json
import sys
import tempfile
import threading
import time

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


def unprofiled():
    torch.empty(1 << 20, device="cuda").cauchy_()
    torch.cuda.synchronize()
    time.sleep(.7)


def profiled():
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        work_together() if "threads" in sys.argv else work()
        if "again" in sys.argv:
            time.sleep(.7)
    with tempfile.NamedTemporaryFile(suffix=".json") as trace:
        p.export_chrome_trace(trace.name)
        return json.load(open(trace.name))["traceEvents"]


if "late" in sys.argv:
    unprofiled()
events = profiled()
if "again" in sys.argv:
    unprofiled()
    events += profiled()
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
if "onwards" in sys.argv:
    work()
