"""Puts what the side tables know into a data set: FLOPs, bytes, and what was run.

    python3 join.py NAME.samples.csv [--launches NAME.launches.csv] SIDE.csv... >joined.csv

The n-th kernel of an application is the n-th row of its side table, for tables of launches; for
tables of calls (Python) it is the n-th launch of the recording, and belongs to the call in whose time
it was launched.  Columns `op`, `shape` and `repeat` are added; `flops` and `bytes` are a launch's, or
a call's.  Exits 1 when a name differs: then nothing is to be believed.
"""
import argparse
import bisect
import csv
import sys


def read(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def by_order(row, rank, side, launches):
    rows = side.get(row["app"]) or (next(iter(side.values())) if len(side) == 1 else [])
    if rank >= len(rows):
        return None
    if rows[rank]["kernel"] != row["kernel"]:
        sys.exit(f"{row['app']} {rank}: {row['kernel']} is {rows[rank]['kernel']} in the side table")
    return rows[rank]


def by_time(row, rank, calls, launches):
    if rank >= len(launches):
        return None
    launch = launches[rank]
    if launch["kernel"] != row["kernel"]:
        sys.exit(f"{rank}: {row['kernel']} was launched as {launch['kernel']}")
    at = int(launch["host_ns"])
    i = bisect.bisect_right(calls[1], at) - 1
    return calls[0][i] if i >= 0 and at <= int(calls[0][i]["end_ns"]) else None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("samples")
    p.add_argument("sides", nargs="+")
    p.add_argument("--launches")
    o = p.parse_args()
    samples = read(o.samples)
    rows = [r for path in o.sides for r in read(path)]
    launches = read(o.launches) if o.launches else []
    side, find = {}, by_order
    if rows and "start_ns" in rows[0]:
        side, find = (rows, [int(r["start_ns"]) for r in rows]), by_time
    else:
        for r in rows:
            side.setdefault(r["app"], []).append(r)
    out = csv.DictWriter(sys.stdout, list(samples[0]) + ["op", "shape", "repeat"], lineterminator="\n")
    out.writeheader()
    rank, found = {}, 0
    for row in samples:
        n = rank[row["app"]] = rank.get(row["app"], -1) + 1
        known = find(row, n, side, launches)
        if known:
            found += 1
            row.update(flops=known["flops"], bytes=known["bytes"], repeat=known["repeat"],
                       op=known.get("op") or known["family"],
                       shape=f"{known.get('dtype', '')} {known['key']}".strip())
        out.writerow(row)
    print(f"{found} of {len(samples)} kernels are in the side tables", file=sys.stderr)


if __name__ == "__main__":
    main()
