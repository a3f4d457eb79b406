"""The Python parts of the zoo share this: shapes by chance, and a row for each call of an operator.

One operator may launch several kernels.  Its row names the time in which it was called, by
CLOCK_MONOTONIC, which is the clock of a trace: the launches that began in between are its own,
since one thread makes them all.
"""
import argparse
import collections
import csv
import math
import random
import sys
import time

# The rates that an H200 reaches, roughly: for choosing shapes that take from 2 us to 10 ms.
GBS = 3000.0
GFLOPS = {"fp64": 40e3, "fp32": 35e3, "tf32": 250e3, "fp16": 450e3, "bf16": 450e3, "fp8": 900e3,
          "int8": 900e3, "int32": 35e3, "uint8": 35e3}
ELEMENT_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1,
                 "int32": 4, "uint8": 1}

# An operator: how many shapes, which types, what to draw, how to make the call.  draw(rng, dtype)
# gives sizes, FLOPs and bytes, or None for what cannot be; make(pool, dtype, **sizes) the call.
Op = collections.namedtuple("Op", "shapes dtypes draw make")


def options(app):
    """The command line that all parts have."""
    p = argparse.ArgumentParser()
    p.add_argument("--csv", default="/dev/null")
    p.add_argument("--seconds", type=float, default=30)
    p.add_argument("--shapes", type=int, default=1 << 30, help="at most so many of an operator")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--app", default=app)
    p.add_argument("--calls", type=int, default=1 << 30, help="at most so many calls of a model")
    p.add_argument("--check", action="store_true", help="compare with a reference, and time nothing")
    p.add_argument("--warm", type=int, help="compile this share of the kernels, and run nothing")
    return p.parse_args()


class Table:
    """The side table: a row for each call."""

    FIELDS = "app order op dtype key repeat flops bytes sizes start_ns end_ns".split()

    def __init__(self, path, app):
        self.file = open(path, "w", newline="")
        self.csv = csv.writer(self.file, lineterminator="\n")
        self.csv.writerow(self.FIELDS)
        self.app = app
        self.order = 0

    def call(self, function, op, dtype="", key=0, repeat=0, flops=0.0, bytes_=0.0, sizes=None):
        start = time.monotonic_ns()
        result = function()
        end = time.monotonic_ns()
        text = " ".join(f"{k}={v}" for k, v in (sizes or {}).items())
        self.csv.writerow([self.app, self.order, op, dtype, key, repeat, f"{flops:.0f}",
                           f"{bytes_:.0f}", text, start, end])
        self.order += 1
        return result

    def close(self):
        self.file.close()
        print(f"{self.app}: {self.order} calls")


def size(rng, low, high, multiple=1):
    """Log-uniform in [low, high]; half of the answers are round, as sizes in programs are."""
    v = int(math.exp(rng.uniform(math.log(low), math.log(max(low, high)))))
    how = rng.randrange(8)
    by = 1
    if how < 3 and v >= 64:
        by = 64 if v >= 1024 else 8
    elif how == 3:
        by = 1 << (v.bit_length() - 1)
    by = max(by, multiple)
    return min(max(v // by * by, low, multiple), high)


def estimate_us(dtype, flops, bytes_):
    return 2 + max(bytes_ / GBS, flops / GFLOPS[dtype]) / 1e3


def choose(rng, draw, dtype, low_us=2, high_us=10000):
    """Sizes of an operator that takes a time spread evenly over the logarithm of the range."""
    us = low_us * (high_us / low_us) ** rng.random()
    best, best_off = None, math.inf
    for _ in range(100):
        drawn = draw(rng, dtype)
        if drawn is None:
            continue
        _, flops, bytes_ = drawn
        off = abs(math.log(estimate_us(dtype, flops, bytes_) / us))
        if off < best_off:
            best, best_off = drawn, off
        if off < 0.25:
            break
    return best


def calls(ops, seed, most):
    """All calls that are to be made: (op, dtype, key, sizes, FLOPs, bytes)."""
    out = []
    for name, op in ops.items():
        for dtype in op.dtypes:
            rng = rng_for(seed, name, dtype)
            for key in range(min(op.shapes, most)):
                chosen = choose(rng, op.draw, dtype)
                if chosen:
                    out.append((name, dtype, key, *chosen))
    return out


def shuffled(items, rng):
    """Each item three times, in an order by chance: (item, repeat)."""
    out = [(item, repeat) for item in items for repeat in range(3)]
    rng.shuffle(out)
    return out


class Failures:
    """A failing operator is named once, and left out when it has failed three times in a row."""

    def __init__(self):
        self.count = {}

    def out(self, what):
        return self.count.get(what, 0) >= 3

    def add(self, what, error):
        if what not in self.count:
            first = (str(error).strip() or "?").splitlines()[0]
            name = " ".join(str(w) for w in what if w)
            print(f"{name} failed: {type(error).__name__}: {first}", file=sys.stderr)
        self.count[what] = self.count.get(what, 0) + 1

    def well(self, what):
        if what in self.count:
            self.count[what] = 0


def run(table, calls, seconds, prepare, synchronize):
    """Calls (op, dtype, key, sizes, flops, bytes) in the given order until the time is over.

    prepare(op, dtype, sizes) gives the function to call.  How many were made."""
    failures = Failures()
    end = time.monotonic() + seconds
    done = 0
    for (op, dtype, key, sizes, flops, bytes_), repeat in calls:
        if time.monotonic() > end:
            break
        # a library may know an operator for some types only, or for some widths of a head
        what = op, dtype, sizes.get("d")
        if failures.out(what):
            continue
        try:
            function = prepare(op, dtype, sizes)
            table.call(function, op, dtype, key, repeat, flops, bytes_, sizes)
            done += 1
            failures.well(what)
            if done % 16 == 0:
                synchronize()
        except Exception as error:  # whatever a library throws: the others go on
            failures.add(what, error)
    synchronize()
    return done


def rng_for(seed, *names):
    return random.Random(f"{seed} {' '.join(names)}")
