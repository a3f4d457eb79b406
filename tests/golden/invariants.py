"""The invariants of every trace: invariants.py BUILD [--spoil] [--every N] [NAME ...]

Each trace that is kept here (tests/golden/kineto, variants, problems, readme, and ../shared/data/kineto where it is), and each
in the folders that WEIR_TRACES names (colons between), is imported if another profiler wrote it, reported, exported as
Chrome's JSON and imported again; then each invariant below looks at what came out.  With names, only those invariants.

An invariant is a function that takes a Trace and yields a sentence for each thing that is wrong.  To add one, write

    @invariant(spoil=how)
    def what_is_true(t):
        ...

where how(t) damages what the commands said, so that the invariant must speak; how returns False where it finds nothing to
damage.  With --spoil each invariant gets damaged traces, and one that stays silent about all of them, or finds none that it
could be tried on, fails: a check that cannot fail is none.  With --every N it looks at one trace in N.

t.source is the JSON of a trace of torch.profiler (None: a recording of Weir's own), t.expected what PyTorch knew besides
(NAME.expected.json, or None), t.report, t.memory and t.chrome what weir report, memory and export -f chrome say, and t.again
the trace that became of the export.
"""
import argparse
import copy
import json
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict

import invariants_file  # they add their own
import invariants_flops
import invariants_kernels
import invariants_memory
import invariants_parts
import invariants_summary
import invariants_zeros
from invariant import differences, invariant, INVARIANTS, kept, Trace


# The trace's own counts and times.


def more_kernels(t):
    for row in t.report["device_activities"]:
        if row["kind"] == "kernel":
            row["count"] += 1
            return True
    return False


@invariant(spoil=more_kernels)
def device_work_is_the_traces(t):
    """Kernels, copies and sets: how many of each name, and how long together."""
    if not t.source:
        return
    kinds = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
    theirs, ours = Counter(), Counter()
    for e in t.events(*kinds):
        theirs[kinds[e["cat"]], e["name"]] += 1
        theirs[kinds[e["cat"]], e["name"], "ns"] += round(e.get("dur", 0) * 1000)
    for row in t.report["device_activities"]:
        if row["kind"] in kinds.values():
            ours[row["kind"], row["name"]] += row["count"]
            ours[row["kind"], row["name"], "ns"] += row["device_total_ns"]
    yield from differences("device work", theirs, ours)


def one_more_call(t):
    t.report["totals"]["calls"] += 1


@invariant(spoil=one_more_call)
def calls_are_the_traces(t):
    """Calls of the runtime and the driver, by name; PyTorch's allocator makes no call to CUDA."""
    if not t.source:
        return
    events = t.events("cuda_runtime", "cuda_driver")
    memory = allocator_events(t.source["traceEvents"])
    graphs = {api: sum(e["name"].startswith(api + "GraphLaunch") for e in events) for api in ("cu", "cuda")}
    theirs, ours = Counter(bare_name(e["name"]) for e in events), Counter()
    for row in t.report["calls"]:
        ours[bare_name(row["name"])] += row["count"]
    yield from differences("calls of", theirs, ours)
    said = re.search(r"([\d,]+) calls, ([\d,]+) events of allocators", t.import_said)
    numbers = said and [int(number.replace(",", "")) for number in said.groups()]
    for what, should, is_ in (
            ("calls", len(events), t.report["totals"]["calls"]),
            ("graph launches", graphs["cu"] or graphs["cuda"], t.report["totals"]["graph_launches"]),
            ("import said: calls", len(events), numbers and numbers[0]),
            ("import said: events of allocators", len(memory), numbers and numbers[1]),
            ("allocator events", len(memory), t.report["totals"]["allocator_events"]),
            ("exported calls", len(events), count(t.chrome, "X", "cuda_runtime", "cuda_driver"))):
        if should != is_:
            yield "%s: %s, and should be %d" % (what, is_, should)


def bare_name(name):
    """CUPTI has a version at the end of some: cudaLaunchKernel_v7000."""
    return re.sub(r"_v\d{4,}$", "", name) if "_v" in name else name


def count(source, phase, *categories):
    return sum(e.get("ph") == phase and e.get("cat") in categories for e in source["traceEvents"])


def allocator_events(events):
    """Memory of GPUs, in the order of time."""
    memory = [e for e in events if e.get("name") == "[memory]" and e["args"].get("Device Type") == 1]
    return sorted(memory, key=lambda e: e["ts"])


