"""What the Python parts of the zoo share: shapes by chance, and a row for each call of an operator.

One operator may launch several kernels.  Its row names the time in which it was called, by
CLOCK_MONOTONIC, which is the clock of a trace: the launches that began in between are its own,
since one thread makes them all.
"""
import argparse
import csv
import math
import random
import sys
import time

# What an H200 reaches, roughly: for choosing shapes that take from 2 us to 10 ms.
GBS = 3000.0
GFLOPS = {"fp32": 35e3, "tf32": 250e3, "fp16": 450e3, "bf16": 450e3}
ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}


def options(app):
    """The command line that all parts have."""
    p = argparse.ArgumentParser()
    p.add_argument("--csv", default="/dev/null")
    p.add_argument("--seconds", type=float, default=30)
    p.add_argument("--shapes", type=int, default=40)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--app", default=app)
    p.add_argument("--calls", type=int, default=1 << 30, help="at most so many calls of a model")
    p.add_argument("--check", action="store_true", help="compare with a reference, and time nothing")
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
    """Sizes of an operator that takes a time spread evenly over the logarithm of the range.

    draw(rng) gives sizes, FLOPs and elements moved, or None for what cannot be."""
    us = low_us * (high_us / low_us) ** rng.random()
    best, best_off = None, math.inf
    for _ in range(200):
        drawn = draw(rng)
        if drawn is None:
            continue
        sizes, flops, elements = drawn
        bytes_ = elements * ELEMENT_BYTES[dtype]
        off = abs(math.log(estimate_us(dtype, flops, bytes_) / us))
        if off < best_off:
            best, best_off = (sizes, flops, bytes_), off
        if off < 0.25:
            break
    return best


def shuffled(items, rng):
    """Each item three times, in an order by chance: (item, repeat)."""
    out = [(item, repeat) for item in items for repeat in range(3)]
    rng.shuffle(out)
    return out


class Failures:
    """An operator that fails is named once and left out when it has failed three times."""

    def __init__(self):
        self.count = {}

    def out(self, op):
        return self.count.get(op, 0) >= 3

    def add(self, op, error):
        self.count[op] = self.count.get(op, 0) + 1
        if self.count[op] == 1:
            first = (str(error).strip() or "?").splitlines()[0]
            print(f"{op} failed: {type(error).__name__}: {first}", file=sys.stderr)


def run(table, calls, seconds, prepare, synchronize):
    """Calls (op, dtype, key, sizes, flops, bytes) in the given order until the time is over.

    prepare(op, dtype, sizes) gives the function to call.  How many were made."""
    failures = Failures()
    end = time.monotonic() + seconds
    done = 0
    for (op, dtype, key, sizes, flops, bytes_), repeat in calls:
        if time.monotonic() > end:
            break
        if failures.out(op):
            continue
        try:
            function = prepare(op, dtype, sizes)
            table.call(function, op, dtype, key, repeat, flops, bytes_, sizes)
            done += 1
            if done % 16 == 0:
                synchronize()
        except Exception as error:  # whatever a library throws: the others go on
            failures.add(op, error)
    synchronize()
    return done


def rng_for(seed, *names):
    return random.Random(f"{seed} {' '.join(names)}")
