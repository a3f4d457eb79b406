"""The invariants of what a file happens to be like: a part of invariants.py.

Each trace of torch.profiler is imported once more with its events in the opposite order, later, and with other numbers that
join them.  Nothing of that is the program's, so all that is said stays the same.
"""
import json
import os

from invariant import invariant, Trace

LATER_US = 777e6
OTHER = 100000
NOT_SAID = "start_realtime_ns", "program"  # of when it was, and the name of the file


def renumbered(event):
    event = dict(event, args=dict(event["args"])) if "args" in event else dict(event)
    if "ts" in event:
        event["ts"] = round(float(event["ts"]) + LATER_US, 3)
    for key in ("correlation", "External id"):
        if event.get("args", {}).get(key):
            event["args"][key] += OTHER
    if event.get("cat") == "ac2g":
        event["id"] += OTHER
    return event


def other_file(t):
    if "other" not in t.__dict__:
        path = t.file(".other.json")
        with open(path, "w") as out:
            json.dump({**t.source, "traceEvents": [renumbered(e) for e in reversed(t.source["traceEvents"])]}, out)
        t.other = Trace(t.command, path, os.path.dirname(path))
    return t.other


def without_order(value):
    """Rows that are alike in what they are sorted by stand as the file has them."""
    if isinstance(value, dict):
        return {key: without_order(inner) for key, inner in value.items() if key not in NOT_SAID}
    if isinstance(value, list):
        return sorted(map(without_order, value), key=lambda row: json.dumps(row, sort_keys=True))
    return value


def places(one, two, place=""):
    if isinstance(one, dict) and isinstance(two, dict):
        for key in sorted(one.keys() | two.keys()):
            yield from places(one.get(key), two.get(key), place + "." + key)
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for i, pair in enumerate(zip(one, two)):
            yield from places(*pair, "%s[%d]" % (place, i))
    elif one != two:
        yield "%s is %s, and in the other file %s" % (place, str(one)[:80], str(two)[:80])


def another_thread(t):
    rows = t.memory["by_thread"] if t.source else []
    for row in rows:
        row["count"] += 1
    return bool(rows)


@invariant(spoil=another_thread)
def the_order_and_the_numbers_of_a_file_say_nothing(t):
    for command in ("report", "hints", "memory") if t.source else ():
        found = list(places(*(without_order(getattr(of, command)) for of in (t, other_file(t)))))
        yield from ("weir %s: %s" % (command, place) for place in found[:3])
