"""The invariants of the hints of any recording, and of recordings whose steps are known: hints.py
BUILD [wrong].

Gains are times: none is longer than the window, nor are all together, nor do those of the README's example promise more
than its fix saved.  They scale with the times, and hang on no name that a rule does not look for.
"""
import glob
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

build, wrong = os.path.abspath(sys.argv[1]), sys.argv[2:] == ["wrong"]
here = os.path.dirname(os.path.abspath(__file__)) + "/"
weir = build + "/bin/weir"
work = tempfile.TemporaryDirectory(prefix="weir-hints-")
problems = []


def run(*arguments):
    return subprocess.run([weir, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()


def check(what, holds, *seen):
    if not holds or wrong:
        problems.append(" ".join(map(str, (what, *seen))))


def imported(path, name="imported"):
    if path.endswith(".weir"):
        return path
    run("import", "-q", "-o", work.name + "/" + name + ".weir", path)
    return work.name + "/" + name + ".weir"


def written(events, name):
    path = work.name + "/" + name + ".json"
    with open(path, "w") as out:
        out.write(json.dumps(events if isinstance(events, dict) else {"traceEvents": events}))
    return imported(path, name)


def hints(trace):
    return json.loads(run("hints", "--json", trace))


def gains(found):
    return [h["gain_ns"] for h in found["hints"] if h["gain_ns"] is not None]


# Every recording that is kept.

def bounds(name, trace):
    found = hints(trace)
    window, wall = found["hints_window"], json.loads(run("report", "--json", trace))["wall_ns"] or 0
    if window is None:
        check(name + ": gains without a window", not gains(found))
        return
    check(name + ": the window is longer than the wall time", window["ns"] <= wall, window["ns"], wall)
    check(name + ": more counts than the window", found["hints_of_ns"] <= window["ns"], found["hints_of_ns"], window["ns"])
    check(name + ": all gains together", max(gains(found), default=0) - 1 <= found["hints_together_ns"] <= window["ns"],
          found["hints_together_ns"])
    for h in found["hints"]:
        if h["gain_ns"] is None:
            continue
        check(name + ": a gain beyond the window", 0 <= h["gain_ns"] <= window["ns"], h["id"], h["gain_ns"])
        check(name + ": a gain that is no share of the wall time",
              abs(h["gain_of_wall_pct"] / 100 * wall - h["gain_ns"]) <= 1e-4 * wall + 1, h["id"])
        if window["step_ns"]:
            check(name + ": a gain of a step that is no part of all",
                  abs(h["gain_of_step_ns"] * window["steps"] - h["gain_ns"]) <= 2 * window["steps"] + 1e-3 * h["gain_ns"], h["id"])
    if window["steps"]:
        numbers = {s["number"] for s in json.loads(run("report", "--json", "--only", "steps", trace))["steps"]}
        check(name + ": steps that the recording has not", {window["first_step"], window["last_step"]} <= numbers, window)


# The README's example and its fix.

def readme():
    slow, fixed = (here + "readme/" + name + ".weir" for name in ("slow", "fixed"))
    saved = [json.loads(run("report", "--json", path))["wall_ns"] for path in (slow, fixed)]
    check("the README's hints promise more than the fix saves", 0 < sum(gains(hints(slow))) <= saved[0] - saved[1],
          gains(hints(slow)), saved)


# Traces of torch.profiler, changed.

def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path) as file:
        return json.load(file)


def scaled(trace, by):
    for e in trace["traceEvents"]:
        for key in "ts", "dur":
            if key in e:
                e[key] = float(e[key]) * by
    return trace


def renamed(trace, old, new):
    return json.loads(json.dumps(trace).replace(old, new))


# Rules that look at kernels alone: no time that they compare with is a fixed one.
OF_SHARES = "fp32-matmul", "low-precision", "mixed-precision", "layout-transposes", "unfused-attention"


def changed(path):
    name = os.path.basename(path)
    before = {h["id"]: h for h in hints(imported(path, "before"))["hints"]}
    after = {h["id"]: h for h in hints(written(scaled(load(path), 1.5), "after"))["hints"]}
    for rule in OF_SHARES:
        check(name + ": a hint that comes or goes with the scale", (rule in before) == (rule in after), rule)
        if rule in before and rule in after:
            check(name + ": a gain that does not scale", abs(after[rule]["gain_ns"] / before[rule]["gain_ns"] - 1.5) < 0.02, rule,
                  before[rule]["gain_ns"], after[rule]["gain_ns"])


def own_names(path):
    """Names that no rule looks for may be any."""
    numbers = [[(h["id"], h["gain_ns"]) for h in hints(trace)["hints"]] for trace in (
        written(loop(), "own"), written(renamed(renamed(loop(), "first_kernel", "zzz"), "main_kernel", "aaa"), "other"))]
    check("hints of a loop whose kernels have other names", numbers[0] == numbers[1] and numbers[0], numbers)


# A loop of four iterations, whose main kernel is in the middle of each.

def kernel(name, at, dur, correlation, stream=7):
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": at, "dur": dur,
            "args": {"device": 0, "stream": stream, "correlation": correlation, "grid": [64, 1, 1], "block": [256, 1, 1]}}


