"""The invariants of figures that a trace says nothing about: a part of invariants.py.

Each trace of torch.profiler is imported once more without its device work, without its calls and without its memory.  Figures that only those can tell are then absent, and never 0.
"""
import json
import os

from invariant import invariant, Trace

DEVICE, CALLS = {"kernel", "gpu_memcpy", "gpu_memset"}, {"cuda_runtime", "cuda_driver"}
LEFT_OUT = {
    "device work": lambda e: e.get("cat") in DEVICE or e.get("cat") == "gpu_user_annotation",
    "calls": lambda e: e.get("cat") in CALLS or is_memory(e),
    "memory": lambda e: is_memory(e) or e.get("cat") in CALLS and any(word in e["name"] for word in ("Malloc", "Free", "cuMem")),
}
MEMORY = {"alloc_count", "free_count", "allocated_bytes", "peak_bytes", "live_at_exit_bytes", "live_at_exit_count"}
# Places in what the report, its list of operators by shape, and weir memory say.
FED_BY = {
    "device work": {"report": {".totals.streams", ".totals.contexts", ".totals.device_total_ns", ".totals.device_busy_ns"}
                    | {".kernels[]." + key for key in ("device_total_ns", "device_p50_ns", "queued_ns", "launch_starved_ns", "path_ns")}
                    | {".operators[]." + key for key in ("device_count", "device_self_ns", "device_total_ns", "device_p50_ns")}
                    | {".device_activities[].bytes", ".memops[].bytes", ".memcpys[].device_total_ns", ".memsets.device_total_ns"},
                    "by_shape": {"[]." + key for key in ("device_count", "device_self_ns", "device_total_ns", "device_p50_ns")}},
    "calls": {"report": {".kernels[]." + key for key in ("host_total_ns", "queued_ns", "launch_starved_ns")}
              | {".queue." + key for key in ("api_ns", "queued_ns", "queued_p50_ns", "queued_p99_ns", "depth_most", "depth_mean",
                                             "span_ns", "empty_ns", "empty_share")}
              | {".critical_path_host_most_ns", ".threads[].allocated_bytes", ".processes[].allocated_bytes"},
              "memory": {".churn.bytes_per_second", ".churn.pairs_per_launch"}},
    "memory": {"report": {".memory" + kind + "." + key for key in MEMORY for kind in ("", ".device", ".host", ".managed", ".vmm")}
               | {".threads[].allocated_bytes", ".processes[].allocated_bytes"},
               "memory": {"." + key for key in MEMORY} | {".series[].bytes", ".series[].max_bytes", ".series[].host_bytes",
                                                          ".series[].host_max_bytes"}
               | {".churn.bytes_per_second", ".churn.pairs", ".churn.pairs_per_launch"}},
}


def is_memory(event):
    return event.get("name") == "[memory]"


def without(t, what):
    """The trace without some of its events, or None where nothing else is left or none is of that kind."""
    kept = t.__dict__.setdefault("without", {})
    if what not in kept:
        events = t.source["traceEvents"]
        left = [e for e in events if not LEFT_OUT[what](e)]
        kept[what] = None
        if any(e.get("ph") == "X" and e.get("cat") in DEVICE | CALLS | {"cpu_op"} for e in left):
            path = t.file(".without-%s.json" % what.split()[0])
            with open(path, "w") as out:
                out.write(json.dumps({**t.source, "traceEvents": left}))
            kept[what] = Trace(t.command, path, os.path.dirname(path))
    return kept[what]


def zeros(value, place=""):
    """The places of zeros: '.kernels[].path_ns'."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from zeros(inner, place + "." + key)
    elif isinstance(value, list):
        for inner in value:
            yield from zeros(inner, place + "[]")
    elif value == 0 and not isinstance(value, bool):
        yield place


def nothing_took_no_time(t):
    rest = without(t, "calls") if t.source else None
    if not rest or "queue" not in rest.report:
        return False
    rest.report["queue"]["api_ns"] = 0
    return True


@invariant(spoil=nothing_took_no_time)
def what_a_trace_does_not_tell_is_absent(t):
    """And never 0: of imports, each without some of what they have."""
    for what in FED_BY if t.source else ():
        rest = without(t, what)
        for command, keys in FED_BY[what].items() if rest else ():
            for place in sorted(set(zeros(getattr(rest, command))) & keys):
                yield "without %s weir %s says 0: %s" % (what, command, place)
