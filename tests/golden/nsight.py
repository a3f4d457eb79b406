"""Queries for the SQLite files of Nsight Systems on those of weir export: nsight.py BUILD TRACE... [wrong].

Each query is written for Nsight's schema alone, and runs as it is.  The right answer is worked out
from weir's own lines (export -f ndjson) and from weir report, by other ways.
"""
import collections
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

build, traces = os.path.abspath(sys.argv[1]), sys.argv[2:]
wrong = traces[-1] == "wrong" and traces.pop()
weir = build + "/bin/weir"
work = tempfile.TemporaryDirectory(prefix="weir-nsight-")
problems = []

KERNELS = """SELECT s.value, COUNT(*), SUM(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
    JOIN StringIds AS s ON k.demangledName = s.id GROUP BY s.value ORDER BY 3 DESC, 1"""
SHORT = """SELECT s.value, COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON k.shortName = s.id
    GROUP BY k.shortName ORDER BY 1"""
CALLS = """SELECT s.value, COUNT(*), SUM(r.end - r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r
    JOIN StringIds AS s ON r.nameId = s.id GROUP BY r.nameId ORDER BY 1"""
LAUNCHES = """SELECT n.value, s.value, k.start - r.start, r.globalTid / 0x1000000 % 0x1000000, r.globalTid % 0x1000000
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON r.correlationId = k.correlationId
    AND r.globalTid / 0x1000000 = k.globalPid / 0x1000000 JOIN StringIds AS n ON n.id = r.nameId
    JOIN StringIds AS s ON s.id = k.demangledName ORDER BY k.start, k.streamId"""
COPIES = """SELECT e.label, COUNT(*), SUM(m.bytes), SUM(m.end - m.start) FROM CUPTI_ACTIVITY_KIND_MEMCPY AS m
    JOIN ENUM_CUDA_MEMCPY_OPER AS e ON e.id = m.copyKind GROUP BY m.copyKind ORDER BY 1"""
PINNED = """SELECT a.label, b.label, COUNT(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY AS m
    JOIN ENUM_CUDA_MEM_KIND AS a ON a.id = m.srcKind JOIN ENUM_CUDA_MEM_KIND AS b ON b.id = m.dstKind GROUP BY 1, 2"""
