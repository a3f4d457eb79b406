"""The lists of weir report (--only, --sort, --filter, --columns, --csv) against its whole JSON and against the
events, worked out the slow way; and how they look on a terminal: lists.py BUILD TRACE... [wrong].
"""
import collections
import csv
import fcntl
import fnmatch
import io
import json
import math
import os
import pty
import statistics
import struct
import re
import subprocess
import sys
import tempfile
import termios

build, traces = os.path.abspath(sys.argv[1]), sys.argv[2:]
wrong = traces[-1] == "wrong" and traces.pop()
os.environ["LC_ALL"] = "C"
weir = build + "/bin/weir"
work = tempfile.TemporaryDirectory(prefix="weir-lists-")
problems = []
EVENTS = "gpu_trace", "api_trace", "waits", "operators_by_shape", "kernel_shapes", "launch_gaps", "idle_gaps", "nccl", "range_kernels", "range_pace", "steps", "kernel_families", "busy_over_time", "kernels_at_once"


def run(*arguments, code=0):
    done = subprocess.run([weir, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != code:
        problems.append(f"{arguments} ended with {done.returncode}: {done.stderr.decode()[:200]}")
    return (done.stderr if code else done.stdout).decode()


def lists(trace, *arguments):
    return json.loads(run("report", "--json", *arguments, trace) or "{}")


def same(what, got, want):
    if got != want or wrong:
        problems.append(f"{what}: {str(got)[:300]}, not {str(want)[:300]}")


def near(what, got, want, most):
    if (got is None) != (want is None) or (got is not None and abs(got - want) > most):
        problems.append(f"{what}: {got}, not {want}")


def whole(trace, report):
    """Each section alone is what it is in all of the JSON."""
    names = [k for k, v in report.items() if k != "idle_gaps" and (isinstance(v, dict) or (isinstance(v, list) and not (v and isinstance(v[0], str))))]
    got = lists(trace, "--only", ",".join(names))
    same("sections", got, {"schema_version": 1, **{name: report[name] for name in names}})
    same("blocks", lists(trace, "--only", "memory.live")["memory.live"], report["memory"]["live"])
    names += EVENTS
    got = lists(trace, "--only", ",".join(names))
    for name in names: # alone, for which less of the report is made
        same(name + " alone", lists(trace, "--only", name).get(name), got[name])


def chosen(trace, report):
    """Sorted and filtered as Python does it."""
    for section, column, word in (("kernels", "device_total_ns", "elementwise"), ("calls", "total_ns", "Launch"),
                                  ("operators", "host_total_ns", "a"), ("device_activities", "count", "Mem")):
        rows = [r for r in report.get(section) or [] if word in r["name"]]
        got = lists(trace, "--only", section, "--sort", column, "--filter", "name ~ " + word)[section]
        same(section + " by " + column, [r[column] for r in got], sorted(
            (r[column] for r in rows), key=lambda v: (v is None, -(v or 0))))
        same(section + " with " + word, sorted(map(str, got)), sorted(map(str, rows)))
        known = [r[column] for r in report.get(section) or [] if r[column] is not None]
        if not known:
            continue
        middle = sorted(known)[len(known) // 2]
        for op, holds in ((">", lambda v: v > middle), ("<=", lambda v: v <= middle), ("!=", lambda v: v != middle)):
            got = lists(trace, "--only", section, "--filter", f"{column}{op}{middle}ns")[section]
            same(f"{section} of {column} {op}", [r[column] for r in got], [v for v in known if holds(v)])
        got = lists(trace, "--only", section, "--sort", column, "-n", "3")[section]
        same("the first of " + section, [r[column] for r in got], sorted(known, reverse=True)[:3])
        got = lists(trace, "--only", section, "--sort", "-" + column, "-n", "2")[section]
        same(section + " turned round", [r[column] for r in got], sorted(known)[:2])
        got = lists(trace, "--only", section, "--columns", f"name,{column}", "--filter", "name ~ *e*")[section]
        same(section + " of two columns", got, [{"name": r["name"], column: r[column]} for r in report[section]
                                                if fnmatch.fnmatchcase(r["name"], "*e*")])
        rows = list(csv.DictReader(io.StringIO(run("report", "--only", section, "--csv", trace), newline="")))
        if section == "kernels":
            for family in {r["family"] for r in report[section]}:
                got = lists(trace, "--only", section, "--columns", "family,name", "--filter", "family = " + family)[section]
                same("kernels of family " + family, got, [{"family": family, "name": r["name"]} for r in report[section]
                                                          if r["family"] == family])
        same(section + " as CSV", [(r["name"].lstrip("'"), r[column]) for r in rows],
             [(r["name"], "" if r[column] is None else str(r[column])) for r in report[section]])


def spread(what, row, prefix, values):
    near(f"{what} {prefix}_total", row[prefix + "_total_ns"], sum(values) if values else None, 2 * len(values))
    near(f"{what} {prefix}_mean", row[prefix + "_mean_ns"], statistics.fmean(values) if values else None, 2)
    near(f"{what} {prefix}_min", row[prefix + "_min_ns"], min(values, default=None), 1)
    near(f"{what} {prefix}_max", row[prefix + "_max_ns"], max(values, default=None), 1)
    percentiles = [row[f"{prefix}_{key}_ns"] for key in ("min", "p50", "p90", "p99", "max") if values]
    same(f"{what} {prefix}: percentiles are in order", percentiles, sorted(percentiles))
    if values:  # within the sixteenth that a histogram rounds by
        exact = sorted(values)[max(0, math.ceil(.9 * len(values)) - 1)]
        near(f"{what} {prefix}_p90", row[prefix + "_p90_ns"], exact, exact / 16 + 2)
    near(f"{what} {prefix}_stddev", row[prefix + "_stddev_ns"], statistics.stdev(values) if len(values) > 1 else None, 3)


def waited(activity, calls):
    """(its call, its queued time), or nothing."""
    c = calls.get((activity["pid"], activity.get("correlation")))
    return (c, max(0, activity["begin_ns"] - c["begin_ns"] - c["duration_ns"])) if c else (None, None)


def events(trace, report):
    lines = [json.loads(line) for line in run("export", "-f", "ndjson", trace).splitlines()]
    # Waits are no work of a device, and spans of ranges are sums of others.
    device = [r for r in lines if r["api"] == "device" and r["class"] not in ("sync", "span")]
    calls = {(c["pid"], c["correlation"]): c for c in lines if c["api"] in ("driver", "runtime") and "correlation" in c}
    got = lists(trace, "--only", ",".join(EVENTS))
    rows = got["gpu_trace"]
    same("the trace is in order", [r["start_ns"] for r in rows], sorted(r["begin_ns"] for r in device))
    same("activities of the trace", sorted((r["start_ns"], r["duration_ns"], r["kind"], r["name"] or "", str(r["grid"]))
                                           for r in rows),
         sorted((r["begin_ns"], r["duration_ns"], r["class"], r["name"], str(r["args"].get("grid"))) for r in device))
    by = {(r["pid"], r["correlation"], r["start_ns"], r["name"] or ""): r for r in rows}
    for r in device:
        row, (call, queued) = by[r["pid"], r.get("correlation"), r["begin_ns"], r["name"]], waited(r, calls)
        same("the call of an activity", row["call"], call and call["name"])
        near("the wait of an activity", row["queued_ns"], queued, 1)
    owned(rows, calls, [r for r in lines if r["api"] == "range" and r["class"] in NESTS], got["range_kernels"])
    copied(rows, report)
    busy(got["busy_over_time"], got["kernels_at_once"], rows, report)
    families(got["kernel_families"], report)
    each_call(got["api_trace"], [r for r in lines if r["api"] in ("driver", "runtime")])
    waits(got["waits"], [r for r in lines if r["api"] in ("driver", "runtime")], device, report)
    geometries(got["kernel_shapes"], [r for r in rows if r["kind"] == "kernel"])
    idle(got["idle_gaps"], report)
    gaps(got["launch_gaps"], [r for r in device if r["class"] == "kernel"], calls)
    paces(got["range_pace"], [r for r in lines if r["api"] == "range" and r["class"] in ("annotation", "nvtx", "nvtx span")])
    steps(trace, got["steps"], lines, rows)
    shapes(got["operators_by_shape"], report, lines)
    collectives(got["nccl"], rows, [r for r in lines if r["api"] == "range" and r["name"].startswith("gloo:")])
    within(got["range_kernels"], report)


def why_late(call, ns):
    """Why a call returns late; `ns`: how long it may have waited."""
    if call["class"] == "sync" and "WaitEvent" not in call["name"]:
        return "synchronization"
    if call["class"] == "copy":
        return "blocking copy" if "Async" not in call["name"] else "long copy" if ns >= 100000 else None
    return "free" if re.fullmatch("cuMemFree(_v2|Host)?|cudaFree(Host)?|hip(Host)?Free", call["name"]) else None


def waits(got, calls, device, report):
    """Each call that waits is in one row, unless one that waits made it; and the rows have the sums of their times, of
    asynchronous copies until the GPU had copied."""
    by, threads, copied = collections.defaultdict(list), collections.defaultdict(list), collections.defaultdict(int)
    for r in device:
        if r["class"] == "memcpy":
            key = r["pid"], r.get("correlation")
            copied[key] = max(copied[key], r["begin_ns"] + r["duration_ns"])
    for c in calls:
        threads[c["pid"], c["tid"]].append(c)
    for row in threads.values():
        outer = []  # the calls around, outermost first
        for c in sorted(row, key=lambda c: (c["begin_ns"], -c["duration_ns"])):
            while outer and outer[-1]["begin_ns"] + outer[-1]["duration_ns"] < c["begin_ns"] + c["duration_ns"]:
                outer.pop()
            ns, end = c["duration_ns"], c["begin_ns"] + c["duration_ns"]
            if c["class"] == "copy" and "Async" in c["name"]:
                inside = [copied[o["pid"], o["correlation"]] for o in row if "correlation" in o
                          and c["begin_ns"] <= o["begin_ns"] < end and (o["pid"], o["correlation"]) in copied]
                ns = min(end, max(inside, default=end)) - c["begin_ns"]
            if why_late(c, ns) and not any(why_late(o, o["duration_ns"]) for o in outer):
                by[c["name"], c["api"], why_late(c, ns)].append(ns)
            outer.append(c)
    same("calls that wait", sorted((r["name"], r["api"], r["kind"], r["count"]) for r in got),
         sorted((*key, len(v)) for key, v in by.items()))
    for r in got:
        spread("of waits", r, "wait", by[r["name"], r["api"], r["kind"]])
        near("a share of the run", r["share_of_run"], r["wait_total_ns"] / report["totals"]["wall_ns"], 1e-4)


def sums(trace, report):
    """The last row of a list has the sums of all its rows, shown or not; and shares of all make a whole."""
    for section, column in ("kernels", "count"), ("memops", "count"), ("streams", "count"), ("operators", "device_count"):
        values = [r[column] for r in report.get(section) or []]
        if len(values) < 2 or None in values:
            continue
        last = run("report", "--only", section, "--columns", column, "-n", "1", trace).splitlines()
        same(f"the sum of {section}", [n.replace(",", "") for n in last[4].split()], [str(sum(values))])
        named = run("report", "--only", section, "--columns", column + "," + list(report[section][0])[0], trace)
        same(f"the sum of {section} is named", f"total of {len(values)} rows" in named or section == "memops", True)
    for section in "kernels", "operators":
        shares = [r["share"] for r in report.get(section) or [] if r["share"] is not None]
        if any(shares):
            near(f"shares of {section}", sum(shares), 1, .01)
    for r in report.get("kernels") or []:
        rate = r["costed_ns"] and r["flops"] is not None and r["flops"] * 1e9 / r["costed_ns"]
        near("FLOPs of a second", r["flops_per_second"] or 0, rate or 0, (rate or 0) * 1e-4)


def geometries(got, kernels):
    """Each kernel that has a shape is in one row, and how full an SM is follows from blocks that fit, and the block."""
    keys = "name", "pid", "device", "grid", "block", "registers", "shared_static_bytes", "shared_dynamic_bytes"
    by = collections.defaultdict(list)
    for r in kernels:
        if r["grid"]:
            by[str([r[key] for key in keys])].append(r["duration_ns"])
    same("shapes of kernels", sorted(str([g[key] for key in keys]) for g in got), sorted(by))
    for g in got:
        values = by[str([g[key] for key in keys])]
        same("launches of a shape", g["count"], len(values))
        spread("of a shape", g, "device", values)
        if g["occupancy"] is None:
            continue
        same("an occupancy is a share", 0 < g["occupancy"] <= 1, True)
        same("warps of the blocks", g["warps_per_sm"], g["blocks_per_sm"] * -(-math.prod(g["block"]) // 32))
        same("waves of the blocks", g["waves"] is None or g["waves"] > 0, True)


def longest():
    """If more rows wait than can be sorted, the longest and the shortest, in order."""
    events = [{"ph": "X", "cat": "kernel", "name": f"k{i % 7}", "pid": 0, "tid": 7, "ts": 10 * i, "dur": i * 7919 % 9973 / 1000,
               "args": {"device": 0, "stream": 7}} for i in range(9973)]
    with open(work.name + "/many.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    trace = work.name + "/many.weir"
    run("import", "-q", "-o", trace, work.name + "/many.json")
    for sort, want in (("duration_ns", [9972, 9971, 9970]), ("-duration_ns", [0, 1, 2])):
        got = lists(trace, "--only", "gpu_trace", "--sort", sort, "-n", "3")["gpu_trace"]
        same("activities by " + sort, [r["duration_ns"] for r in got], want)


NESTS = "operator", "annotation", "nvtx"


def chain(thread, at):
    """Ranges of a thread that were open then, the innermost first: those that began last."""
    return sorted((g for g in thread if g["begin_ns"] <= at < g["begin_ns"] + g["duration_ns"]),
                  key=lambda g: (-g["begin_ns"], g["duration_ns"]))


def named(around):
    return [(g["name"], g["class"]) for g in around if g["class"] != "operator"]


def waiting(threads, pid, at, own):
    """The names around the one thread of a process that is inside of such ranges then.  One that is
    so only while another is all the while, and longer, does a part of that one's work."""
    def lies(g):
        return g["begin_ns"], g["begin_ns"] + g["duration_ns"]

    found = []
    for key, of in threads.items():
        around = [g for g in chain(of, at) if g["class"] != "operator"] if key[0] == pid else []
        others = [lies(g) for k, v in threads.items() if k[0] == pid and k != key for g in v if g["class"] != "operator"]
        if around and not any(a <= lies(around[-1])[0] and b >= lies(around[-1])[1] and (a, b) != lies(around[-1]) for a, b in others):
            found.append((key, named(around)))
    return found[0][1] if len(found) == 1 and found[0][0] != own else []


def owned(rows, calls, ranges, inside):
    """The operator and the range of each activity, and what ran in ranges, by the calls alone."""
    threads = collections.defaultdict(list)
    for g in ranges:
        threads[g["pid"], g["tid"]].append(g)
    edges = {(key, t + d, g["class"] != "operator") for key, of in threads.items() for g in of
             for t in (g["begin_ns"], g["begin_ns"] + g["duration_ns"]) for d in (-1, 0, 1)}
    of_names = {(key[0], t) for key, t, is_name in edges if is_name}
    edges = {(key, t) for key, t, _ in edges}
    sums, sure = collections.Counter(), True
    for r in rows:
        c = calls.get((r["pid"], r["correlation"]))
        key = c and (c["pid"], c["tid"])
        around = chain(threads[key], c["begin_ns"]) if c else []
        since = around[-1]["begin_ns"] if around else c and c["begin_ns"]
        if not c or (key, c["begin_ns"]) in edges or (c["pid"], since) in of_names:  # times are rounded
            sure = sure and not ranges
            continue
        operators = [g["name"] for g in around if g["class"] == "operator"]
        own = [name for name in operators if not name.startswith(("cublas", "cudnn"))]
        same("the operator of " + str(r["name"]), r["operator"], (own or operators or [None])[0])
        names = named(around) + waiting(threads, c["pid"], since, key)
        same("the range of " + str(r["name"]), r["range"], names[0][0] if names else None)
        for name, kind in set(names):
            if r["kind"] in ("kernel", "memcpy", "memset", "graph"):
                sums[name, kind, r["kind"], r["name"] or "(no name)"] += r["duration_ns"]
    got = {(g["range"], g["range_kind"], g["kind"], g["name"]): g["device_total_ns"] for g in inside if g["range_kind"] in NESTS}
    if sure:
        same("what ran in ranges", sorted(got.items()), sorted(sums.items()))
    else:
        same("what ran in ranges, at least", [key for key, ns in sums.items() if got.get(key, 0) < ns], [])


def marked():
    """Ranges inside others, of their own name too, and some that cross, worked out by hand."""
    common = {"ph": "X", "pid": 1, "tid": 5}
    ranges = [("user_annotation", "outer", 0, 100), ("user_annotation", "inner", 20, 50), ("user_annotation", "outer", 30, 20),
              ("cpu_op", "aten::mm", 32, 5), ("nvtx_span", "cross", 10, 40), ("nvtx_span", "cross", 40, 70), ("nvtx_span", "late", 90, 60)]
    events = [{**common, "cat": cat, "name": name, "ts": ts, "dur": dur} for cat, name, ts, dur in ranges]
    for i, ts in enumerate((5, 33, 45, 95, 120)):
        events += [{**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts, "dur": 1, "args": {"correlation": i + 1}},
                   {"ph": "X", "cat": "kernel", "name": "odd" if i % 2 else "even", "pid": 0, "tid": 7, "ts": ts + 2, "dur": 1 << i,
                    "args": {"device": 0, "stream": 7, "correlation": i + 1}}]
    with open(work.name + "/marked.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    got = lists(work.name + "/marked.json", "--only", "gpu_trace,range_kernels")
    same("ranges by hand", [(r["range"], r["operator"]) for r in got["gpu_trace"]],
         [("outer", None), ("outer", "aten::mm"), ("outer", None), ("outer", None), (None, None)])
    same("kernels of ranges by hand", sorted((r["range"], r["range_kind"], r["name"], r["count"], r["device_total_ns"], r["share"])
                                             for r in got["range_kernels"]), [
        ("cross", "nvtx span", "even", 1, 4000, 0.285714), ("cross", "nvtx span", "odd", 2, 10000, 0.714286),
        ("inner", "annotation", "even", 1, 4000, 0.666667), ("inner", "annotation", "odd", 1, 2000, 0.333333),
        ("late", "nvtx span", "even", 1, 16000, 0.666667), ("late", "nvtx span", "odd", 1, 8000, 0.333333),
        ("outer", "annotation", "even", 2, 5000, 0.333333), ("outer", "annotation", "odd", 2, 10000, 0.666667)])


def never_waited_for():
    """Launches that no call waits for make no step, which is said."""
    events = [{"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "pid": 1, "tid": 5, "ts": ts, "dur": 1} for ts in (5, 9)]
    with open(work.name + "/launched.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    said = run("report", "--only", "steps", work.name + "/launched.json").split("Steps by time")[1].strip()
    same("why there are no steps", said, "none: no range is numbered, and no launch was waited for")


def covered(intervals, begin, end):
    """How much of a time is in any of the intervals."""
    sum_ns, until = 0, begin
    for a, b in sorted(intervals):
        if min(b, end) > max(a, until):
            sum_ns += min(b, end) - max(a, until)
            until = min(b, end)
    return sum_ns


def busy(series, levels, rows, report):
    devices = {r["device"] or 0 for r in rows if r["kind"] in ("kernel", "memcpy", "memset", "graph")}
    same("devices over time", {s["device"] for s in series}, devices)
    same("devices with kernels at once", {s["device"] for s in levels}, devices)
    for device in devices:
        of = lambda *kinds: [(r["start_ns"], r["start_ns"] + r["duration_ns"]) for r in rows
                             if (r["device"] or 0) == device and r["kind"] in kinds]
        kernels, copies = of("kernel", "graph"), of("memcpy", "memset")
        points = [s for s in series if s["device"] == device]
        near("the whole of the intervals", sum(s["duration_ns"] for s in points), report["totals"]["wall_ns"], 0)
        for s in points[::7]:
            at, end = s["start_ns"], s["start_ns"] + s["duration_ns"]
            each = s["duration_ns"] or 1
            near("the share of kernels", s["kernel_share"], covered(kernels, at, end) / each, 2e-6)
            near("the share of copies", s["copy_share"], covered(copies, at, end) / each, 2e-6)
            near("the busy share", s["busy_share"], covered(kernels + copies, at, end) / each, 2e-6)
            near("kernels of an interval", s["kernels_at_once"],
                 sum(max(0, min(b, end) - max(a, at)) for a, b in kernels) / each, 2e-5)
        same("kernels that started", sum(s["kernels_started"] for s in points), len(kernels))
        own = {s["at_once"]: s["ns"] for s in levels if s["device"] == device}
        edges = sorted({t for k in kernels for t in k})
        want = collections.Counter()
        if len(kernels) < 400:
            for a, b in zip(edges, edges[1:]):
                want[sum(x <= a and b <= y for x, y in kernels)] += b - a
            same("how many ran at once", {n: ns for n, ns in own.items() if n and ns}, {n: ns for n, ns in want.items() if n})
        same("all of the time", sum(own.values()), report["totals"]["wall_ns"])
        shares = [s["share_of_busy"] for s in levels if s["device"] == device and s["at_once"]]
        near("shares of the busy time", sum(shares), 1 if any(shares) else 0, 1e-4)
        same("kernels one by one", sum(n * ns for n, ns in own.items()), sum(b - a for a, b in kernels))


def families(rows, report):
    work = [w for w in report.get("device_activities") or [] if w["kind"] in ("kernel", "memcpy", "memset")]
    for key, column in ("count", "count"), ("device_total_ns", "device_total_ns"):
        same("the sum of families", sum(r[key] for r in rows), sum(w[column] for w in work))
    same("names of families", sum(r["names"] for r in rows), len(work))
    near("shares of families", sum(r["share"] for r in rows) or 1, 1, 1e-4)
    of_kernels = collections.Counter()
    for k in report["kernels"]:
        of_kernels[k["family"]] += k["device_total_ns"] or 0
    same("families of kernels", sorted((+of_kernels).items()),
         sorted((r["family"], r["device_total_ns"]) for r in rows if r["family"] not in ("memcpy", "memset")))


def late_copies():
    """An asynchronous copy that returns late has waited until the GPU had copied, and not longer; or not at all."""
    events = []
    for i, (took, copied) in enumerate(((300, 160), (300, 900), (300, 40), (90, 90))):
        common = {"ph": "X", "args": {"correlation": i + 1, "device": 0, "stream": 7}}
        events.append({**common, "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 5, "ts": 1000 * i, "dur": took})
        events.append({**common, "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7,
                       "ts": 1000 * i + copied - 30, "dur": 30})
    with open(work.name + "/late.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    got = lists(work.name + "/late.json", "--only", "waits")["waits"]
    same("late copies", [(r["kind"], r["count"], r["wait_min_ns"], r["wait_max_ns"]) for r in got], [("long copy", 2, 160000, 300000)])


def halves():
    """If a step back's input needs no gradient, the weights' product ran alone; the copy of a
    norm's input computes nothing."""
    back = {"Concrete Inputs": ["", "", "", "[256]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, True]"],
            "Input type": ["float"] * 3 + ["ScalarList"] * 4 + ["Scalar", "ScalarList", "Scalar", "ScalarList"],
            "Input Dims": [[16, 256, 16, 16], [16, 128, 32, 32], [256, 128, 3, 3]] + [[]] * 8}
    norm = {"Input Dims": [[64, 1024], [], [1024], [1024], []], "Input type": ["float", "ScalarList", "float", "float", "Scalar"]}
    events, copy = [], "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(T)>(int)"
    spans = [("aten::convolution_backward", back, ["sm80_xmma_wgrad_implicit_gemm_f32f32_f32f32_f32_nhwckrsc"], None),
             ("aten::convolution_backward", back, ["sm80_xmma_wgrad_implicit_gemm_f32f32_f32f32_f32_nhwckrsc",
                                                   "sm80_xmma_dgrad_implicit_gemm_f32f32_f32f32_f32_nchwkcrs"], None),
             ("aten::native_layer_norm", norm, [copy, "void at::native::vectorized_layer_norm_kernel<float, float>(int)"], "aten::copy_")]
    common, device = {"ph": "X", "pid": 1, "tid": 5}, {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "dur": 40}
    for i, (name, args, kernels, inner) in enumerate(spans):
        at = 1000 * i
        events.append({**common, "cat": "cpu_op", "name": name, "ts": at, "dur": 900, "args": args})
        if inner:
            events.append({**common, "cat": "cpu_op", "name": inner, "ts": at + 5, "dur": 50})
        for k, kernel in enumerate(kernels):
            number = 10 * i + k + 1
            events.append({**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 10 + 100 * k, "dur": 5,
                           "args": {"correlation": number}})
            events.append({**device, "name": kernel, "ts": at + 100 + 100 * k, "args": {
                "device": 0, "stream": 7, "correlation": number, "grid": [64, 1, 1], "block": [128, 1, 1]}})
    with open(work.name + "/halves.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    got = lists(work.name + "/halves.json", "--only", "kernels,operators")
    flops = lambda part: next(k["flops"] for k in got["kernels"] + got["operators"] if part in k["name"])
    product = 2 * 16 * 256 * 16 * 16 * 128 * 9
    same("FLOPs of steps back", [flops("xmma_wgrad"), flops("xmma_dgrad"), flops("aten::convolution_backward")], [2 * product, product, 3 * product])
    same("FLOPs of a copy inside", flops("direct_copy"), None)
    same("FLOPs of the norm", flops("vectorized_layer_norm"), flops("aten::native_layer_norm"))


def live():
    """Two programs of tests/gpu/programs, recorded on an H200 with --gpu, --python and --stacks, by what they do: sizes, steps, lines."""
    here = os.path.dirname(os.path.abspath(__file__)) + "/live/"
    got = lists(here + "autocast.weir", "--only", "operators,kernels,steps,kernel_families")
    flops = {o["name"]: o["flops"] for o in got["operators"] if o["kind"] == "operator"}
    stem = 12 * 2 * 32 * 512 * 768 * 80 * 3  # a Conv1d of 80 channels to 768, over three
    tokens, width, blocks = 12 * 32 * 512, 768, 4
    linear = 2 * tokens * width * width * 12 * blocks + 2 * 12 * 32 * width * 1000
    same("FLOPs of the Conv1d", [flops[name] for name in ("aten::conv1d", "aten::cudnn_convolution", "aten::convolution_backward")], [stem] * 3)
    same("FLOPs of the products", [flops["aten::addmm"], flops["aten::mm"]], [linear, 2 * linear])
    same("FLOPs of attention", flops["aten::_cudnn_attention_forward"], 4 * 12 * blocks * 32 * 12 * 512 * 512 * 64)
    same("FLOPs of a cast", {k["flops"] for k in got["kernels"] if k["family"] == "copy"}, {None})
    same("kernels that are slow by what is known of them", [
        k["name"] for k in got["kernels"] if (k["class"], k["class_basis"]) == ("latency", "cost") and k["bytes"] is None], [])
    same("numbers of steps", [(s["number"], s["name"]) for s in got["steps"]], [(i, "step %d" % i) for i in range(12)])
    same("a family for each kernel", [f["family"] for f in got["kernel_families"] if f["family"] == "unknown"], [])
    # Before each step the host is late, behind another activity in one step of three: no gap that came once.
    for steps in "5-8", "4-7", "6-9", "7-10":
        part = lists(here + "autocast.weir", "--steps", steps, "--only", "idle_gaps,hints_idle_gaps,hints")
        late = [g["ns"] for g in part["idle_gaps"] if g["ns"] > 3000000]
        host = sum(h["ns"] for h in part["hints_idle_gaps"] if h["cause"] == "host")
        same(f"late steps of {steps}", len(late), 3)
        same(f"idle gaps before steps {steps} count", host > sum(late), True)
        same(f"where the host is late in {steps}", [
            h["where"].split("before ")[-1] for h in part["hints"] if h["id"] == "idle-host"], ["memcpy HtoD"])
    peak = {o["name"]: o for o in json.loads(run("memory", "--json", here + "autocast.weir"))["by_operator"]}
    same("operators that allocate for others are not to blame", [
        name for name in peak if name in ("aten::empty", "aten::empty_strided", "aten::empty_like", "aten::zeros")], [])
    same("modules at the peak", [peak[name]["module"] for name in ("aten::addmm", "aten::gelu", "aten::cudnn_convolution")],
         ["blocks.0.qkv (Linear)", "blocks.0.mlp.1 (GELU)", "stem (Conv1d)"])
    stacks = run("report", "--only", "call_stacks.rows", here + "leak.weir")
    same("who called in a list", "< train_step (leak.py:8) < <module> (leak.py:10)" in stacks, True)
    said = run("memory", here + "leak.weir")
    same("the leak", re.findall(r"growth  (32.0 MiB) each launch|: (memory leaks), or", said), [("32.0 MiB", ""), ("", "memory leaks")])
    same("the line that leaks", "384 MiB in 12 blocks" in said and "train_step (leak.py:8)" in said, True)
    frames = [line.rsplit(" ", 1)[0].split(";") for line in run("flame", "--by", "host", here + "leak.weir").splitlines()]
    called = [f for f in frames for a, b in zip(f, f[1:]) if a.startswith("aten::") and ".py:" in b]
    same("no operator calls the line that called it", called, [])


def vision():
    """Networks recorded on an H200 with shapes now and then: what torch.profiler counts (with_flops) stands beside."""
    here = os.path.dirname(os.path.abspath(__file__)) + "/live/"
    for name in "vit", "unet", "resnet":
        with open(here + name + ".flops.json") as f:
            theirs = json.load(f)
        rows = {o["name"]: o for o in lists(here + name + ".weir", "--only", "operators")["operators"] if o["kind"] == "operator"}
        if name == "unet":  # scaled outside of any module, where no shape is told
            same("a figure of no call", [rows["aten::mul"][key] for key in ("flops", "costed_count")], [None, None])
            del theirs["aten::mul"]
        same("FLOPs of " + name, {key: rows[key]["flops"] for key in theirs}, {key: row["flops"] for key, row in theirs.items()})
        same("calls of " + name, {key: rows[key]["costed_count"] for key in theirs}, {key: row["count"] for key, row in theirs.items()})
        inner = {rows[key]["flops"] for key in ("aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution")}
        same("one convolution by its four names in " + name, len(inner), 1)


def numbered():
    """Which names number steps: a test of its own, since the kept traces have ProfilerStep# alone."""
    def found(*names):
        events = [{"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 5, "ts": 100 * i, "dur": 90}
                  for i, name in enumerate(names)]
        events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 5, "ts": 100 * i + 10, "dur": 5,
                    "args": {"correlation": i + 1}} for i in range(len(names))]
        with open(work.name + "/numbered.json", "w") as out:
            out.write(json.dumps({"traceEvents": events}))
        got = lists(work.name + "/numbered.json", "--only", "steps").get("steps") or []
        return [(r["number"], r["launches"]) for r in got]

    for pattern in ("step %d", "Step_%d", "train_step-%d", "TrainStep%d", "iteration:%d", "iter=%d", "batch %d", "ProfilerStep#%d", "epoch 2 step %d", "x#%d"):
        same("steps named " + pattern, found(*(pattern % i for i in (7, 8, 9))), [(7, 1), (8, 1), (9, 1)])
    for pattern in ("footstep %d", "layer %d", "h.%d", "%d", "step %d of 9", "conv2d_%d"):
        same("no steps named " + pattern, found(*(pattern % i for i in (7, 8, 9))), [])


def kinds():
    """Families by the names of kernels; and two kernels that run at once for a while."""
    names = ["ampere_sgemm_128x64_nn", "cudnn_fprop_kernel", "flash_fwd_kernel", "elementwise_kernel", "reduce_kernel",
             "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "zzz"]
    events = [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7 + i % 2, "ts": 10 * i, "dur": 15,
               "args": {"device": 0, "stream": 7 + i % 2}} for i, name in enumerate(names)]
    events.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 9, "ts": 100, "dur": 20,
                   "args": {"device": 0, "stream": 9, "bytes": 5}})
    with open(work.name + "/kinds.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    got = lists(work.name + "/kinds.json", "--only", "kernel_families,kernels_at_once,busy_over_time")
    same("families", sorted((r["family"], r["count"], r["device_total_ns"]) for r in got["kernel_families"]),
         sorted([(f, 1, 15000) for f in ("gemm", "conv", "attention", "elementwise", "reduce", "collective", "unknown")] +
                [("memcpy", 1, 20000)]))
    same("at once", {r["at_once"]: r["ns"] for r in got["kernels_at_once"]}, {0: 45000, 1: 45000, 2: 30000})
    same("intervals", len(got["busy_over_time"]), 120)
    same("busy", sum(r["busy_share"] * r["duration_ns"] for r in got["busy_over_time"]), 95000)
    text = run("report", work.name + "/kinds.json").split("  busy          ")[1].splitlines()[0]
    same("the line", text, "#" * 37 + ":" + " " * 12 + "#" * 10 + "  share of each 2.00 us in which a GPU was busy")


def copied(rows, report):
    """The sizes of a row are those of its copies whose size is known, and so is their rate."""
    way = lambda r: (r["kind"], r["direction"])
    by = collections.defaultdict(list)
    for r in rows:
        if r["kind"] in ("memcpy", "memset"):
            by[r["kind"], r["direction"] if r["kind"] == "memcpy" else None].append(r)
    got = collections.defaultdict(list)
    for c in report["memops"]:
        got[way(c)].append(c)
    if not report["totals"]["sampled"]:
        same("directions of copies", sorted(map(str, got)), sorted(map(str, by)))
    for key, of in got.items():
        sizes = [r["bytes"] for r in by[key] if r["bytes"] is not None]
        known = [c["bytes"] for c in of if c["bytes"] is not None]
        same(f"bytes of {key}", (sum(known), bool(known)), (sum(sizes), bool(sizes)))
        if len(of) == 1:
            ns = sum(r["duration_ns"] for r in by[key] if r["bytes"] is not None)
            near(f"rate of {key}", of[0]["bytes_per_second"], sum(sizes) * 1e9 / ns if ns else None, 1)


def unsized():
    """Copies whose size is not known have none: they are not of 0 bytes, and their time is in no rate."""
    size = {"HtoD": [4000, None, 2000], "DtoH": [None, None], "DtoD": [0, 500]}
    copies = [(way, bytes) for way, of in size.items() for bytes in of]
    events = [{"ph": "X", "cat": "gpu_memcpy", "name": f"Memcpy {way} (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 100 * i, "dur": 10,
               "args": {"device": 0, "stream": 7, **({} if bytes is None else {"bytes": bytes})}} for i, (way, bytes) in enumerate(copies)]
    with open(work.name + "/unsized.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    trace = work.name + "/unsized.weir"
    run("import", "-q", "-o", trace, work.name + "/unsized.json")
    got = lists(trace, "--only", "memops,memcpys,device_activities,gpu_trace")
    want = [("DtoD", 2, 500, 25000000), ("DtoH", 2, None, None), ("HtoD", 3, 6000, 300000000)]
    for section in "memops", "memcpys":
        same("sizes in " + section, sorted((c["direction"], c["count"], c["bytes"], c["bytes_per_second"]) for c in got[section]), want)
    same("sizes by name", sorted(w["bytes"] is None for w in got["device_activities"]), [False, False, True])
    copied(got["gpu_trace"], {**got, "totals": {"sampled": 0}})
    text = run("report", trace)
    same("sizes in the text", [bool(re.search(line, text)) for line in (r"2 +- +- +20.0 us +10.0 us +-  DtoH", r"3 +5.86 KiB +2.93 KiB +30.0 us .* 286 MiB/s  HtoD")],
         [True, True])
    said = json.loads(run("diff", "--json", trace, trace))["memops"]
    same("sizes compared", sorted((c["name"], c["a"]["bytes"], c["b"]["bytes"]) for c in said),
         [("DtoD", 500, 500), ("DtoH", None, None), ("HtoD", None, None)])


def each_call(rows, calls):
    """Each call is there, in order; who made it is the innermost that had begun before and had not ended."""
    same("calls are in order", [r["start_ns"] for r in rows], sorted(c["begin_ns"] for c in calls))
    own = lambda r: (r["start_ns"], r["duration_ns"], r["pid"], r["tid"], r["api"], r["class"], r["name"], r["result"],
                     r["error"], r["kernel"], r["bytes"] if r["name"].startswith("cuMemcpy") else None, r["captured"], r["correlation"])
    size = lambda c: c["args"].get("ByteCount")
    same("calls", sorted(map(str, map(own, rows))), sorted(str((
        c["begin_ns"], c["duration_ns"], c["pid"], c["tid"], c["api"], c["class"], c["name"], c["args"].get("result", 0),
        c["args"].get("error"), c["args"].get("kernel") if "grid" in c["args"] else None,
        size(c) if c["name"].startswith("cuMemcpy") else None,
        c["args"].get("captured", False), c.get("correlation"))) for c in calls))
    open_calls = collections.defaultdict(list)
    for r in sorted(rows, key=lambda r: (r["start_ns"], -r["duration_ns"])):
        around = open_calls[r["pid"], r["tid"]]
        while around and around[-1][0] <= r["start_ns"]:
            around.pop()
        if not around or around[-1][2] < r["start_ns"]:  # those that begin in one nanosecond are not told apart here
            same("who made " + r["name"], r["caller"], around[-1][1] if around else None)
        around.append((r["start_ns"] + r["duration_ns"], r["name"], r["start_ns"]))


def idle(rows, report):
    """Gaps do not overlap, are in order, add up to the idle time between activities, and the longest are the pauses."""
    same("gaps follow each other", [r for r, n in zip(rows, rows[1:]) if r["start_ns"] + r["ns"] > n["start_ns"]], [])
    same("the longest gaps", sorted((r["ns"] for r in rows), reverse=True)[:20], [p["ns"] for p in report.get("idle_gaps") or []])
    parts = [p["ns"] for p in report.get("breakdown") or [] if p["name"].startswith("idle")]
    near("all idle gaps", sum(r["ns"] for r in rows), sum(parts), len(rows) + 4)


def gaps(rows, kernels, calls):
    times, launched = collections.defaultdict(lambda: ([], [], [])), set()
    for k in sorted(kernels, key=lambda k: k["begin_ns"]):
        call, queued = waited(k, calls)
        times[k["name"]][0].append(k["duration_ns"])
        if call and id(call) not in launched:  # of a graph's kernels the first has its launch
            launched.add(id(call))
            times[k["name"]][1].append(call["duration_ns"])
            times[k["name"]][2].append(queued)
    same("kernels with gaps", sorted(r["name"] for r in rows), sorted(times))
    for row in rows:
        for prefix, values in zip(("device", "call", "queued"), times[row["name"]]):
            spread(row["name"], row, prefix, values)
    totals = [r["queued_total_ns"] or 0 for r in rows]
    same("the longest waits first", totals, sorted(totals, reverse=True))


def paces(rows, ranges):
    starts = collections.defaultdict(list)
    for r in ranges:
        starts[r["pid"], re.sub(r"#[0-9]+$", "#", r["name"]), r["class"]].append((r["begin_ns"], r["duration_ns"]))
    same("ranges with a pace", sorted((r["pid"], r["name"], r["kind"]) for r in rows), sorted(starts))
    for row in rows:
        of = sorted(starts[row["pid"], row["name"], row["kind"]])
        spread(row["name"], row, "duration", [d for _, d in of])
        spread(row["name"], row, "pace", [b[0] - a[0] for a, b in zip(of, of[1:])])


NUMBERED = r"(#|(\b|_|(?<=[0-9]))(step|iteration|iter|batch)[ _:=-]?|(Step|Iteration|Iter|Batch)[ _:=-]?)[0-9]+$"


def steps(trace, rows, lines, device):
    """Numbered ranges, or what is launched until a call waits; with the launches that returned inside, and busy GPUs."""
    numbered = [r for r in lines if r["api"] == "range" and r["class"] in ("annotation", "nvtx", "nvtx span")
                and re.search(NUMBERED, r["name"])]
    calls = [(r["begin_ns"], r["begin_ns"] + r["duration_ns"], r["pid"], r["tid"]) for r in lines if r["api"] in ("driver", "runtime")
             and r["class"] == "launch" and not r["args"].get("result") and not r["args"].get("captured")]
    outer = [c for c in calls if not any(c != o and o[2:] == c[2:] and o[0] <= c[0] and c[1] <= o[1] for o in calls)] \
        if len(calls) < 3000 else None
    if numbered:
        same("numbered steps", [(r["name"], r["number"], r["start_ns"], r["duration_ns"]) for r in rows],
             [(r["name"], int(re.search("[0-9]+$", r["name"])[0]), r["begin_ns"], r["duration_ns"])
              for r in sorted(numbered, key=lambda r: (r["begin_ns"], -r["duration_ns"]))])
    else:
        same("numbers of steps", [r["number"] for r in rows], list(range(1, len(rows) + 1)))
        same("steps follow each other", [r["start_ns"] for r in rows[1:]], [r["start_ns"] + r["duration_ns"] for r in rows[:-1]])
    if rows and not numbered:
        part = json.loads(run("report", "--json", "--only", "steps", "--steps", f"1-{len(rows)}", trace))["steps"]
        same("launches of all steps", sum(r["launches"] for r in part), sum(r["launches"] for r in rows))
        middle = [r["number"] for r in rows[len(rows) // 3:][:4]]
        part = lists(trace, "--only", "steps", "--steps", f"{middle[0]}-{middle[-1]}")["steps"]
        same("steps of a part keep their numbers", [r["number"] for r in part], middle)
    edges = {t + d for c in outer or () for t in c[:2] for d in (-2, -1, 0, 1, 2)}
    for r in rows:
        begin, end = r["start_ns"], r["start_ns"] + r["duration_ns"]
        if outer is not None and not {begin, end} & edges:
            same(f"launches of step {r['number']}", r["launches"], sum(begin < c[1] <= end and c[2] == r["pid"] for c in outer))
        if r["device_busy_ns"] is not None:
            near(f"busy in step {r['number']}", r["device_busy_ns"], covered(
                [(w["start_ns"], w["start_ns"] + w["duration_ns"]) for w in device
                 if w["pid"] == r["pid"] and w["kind"] != "span"], begin, end), 4)


def overloads(ranges):
    """The ranges that are the only one directly inside of one of their name, with the shape of the
    outermost such."""
    threads, outer = collections.defaultdict(list), {}
    for g in ranges:
        threads[g["pid"], g["tid"]].append(g)
    for of in threads.values():
        around, inside, parents = [], collections.Counter(), {}
        of.sort(key=lambda g: (g["begin_ns"], -g["duration_ns"]))
        for i, g in enumerate(of):
            while around and of[around[-1]]["begin_ns"] + of[around[-1]]["duration_ns"] <= g["begin_ns"]:
                around.pop()
            if around:
                parents[i] = around[-1]
                inside[around[-1]] += 1
            around.append(i)
        for i, p in sorted(parents.items()):
            if inside[p] == 1 and (of[i]["name"], of[i]["class"]) == (of[p]["name"], of[p]["class"]):
                outer[id(of[i])] = outer.get(id(of[p]), of[p])
    return outer


def shapes(rows, report, lines):
    keys = lambda r: (r["name"], r["kind"])
    for column in "device_self_ns", "device_count", "host_self_ns", "count", "flops", "bytes", "costed_count", "costed_ns":
        sums = collections.Counter()
        for r in rows:
            sums[keys(r)] += r[column] or 0
        for o in report["operators"]:
            near(f"{column} of {o['name']} by shape", sums[keys(o)], o[column] or 0, len(rows) if column == "host_self_ns" else 0)
    for r in rows + report["operators"]:
        same(f"{r['name']} took as long as what of it has a cost", (r["costed_ns"] or 0) <= (r["device_total_ns"] or 0), True)
    counts = collections.Counter()
    ranges = [r for r in lines if r["api"] == "range" and r["class"] in ("operator", "annotation", "nvtx")]
    outer = overloads(ranges)
    for r in ranges:
        given = json.loads(outer.get(id(r), r)["args"].get("arguments") or "{}")
        text = json.dumps(given["Input Dims"]).replace(" ", "") if "Input Dims" in given else None
        counts[r["name"], r["class"], text] += id(r) not in outer
    got = {(*keys(r), r["shape"] and r["shape"].replace(" ", "")): r["count"] for r in rows}
    same("shapes", got, dict(counts))


def within(rows, report):
    """The activities in ranges of a name add up to the time that the report says of them, counted
    in another way."""
    sums = collections.Counter()
    for r in rows:
        if r["range_kind"] in NESTS:
            sums[r["range"], r["range_kind"]] += r["device_total_ns"]
    want = {(o["name"], o["kind"]): o["device_total_ns"] for o in report.get("operators") or []
            if o["kind"] != "operator" and o["device_total_ns"]}
    if not report["totals"]["sampled"]:
        same("the time of ranges", sorted(sums.items()), sorted(want.items()))


def collectives(rows, activities, ranges):
    want, host = collections.defaultdict(list), collections.defaultdict(list)
    for g in ranges:
        host[g["pid"], g["name"]].append(g["duration_ns"])
    same("collectives of the host", sorted((r["pid"], r["name"], r["count"]) for r in rows if r["host_total_ns"]),
         sorted((*key, len(of)) for key, of in host.items()))
    for r in rows:
        if r["host_total_ns"]:
            near("time in collectives of the host", r["host_total_ns"], sum(host[r["pid"], r["name"]]), 2 * r["count"])
            spans = [(g["begin_ns"], g["begin_ns"] + g["duration_ns"]) for g in ranges if (g["pid"], g["name"]) == (r["pid"], r["name"])]
            near("time in which one was under way", r["host_any_ns"], covered(spans, 0, 1 << 62), 2 * r["count"])
    rows = [r for r in rows if not r["host_total_ns"]]
    for a in activities:
        if a["kind"] == "kernel" and (a["name"] or "").startswith("nccl"):
            want[a["pid"], a["device"], a["name"]].append(a["duration_ns"])
    same("collectives", sorted((r["pid"], r["device"], r["name"], r["count"], r["device_total_ns"], r["device_max_ns"]) for r in rows),
         sorted((*key, len(of), sum(of), max(of)) for key, of in want.items()))
    for r in rows:
        if r["name"].startswith("ncclDevKernel_"):
            same("what is done together", r["collective"], r["name"].split("_")[1].split("(")[0])


def ranks():
    """A trace with collective operations, by names of several versions."""
    names = ["ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_SendRecv(ncclWork)",
             "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)", "gemm"]
    events = [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 100 * i + 7 * k, "dur": 5 + i + k, "args": {
        "device": 0, "stream": 7}} for i, name in enumerate(names) for k in range(3)]
    with open(work.name + "/ranks.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    trace = work.name + "/ranks.weir"
    run("import", "-q", "-o", trace, work.name + "/ranks.json")
    rows = lists(trace, "--only", "nccl")["nccl"]
    same("collectives by name", sorted((r["collective"], r["count"], r["device_min_ns"], r["device_mean_ns"],
                                        r["device_max_ns"], r["device_stddev_ns"]) for r in rows),
         [("AllGather", 3, 7000, 8000, 9000, 1000), ("AllReduce", 3, 5000, 6000, 7000, 1000),
          ("SendRecv", 3, 6000, 7000, 8000, 1000)])


def hidden():
    """One GPU's computing hides nothing of another's collective operations: all ranks together are
    the sum of each."""
    spans = [[("nccl", 0, 100), ("gemm", 200, 100)], [("gemm", 0, 100), ("ncclDevKernel_Broadcast", 150, 50), ("gemm", 180, 40)]]
    files = []
    for rank, of in enumerate(spans):
        events = [{"ph": "X", "cat": "kernel", "name": name, "pid": rank, "tid": 7, "ts": ts, "dur": dur,
                   "args": {"device": rank, "stream": 7 + i}} for i, (name, ts, dur) in enumerate(of)]
        events.append({"ph": "X", "cat": "cpu_op", "name": "step", "pid": 100 + rank, "tid": 5, "ts": 0, "dur": 400})
        files.append(work.name + "/hidden%d.json" % rank)
        with open(files[-1], "w") as out:
            out.write(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank}}))
    want = [(100000, 0), (50000, 20000), (150000, 20000)]
    for traces, sums in zip((files[:1], files[1:], files), want):
        got = json.loads(run("report", "--json", *traces))["overlap"]
        same("communication, and what is hidden of it", (got["communication_ns"], got["communication_hidden_ns"]), sums)


def devices_of_ranks():
    """Traces that name no UUIDs: a number that both used is two devices, any other keeps its number."""
    for used, want in ((0, 1), [0, 1]), ((0, 0), [0, 2]), ((1, 0), [0, 1]), ((1, 1), [1, 2]):
        files = []
        for rank, device in enumerate(used):
            files.append(work.name + "/devices%d.json" % rank)
            events = [{"ph": "X", "cat": "kernel", "name": "k", "pid": device, "tid": 7, "ts": 0, "dur": 10 + rank,
                       "args": {"device": device, "stream": 7}},
                      {"ph": "X", "cat": "cpu_op", "name": "step", "pid": 100 + rank, "tid": 5, "ts": 0, "dur": 400}]
            with open(files[-1], "w") as out:
                json.dump({"traceEvents": events, "distributedInfo": {"rank": rank},
                           "deviceProperties": [{"id": i, "name": "NVIDIA H200", "numSms": 132} for i in range(2)]}, out)
        got = json.loads(run("report", "--json", *files))
        same(f"devices of ranks on {used}", sorted(r["device"] for r in got["devices"]), want)
        same("all of each rank is there", sorted(r["busy_ns"] for r in got["devices"]), [10000, 11000])
        listed = {r["device"] for r in got["provenance"]["devices"]}
        same("a device that worked is listed", set(want) - listed, set())


def late_ranks():
    """The rank whose collective operations are shortest comes last of two: the other waits, for as
    long as said."""
    for lengths, where in ((10, 90), "device 1, which waits for device 0"), ((90, 10), "device 0, which waits for device 1"), \
            ((60, 60), "device 0"), ((2, 2), None):
        files = []
        for rank, length in enumerate(lengths):
            events = [{"ph": "X", "cat": "cpu_op", "name": "step", "pid": 100 + rank, "tid": 5, "ts": 0, "dur": 2000}]
            for i in range(10):  # a step of 190 us: computing, and an operation that ends for both at once
                at, end = 200 * i, 200 * i + 190
                for name, ts, dur in ("gemm", at, end - length - at), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", end - length, length):
                    events.append({"ph": "X", "cat": "kernel", "name": name, "pid": rank, "tid": 7, "ts": ts, "dur": dur,
                                   "args": {"device": rank, "stream": 7, "grid": [64, 1, 1], "block": [256, 1, 1]}})
            files.append(work.name + "/late%d.json" % rank)
            with open(files[-1], "w") as out:
                out.write(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank}}))
        found = [h for h in json.loads(run("hints", "--json", *files))["hints"] if h["id"] == "collective-waits"]
        same(f"who waits of {lengths}", [h["where"] for h in found], [where] if where else [])
        if found and lengths != (60, 60):  # 80 us of each step, of which half would be saved
            near("what the waiting costs", found[0]["gain_pct"], 50 * 80 / 195, 3)


ODD = ['quo"te', "back\\slash", "new\nline", "tab\tx", "\u00fcn\u00ef\u2603", "=SUM(1)", "a,b", '{"x":[1]}', "<", "()",
       "x" * 9000, "\u0085ctl", "\U0001F600", "[1,2]", "null"]


def odd():
    """Names that JSON, CSV and filters have to quote."""
    common = {"ph": "X", "dur": 5, "tid": 7}
    events = [{**common, "cat": "kernel", "name": name, "pid": 0, "ts": 10 * i, "args": {
        "device": 0, "stream": 7, "grid": [1, 2, 3], "block": [4, 5, 6]}} for i, name in enumerate(ODD)]
    events += [{**common, "cat": "cpu_op", "name": name, "pid": 1, "ts": 10 * i, "args": {"Input Dims": [[i]]}}
               for i, name in enumerate(ODD)]
    with open(work.name + "/odd.json", "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    trace = work.name + "/odd.weir"
    run("import", "-q", "-o", trace, work.name + "/odd.json")
    report = json.loads(run("report", "--json", trace))
    for section in "device_activities", "operators":
        same("odd names of " + section, lists(trace, "--only", section)[section], report[section])
        same("odd names alone", [r["name"] for r in lists(trace, "--only", section, "--columns", "name")[section]],
             [r["name"] for r in report[section]])
        for name in ODD[:-1]: # the last one means that it is not known
            got = lists(trace, "--only", section, "--filter", 'name = "%s"' % name)[section]
            same("rows of " + name, [r["name"] for r in got], [r["name"] for r in report[section] if r["name"] == name])
        rows = list(csv.DictReader(io.StringIO(run("report", "--only", section, "--csv", trace), newline="")))
        same("rows of odd CSV", len(rows), len(report[section]))
    same("odd kernels in order", [r["name"] for r in lists(trace, "--only", "gpu_trace")["gpu_trace"]], ODD)


def on_a_terminal(columns, *arguments, **environment):
    """Weir's output on a terminal."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    os.set_inheritable(child, True)
    process = subprocess.Popen([weir, *arguments], stdin=subprocess.DEVNULL, stdout=child, stderr=subprocess.DEVNULL,
                               env={**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", **environment})
    os.close(child)
    text = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    same(f"exit status of {arguments} on a terminal", process.wait(), 0)
    return text.decode().replace("\r", "").splitlines()


COMMON = ("at::native::", "(anonymous namespace)::", "<unnamed>::")


def bare(name):
    """A kernel's name from where it tells."""
    rest = name.removeprefix("void ")
    while any(rest.startswith(common) for common in COMMON):
        rest = rest[len(next(common for common in COMMON if rest.startswith(common))):]
    return rest or name


def short_names(trace):
    """Tables of text begin names with what tells, and show whole ones when asked; filters know the whole names alone."""
    odd_or = lambda name: "".join("?" if ord(c) < 32 else c for c in name)
    for section, column in (("kernels", "name"), ("gpu_trace", "name"), ("kernel_families", "longest"), ("launch_gaps", "name"),
                            ("kernel_shapes", "name"), ("device_activities", "name"), ("range_kernels", "name"), ("api_trace", "kernel")):
        names = [r[column] for r in lists(trace, "--only", section, "--columns", column, "-n", "0")[section]]
        text = lambda *more: [line[2:] for line in run("report", "--only", section, "--columns", column, "-n", "0", *more,
                                                       trace).splitlines() if line.startswith("  ")][1:1 + len(names)]
        if not names or None in names:
            continue
        same(f"whole names of {section}", text("--full-names"), [odd_or(name) for name in names])
        same(f"short names of {section}", [line.removesuffix("…") for line in text()],
             [odd_or(bare(name))[:len(line.removesuffix("…"))] for name, line in zip(names, text())])
        longest = max(names, key=lambda name: len(name) - len(bare(name)))
        shown = '"%s"' % re.split(r"[][*?]", bare(longest))[0]  # the rest is a pattern
        found = lists(trace, "--only", section, "--columns", column, "-n", "0", "--filter", column + " ~ " + shown)[section]
        same(f"what is shown of {section} is found", longest in [r[column] for r in found], True)
        found = lists(trace, "--only", section, "--columns", column, "-n", "0", "--filter", '%s = "%s"' % (column, longest))[section]
        same(f"a filter is of whole names of {section}", [r[column] for r in found], [n for n in names if n == longest])


def terminal(trace):
    names = {k["name"] for k in json.loads(run("report", "--json", trace))["kernels"]}
    longest = max(names, key=len)
    for arguments in (), ("--only", "kernels", "-n", "0"):
        lines = on_a_terminal(150, "report", *arguments, trace, PAGER="cat")
        if arguments:
            same("no line is wider than the terminal", [line for line in lines if len(line) > 150], [])
            same("what is cut ends in an ellipsis", any(line.endswith("…") and len(line) == 150 for line in lines), True)
        same("a long name is cut", any(longest in line for line in lines), False)
        lines = on_a_terminal(150, "report", "--full-names", "-n", "0", *arguments, trace, PAGER="cat")
        same("a long name is whole", any(longest in line for line in lines), True)
        for pager in "PAGER", "WEIR_PAGER":
            lines = on_a_terminal(150, "report", *arguments, trace, **{"PAGER": "cat", pager: "sed s/^/paged:/"})
            same("a pager on a terminal", all(line.startswith("paged:") for line in lines) and len(lines) > 5, True)
        for command in ("hints",), ("memory",), ("diff", trace):
            lines = on_a_terminal(150, *command, trace, PAGER="sed s/^/paged:/")
            same("a pager of " + command[0], all(line.startswith("paged:") for line in lines) and len(lines) > 2, True)
        lines = on_a_terminal(150, "report", *arguments, trace, PAGER="no-such-pager")
        same("without the pager that is named", len(lines) > 5, True)
        done = subprocess.run([weir, "report", *arguments, trace], stdout=subprocess.PIPE,
                              env={**os.environ, "PAGER": "sed s/^/paged:/"})
        same("never a pager elsewhere", b"paged:" in done.stdout, False)


def layers(trace, report):
    """The text has the calls of the runtime and of the driver apart, where both are there, and their sums."""
    text = run("report", "-n", "0", trace).split("\n\n")
    apis = {c["api"] for c in report["calls"]}
    for api in apis if {"runtime", "driver"} <= apis else ():
        heading = {"runtime": "Runtime calls by", "driver": "Driver calls by"}.get(api, "Calls of the program's allocator by")
        table = [part.splitlines() for part in text if part.startswith(heading)]
        rows = [c for c in report["calls"] if c["api"] == api]
        same("functions of the " + api, [line.split()[-1] for line in table[0][2:]] if table else None, [c["name"] for c in rows])
        said = re.search(r"together ([0-9.]+) (ns|us|ms|s)\b", table[0][0]) if table else None
        sum_ns = sum(c["total_ns"] or 0 for c in rows)
        near("the sum of the " + api, said and float(said[1]) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[said[2]], sum_ns,
             0.006 * sum_ns + len(rows))
    if not {"runtime", "driver"} <= apis:
        same("one table of calls", sum(part.startswith("Calls by total") for part in text), 1 if apis else 0)


def mistakes(trace):
    for arguments, words in ((("--only", "kernel"), "there is no section kernel. Did you mean kernels? There are"),
                             (("--only", "kernels", "--sort", "x"), "kernels has no column x: there are name"),
                             (("--only", "kernels", "--filter", "x = 1"), "kernels has no column x"),
                             (("--only", "gpu_trace", "--csv", "--filter", "x = 1"), "gpu_trace has no column x"),
                             (("--only", "kernels", "--filter", "count"), "'count' is no condition"),
                             (("--only", "kernels", "--filter", "count > many"), "many is no number"),
                             (("--only", "kernels", "--columns", "name,x"), "kernels has no column x"),
                             (("--only", "kernels,calls", "--csv"), "CSV is one table"),
                             (("--only", ""), "there is no section"),
                             (("--csv",), "name them with --only"), (("--only", "calls", "--csv", "--json"), "choose")):
        said = run("report", *arguments, trace, code=2)
        same(f"what is said of {arguments}", words in said, True)


marked()
never_waited_for()
numbered()
halves()
live()
vision()
late_copies()
kinds()
unsized()
ranks()
hidden()
devices_of_ranks()
late_ranks()
odd()
longest()
for path in traces:
    trace = path
    if not path.endswith(".weir"):
        trace = work.name + "/imported.weir"
        run("import", "-q", "-o", trace, path)
    report = json.loads(run("report", "--json", trace))
    whole(trace, report)
    chosen(trace, report)
    layers(trace, report)
    short_names(trace)
    sums(trace, report)
    events(trace, report)
    if path == traces[0]:
        terminal(trace)
        mistakes(trace)
    if problems:
        print(path, *problems[:12], sep="\n  ")
        sys.exit(1)