def loop(iterations=4, warm=1, mark=True, host=300):
    events, at, number = [], 1000.0, 1
    for i in range(iterations):
        begin, slow = at, 10 if i < warm else 1
        for name, dur in [("first_kernel", 20)] * 10 + [("main_kernel", 100)] * 4 + [("last_kernel", 5)] * 10:
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": at, "dur": 4,
                           "args": {"correlation": number}})
            events.append(kernel(name, at + 5, dur * slow, number))
            at, number = at + 10 + dur * slow, number + 1
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 100, "tid": 100, "ts": at, "dur": 3})
        if mark:
            events.append({"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 100, "tid": 100,
                           "ts": at + 5, "dur": 10})
        at += 20 + host
    return events


def whole_steps():
    """24 kernels an iteration; the first is warm-up, and 640 us of work, 240 of launching and 320 outside make a step."""
    for mark in True, False:
        found = hints(written(loop(mark=mark), "loop"))
        window = found["hints_window"]
        check("the window's steps", (window["first_step"], window["last_step"], window["steps"]) == (2, 4, 3), window)
        step = 10 * 20 + 4 * 100 + 10 * 5 + 24 * 10 + 320
        check("how long a step is", abs(window["step_ns"] - 1000 * step) < 6000, window["step_ns"], 1000 * step)
        said = run("hints", work.name + "/loop.weir")
        check("what the text says of the window", "Analysed: steps 2 to 4, 3.63 ms of 10.4 ms, 1.21 ms a step." in said and " of each step's " in said, said[:300])
        check("what ran before", "in which 24 kernels took 6.50 ms. After it: " in said and "us, in which no kernel ran" in said, said[:400])
    one = hints(written(loop(iterations=1, warm=0), "one"))["hints_window"]
    check("steps of a loop that turns once", one["steps"] is None, one)


def idle_host_saves_what_it_says():
    """If two loops differ in the time outside of calls alone, the slow one's hint is what the fast
    one saves."""
    slow, fast = (json.loads(run("report", "--json", written(loop(warm=0, host=host), "host%d" % host)))["wall_ns"] for host in (900, 0))
    found = hints(work.name + "/host900.weir")
    gain = {h["id"]: h["gain_ns"] for h in found["hints"]}.get("idle-host", 0)
    rest = 3 * 32000  # what a step of the fast one still waits
    check("what an idle host costs", slow - fast < gain <= slow - fast + rest, gain, slow - fast)
    check("the sum of all gains", sum(gains(found)) <= slow, gains(found))


# Idle gaps whose culprit is known.