def live_sets(events):
    """The memory on all devices of all processes before each event and after it."""
    live = {}
    for e in reversed(events):
        live[e["pid"], e["args"]["Device Id"]] = e["args"]["Total Allocated"] - e["args"]["Bytes"]
    for e in events:
        for total in (e["args"]["Total Allocated"] - e["args"]["Bytes"], e["args"]["Total Allocated"]):
            live[e["pid"], e["args"]["Device Id"]] = total
            yield sum(live.values())


def higher_peak(t):
    if not t.report["memory"]["peak_bytes"]:
        return False
    t.report["memory"]["peak_bytes"] += 1


@invariant(spoil=higher_peak)
def the_live_set_is_the_allocators(t):
    """At most, and at the end."""
    events = allocator_events(t.source["traceEvents"]) if t.source else []
    if not events:
        return
    live = list(live_sets(events))
    for key, should in (("peak_bytes", max(live)), ("live_at_exit_bytes", live[-1])):
        if t.report["memory"][key] != should:
            yield "%s: %d, and should be %d" % (key, t.report["memory"][key], should)


def all_reserved(events):
    """The bytes that all devices have reserved after each event, from where each has said so."""
    reserved = {}
    devices = {(e["pid"], e["args"]["Device Id"]) for e in events}
    for e in events:
        reserved[e["pid"], e["args"]["Device Id"]] = e["args"]["Total Reserved"]
        if len(reserved) == len(devices):
            yield sum(reserved.values())


def more_reserved(t):
    if not t.memory["reserved"]:
        return False
    t.memory["reserved"]["worst"]["unused_bytes"] += 1
    return True


@invariant(spoil=more_reserved)
def what_is_reserved_is_what_the_allocator_says_and_no_less_than_what_is_live(t):
    said = t.memory["reserved"]
    known = [s for s in t.memory["series"] if s["reserved_bytes"] is not None]
    if any(not 0 <= s["unused_bytes"] <= s["reserved_bytes"] for s in known):
        yield "more is live than is reserved"
    if not said:
        return
    worst = said["worst"]
    if worst["unused_bytes"] != max(s["unused_bytes"] for s in known):
        yield "the worst moment is not the timeline's"
    if worst["unused_bytes"] + worst["live_bytes"] != worst["reserved_bytes"]:
        yield "live and unused are not what is reserved"
    if not (0 <= said["unused_share"] <= 1 and 0 <= (worst["unused_share"] or 0) <= 1):
        yield "a share is beyond 0 or 1"
    events = allocator_events(t.source["traceEvents"]) if t.source else []
    if events and said["peak_bytes"] != max(all_reserved(events)):
        yield "reserved at most %d, and should be %d" % (said["peak_bytes"], max(all_reserved(events)))


def lost_call(t):
    for row in t.memory["call_time"]["calls"]:
        row["histogram"][0]["count"] += 1
    return bool(t.memory["call_time"]["calls"])


@invariant(spoil=lost_call)
def histograms_of_allocating_calls_have_each_call(t):
    """And no share of the run is longer than the run."""
    said = t.memory["call_time"]
    for row in said["calls"]:
        if sum(b["count"] for b in row["histogram"]) != row["timed_count"]:
            yield "%s: the histogram has not %d calls" % (row["name"], row["timed_count"])
        if not row["p50_ns"] <= row["p90_ns"] <= row["p99_ns"] <= row["max_ns"] <= row["total_ns"]:
            yield "%s: percentiles are not in order" % row["name"]
    if sum(row["count"] for row in said["calls"]) != said["count"]:
        yield "functions don't add up to all calls"
    if any(not 0 <= (row["share_of_run"] or 0) <= (said["share_of_run"] or 0) <= 1 for row in said["calls"]):
        yield "a share is beyond 0 or 1, or a function's beyond that of all"


