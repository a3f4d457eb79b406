"""OPT-125m with random weights, fp16, eight prompts of 256 tokens, twenty times.

    python3 opt125m.py [--compile] [--profile FILE]

With --profile, torch.profiler looks on and FILE says what it saw: {kernel: [runs, microseconds]}.
"""
import json
import sys
import time

import torch
from transformers import OPTConfig, OPTForCausalLM


def run(compiled):
    torch.manual_seed(1)
    model = OPTForCausalLM(OPTConfig()).half().cuda().eval()
    if compiled:
        model = torch.compile(model)
    tokens = torch.randint(0, 50000, (8, 256), device="cuda")
    with torch.inference_mode():
        for i in range(25):
            if i == 5:
                torch.cuda.synchronize()
                begin = time.perf_counter()
            with torch.cuda.nvtx.range("forward" if i >= 5 else "warming up"):
                model(tokens)
        torch.cuda.synchronize()
    print("%.3f" % ((time.perf_counter() - begin) * 1000 / 20))


def profile(compiled, path):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as p:
        run(compiled)
    kernels = {}
    for e in p.events():
        if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith(("Memcpy", "Memset")):
            row = kernels.setdefault(e.name, [0, 0.0])
            row[0] += 1
            row[1] += e.time_range.elapsed_us()
    with open(path, "w") as out:
        json.dump(kernels, out)


if "--profile" in sys.argv:
    profile("--compile" in sys.argv, sys.argv[sys.argv.index("--profile") + 1])
else:
    run("--compile" in sys.argv)
