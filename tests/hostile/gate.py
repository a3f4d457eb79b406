"""The promises of the scheduler, on recordings.

	gate.py requests LATENCY.weir BEST-EFFORT.weir LATENCY.ndjson BEST-EFFORT.ndjson
	gate.py waits PROGRAM.weir PROGRAM.ndjson

No launch of the best-effort program enters the driver between a request's begin and its end, unless the recording says
how it may: it went to fewer SMs, had waited for as long as any may, or its program had had less than its share.  A launch
that looked before the request began may enter after it: the first of a thread that has done nothing since then.

No thread has waited for longer than it was there.

The recordings are those of `weir run -o`, the others what `weir export -f ndjson` makes of them.  A request is from the
first launch after all work was done to the end of the synchronisation that waits for it, in a program of one thread.
Exit status: 0 the promise holds, 1 not, 3 there is nothing to judge by.
"""

import json
import pathlib
import struct
import sys

EDGE_NS = 2000  # the clocks of two recordings are compared through CLOCK_MONOTONIC, read at their begins and ends
START_MONO_AT = 104  # src/event/format.h: the header's first reading of the clocks
WAYS = {"goes to fewer SMs": "capped", "has waited for long enough": "expired", "goes on for its share": "budget",
        "waits on the GPU": "on the GPU"}


def events(recording, lines):
    """The events of a recording, by the one clock that all share, in the order of their begins."""
    head = pathlib.Path(recording).read_bytes()[:START_MONO_AT + 8]
    begin = struct.unpack_from("<Q", head, START_MONO_AT)[0]
    all_of = [json.loads(line) for line in pathlib.Path(lines).read_text().splitlines()]
    for e in all_of:
        e["begin"] = begin + e["begin_ns"]
        e["end"] = e["begin"] + e["duration_ns"]
    return sorted(all_of, key=lambda e: (e["begin"], e["end"]))


def requests(latency):
    found, begun = [], None
    for e in latency:
        if e["class"] == "launch" and begun is None:
            begun = e["begin"]
        elif e["class"] == "sync" and begun is not None:
            found.append((begun + EDGE_NS, e["end"] - EDGE_NS))
            begun = None
    return [(b, e) for b, e in found if b < e]


def judge(requests_of, best_effort):
    """How many launches entered inside a request, by how they may."""
    count = dict.fromkeys(("capped", "expired", "budget", "on the GPU", "looked before", "violations"), 0)
    threads, at = {}, 0
    for e in best_effort:
        thread = threads.setdefault(e["tid"], {"way": None, "done": 0})
        if e["name"] in WAYS:
            thread["way"] = WAYS[e["name"]]
        if e["api"] == "range":
            continue
        while at < len(requests_of) and requests_of[at][1] <= e["begin"]:
            at += 1
        begun = requests_of[at][0] if at < len(requests_of) else e["begin"] + 1
        if e["class"] == "launch" and begun <= e["begin"]:
            looked_before = thread["done"] < begun
            count[thread["way"] or ("looked before" if looked_before else "violations")] += 1
        if e["class"] == "launch":
            thread["way"] = None
        thread["done"] = max(thread["done"], e["end"])
    return count


def too_long(recorded):
    """Counts threads whose waits together are longer than the time from their first event to their
    last."""
    bad = 0
    for thread in {e["tid"] for e in recorded}:
        own = [e for e in recorded if e["tid"] == thread]
        waits = [e["end"] - e["begin"] for e in own if e["name"].startswith("waits for ")]
        span = max(e["end"] for e in own) - own[0]["begin"]
        print(f"thread {thread}: {len(waits)} waits, {sum(waits) / 1e6:.1f} of {span / 1e6:.1f} ms")
        bad += sum(waits) > span
    return bad


def check_waits():
    return 1 if too_long(events(sys.argv[2], sys.argv[3])) else 0


def check_requests():
    latency, best_effort = events(sys.argv[2], sys.argv[4]), events(sys.argv[3], sys.argv[5])
    known = requests(latency)
    begins = [e["begin"] for e in best_effort if e["class"] == "launch"]
    beside = sum(b < begins[-1] and e > begins[0] for b, e in known) if begins else 0
    count = judge(known, best_effort)
    print(f"{len(known)} requests, {beside} of them beside {len(begins)} launches of best effort;",
          ", ".join(f"{k} {n}" for k, n in count.items()))
    late = too_long(latency + best_effort)
    return 1 if count["violations"] or late else 0 if beside else 3


sys.exit(check_waits() if sys.argv[1] == "waits" else check_requests())
