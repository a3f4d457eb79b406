"""The lists of weir report (--only, --sort, --filter, --columns, --csv) against its whole JSON and against the
events, worked out the slow way; and how they look on a terminal: lists.py BUILD TRACE... [wrong].
"""
import collections
import csv
import fcntl
import fnmatch
import io
import json
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
weir = build + "/bin/weir"
work = tempfile.TemporaryDirectory(prefix="weir-lists-")
problems = []
EVENTS = "gpu_trace", "operators_by_shape", "launch_gaps", "nccl", "nvtx_pace"


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
    names = [k for k, v in report.items() if isinstance(v, dict) or (isinstance(v, list) and not (v and isinstance(v[0], str)))]
    got = lists(trace, "--only", ",".join(names))
    same("sections", got, {"schema_version": 1, **{name: report[name] for name in names}})
    same("blocks", lists(trace, "--only", "memory.live")["memory.live"], report["memory"]["live"])


def chosen(trace, report):
    """Sorted and filtered as Python does it."""
    for section, column, word in (("kernels", "device_total_ns", "elementwise"), ("calls", "total_ns", "Launch"),
                                  ("operators", "host_total_ns", "a"), ("device_work", "count", "Mem")):
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
        same(section + " as CSV", [(r["name"].lstrip("'"), r[column]) for r in rows],
             [(r["name"], "" if r[column] is None else str(r[column])) for r in report[section]])


def spread(what, row, prefix, values):
    near(f"{what} {prefix}_total", row[prefix + "_total_ns"], sum(values) if values else None, 2 * len(values))
    near(f"{what} {prefix}_mean", row[prefix + "_mean_ns"], statistics.fmean(values) if values else None, 2)
    near(f"{what} {prefix}_min", row[prefix + "_min_ns"], min(values, default=None), 1)
    near(f"{what} {prefix}_max", row[prefix + "_max_ns"], max(values, default=None), 1)
    near(f"{what} {prefix}_stddev", row[prefix + "_stddev_ns"], statistics.stdev(values) if len(values) > 1 else None, 3)


def waited(activity, calls):
    """(its call, its queued time), or nothing."""
    c = calls.get((activity["pid"], activity.get("correlation")))
    return (c, max(0, activity["begin_ns"] - c["begin_ns"] - c["duration_ns"])) if c else (None, None)


def events(trace, report):
    lines = [json.loads(line) for line in run("export", "-f", "ndjson", trace).splitlines()]
    device = [r for r in lines if r["api"] == "device" and r["class"] != "wait"]  # which is no work of a device
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
    gaps(got["launch_gaps"], [r for r in device if r["class"] == "kernel"], calls)
    paces(got["nvtx_pace"], [r for r in lines if r["api"] == "range" and r["class"] in ("annotation", "nvtx", "nvtx span")])
    shapes(got["operators_by_shape"], report, lines)
    collectives(got["nccl"], report)


def longest():
    """Of more rows than wait to be sorted the longest and the shortest, in order."""
    events = [{"ph": "X", "cat": "kernel", "name": f"k{i % 7}", "pid": 0, "tid": 7, "ts": 10 * i, "dur": i * 7919 % 9973 / 1000,
               "args": {"device": 0, "stream": 7}} for i in range(9973)]
    with open(work.name + "/many.json", "w") as out:
        json.dump({"traceEvents": events}, out)
    trace = work.name + "/many.weir"
    run("import", "-q", "-o", trace, work.name + "/many.json")
    for sort, want in (("duration_ns", [9972, 9971, 9970]), ("-duration_ns", [0, 1, 2])):
        got = lists(trace, "--only", "gpu_trace", "--sort", sort, "-n", "3")["gpu_trace"]
        same("activities by " + sort, [r["duration_ns"] for r in got], want)


def gaps(rows, kernels, calls):
    times = collections.defaultdict(lambda: ([], [], []))
    for k in kernels:
        call, queued = waited(k, calls)
        times[k["name"]][0].append(k["duration_ns"])
        if call:
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