STREAMS = """SELECT deviceId, contextId, streamId, COUNT(*), SUM(end - start) FROM
    (SELECT deviceId, contextId, streamId, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL UNION ALL
     SELECT deviceId, contextId, streamId, start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY UNION ALL
     SELECT deviceId, contextId, streamId, start, end FROM CUPTI_ACTIVITY_KIND_MEMSET) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
SHAPES = """SELECT gridX, gridY, gridZ, blockX, blockY, blockZ, registersPerThread,
    staticSharedMemory + dynamicSharedMemory, COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8"""
RANGES = """SELECT COALESCE(n.text, s.value) AS name, COUNT(*), SUM(n.end - n.start) FROM NVTX_EVENTS AS n
    LEFT JOIN StringIds AS s ON s.id = n.textId WHERE n.eventType = 59 GROUP BY name ORDER BY name"""
INSIDE = """SELECT COUNT(*) FROM NVTX_EVENTS AS n JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON r.globalTid = n.globalTid
    AND r.start >= n.start AND r.end <= n.end JOIN CUPTI_ACTIVITY_KIND_KERNEL AS k
    ON k.correlationId = r.correlationId AND k.globalPid / 0x1000000 = r.globalTid / 0x1000000
    WHERE n.eventType = (SELECT id FROM ENUM_NSYS_EVENT_TYPE WHERE name = 'NvtxPushPopRange')"""
GPUS = """SELECT g.id, g.name, g.totalMemory, g.smCount, g.computeMajor || '.' || g.computeMinor FROM TARGET_INFO_GPU AS g
    ORDER BY g.id"""
PEOPLE = """SELECT p.pid, p.name, s.value FROM PROCESSES AS p JOIN ThreadNames AS t
    ON t.globalTid / 0x1000000 = p.globalPid / 0x1000000 JOIN StringIds AS s ON s.id = t.nameId ORDER BY 1, 3"""
LABELS = {"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device", "PtoP": "Peer-to-Peer",
          "HtoH": "Host-to-Host", None: "Unknown"}


def run(*arguments):
    return subprocess.run([weir, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()


def same(what, got, want):
    if got != want or wrong:
        if isinstance(got, list) and isinstance(want, list):
            got, want = [row for row in got if row not in want], [row for row in want if row not in got]
        problems.append(f"{what}: {str(got)[:400]}, not {str(want)[:400]}")


def sums(rows, key, *values):
    """Sorted (key..., count, sums...)."""
    total = collections.defaultdict(lambda: [0] * (1 + len(values)))
    for row in rows:
        for i, amount in enumerate((1, *(value(row) for value in values))):
            total[key(row)][i] += amount
    return sorted((*k, *v) for k, v in total.items())


def outermost(calls):
    """Calls that no call of the runtime has made, each with what those asked for that it made."""
    kept = []
    around = {}
    for c in sorted(calls, key=lambda c: (c["pid"], c["tid"], c["begin_ns"], -c["duration_ns"])):
        outer = around.get((c["pid"], c["tid"]))
        if outer and c["begin_ns"] + c["duration_ns"] <= outer["begin_ns"] + outer["duration_ns"]:
            if "correlation" in c:
                outer.setdefault("correlation", c["correlation"])
            continue
        kept.append(c)
        if c["api"] == "runtime":
            around[c["pid"], c["tid"]] = c
    return kept


def launches(query, kernels, calls):
    """For each kernel whose launch is known, who launched it, in order."""
    by = {(c["pid"], c["correlation"]): c for c in calls if "correlation" in c}
    want = []
    for k in kernels:
        c = by.get((k["pid"], k.get("correlation")))
        if c:
            want.append((c["name"], k["name"], k["begin_ns"] - c["begin_ns"], c["pid"] & 0xFFFFFF, c["tid"] & 0xFFFFFF))
    same("launches", sorted(query(LAUNCHES)), sorted(want))


def ranged(query, ranges, kernels, calls):
    want = sums(ranges, lambda r: (r["name"],), lambda r: r["duration_ns"])
    same("ranges", query(RANGES), want)
    by = collections.defaultdict(list)
    for c in calls:
        if "correlation" in c:
            by[c["pid"], c["tid"]].append(c)
    count = collections.Counter((k["pid"], k.get("correlation")) for k in kernels)
    inside = sum(count[c["pid"], c["correlation"]] for r in ranges for c in by[r["pid"], r["tid"]]
                 if c["begin_ns"] >= r["begin_ns"]
                 and c["begin_ns"] + c["duration_ns"] <= r["begin_ns"] + r["duration_ns"])
    same("kernels in ranges", query(INSIDE), [(inside,)])


def check(trace):
    path = work.name + "/out.sqlite"
    run("export", "-f", "sqlite", "-o", path, trace)
    db = sqlite3.connect(path)
    query = lambda q: db.execute(q).fetchall()
    rows = [json.loads(line) for line in run("export", "-f", "ndjson", trace).splitlines()]
    device = [r for r in rows if r["api"] == "device"]
    kernels = [r for r in device if r["class"] == "kernel"]
    copies = [r for r in device if r["class"] == "memcpy"]
    calls = outermost([r for r in rows if r["api"] in ("driver", "runtime")])
    same("kernels", sorted(query(KERNELS)), sums(kernels, lambda k: (k["name"],), lambda k: k["duration_ns"]))
    same("short names", sum(n for _, n in query(SHORT)), len(kernels))
    same("short names are in the long ones", query(
        "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds a ON a.id = k.shortName JOIN StringIds b "
        "ON b.id = k.demangledName WHERE instr(b.value, a.value) = 0 OR a.value = '' OR a.value GLOB '*[<( ]*'"), [(0,)])
    same("calls", query(CALLS), sums(calls, lambda c: (c["name"],), lambda c: c["duration_ns"]))
    launches(query, kernels, calls)
    same("copies", query(COPIES), sums(copies, lambda c: (LABELS[c["args"].get("direction")],),
                                       lambda c: c["args"].get("bytes", 0), lambda c: c["duration_ns"]))
    same("kinds of memory", sum(row[2] for row in query(PINNED)), sum(" -> " in c["name"] for c in copies))
    same("streams", query(STREAMS), sums(
        [r for r in device if r["class"] in ("kernel", "memcpy", "memset")],
        lambda r: tuple(r["args"].get(k) for k in ("device", "context", "stream")), lambda r: r["duration_ns"]))
    same("launches of each shape", sum(row[-1] for row in query(SHAPES)), len(kernels))
    same("shapes", {row[:6] for row in query(SHAPES)}, {(*k["args"]["grid"], *k["args"]["block"]) for k in kernels})
    ranged(query, [r for r in rows if r["api"] == "range" and r["class"] in ("operator", "annotation", "nvtx")],
           kernels, calls)
    report = json.loads(run("report", "--json", trace))
    same("GPUs", {(i, name) for i, name, *_ in query(GPUS)} >=
         {(d["device"], d["name"]) for d in report["devices"] if d["name"]}, True)
    same("people", all(row[1] for row in query(PEOPLE)) and {row[0] for row in query(PEOPLE)} <=
         {row["pid"] for row in rows}, True)
    same("times are whole numbers", query(
        "SELECT DISTINCT typeof(start), typeof(end), typeof(correlationId), typeof(globalPid) "
        "FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId IS NOT NULL"),
         [("integer",) * 4] if any("correlation" in k for k in kernels) else [])
    db.close()


def events_of(trace):
    path = work.name + "/nvtx.sqlite"
    run("export", "-f", "sqlite", "-o", path, trace)
    db = sqlite3.connect(path)
    rows = db.execute("""SELECT e.name, n.text, d.text, n.end - n.start, n.rangeId IS NOT NULL FROM NVTX_EVENTS AS n
        JOIN ENUM_NSYS_EVENT_TYPE AS e ON e.id = n.eventType LEFT JOIN NVTX_EVENTS AS d
        ON d.eventType = 75 AND d.domainId = n.domainId WHERE n.eventType != 75 ORDER BY 1, 2, 4""").fetchall()
    db.close()
    return rows


def crossing():
    """Ranges that begin and end alone, and a mark."""
    events = [{"ph": "X", "cat": "nvtx_span", "name": n, "pid": 1, "tid": 1, "ts": ts, "dur": dur}
              for n, ts, dur in (("one", 0, 10), ("two", 5, 10), ("mark", 6, 0))]
    with open(work.name + "/crossing.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    run("import", "-q", "-o", work.name + "/crossing.weir", work.name + "/crossing.json")
    same("ranges that cross", events_of(work.name + "/crossing.weir"), [
        ("NvtxMark", "mark", None, None, 0), ("NvtxStartEndRange", "one", None, 10000, 1),
        ("NvtxStartEndRange", "two", None, 10000, 1)])


def domains():
    """A program's words through NVTX, in the domain that it names."""
    program = build + "/tests/hostile/programs/nvtx"
    if not os.path.exists(program):
        return print("no program for NVTX was built")
    run("record", "-q", "--sim", "-o", work.name + "/nvtx.weir", "--", program)
    same("ranges of NVTX", [row[:3] for row in events_of(work.name + "/nvtx.weir")], [
        ("NvtxMark", "mark", None), ("NvtxPushPopRange", "event", None), ("NvtxPushPopRange", "plain", None),
        ("NvtxPushPopRange", "registered", "mine"), ("NvtxPushPopRange", "wide\u00e9\U0001f600", None)])


crossing()
domains()
if problems:
    print(*problems, sep="\n  ")
    sys.exit(1)
for path in traces:
    trace = path
    if not path.endswith(".weir"):
        trace = work.name + "/imported.weir"
        run("import", "-q", "-o", trace, path)
    check(trace)
    if problems:
        print(path, *problems, sep="\n  ")
        sys.exit(1)
