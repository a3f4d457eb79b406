"""
The cost of neighbours, and whether one factor for all kernels tells it as well as two would.

    python3 slowdown.py alone.samples.csv contend.samples.csv

Both are of the part `contend` of run.sh.  Each launch that had company is told from the median of
the same launch alone, times a factor from the 16 such launches before it: none, the median of all
of them, or the median of those that are bound by the same, arithmetic or memory.
"""
import csv
import sys
from collections import defaultdict, deque

SPAN = 16
SHORTEST_NS = 10000
ARITHMETIC = ("chain_", "gemm_", "conv")


def key(row):
    return tuple(row[c] for c in row if c.startswith(("grid_", "block_", "args")) or c == "kernel")


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def median(values):
    return quantile(values, 0.5)


def launches(path):
    with open(path, newline="") as f:
        return [r for r in csv.DictReader(f) if r["ns"]]


def main():
    alone = defaultdict(list)
    for row in launches(sys.argv[1]):
        alone[key(row)].append(float(row["ns"]))
    recent = {"none": {}, "one": {}, "two": {}}
    off = defaultdict(list)
    ratios = []
    for row in launches(sys.argv[2]):
        if row["contended"] != "1" or key(row) not in alone:
            continue
        usual, took = median(alone[key(row)]), float(row["ns"])
        if usual < SHORTEST_NS:
            continue
        arithmetic = row["kernel"].startswith(ARITHMETIC)
        ratios.append(took / usual)
        for factors, last in recent.items():
            mine = last.setdefault(arithmetic if factors == "two" else 0, deque(maxlen=SPAN))
            factor = median(mine) if factors != "none" and len(mine) == SPAN else 1
            off[factors].append(abs(usual * factor / took - 1))
            mine.append(took / usual)
    print("%d launches that had company took %.2f times as long as alone in the middle, "
          "nine of ten up to %.2f" % (len(ratios), median(ratios), quantile(ratios, 0.9)))
    for factors, errors in off.items():
        print("factors: %-4s  off by, %%: half %.1f, nine of ten %.0f"
              % (factors, 100 * median(errors), 100 * quantile(errors, 0.9)))


main()