def other_total(t):
    events = allocator_events(t.chrome["traceEvents"])
    if not events:
        return False
    events[len(events) // 2]["args"]["Total Allocated"] += 512
    return True


@invariant(spoil=other_total)
def the_live_set_is_the_allocators_at_every_event(t):
    """The allocations of an export come from blocks that were replayed, not from the trace's
    totals."""
    if not t.source:
        return
    theirs, ours = (allocator_events(s["traceEvents"]) for s in (t.source, t.chrome))
    theirs = [e for e in theirs if e["args"]["Bytes"]]
    rows = [[(e["args"]["Addr"], e["args"]["Bytes"], e["args"]["Total Allocated"]) for e in events]
            for events in (theirs, ours)]
    if len(theirs) != len(ours):
        yield "%d events, and should be %d" % (len(ours), len(theirs))
    elif Counter(rows[0]) != Counter(rows[1]):
        yield "%d of %d events differ" % (sum((Counter(rows[0]) - Counter(rows[1])).values()), len(theirs))


def no_time_in_launches(t):
    for row in t.report["kernels"]:
        if row["device_timed"] and row["host_total_ns"]:
            row["host_total_ns"] = 0
            return True
    return False


@invariant(spoil=no_time_in_launches)
def kernels_have_the_time_of_their_launches(t):
    """By whatever function of the runtime or the driver: of each launch of one kernel once."""
    if not t.source:
        return
    launches = {e["args"].get("correlation"): e for e in t.events("cuda_runtime", "cuda_driver")
                if e["name"].startswith(("cudaLaunchKernel", "cudaLaunchCooperative", "cuLaunchKernel", "cuLaunchCooperative"))}
    theirs, ours = Counter(), Counter()
    for e in t.events("kernel"):
        launch = launches.pop(e["args"].get("correlation"), None)
        theirs[e["name"]] += round(launch["dur"] * 1000) if launch else 0
    for row in t.report["kernels"]:
        if row["device_timed"]:
            ours[row["mangled"] or row["name"]] += row["host_total_ns"] or 0
    yield from differences("time in launches", +theirs, +ours)


def one_kernel_more(t):
    for row in (t.expected or {}).get("rows", []):
        if row["device"].endswith("CUDA") and not row["key"].endswith("*"):
            row["count"] += 1
            return True
    return False


@invariant(spoil=one_kernel_more)
def device_work_is_what_torch_says_itself(t):
    """Its own sums by name, and the most that its allocator gave out, of which the trace may not have seen all."""
    if not t.expected:
        return
    theirs, ours = Counter(), Counter()
    for row in t.expected.get("rows", []):
        if row["device"].endswith("CUDA") and not row["key"].endswith("*"):  # ProfilerStep*: all numbers in one
            theirs[row["key"]] += row["count"]
    for row in t.report["device_activities"]:
        ours[row["mangled"] if row.get("mangled") else row["name"]] += row["count"]
    yield from differences("torch's kernels", theirs, Counter({key: ours[key] for key in theirs}))
    peak = t.expected.get("memory", {}).get("peak_allocated")
    if peak and (t.report["memory"]["peak_bytes"] or 0) > peak:
        yield "peak of memory: %d, and torch knew of no more than %d" % (t.report["memory"]["peak_bytes"], peak)


# The export's words of each event, against those of the trace.


# Keys of the source and not of the recording: the number of a function with CUPTI, correlations of
# calls that asked for nothing, the stream that a kernel's operator names, in which order the
# profiler had its events, Python's modules; and a calculation of its own that is 0 where a kernel
# has more shared memory than it believes possible.
NOT_KEPT = {"cbid", "correlation", "stream", "Ev Idx", "est. achieved occupancy %", "Python id", "Python parent id",
            "Python module id"}
# Keys of device work, among them those of collectives, that no recording keeps.
WORK = {"External id", "queued", "device", "context", "stream", "correlation", "bytes", "registers per thread", "shared memory",
        "blocks per SM", "warps per SM", "grid", "block", "graph id", "graph node id", "memory bandwidth (GB/s)"}
# Keys of the recording.
ADDED = {"class", "Fwd thread id", "Record function id", "scope", "External id", "Ev Idx", "finished",
         "est. achieved occupancy %", "blocks per SM", "warps per SM", "memory bandwidth (GB/s)", "queued"}
CATEGORIES = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset",
              "gpu_user_annotation", "python_function", "cpu_instant_event")


