"""The tables of weir export, CSV, NDJSON and SQLite, against weir report: tables.py BUILD TRACE... [wrong].

Device activities stand in each of them, beside the call and the operator that asked for it; sums by
kernel and by operator are those of the report, which joins by ways of its own.
"""
import collections
import csv
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

build, traces = os.path.abspath(sys.argv[1]), sys.argv[2:]
wrong = traces[-1] == "wrong" and traces.pop()
weir = build + "/bin/weir"
work = tempfile.TemporaryDirectory(prefix="weir-tables-")
problems = []


def run(*arguments):
    return subprocess.run([weir, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()


def opened(path):
    """A trace of Weir as it is, another tool's as Weir imports it."""
    if path.endswith(".weir"):
        return path
    trace = work.name + "/imported.weir"
    run("import", "-q", "-o", trace, path)
    return trace


def same(what, got, want):
    if got != want or wrong:
        if isinstance(got, dict) and isinstance(want, dict):
            got, want = [{k: v for k, v in a.items() if b.get(k) != v} for a, b in ((got, want), (want, got))]
        problems.append(f"{what}: {str(got)[:300]}, not {str(want)[:300]}")


def by(rows, key, value):
    sums = collections.Counter()
    for row in rows:
        sums[key(row)] += value(row)
    return sums


def database(trace, report):
    path = work.name + "/out.sqlite"
    run("export", "-f", "sqlite", "-o", path, trace)
    db = sqlite3.connect(path)
    rows = lambda q: db.execute(q).fetchall()
    kernels = {w["name"]: (w["count"], w["device_total_ns"]) for w in report["device_activities"] if w["kind"] == "kernel"}
    same("kernel_times", {n: (k, ns) for n, k, ns in rows(
        "SELECT name, COUNT(*), SUM(duration) FROM kernel_times GROUP BY name")}, kernels)
    operators = {(n, k): (a, d) for n, k, a, d in rows("SELECT name, kind, activities, deviceSelf FROM operators")}
    same("operators", operators, {(o["name"], o["kind"]): (o["device_count"], o["device_self_ns"])
                                  for o in report["operators"]})
    host = {(n, k): (c, t) for n, k, c, t in rows("SELECT name, kind, count, hostTotal FROM operators")}
    same("time of operators on the host, of which the report counts overloads as one", [
        o["name"] for o in report["operators"] for c, t in [host[o["name"], o["kind"]]]
        if c < o["count"] or abs(t - o["host_total_ns"]) > c], [])
    listed = json.loads(run("report", "--json", "--only", "gpu_trace", trace))["gpu_trace"]
    same("the ranges of kernels", sorted(map(str, rows("SELECT start, name, range FROM kernel_times"))),
         sorted(str((r["start_ns"], r["name"], r["range"])) for r in listed if r["kind"] == "kernel"))
    same("an activity twice", rows("SELECT COUNT(*) FROM activities"), rows("SELECT COUNT(*) FROM work"))
    same("calls of kernels are launches", rows(
        "SELECT COUNT(*) FROM kernel_times t JOIN calls c ON c.id = t.callId "
        "JOIN StringIds s ON s.id = c.classId WHERE s.value != 'launch'"), [(0,)])
    same("parents lie around", rows(
        "SELECT COUNT(*) FROM ranges r JOIN ranges p ON p.id = r.parentId "
        "WHERE p.start > r.start OR p.end <= r.start OR p.tid != r.tid OR p.pid != r.pid"), [(0,)])
    same("no nearer parent", rows(
        "SELECT COUNT(*) FROM call_ranges x JOIN calls c ON c.id = x.callId JOIN ranges r ON r.id = x.rangeId "
        "JOIN ranges n ON n.parentId = r.id WHERE n.start <= c.start AND n.end > c.start"), [(0,)])
    work_rows = rows("SELECT w.start, w.end - w.start, w.kind, COALESCE(s.value, ''), w.pid, w.correlationId "
                     "FROM work w LEFT JOIN StringIds s ON s.id = w.nameId ORDER BY w.rowid")
    ranges = rows("SELECT r.start, r.end - r.start, r.kind, COALESCE(s.value, ''), r.pid, r.tid FROM ranges r "
                  "LEFT JOIN StringIds s ON s.id = r.nameId ORDER BY r.id")
    calls = rows("SELECT COUNT(*) FROM calls")[0][0]
    db.close()
    same("ranges of the report that don't nest", [(s["kind"], s["name"], s["count"], s["host_total_ns"])
                                                  for s in report["spans"]], spans_of(ranges))
    return work_rows, ranges, calls


def spans_of(ranges):
    """For the kinds that may cross others: how many, and how long together, the longest first."""
    crossing = [r for r in ranges if r[2] not in ("operator", "annotation", "nvtx", "python")]
    counts, sums = (by(crossing, lambda r: (r[2], r[3]), value) for value in (lambda r: 1, lambda r: r[1]))
    return [(kind, name, counts[kind, name], ns) for (kind, name), ns in
            sorted(sums.items(), key=lambda row: (-row[1], -counts[row[0]], *row[0][::-1]))]


def lines(trace, work_rows, ranges, calls):
    number = lambda text: None if text == "" else int(text)
    rows = list(csv.DictReader(run("export", "-f", "csv", trace).splitlines()))
    device = [r for r in rows if r["api"] == "device"]
    same("rows of CSV", [(int(r["begin_ns"]), int(r["duration_ns"]), r["class"], r["function"], int(r["pid"]),
                          number(r["correlation"])) for r in device], work_rows)
    ranged = [r for r in rows if r["api"] == "range"]
    same("ranges of CSV", [(int(r["begin_ns"]), int(r["duration_ns"]), r["class"], r["function"], int(r["pid"]),
                            int(r["tid"])) for r in ranged], ranges)
    same("calls of CSV", len(rows) - len(device) - len(ranged), calls)
    same("fields of CSV", {len(r) for r in rows} | {None in r for r in rows}, {len(rows[0]), False})
    launches = {(r["pid"], r["correlation"]) for r in rows if r["api"] != "device" and r["correlation"]}
    rows = [json.loads(line) for line in run("export", "-f", "ndjson", trace).splitlines()]
    device = [r for r in rows if r["api"] == "device"]
    same("rows of NDJSON", [(r["begin_ns"], r["duration_ns"], r["class"], r["name"], r["pid"],
                             r.get("correlation")) for r in device], work_rows)
    ranged = [r for r in rows if r["api"] == "range"]
    same("ranges of NDJSON", [(r["begin_ns"], r["duration_ns"], r["class"], r["name"], r["pid"], r["tid"])
                              for r in ranged], ranges)
    same("calls of NDJSON", len(rows) - len(device) - len(ranged), calls)
    same("correlations of NDJSON", {(str(r["pid"]), str(r["correlation"])) for r in rows
                                    if r["api"] != "device" and "correlation" in r}, launches)
    same("whose call is there has a thread", [r for r in device if "tid" not in r and
         (str(r["pid"]), str(r.get("correlation"))) in launches], [])


def crossing():
    """A trace with ranges that cross in two threads, and marks."""
    rows = [("one", 1, 0, 10), ("two", 1, 5, 10), ("three", 2, 7, 1), ("one", 2, 10, 5), ("mark", 1, 6, 0), ("mark", 2, 9, 0)]
    events = [{"ph": "X", "cat": "nvtx_span", "name": n, "pid": 1, "tid": tid, "ts": ts, "dur": dur} for n, tid, ts, dur in rows]
    with open(work.name + "/crossing.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    return work.name + "/crossing.json"


def back(trace, ranges):
    """In Chrome's JSON what crosses is no slice of a thread; imported again it is there with its length."""
    path = work.name + "/crossing.chrome.json"
    run("export", "-f", "chrome", "-o", path, trace)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    spans = sorted(r[1:] for r in ranges if r[2] == "nvtx span")
    same("ranges that begin and end alone", by((e for e in events if e["ph"] in "be"), lambda e: e["ph"], lambda e: 1),
         collections.Counter({phase: sum(r[0] > 0 for r in spans) for phase in "be"}))
    again = json.loads(run("report", "--json", opened(path)))
    same("ranges that cross, read back", [(s["name"], s["count"], s["host_total_ns"]) for s in again["spans"]],
         [(name, count, ns) for _, name, count, ns in spans_of(ranges)])


def formulas():
    """No cell that a spreadsheet would run; the name is there, behind an apostrophe."""
    names = ["=HYPERLINK(\"http://x\",\"y\")", "@SUM(1)", "+1+1", "-2+3", "\ttab", "plain, \"quoted\""]
    events = [{"ph": "X", "cat": "kernel", "name": n, "pid": 0, "tid": 7, "ts": 10 * i, "dur": 5, "args": {
        "device": 0, "stream": 7}} for i, n in enumerate(names)]
    with open(work.name + "/formulas.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    rows = list(csv.DictReader(run("export", "-f", "csv", opened(work.name + "/formulas.json")).splitlines()))
    for key in "function", "kernel":
        same("cells of " + key, sorted(r[key] for r in rows),
             sorted(("'" if n[0] in "=@+-\t" else "") + n.replace("\t", "?") for n in names))


formulas()
for path in [crossing(), *traces]:
    trace = opened(path)
    report = json.loads(run("report", "--json", trace))
    work_rows, ranges, calls = database(trace, report)
    lines(trace, work_rows, ranges, calls)
    if path.endswith("crossing.json"):
        back(trace, ranges)
    if problems:
        print(path, *problems, sep="\n  ")
        sys.exit(1)