def shapes(rows, report, lines):
    keys = lambda r: (r["name"], r["kind"])
    for column in "device_self_ns", "device_count", "host_self_ns":
        sums = collections.Counter()
        for r in rows:
            sums[keys(r)] += r[column] or 0
        for o in report["operators"]:
            near(f"{column} of {o['name']} by shape", sums[keys(o)], o[column] or 0, len(rows))
    dims = collections.defaultdict(set)
    for r in lines:
        if r["api"] == "range" and r["class"] in ("operator", "annotation", "nvtx"):
            given = json.loads(r["args"].get("arguments") or "{}")
            text = json.dumps(given["Input Dims"]).replace(" ", "") if "Input Dims" in given else None
            dims[r["name"], r["class"]].add(text)
    got = collections.defaultdict(set)
    for r in rows:
        got[keys(r)].add(r["shape"] and r["shape"].replace(" ", ""))
    same("shapes", got, dims)


def collectives(rows, report):
    want = [w for w in report.get("device_work") or [] if w["name"].startswith(("nccl", "void nccl")) and w["kind"] == "kernel"]
    same("collectives", [(r["name"], r["count"], r["device_total_ns"], r["device_max_ns"]) for r in rows],
         [(w["name"], w["count"], w["device_total_ns"], w["device_max_ns"]) for w in want])
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
        json.dump({"traceEvents": events}, out)
    trace = work.name + "/ranks.weir"
    run("import", "-q", "-o", trace, work.name + "/ranks.json")
    rows = lists(trace, "--only", "nccl")["nccl"]
    same("collectives by name", sorted((r["collective"], r["count"], r["device_min_ns"], r["device_mean_ns"],
                                        r["device_max_ns"], r["device_stddev_ns"]) for r in rows),
         [("AllGather", 3, 7000, 8000, 9000, 1000), ("AllReduce", 3, 5000, 6000, 7000, 1000),
          ("SendRecv", 3, 6000, 7000, 8000, 1000)])


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
        json.dump({"traceEvents": events}, out)
    trace = work.name + "/odd.weir"
    run("import", "-q", "-o", trace, work.name + "/odd.json")
    report = json.loads(run("report", "--json", trace))
    for section in "device_work", "operators":
        same("odd names of " + section, lists(trace, "--only", section)[section], report[section])
        same("odd names alone", [r["name"] for r in lists(trace, "--only", section, "--columns", "name")[section]],
             [r["name"] for r in report[section]])
        for name in ODD[:-1]: # the last one means that it is not known
            got = lists(trace, "--only", section, "--filter", "name = " + name)[section]
            same("rows of " + name, [r["name"] for r in got], [r["name"] for r in report[section] if r["name"] == name])
        rows = list(csv.DictReader(io.StringIO(run("report", "--only", section, "--csv", trace), newline="")))
        same("rows of odd CSV", len(rows), len(report[section]))
    same("odd kernels in order", [r["name"] for r in lists(trace, "--only", "gpu_trace")["gpu_trace"]], ODD)


def on_a_terminal(columns, *arguments, **environment):
    """What weir prints where its output is a terminal."""
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


def mistakes(trace):
    for arguments, words in ((("--only", "kernel"), "there is no section kernel; did you mean kernels? There are"),
                             (("--only", "kernels", "--sort", "x"), "kernels has no column x: there are name"),
                             (("--only", "kernels", "--filter", "x = 1"), "kernels has no column x"),
                             (("--only", "gpu_trace", "--csv", "--filter", "x = 1"), "gpu_trace has no column x"),
                             (("--only", "kernels", "--filter", "count"), "count is no condition"),
                             (("--only", "kernels", "--filter", "count > many"), "many is no number"),
                             (("--only", "kernels", "--columns", "name,x"), "kernels has no column x"),
                             (("--only", "kernels,calls", "--csv"), "CSV is one table"),
                             (("--only", ""), "there is no section"),
                             (("--csv",), "name them with --only"), (("--only", "calls", "--csv", "--json"), "choose")):
        said = run("report", *arguments, trace, code=2)
        same(f"what is said of {arguments}", words in said, True)


ranks()
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
    events(trace, report)
    if path == traces[0]:
        terminal(trace)
        mistakes(trace)
    if problems:
        print(path, *problems[:12], sep="\n  ")
        sys.exit(1)