def culprits():
    """Before each kernel of one microsecond the host is long in a call, in an operator, in a module or in a line of Python alone."""
    random.seed(11)
    events, want, at, number = [], [], 1000.0, 1

    def host(cat, name, ts, dur, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 100, "tid": 100, "ts": ts, "dur": dur, "args": args})

    for i in range(200):
        idle = random.randint(300, 2000)
        operator = random.choice([None, "aten::bmm", "aten::cudnn_convolution"])
        module, line = random.choice([None, "layer1 (Conv2d)"]), random.choice([None, "train.py(%d): step" % (i % 5)])
        call = random.choice([None, "cuLibraryLoadData", "cudaMalloc"])
        if line:
            host("python_function", "train.py(1): <module>", at, idle + 100)
            host("python_function", line, at + 1, idle + 90)
            host("python_function", "torch/nn/modules/module.py(1): _call_impl", at + 2, idle + 80)
        if module:
            host("user_annotation", module, at + 3, idle + 70)
        if operator:
            host("cpu_op", operator, at + 4, idle + 60)
            host("cpu_op", "aten::empty", at + 5, idle + 50)  # which allocates for it
        launch = at + idle
        if call == "cudaMalloc":
            host("cuda_runtime", call, at + 20, idle - 40)
        if call == "cuLibraryLoadData":  # inside of the launch
            launch = at + 10
            host("cuda_driver", call, at + 20, idle - 40)
        host("cuda_runtime", "cudaLaunchKernel", launch, at + idle + 5 - launch, correlation=number)
        events.append(kernel("k", at + idle + 5, 1, number) if i % 4 else {
            **kernel("Memset (Device)", at + idle + 5, 1, number), "cat": "gpu_memset",
            "args": {"device": 0, "stream": 7, "correlation": number, "bytes": 4}})
        want.append({"call": call, "operator": operator, "module": module, "line": line,
                     "before": "k" if i % 4 else "Memset (Device) 4 B" + (" in " + operator if operator else "")})
        at, number = at + idle + 120, number + 1
    trace = written(events, "culprits")
    got = json.loads(run("report", "--json", "--only", "idle_gaps", trace))["idle_gaps"]
    check("as many gaps as kernels", len(got) == len(want) - 1, len(got))
    for row, w in zip(got, want[1:]):
        check("a culprit", {k: row[k] for k in w} == w, {k: row[k] for k in w}, w)
    longest = json.loads(run("report", "--json", trace))["idle_gaps"]
    check("the longest gaps have the same", all(p in got for p in longest))


def resnet():
    """Four iterations of a ResNet-50 on an H200, whose calls nothing marks: whole ones of 646 kernels, the first of which is warm-up."""
    steps = json.loads(run("report", "--json", "--only", "steps", here + "live/resnet-bare.weir"))["steps"]
    check("kernels of iterations", [s["launches"] for s in steps] == [640, 646, 646, 646], steps)
    window = hints(here + "live/resnet-bare.weir")["hints_window"]
    check("the window of a ResNet", (window["first_step"], window["last_step"]) == (2, 4) and 41e6 < window["step_ns"] < 44e6, window)


def known_culprits():
    """The README's example: 50 ms in calls that load code, and a memset of cuBLAS."""
    rows = json.loads(run("report", "--json", here + "readme/slow.weir"))["idle_gaps"]
    check("the longest gap", (rows[0]["operator"], rows[0]["before"]) == ("aten::bmm", "memset 4 B in aten::bmm"), rows[0])
    loads = [(r["call"], r["operator"]) for r in rows if r["cause"] == "idle_driver"]
    check("what loads code", loads[:2] == [("cuLibraryLoadData", "aten::_softmax"), ("cuLibraryLoadData", "aten::mul")], loads)
    rows = json.loads(run("report", "--json", here + "live/leak.weir"))["idle_gaps"]
    check("a line of Python", "train_step (leak.py:8)" in [r["line"] for r in rows], rows)


for path in sorted(glob.glob(here + "kineto/*.json*") + glob.glob(here + "variants/*.json") + glob.glob(here + "*/*.weir")):
    if not path.endswith("expected.json"):
        bounds(os.path.relpath(path, here), imported(path))
readme()
for name in ("attention-math", "matmuls", "llama-train", "convnet-tf32", "convnet-fp32", "transformer-train", "stacks-modules"):
    changed(here + "kineto/" + name + ".json.gz")
own_names(here)
culprits()
known_culprits()
resnet()
whole_steps()
idle_host_saves_what_it_says()
if problems:
    print(*problems[:20], sep="\n")
    sys.exit(1)
