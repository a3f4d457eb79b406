"""The invariants of the sentences that a report begins with: a part of invariants.py."""
import json
import re

from invariant import invariant

WORDS_MOST = 25
IDLE = ("idle_launch_bound", "idle_waiting", "idle_driver", "idle_host_busy", "idle_queued", "idle_unknown")
BUSY = ("computing", "communicating", "copying")


def scaled(value, unit):
    return "%.*f %s" % (2 if value < 9.995 else 1 if value < 99.95 else 0, value, unit)


def time_text(ns):
    if ns < 1000:
        return "%d ns" % ns
    value, units = ns / 1000, ["us", "ms", "s"]
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return scaled(value, units[0])


def bytes_text(count):
    if count < 1024:
        return "%d B" % count
    value, units = count / 1024, ["KiB", "MiB", "GiB", "TiB"]
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return scaled(value, units[0])


def part_text(part, whole):
    return "%s, %.1f %%" % (time_text(part), 100 * part / whole if whole else 0)


def another_part(t):
    if len(t.report["summary"]) < 2:
        return False
    rows = t.report.get("breakdown")
    if not rows:
        return False
    min(rows, key=lambda row: row["ns"])["ns"] = 2 * t.report["wall_ns"] + 1
    return True


@invariant(spoil=another_part)
def the_summary_names_the_largest_part_first(t):
    """The largest part of the wall time, then how it came about, in the numbers of the tables."""
    rows, said, wall = t.report.get("breakdown"), t.report["summary"], t.report["wall_ns"]
    if not rows or t.report["totals"]["sampled"]:
        return
    part = {row["name"]: row["ns"] for row in rows}
    name, ns = max(part.items(), key=lambda item: item[1])
    if part_text(ns, wall) not in said[0] or time_text(wall) + " wall time" not in said[0]:
        yield "the largest part is %s, %s of %s, and the summary says: %s" % (name, time_text(ns), time_text(wall), said[0])
    if name in IDLE and len(said) > 2:
        longest = max((gap["ns"] for gap in t.report["idle_gaps"] if gap["cause"] == name), default=None)
        if longest is not None and not re.search("lasted %s( in .*)?, from" % re.escape(time_text(longest)), said[1]):
            yield "the longest gap is %s, and the summary says: %s" % (time_text(longest), said[1])
    elif name == "computing":
        kernels = [row["device_total_ns"] for row in t.report["device_activities"] if row["kind"] == "kernel"]
        if part_text(max(kernels), sum(kernels)) not in said[1]:
            yield "the largest kernel takes %s, and the summary says: %s" % (part_text(max(kernels), sum(kernels)), said[1])
        beside = sum(kernels) > max(row["busy_ns"] for row in t.report["devices"])
        if beside != said[1].endswith(", added up."):
            yield "kernels took %d ns together, and the summary says: %s" % (sum(kernels), said[1])
    elif name in ("before", "after"):
        busy, idle = sum(part[key] for key in BUSY), sum(part[key] for key in IDLE)
        if part_text(busy, wall) not in said[1] or not re.search("(idle|none) for %s between" % re.escape(time_text(idle)), said[1]):
            yield "the GPU was busy for %s, and the summary says: %s" % (part_text(busy, wall), said[1])


def another_hint(t):
    if not t.report["hints"] or not t.report["summary"]:
        return False
    t.report["hints"][0].update(id="spoilt", gain_ns=None if t.report["hints"][0]["gain_ns"] else 1)
    return True


@invariant(spoil=another_hint)
def what_to_do_first_is_the_first_hint(t):
    hints, said = t.report["hints"], t.report["summary"]
    if not said:
        return
    if not hints:
        if not re.match(r"No hint found|First: record with|The recording has|The host", said[-1]):
            yield "there is no hint, and the summary says: %s" % said[-1]
        return
    gain = hints[0]["gain_ns"]
    saves = "memory, not time" if gain is None else "about " + time_text(gain)
    if not said[-1].endswith("(%s saves %s)." % (hints[0]["id"], saves)):
        yield "the first hint is %s, which saves %s, and the summary says: %s" % (hints[0]["id"], saves, said[-1])
    if t.hints["summary"] != said:
        yield "weir hints says: %s" % t.hints["summary"]


def another_peak(t):
    if not t.memory["summary"]:
        return False
    t.memory["peak_bytes"] = 7


@invariant(spoil=another_peak)
def the_summary_of_memory_has_the_peak(t):
    said = t.memory["summary"]
    if said and "peaked at %s, %s after" % (bytes_text(t.memory["peak_bytes"]), time_text(t.memory["peak_at_ns"])) not in said[0]:
        yield "the peak is %d bytes, and the summary says: %s" % (t.memory["peak_bytes"], said[0])
    rows = t.memory.get("by_operator", [])
    if not max(rows, key=lambda row: row["at_peak_bytes"], default={"name": None})["name"]:
        rows = t.memory["by_call"]
    most = max((row["at_peak_bytes"] for row in rows), default=0)
    if len(said) == 3 and ": %s, " % bytes_text(most) not in said[1]:
        yield "the largest part is %d bytes, and the summary says: %s" % (most, said[1])


def a_long_sentence(t):
    if not t.report["summary"]:
        return False
    t.report["summary"][0] = "word " * (WORDS_MOST + 1)
    return True


@invariant(spoil=a_long_sentence)
def sentences_of_the_summary_are_short(t):
    for said in (t.report["summary"], t.memory["summary"]):
        if len(said) > 3:
            yield "%d sentences" % len(said)
        for sentence in said:
            plain = re.sub(r"(largest is|operator|until) .*?(?=: \d| had the|\.$)", r"\1 NAME", sentence)
            if len(plain.split()) > WORDS_MOST:
                yield "%d words: %s" % (len(plain.split()), sentence)


def itself(t):
    if "itself" not in t.__dict__:
        t.itself = json.loads(t.run("diff", "--json", t.weir, t.weir))
    return t.itself


def another_conclusion(t):
    itself(t)["conclusion"][0] = "One launch is 3.1 % slower in B."


@invariant(spoil=another_conclusion)
def a_recording_does_not_differ_from_itself(t):
    said = itself(t)["conclusion"][0]
    if not re.match("No difference|Neither A nor B made", said):
        yield said
    changed = [row["name"] for row in itself(t)["kernels"] + itself(t)["calls"] if row["verdict"] not in ("same", None)]
    if changed:
        yield "%s changed" % changed[:3]
