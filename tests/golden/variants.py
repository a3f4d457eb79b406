"""Traces of other profilers' kinds and ages, made by hand: variants.py BUILD FOLDER [wrong].

Each NAME.json is imported, and what weir report counts of it, as a table of counts and times by name, must be
NAME.expected, which was made from the trace by hand.
"""
import difflib
import glob
import json
import os
import subprocess
import sys
import tempfile

build, folder = sys.argv[1:3]
weir = os.path.join(build, "bin", "weir")


def moved(row):
    count = "%d B" % row["bytes"] if row["bytes"] else "-"
    return "%s %s %d %s %d ns" % (row["kind"], row["direction"] or "-", row["count"], count,
                                  row["device_total_ns"])


def table(report):
    yield "calls %s" % report["totals"]["calls"]
    for row in report["memops"]:
        yield moved(row)
    for row in report["device_activities"]:
        if row["kind"] == "kernel":
            yield "kernel %d %d ns %s" % (row["count"], row["device_total_ns"], row["name"])
    for row in report["operators"]:
        yield "%s %d %d ns %s" % (row["kind"], row["count"], row["device_total_ns"], row["name"])
    for row in report["calls"]:
        yield "call %d %d ns %s" % (row["count"], row["total_ns"] or 0, row["name"])
    for row in report["streams"]:
        yield "stream %d %d ns" % (row["stream"], row["device_total_ns"])
    for row in report["devices"]:
        if row["name"]:
            yield "device %s" % row["name"]


def shapes(report):
    for row in report["kernels"]:
        yield "shape %s %s %s" % (row["name"], ",".join(map(str, row["grid"])),
                                  ",".join(map(str, row["block"])))


def flops(report):
    for row in report["kernels"]:
        yield "flops %s %s" % (row["name"], row["flops"])


bad = 0
for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
    name = path[:-len(".json")]
    with tempfile.TemporaryDirectory() as work:
        trace = os.path.join(work, "t.weir")
        subprocess.run([weir, "import", "-q", "-o", trace, path], check=True)
        report = json.loads(subprocess.run([weir, "report", "--json", trace], check=True,
                                           stdout=subprocess.PIPE).stdout)
    want = sorted(open(name + ".expected").read().splitlines())
    if sys.argv[3:]:
        want[0] += " wrong"
    known = list(table(report))
    if any(line.startswith("shape ") for line in want):
        known += shapes(report)
    if any(line.startswith("flops ") for line in want):
        known += flops(report)
    lines = list(difflib.unified_diff(want, sorted(known), "expected", os.path.basename(name), lineterm="", n=0))
    bad |= bool(lines)
    for line in lines:
        print(line)
# Weir's own output is read back with the same sums, and all work joined to its calls.
with tempfile.TemporaryDirectory() as work:
    def weir_of(*command):
        return subprocess.run([weir, *command], check=True, cwd=work, stdout=subprocess.PIPE).stdout

    first = os.path.join(folder, "..", "kineto", "eager.json")
    weir_of("import", "-q", "-o", "one.weir", os.path.abspath(first))
    weir_of("export", "-f", "chrome", "-o", "one.json", "one.weir")
    weir_of("import", "-q", "-o", "two.weir", "one.json")
    one, two = (json.loads(weir_of("report", "--json", t)) for t in ("one.weir", "two.weir"))
    own = [sorted(line for line in table(r) if not line.startswith(("device ", "call ")))
           for r in (one, two)]
    for line in difflib.unified_diff(*own, "one.weir", "read back", lineterm="", n=0):
        print(line)
        bad = 1
sys.exit(bad)
