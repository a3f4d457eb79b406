"""Runs parts of a GPU's checks and measurements, each as a process of its own, and merges what they wrote.

A part that hangs, or whose GPU context a kernel broke, is started again behind the step at which it was.
"""
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback

import torch

HANG, CHECK_HANG = 65, 25  # seconds at one step: a measurement compiles up to eight kernels
result = {"checks": 0, "failures": [], "rows": [], "products": [], "few": [], "fused": [], "convolutions": [], "scaled": [], "first_use": {},
          "examples": {}, "left_out": 0}


class Part:
    """The file it writes, its end of time, and its position."""
    path, end, skip, steps = "", 0.0, 0, 0


def save():
    with open(Part.path + ".new", "w") as f:
        json.dump(result, f)
    os.rename(Part.path + ".new", Part.path)


def step(what):
    """Whether this is to be done.  Says where the part is before a kernel may hang."""
    Part.steps += 1
    if Part.steps <= Part.skip:
        return False
    if time.monotonic() > Part.end:
        result["left_out"] += 1
        return False
    if Part.steps % 50 == 0:
        save()
    with open(Part.path + ".at", "w") as f:
        f.write(f"{Part.steps} {what}")
    return True


def fail(what, why):
    if len(result["failures"]) < 200:
        result["failures"].append({"what": what, "why": str(why)[:600]})


def one(f):
    """A step.  Its failure is no other's, unless the GPU takes no work any more."""
    @functools.wraps(f)
    def run(*of, **more):
        what = f"{f.__name__} {of} {more or ''}"[:300]
        if not step(what):
            return
        try:
            f(*of, **more)
        except Exception:
            fail(what, traceback.format_exc()[-600:])
            save()
            torch.cuda.synchronize()
    return run


def expect(what, ok, why=""):
    result["checks"] += 1
    if not ok:
        fail(what, why)


def run_part(part, path, end, skip):
    Part.path, Part.end, Part.skip = path, float(end), int(skip)
    torch.manual_seed(1)
    random.seed(1)
    result["device"], result["torch"] = torch.cuda.get_device_name(), torch.__version__
    ok = False
    try:
        part()
        ok = True
    except Exception:
        fail(part.__name__, traceback.format_exc()[-600:])
    save()
    os._exit(not ok)  # what is left of a broken context may hang


class Child:
    """A part that runs, and what it has written."""

    def __init__(self, name, folder, end, skip=0):
        self.name, self.folder, self.end, self.skip = name, folder, end, skip
        self.path = os.path.join(folder, f"{name}.{skip}.json")
        self.moved, self.at, self.done = time.monotonic(), "0", False
        cache = tempfile.mkdtemp(dir=folder) if name == "first_use" else os.path.join(folder, "cache")
        self.process = subprocess.Popen([sys.executable, sys.argv[0], "--part", name, self.path, str(end), str(skip)],
                                        env={**os.environ, "XDG_CACHE_HOME": cache})

    def read(self):
        """The child's results, and whether it needs no other look."""
        at = open(self.path + ".at").read() if os.path.exists(self.path + ".at") else "0"
        if at and at != self.at:
            self.moved, self.at = time.monotonic(), at
        status = self.process.poll()
        limit = CHECK_HANG if self.name.endswith("_are_right") and self.at != "0" else HANG
        hangs = time.monotonic() - self.moved > limit
        if status is None and hangs:
            self.process.kill()
            status = self.process.wait()
        wrote = json.load(open(self.path)) if os.path.exists(self.path) else {}
        if status:
            why = f"hangs for {limit} s" if hangs else f"ends with status {status}"
            wrote.setdefault("failures", []).append({"what": f"{self.name}: {self.at}", "why": why})
        self.done = status is not None
        return wrote

    def again(self):
        """The same part behind the step at which this one ended, or None."""
        at = int(self.at.split()[0])
        failed = self.process.returncode != 0 and at > self.skip and time.monotonic() < self.end
        return Child(self.name, self.folder, self.end, at) if failed else None


def merge(all_wrote):
    whole = {"failures": [], "checks": 0, "left_out": 0}
    for wrote in all_wrote:
        for key, value in wrote.items():
            if isinstance(value, (list, int)) and key in whole:
                whole[key] = whole[key] + value
            elif isinstance(value, dict) and key in whole:
                whole[key].update(value)
            else:
                whole[key] = value
    return whole


def run_stage(parts, folder, end, took, keep):
    """keep() is called with what all have written, again and again."""
    began = time.monotonic()
    running, wrote = [Child(name, folder, end) for name in parts], {}
    while running:
        time.sleep(.5)
        for child in list(running):
            wrote[child.path] = child.read()
            if child.done:
                running.remove(child)
                next_one = child.again()
                running += [next_one] if next_one else []
                took[child.name] = round(time.monotonic() - began, 1)
                print(f"{child.name}: {took[child.name]} s, {len(wrote[child.path].get('failures', []))} failures", flush=True)
        keep(list(wrote.values()))
    return list(wrote.values())


def run_parts(stages, path, seconds, names):
    """stages: seconds, and the parts that run beside each other in them."""
    began = time.monotonic()
    before, took, whole = [], {}, {}

    def keep(wrote):
        whole.clear()
        whole.update(merge(before + wrote), took=took, seconds=round(time.monotonic() - began, 1))
        with open(path + ".new", "w") as f:
            json.dump(whole, f, indent=1)
        os.rename(path + ".new", path)

    with tempfile.TemporaryDirectory() as folder:
        for limit, *parts in stages:
            chosen = [part.__name__ for part in parts if part.__name__ in names or not names]
            if chosen and time.monotonic() < began + seconds:
                before += run_stage(chosen, folder, min(time.monotonic() + limit, began + seconds), took, keep)
            elif chosen:
                before.append({"failures": [], "left_out": len(chosen)})
        keep([])
    print(json.dumps({k: whole.get(k) for k in ("checks", "left_out", "seconds", "first_use", "examples")}),
          len(whole["failures"]), "failures")
    for failure in whole["failures"][:20]:
        print(failure["what"], "|", (failure["why"].strip().splitlines() or [""])[-1])
    return bool(whole["failures"])
