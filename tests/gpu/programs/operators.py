"""PyTorch programs for operators.sh: operators.py MODE [OUT].

layer     median host time of a forward of a TransformerEncoderLayer, in microseconds
profiler  the same under torch.profiler, with shapes
observers the same without and with each of PyTorch's observers, in turns
opt       OPT-125m, random weights, ROUNDS forwards inside the NVTX range "measured"
opt-profiler OUT   the same under torch.profiler; its operators and shapes into OUT, as JSON
train     three steps of a small network, with torch.profiler around the second
compile   a compiled layer; prints its graph breaks
"""
import collections
import contextlib
import json
import statistics
import sys
import time

import torch

ROUNDS = 5


def layer():
    torch.manual_seed(1)
    module = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True).cuda().half().eval()
    return module, torch.randn(8, 128, 512, device="cuda", dtype=torch.float16)


def time_layer(rounds=60, forwards=50):
    module, x = layer()
    times = []
    with torch.inference_mode():
        for i in range(rounds + 10):
            torch.cuda.synchronize()
            start = time.perf_counter_ns()
            for _ in range(forwards):
                y = module(x)
            if i >= 10:
                times.append((time.perf_counter_ns() - start) / forwards / 1000)
    torch.cuda.synchronize()
    print("%.2f %.6f" % (statistics.median(times), y.float().abs().sum().item()))


def time_observers(rounds=40, forwards=50):
    from torch.autograd.profiler import emit_itt, emit_nvtx

    module, x = layer()
    ways = {"none": contextlib.nullcontext, "emit_itt": emit_itt, "emit_nvtx": emit_nvtx,
            "emit_nvtx, shapes": lambda: emit_nvtx(record_shapes=True)}
    times = {way: [] for way in ways}
    for i in range(rounds + 5):
        for way, observer in ways.items():
            torch.cuda.synchronize()
            with torch.inference_mode(), observer():
                start = time.perf_counter_ns()
                for _ in range(forwards):
                    module(x)
                end = time.perf_counter_ns()
            if i >= 5:
                times[way].append((end - start) / forwards / 1000)
    for way, us in times.items():
        print("| %s | %.1f | %.1f |" % (way, statistics.median(us), min(us)))


def shapes_profiler():
    return torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA],
        record_shapes=True)


def opt():
    from transformers import OPTConfig, OPTForCausalLM

    torch.manual_seed(1)
    model = OPTForCausalLM(OPTConfig()).half().cuda().eval()
    tokens = torch.randint(0, 50000, (8, 256), device="cuda")
    with torch.inference_mode():
        model(tokens)  # whatever is done once
        torch.cuda.synchronize()

    def rounds():
        with torch.inference_mode():
            for _ in range(ROUNDS):
                model(tokens)
        torch.cuda.synchronize()

    return rounds


def opt_measured():
    rounds = opt()
    torch.cuda.nvtx.range_push("measured")
    rounds()
    torch.cuda.nvtx.range_pop()


def opt_profiler(out):
    rounds = opt()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                record_shapes=True) as profiler:
        rounds()
    names, shapes = collections.Counter(), collections.Counter()
    for event in profiler.events():
        names[event.name] += 1
        if event.name in ("aten::addmm", "aten::mm", "aten::bmm", "aten::linear"):
            shapes["%s %s" % (event.name, json.dumps(event.input_shapes))] += 1
    with open(out, "w") as f:
        json.dump({"names": names, "shapes": shapes}, f)


def train():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(32, 64, device="cuda")

    def step():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        step()
    seen = {event.key for event in profiler.key_averages()}
    print("%.6f" % step().item(), "aten::addmm" in seen or "aten::linear" in seen)


def compiled():
    module, x = layer()
    fast = torch.compile(module)
    with torch.inference_mode():
        for _ in range(3):
            y = fast(x)
    breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
    print(breaks, "graph breaks", "%.3f" % y.float().abs().sum().item())


def main():
    mode = sys.argv[1]
    if mode == "layer":
        time_layer()
    elif mode == "profiler":
        with shapes_profiler():
            time_layer(rounds=10)
    elif mode == "opt":
        opt_measured()
    elif mode == "observers":
        time_observers()
    elif mode == "opt-profiler":
        opt_profiler(sys.argv[2])
    elif mode == "train":
        train()
    elif mode == "compile":
        compiled()
    else:
        sys.exit("there is no mode " + mode)


if __name__ == "__main__":
    main()
