"""Puts what the side tables know into a data set: FLOPs, bytes, and what was run.

    python3 join.py NAME.samples.csv [--launches NAME.launches.csv] SIDE.csv... >joined.csv

The n-th kernel of an application is the n-th row of its side table, for tables of launches; there a
name that differs ends the program with 1, since then nothing is to be believed.  For tables of calls
(Python) the n-th kernel of a name is the n-th launch of that name, since libraries try algorithms on
several streams; it belongs to the call in whose time it was launched.  Columns `op`, `shape` and
`repeat` are added; `flops` and `bytes` are a launch's, or a call's where one kernel took nine tenths of
it: of a call that several kernels share nobody knows which did how much, so neither is told.
`unit` says which units do the FLOPs: tensor cores for products of their types, plain ones for all else.
"""
import argparse
import bisect
import collections
import csv
import sys

from zoo_ops import ELEMENT_BYTES


def read(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def by_order(row, rank, side):
    rows = side.get(row["app"]) or (next(iter(side.values())) if len(side) == 1 else [])
    if rank >= len(rows):
        return None
    if rows[rank]["kernel"] != row["kernel"]:
        sys.exit(f"{row['app']} {rank}: {row['kernel']} is {rows[rank]['kernel']} in the side table")
    return rows[rank]


def by_name(samples, calls, launches):
    """The call of each sample, or None."""
    begins, queues, found = [int(c["start_ns"]) for c in calls], {}, []
    for launch in launches:
        queues.setdefault(launch["kernel"], collections.deque()).append(int(launch["host_ns"]))
    for row in samples:
        queue = queues.get(row["kernel"])
        at = queue.popleft() if queue else -1
        i = bisect.bisect_right(begins, at) - 1
        found.append(calls[i] if i >= 0 and at <= int(calls[i]["end_ns"]) else None)
    return found


def whole_calls(samples, found):
    """Which samples are nearly all of their calls."""
    all_ns = collections.Counter()
    for row, call in zip(samples, found):
        if call:
            all_ns[id(call)] += float(row["ns"])
    return {i for i, (row, call) in enumerate(zip(samples, found))
            if call and float(row["ns"]) >= WHOLE * all_ns[id(call)]}


WHOLE = 0.9


def work_of(call):
    """FLOPs and bytes, as its row says them; of a sum and of an attention by their sizes, since tables
    of before counted the sum's input as written, too, and what a causal attention leaves out.  Tables
    of today say whether it was causal."""
    size = {k: int(v) for k, v in (pair.split("=") for pair in call["sizes"].split())} if "op" in call else {}
    if call.get("op") == "sum":
        return call["flops"], (size["columns"] + 1) * size["rows"] * ELEMENT_BYTES[call["dtype"]]
    if call.get("op") == "attention" and "causal" not in size and size.get("q", 0) == size.get("kv", -1):
        return 2 * size["b"] * size["h"] * size["q"] * (size["q"] + 1) * size["d"], call["bytes"]
    return call["flops"], call["bytes"]


# Operators whose names begin so are products: tensor cores do them where there are some for the type.
PRODUCTS = ("mm", "bmm", "baddbmm", "addmm", "linear", "conv", "scaled_mm", "int_mm", "matmul", "attention")
# 8-bit integers are multiplied as fast as fp8, and have no unit of their own.
TENSOR = {"bf16": "fp16", "fp16": "fp16", "tf32": "tf32", "fp8": "fp8", "int8": "fp8", "fp64": "fp64"}


def unit_of(row, call):
    if "wmma" in row["kernel"]:
        return "fp16"
    # a depthwise convolution has no sum over channels, hence no matrices
    if row["op"].startswith(PRODUCTS) and "depthwise" not in row["op"]:
        return TENSOR.get(call.get("dtype"), "fp32")
    return "fp64" if call.get("dtype") == "fp64" or "_f64" in row["kernel"] else "fp32"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("samples")
    p.add_argument("sides", nargs="+")
    p.add_argument("--launches")
    o = p.parse_args()
    samples = read(o.samples)
    rows = [r for path in o.sides for r in read(path)]
    launches = read(o.launches) if o.launches else []
    if rows and "start_ns" in rows[0]:
        known = by_name(samples, rows, launches)
        whole = whole_calls(samples, known)
    else:
        side, rank, known, whole = {}, collections.Counter(), [], range(len(samples))
        for r in rows:
            side.setdefault(r["app"], []).append(r)
        for row in samples:
            known.append(by_order(row, rank[row["app"]], side))
            rank[row["app"]] += 1
    out = csv.DictWriter(sys.stdout, list(samples[0]) + ["unit", "op", "shape", "repeat"], lineterminator="\n")
    out.writeheader()
    for i, (row, call) in enumerate(zip(samples, known)):
        if call:
            row.update(repeat=call["repeat"], op=call.get("op") or call["family"],
                       shape=f"{call.get('dtype', '')} {call['key']}".strip())
        if call and i in whole:
            flops, moved = work_of(call)
            row.update(flops=flops, bytes=moved, unit=unit_of(row, call))
        out.writerow(row)
    found = sum(call is not None for call in known)
    print(f"{found} of {len(samples)} kernels are in the side tables", file=sys.stderr)


if __name__ == "__main__":
    main()
