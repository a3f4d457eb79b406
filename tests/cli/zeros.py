"""A value that a recording did not measure is absent, and never 0: zeros.py WEIR BUILD [wrong].

A program does the same each time.  So a figure that is 0 at a lower level, or without an option, and something else in the
fullest recording, was not measured there.  The figures are those of JSON, of tables as text, and of exports.
"""
import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

weir, build = (os.path.abspath(p) for p in sys.argv[1:3])
wrong = "wrong" in sys.argv[3:]
scratch = tempfile.TemporaryDirectory()
os.chdir(scratch.name)

FULLEST = ["--level=all", "--gpu", "--args", "--stacks=alloc,sync,launch"]
LESS = {"off": ["--level=off"], "stat": ["--level=stat"], "work": ["--level=work"], "full": [], "stat --gpu": ["--level=stat", "--gpu"],
        "work --gpu": ["--level=work", "--gpu"], "sample": ["--gpu=sample:2"], "predict": ["--gpu=predict:2"], "stacks": ["--stacks"],
        "part": ["--until-launches=3"], "flight": ["--flight=64K"]}
PROGRAMS = {"batches": ["examples/batches"], "steps": ["examples/steps", "20"], "graph": ["tests/cli/programs/timeline", "20", "graph"],
            "copies": ["tests/cli/programs/timeline", "20", "copies"], "streams": ["tests/cli/programs/timeline", "20", "streams"],
            "memory": ["tests/sim/sim_test_memory"], "leak": ["examples/problems/leak"]}
COMMANDS = {"report": ["report", "--json"], "memory": ["memory", "--json"], "hints": ["hints", "--json"],
            "threads": ["report", "--json", "--only", "threads,processes,calls,kernels,steps,waits,allocation_calls"],
            "otlp": ["export", "-f", "otlp"], "chrome": ["export", "-f", "chrome"]}
# These are counts of what was measured: nothing was.
MEASURED = re.compile(r"""timed_count$|\.timed_driver_calls(_ns)?$|\.join\.|\.queue\.calls$|hints_together_ns$|\.cut$|not_unwound$
    |\.overwritten$|device_left_out$|\.ts$|\.dur$|\.pid$|\.tid$|start_ns$|at_ns$|\.share$|_share$|stddev_ns$|error_ns$|\.off_ns$
    |fragment|busy.share$|of.the.run$|chrome.*args|\.missing$|\.surplus$|\.lost$|residual_ns$|\.graph_count$|starved_ns$|queued|breakdown\[\]|critical_path\[\]|overlap\.|\.empty_ns$|depth""", re.X)
WORK = re.compile(r"\.totals\.probes$")  # calls that do no work are not looked at
# Replays of a part say less of the rest.
PART = re.compile(r"free_count|live|leaked|at_exit|allocat|churn|peak|launches|errors|calls|copied|bytes|count|streams|contexts|\._?ns$|sync")

# A figure that depends on timing may be 0 once, if the machine is busy.  One that was not measured is 0 each time.
TRIES = 4


def record(path, program, options):
    subprocess.run([weir, "record", "--sim", "-q", "-o", path, *options, "--", build + "/" + program[0], *program[1:]],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return os.path.exists(path)


def run(*command):
    done = subprocess.run([weir, *command], capture_output=True, text=True, errors="replace")
    return done.stdout if done.returncode == 0 else ""


def figures(value, place=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from figures(inner, place + "." + key)
    elif isinstance(value, list):
        for inner in value:
            yield from figures(inner, place + "[]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place, value


def cells(text):
    """For tables: the heading's word above the end of each number, as text aligns numbers to the
    right."""
    place, heads = "", []
    for line in text.splitlines():
        words = [(m.group(), m.end()) for m in re.finditer(r"\S+(?: \S+)*", line)]
        if not line.startswith(" "):
            place, heads = line.split(",")[0], []
        elif not heads:
            heads = words
        else:
            for word, end in words:
                number = re.fullmatch(r"([\d,.]+)( [a-zA-Zµ%]+)?", word)
                head = next((h for h, e in heads if e == end), None)
                if number and head:
                    yield "%s|%s" % (place, head), float(number.group(1).replace(",", ""))


def tables(path):
    """For exports that are tables: SQLite and CSV."""
    run("export", "-f", "sqlite", "-o", "out.sqlite", path)
    if os.path.exists("out.sqlite"):
        data = sqlite3.connect("out.sqlite")
        for (table,) in data.execute("select name from sqlite_master where type = 'table'").fetchall():
            rows = data.execute("select * from '%s'" % table)
            names = [d[0] for d in rows.description]
            for row in rows:
                yield from (("sqlite %s.%s" % (table, name), v) for name, v in zip(names, row) if isinstance(v, (int, float)))
        data.close()
        os.unlink("out.sqlite")
    for row in csv.DictReader(io.StringIO(run("export", "-f", "csv", path))):
        yield from (("csv .%s" % key, float(v)) for key, v in row.items() if key and v and re.fullmatch(r"-?\d+(\.\d+)?", v))


def all_of(path):
    """Each place, and whether anything there is not 0."""
    places = {}
    take = lambda found: [places.__setitem__(p, places.get(p, False) or v != 0) for p, v in found]
    for name, command in COMMANDS.items():
        text = run(*command, path)
        if text:
            take(("%s %s" % (name, p), v) for p, v in figures(json.loads(text)))
    for command in "report", "memory":
        take(("%s text %s" % (command, p), v) for p, v in cells(run(command, "-n", "0", path)))
    take(tables(path))
    return places


def is_false_zero(place, something, fullest, less):
    partly = less in ("part", "flight") and PART.search(place) or less.startswith("work") and WORK.search(place)
    return not something and fullest.get(place) and not MEASURED.search(place) and not partly


def main():
    found = []
    for name, program in PROGRAMS.items():
        assert record("full.weir", program, FULLEST), "%s was not recorded" % name
        fullest = all_of("full.weir")
        assert len(fullest) > 100, "%s says little" % name
        for less, options in {"stat": LESS["stat"]}.items() if wrong else LESS.items():
            places = None  # that were 0 each time
            for _ in range(TRIES):
                if not record("less.weir", program, options):
                    break
                said = all_of("less.weir")
                if wrong:
                    said["report .memory.peak_bytes"] = False
                zero = {place for place, something in said.items() if is_false_zero(place, something, fullest, less)}
                places = zero if places is None else places & zero
                os.unlink("less.weir")
                if not places:
                    break
            found += ["%s with %s: 0 at %s" % (name, less, place) for place in sorted(places or ())]
    print("\n".join(found) or "nothing is 0 that was not measured")
    return 1 if found else 0


sys.exit(main())
