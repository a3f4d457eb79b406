"""How far launches that repeat differ, which no prediction from what a launch is can undo.

    python3 repeats.py TABLE.csv...

For each launch of 10 us and more that ran twice before: how far off the one before was, and how far
the median of all its runs is, those to come among them.  In %, half / nine of ten.
"""
import collections
import csv
import statistics
import sys

LAUNCH = "app key kernel grid_x grid_y grid_z block_x block_y block_z smem_dynamic".split()


def main():
    runs = collections.defaultdict(list)
    for path in sys.argv[1:]:
        with open(path, newline="") as f:
            for row in csv.DictReader(f):
                runs[tuple(row[c] for c in LAUNCH)].append(float(row["ns"]))
    last, hindsight = [], []
    for ns in runs.values():
        middle = statistics.median(ns)
        for before, now in zip(ns[1:], ns[2:]):
            if now >= 10000:
                last.append(abs(before / now - 1))
                hindsight.append(abs(middle / now - 1))
    for name, off in ("the run before", last), ("the median, with hindsight", hindsight):
        off.sort()
        half, most = (100 * off[int(len(off) * q)] for q in (0.5, 0.9))
        print(f"{name}: {half:.1f} / {most:.1f} of {len(off)} launches")


if __name__ == "__main__":
    main()