def kineto_events(source):
    """Kineto's events that a recording knows, each with a key that time gives it."""
    events = [e for e in source["traceEvents"] if e.get("cat") in CATEGORIES and e["ph"] in "Xi"
              and (e["ph"] == "X" or e in allocator_events([e]) and e["args"]["Bytes"])]
    first = min((float(e["ts"]) for e in events if e["ph"] == "X"), default=0)
    told = defaultdict(list)
    for e in events:
        told[e["cat"], bare_name(e["name"]), str(e["pid"]), str(e["tid"]), round((float(e["ts"]) - first) * 1000) // 4].append(e)
    return told


def same_value(one, two):
    """PyTorch writes six places behind the point: 0.000237 warps per SM are 0.000236742."""
    if isinstance(one, (int, float)) and isinstance(two, (int, float)) and float in (type(one), type(two)):
        return abs(one - two) <= max(1e-3 * max(abs(one), abs(two)), 0.5e-6)
    return one == two


def compare_events(theirs, ours):
    """Both as kineto_events() has them.  A time that was given away differs by a nanosecond or two."""
    found = Counter()
    for key, events in theirs.items():
        mates = ours.get(key, []) + ours.get(key[:-1] + (key[-1] + 1,), []) + ours.get(key[:-1] + (key[-1] - 1,), [])
        for e in events:
            mate = next((m for m in mates if same_event(e, m)), None)
            if mate is None:
                found["%s: %s has no event of its name, time and length" % (key[0], key[1][:80])] += 1
                continue
            mates.remove(mate)
            one, two = e.get("args", {}), mate.get("args", {})
            for name in one.keys() | two.keys():
                if name in one and name not in two:
                    wrong = name in WORK if "kernel" in key[0] or "gpu_" in key[0] else name not in NOT_KEPT
                elif name in two and name not in one:
                    wrong = name not in ADDED
                else:
                    wrong = name not in NOT_KEPT - {"stream"} and not same_value(one[name], two[name])
                if wrong:
                    found["%s: %s is %s and should be %s" % (key[0], name, str(two.get(name))[:60], str(one.get(name))[:60])] += 1
    for what, times in found.most_common(4):
        yield "%s (%d times)" % (what, times)
    count = [Counter(key[0] for key, events in told.items() for _ in events) for told in (theirs, ours)]
    yield from differences("events of", *count)


def same_event(one, two):
    if abs(float(one.get("dur", 0)) - float(two.get("dur", 0))) > 0.0015:
        return False
    args, others = one.get("args", {}), two.get("args", {})
    return args.get("External id") == others.get("External id") or "External id" not in args or "External id" not in others


def no_shapes(t):
    for e in t.chrome["traceEvents"]:
        if e.get("args", {}).pop("Input Dims", None):
            return True
    return False


@invariant(spoil=no_shapes)
def an_export_says_what_the_trace_says(t):
    """Each operator, call, kernel, copy, set and allocation, with all its arguments."""
    if t.source:
        yield from compare_events(kineto_events(t.source), kineto_events(t.chrome))


def one_arrow_less(t):
    for e in t.chrome["traceEvents"]:
        if e.get("cat") == "ac2g" and e["ph"] == "f":
            t.chrome["traceEvents"].remove(e)
            return True
    return False


@invariant(spoil=one_arrow_less)
def arrows_have_two_ends_that_are_there(t):
    """From a call to each piece of work that it asked for, and from operators to their backward passes."""
    events = t.chrome["traceEvents"]
    begins = {(str(e["pid"]), str(e["tid"]), e["ts"]) for e in events if e["ph"] == "X"}
    for category in ("ac2g", "fwdbwd"):
        ends = {phase: {e["id"]: e for e in events if e.get("cat") == category and e["ph"] == phase} for phase in "sf"}
        if ends["s"].keys() != ends["f"].keys():
            yield "%s: %d begin and %d end" % (category, len(ends["s"]), len(ends["f"]))
        lost = sum((str(e["pid"]), str(e["tid"]), e["ts"]) not in begins for side in ends.values() for e in side.values())
        if lost:
            yield "%s: %d ends at which nothing begins" % (category, lost)
    correlations = Counter(e["args"].get("correlation") for e in events
                           if e.get("cat") in ("cuda_runtime", "cuda_driver") and e["ph"] == "X")
    joined = sum(e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and e["args"].get("correlation") in correlations
                 for e in events)
    arrows = count(t.chrome, "s", "ac2g")
    if joined > arrows:
        yield "%d pieces of work name a call, %d arrows" % (joined, arrows)
    pairs = count(t.source, "s", "fwdbwd") if t.source else 0
    if pairs and pairs != count(t.chrome, "s", "fwdbwd"):
        yield "fwdbwd: %d, and should be %d" % (count(t.chrome, "s", "fwdbwd"), pairs)


def other_name(t):
    for e in t.chrome["traceEvents"]:
        if e["ph"] == "M" and e["name"] == "process_labels":
            e["args"]["labels"] = "nobody"
    return bool(t.source)


@invariant(spoil=other_name)
def processes_and_threads_have_their_names(t):
    def names(source):
        used = {(str(e["pid"]), str(e["tid"])) for e in source["traceEvents"] if e["ph"] == "X" and e.get("cat") in CATEGORIES}
        pids = {pid for pid, _ in used}
        return {(e["name"], str(e["pid"]), str(e["tid"])): e["args"] for e in source["traceEvents"] if e["ph"] == "M"
                and ((str(e["pid"]), str(e["tid"])) in used if e["name"].startswith("thread") else str(e["pid"]) in pids)}
    theirs, ours = names(t.source) if t.source else {}, names(t.chrome)
    for key in theirs.keys() - {key for key in theirs if key[0] not in (
            "process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")}:
        if theirs[key] != ours.get(key):
            yield "%s of %s: %s, and should be %s" % (key[0], key[1:], ours.get(key), theirs[key])


def no_head(t):
    del t.chrome["schemaVersion"]


@invariant(spoil=no_head)
def the_head_is_kinetos(t):
    for key in ("schemaVersion", "deviceProperties", "displayTimeUnit", "traceName"):
        if key not in t.chrome:
            yield "no %s" % key
    for one, two in zip((t.source or {}).get("deviceProperties", []), t.chrome["deviceProperties"]):
        yield from differences("deviceProperties", one, two)


# Parts and their whole.


def another_call(t):
    if not t.report["threads"]:
        return False
    t.report["threads"][0]["calls"] += 1


@invariant(spoil=another_call)
def threads_are_their_processes_and_these_the_whole(t):
    threads, processes = t.report["threads"], t.report["processes"]
    for key in ("calls", "launches", "timed_driver_calls", "sync_calls", "allocated_bytes"):
        for p in processes:
            told = [h[key] for h in threads if h["pid"] == p["pid"]]
            of = None if None in told else sum(told)
            if told and len({q["pid"] for q in processes}) == len(processes) and of != p[key]:
                yield "%s of the threads of process %d: %s, and of the process %s" % (key, p["pid"], of, p[key])
    both = [sum(h["calls"] for h in rows) for rows in (threads, processes)] + [t.report["totals"]["calls"]]
    if len(set(both)) > 1:
        yield "calls of threads, processes and all: %d, %d, %d" % tuple(both)
    busy = sum(p["device_total_ns"] or 0 for p in processes), sum(s["device_total_ns"] for s in t.report["streams"])
    if busy[0] != busy[1]:
        yield "device time of processes %d ns, of streams %d ns" % busy
    for h in threads:
        if h["timed_driver_calls"] > h["calls"] or h["launches"] > h["calls"]:
            yield "thread %d: more timed calls or launches than calls" % h["tid"]



def longer_stream(t):
    if not t.report["streams"]:
        return False
    t.report["streams"][0]["device_total_ns"] += 1
    return True


@invariant(spoil=lambda t: t.report["streams"] and t.report["totals"].__setitem__("streams", 161) is None)
def streams_used_are_those_that_something_ran_on(t):
    if t.report["streams"] and not t.report["totals"]["sampled"] and t.report["totals"]["streams"] != len(t.report["streams"]):
        yield "%d streams used, %d listed" % (t.report["totals"]["streams"], len(t.report["streams"]))


@invariant(spoil=longer_stream)
def streams_add_up_to_the_device_work(t):
    spans = ("kernel", "memcpy", "memset")
    work = [row for row in t.report["device_activities"] if row["kind"] in spans]
    for key in ("count", "device_total_ns"):
        parts, whole = sum(row[key] for row in t.report["streams"]), sum(row[key] for row in work)
        if parts != whole:
            yield "%s: streams %d, device work %d" % (key, parts, whole)


def busier_device(t):
    if not t.report["devices"]:
        return False
    t.report["devices"][0]["busy_ns"] = 1 + sum(
        t.report["devices"][0][key] for key in ("kernel_ns", "copy_ns", "set_ns"))
    return True


@invariant(spoil=busier_device)
def a_device_is_no_busier_than_its_parts_together(t):
    for row in t.report["devices"]:
        parts = [row[key] for key in ("kernel_ns", "copy_ns", "set_ns")]
        if row["busy_ns"] > sum(parts):
            yield "device %s: busy %d ns, its parts %s" % (row["device"], row["busy_ns"], parts)


def longer_breakdown(t):
    if not t.report.get("breakdown"):
        return False
    t.report["breakdown"][0]["ns"] += 1
    return True


@invariant(spoil=longer_breakdown)
def the_breakdown_adds_up_to_the_wall_time(t):
    rows = t.report.get("breakdown")
    if rows and sum(row["ns"] for row in rows) != t.report["wall_ns"]:
        yield "%d ns in parts of %d ns" % (sum(row["ns"] for row in rows), t.report["wall_ns"])


def longer_path(t):
    if not t.report.get("critical_path"):
        return False
    t.report["critical_path"][0]["ns"] += 1
    return True


@invariant(spoil=longer_path)
def the_critical_path_adds_up_to_the_wall_time(t):
    rows = {row["name"]: row["ns"] for row in t.report.get("critical_path", ())}
    if not rows:
        return
    if sum(rows.values()) != t.report["wall_ns"]:
        yield "%d ns in parts of %d ns" % (sum(rows.values()), t.report["wall_ns"])
    for row in t.report["breakdown"]:
        if row["name"] in ("before", "after") and row["ns"] != rows[row["name"]]:
            yield "%s the GPU activities are %d ns, and %d of the path" % (row["name"], row["ns"], rows[row["name"]])
    host = rows["host"] + rows["launch"] + rows["waiting"]
    if (t.report["critical_path_host_most_ns"] or 0) != host:
        yield "a faster host saves %s ns, and the host has %d" % (t.report["critical_path_host_most_ns"], host)
    if rows["unknown"] > .05 * t.report["wall_ns"]:
        yield "%d of %d ns of the path are not known" % (rows["unknown"], t.report["wall_ns"])


def more_calls(t):
    t.report["totals"]["calls"] += 1


@invariant(spoil=more_calls)
def calls_add_up_to_the_total(t):
    parts = sum(row["count"] for row in t.report["calls"])
    if parts != t.report["totals"]["calls"]:
        yield "functions have %d calls together, the total is %d" % (parts, t.report["totals"]["calls"])


def selfish_operator(t):
    for row in t.report["operators"]:
        row["device_self_ns"] = row["device_total_ns"] + 1
        return True
    return False


@invariant(spoil=selfish_operator)
def an_operator_itself_takes_no_longer_than_with_its_children(t):
    for row in t.report["operators"]:
        for side in ("device", "host"):
            if row[side + "_self_ns"] > row[side + "_total_ns"]:
                yield "%s: %s %d ns by itself, %d in all" % (row["name"], side, row[side + "_self_ns"], row[side + "_total_ns"])
    device = sum(row["device_total_ns"] for row in t.report["device_activities"] if row["kind"] in ("kernel", "memcpy", "memset"))
    operators = sum(row["device_self_ns"] for row in t.report["operators"])
    if operators > device:
        yield "operators by themselves take %d ns on the device, which worked %d" % (operators, device)


# Why nothing ran: the report and the rules of hints.


OF_KERNELS = ("block-size", "small-grid", "tail", "lane-efficiency", "occupancy-registers", "occupancy-shared", "occupancy-cliff",
              "occupancy-barriers", "fp32-matmul", "low-precision", "mixed-precision", "slow-clock")


def idle_host_busy(t):
    t.hints["hints_idle_gaps"].append({"cause": "host", "count": 1, "ns": 10 ** 12})


@invariant(spoil=idle_host_busy)
def hints_and_report_say_the_same_of_idle_gaps(t):
    """The rules look at a part of the time, or at all of it; what was in it is what the report says."""
    told = {row["name"]: row["ns"] for row in t.report.get("breakdown", ())}
    causes = Counter()
    for row in t.hints["hints_idle_gaps"]:
        causes[row["cause"]] += row["ns"]
    if not told:
        if causes:
            yield "hints know pauses, and the report none: %s" % dict(causes)
        return
    idle = sum(ns for name, ns in told.items() if name.startswith("idle_"))
    queued = causes["between"] + causes["queued"] + causes["unknown"]
    for cause, part, whole in (
            ("launch", causes["launch"], told["idle_launch_bound"] + told["idle_waiting"] + told["idle_driver"] + told["idle_queued"]),
            ("host", causes["host"], told["idle_host_busy"]), ("all", sum(causes.values()), idle),
            ("queued", queued, told["idle_queued"] + told["idle_unknown"])):
        if part > whole:
            yield "%s: hints %d ns, the report %d" % (cause, part, whole)
    faster = [h["gain_pct"] for h in t.hints["hints"] if h["id"] in OF_KERNELS]
    path = {row["name"]: row["ns"] for row in t.report["critical_path"]}
    if faster and max(faster) / 100 * t.hints["hints_of_ns"] > 1.001 * path["computing"] + 1000:
        yield "faster kernels gain %.1f %% of %d ns, and %d ns of the critical path are kernels" % (
            max(faster), t.hints["hints_of_ns"], path["computing"])
    counted, whole = t.hints["hints_of_ns"], t.report["wall_ns"] - told["before"] - told["after"]
    if counted and counted > whole:
        yield "hints count %d ns of %d" % (counted, whole)
    if counted == whole and sum(causes.values()) != idle:
        yield "all time counts, pauses are %d ns, and the report's %d" % (sum(causes.values()), idle)


def swapped_neighbours(t):
    swapped = False
    for p in t.report.get("idle_gaps", ()):
        swapped |= p["before"] != p["after"]
        p["before"], p["after"] = p["after"], p["before"]
    return swapped


@invariant(spoil=swapped_neighbours)
def an_idle_gap_comes_after_what_ended_and_before_what_began(t):
    """In the JSON, and in the text the same."""
    pauses = t.report.get("idle_gaps", ())
    if not pauses:
        return
    work = json.loads(t.run("report", "--json", "-n", "0", "--only", "gpu_trace", t.weir))["gpu_trace"]
    ended, began = defaultdict(set), defaultdict(set)
    for row in work:
        name = row["name"] or {"memcpy": "memcpy", "memset": "memset"}.get(row["kind"], "(no name)")
        ended[row["start_ns"] + row["duration_ns"]].add(name)
        began[row["start_ns"]].add(name)
    for p in pauses:
        start, end = p["start_ns"], p["start_ns"] + p["ns"]
        if start not in ended or end not in began:
            continue  # wall time began with an activity, before the recording did
        next_is = {name for name in began[end] if p["before"] == name or (
            p["before"].startswith(name + " ") and re.match(r"m(emcpy|emset)", name, re.I))}
        if p["after"] not in ended[start] or not next_is:
            yield "at %d ns: after %s, which is %s; before %s, which is %s" % (
                start, p["after"], ended[start], p["before"], began[end])
    text = t.run("report", "-n", "0", "--full-names", t.weir).decode()
    lines = text.split("Longest idle gaps", 1)[1].splitlines()
    headings, rows = lines[1].split(), lines[2:2 + len(pauses)]
    for p, row in zip(pauses, rows):
        last, first = (p[heading] for heading in headings[-2:])
        if not re.search(re.escape(last) + r"\s+" + re.escape(first) + r"\s*$", row):
            yield "the text says %s, the JSON %s" % (row, p)


def more_live_than_reserved(t):
    for row in t.memory["series"]:
        if row["reserved_bytes"]:
            row["reserved_bytes"] = row["max_bytes"] - 1
            return row["max_bytes"] > 0
    return False


@invariant(spoil=more_live_than_reserved)
def no_more_is_live_than_is_reserved(t):
    for row in t.memory["series"]:
        reserved = row["reserved_bytes"]
        if reserved is not None and not max(row["bytes"], row["max_bytes"], row["unused_bytes"]) <= reserved:
            yield "at %d ns %d live, at most %d, reserved %d" % (row["at_ns"], row["bytes"], row["max_bytes"], reserved)


def free_extents_among_blocks_of_unknown_address(t):
    t.hints["hints"].append({"id": "fragmentation"})


@invariant(spoil=free_extents_among_blocks_of_unknown_address)
def nothing_is_said_of_free_extents_where_most_addresses_are_unknown(t):
    """Half of the peak or more was allocated before the trace began: who knows where."""
    before = sum(row["at_peak_bytes"] for row in t.memory["by_call"] if row["name"] == "allocated_before")
    if 2 * before > (t.memory["peak_bytes"] or 0) and any(row["id"] == "fragmentation" for row in t.hints["hints"]):
        yield "holes, and %d of %d bytes have no place" % (before, t.memory["peak_bytes"])


# There and back: what an export says, imported again, is what the trace said.


def kernels_of(report):
    return Counter({(row["name"], tuple(row["grid"] or ()), tuple(row["block"] or ()), "count"): row["count"]
                    for row in report["kernels"] if row["device_timed"]})


def other_kernel_again(t):
    for row in t.again.report["kernels"]:
        row["count"] += 1
        return True
    return False


@invariant(spoil=other_kernel_again)
def there_and_back_keeps_kernels(t):
    yield from differences("kernels", kernels_of(t.report), kernels_of(t.again.report))


def other_event_again(t):
    for e in t.again.chrome["traceEvents"]:
        if e.get("cat") in CATEGORIES and e["ph"] == "X":
            e["dur"] += 1
            return True
    return False


@invariant(spoil=other_event_again)
def there_and_back_keeps_events(t):
    """Also of Weir's own recordings: calls lose what only Weir knows of them."""
    yield from compare_events(without_own(kineto_events(t.chrome)), without_own(kineto_events(t.again.chrome)))


KINETOS = {"External id", "correlation", "class"}


def without_own(told):
    for key, events in told.items():
        for e in events:
            if key[0] in ("cuda_runtime", "cuda_driver"):
                e["args"] = {name: value for name, value in e["args"].items() if name in KINETOS}
    return told


def sums_of(report):
    """The common part of two reports of one program."""
    sums = {}
    for row in report["device_activities"]:
        if row["kind"] == "kernel":
            key = row["kind"], row["name"]
            sums[key] = row["count"], row["device_total_ns"], row["bytes"]
    for row in report["memops"]:
        sums["moved", row["kind"], row["direction"], row["from"], row["to"]] = row["count"], row["bytes"]
    for row in report["operators"]:
        sums["operator", row["kind"], row["name"]] = row["count"], row["device_total_ns"], row["device_self_ns"], row["flops"]
    for row in report["devices"]:
        sums["device", row["device"]] = row["busy_ns"], row["name"]
    for key in ("peak_bytes", "live_at_exit_bytes"):
        sums["memory", key] = sum(report["memory"][kind][key] or 0 for kind in ("device", "managed"))
    return sums


def other_operator_again(t):
    for row in t.again.report["operators"]:
        row["device_self_ns"] += 1
        return True
    return False


@invariant(spoil=other_operator_again)
def there_and_back_keeps_sums(t):
    """Calls, device work, operators with their FLOPs, devices, memory.  Calls that were only counted are in no export."""
    yield from differences("there and back", sums_of(t.report), sums_of(t.again.report))
    exported = Counter(bare_name(e["name"]) for e in t.chrome["traceEvents"]
                       if e["ph"] == "X" and e["cat"] in ("cuda_runtime", "cuda_driver"))
    yield from differences("calls there and back", exported,
                           Counter({bare_name(row["name"]): row["count"] for row in t.again.report["calls"]}))


# All of them.


def check_all(traces, chosen):
    bad = 0
    for t in traces:
        for name, check, _ in chosen:
            try:
                complaints = list(check(t))
            except RuntimeError as error:
                complaints = [str(error)]
            for complaint in complaints:
                print("%s: %s: %s" % (t.name, name, complaint))
            bad += bool(complaints)
    print("%d traces, %d invariants, %d broken" % (len(traces), len(chosen), bad))
    return bad


def spoiled(t, check, spoil):
    """None: cannot be spoilt or looked at; else whether the invariant noticed."""
    t.report, t.hints, t.chrome, t.again.report
    damaged = copy.deepcopy(t)
    if list(check(damaged)) or spoil(damaged) is False:
        return None
    return bool(list(check(damaged)))


def spoil_all(traces, chosen):
    bad = 0
    for name, check, spoil in chosen:
        verdicts = (spoiled(t, check, spoil) for t in traces)
        noticed = next((verdict for verdict in verdicts if verdict), False)
        if not noticed:
            print("%s: says nothing of a trace that breaks it" % name)
            bad += 1
    print("%d invariants, %d that cannot fail" % (len(chosen), bad))
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--spoil", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    chosen = [row for row in INVARIANTS if not options.names or row[0] in options.names]
    weir = os.path.join(os.path.abspath(options.build), "bin", "weir")
    with tempfile.TemporaryDirectory() as work:
        traces = []
        for at, path in enumerate(kept()[::options.every]):
            folder = os.path.join(work, str(at))
            os.mkdir(folder)
            traces.append(Trace(weir, path, folder))
        if not traces or not chosen:
            print("no traces, or no such invariant")
            return 1
        return bool((spoil_all if options.spoil else check_all)(traces, chosen))


if __name__ == "__main__":
    sys.exit(main())
