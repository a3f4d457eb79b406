"""The invariants of memory that was there before a profiler began: a part of invariants.py."""
from invariant import invariant

UNSEEN = {"allocated_before", "allocated_unseen"}


def a_thread_of_all(t):
    row = next((row for row in t.memory["by_thread"] if row["tid"] is None), None)
    if row:
        row["tid"] = 1
    return bool(row)


@invariant(spoil=a_thread_of_all)
def memory_whose_call_was_not_seen_has_no_thread(t):
    """And all other memory has the thread that asked for it."""
    unseen = [row for row in t.memory["by_call"] if row["name"] in UNSEEN]
    nobodys = [row for row in t.memory["by_thread"] if row["tid"] is None]
    for key in ("count", "bytes", "at_peak_bytes", "live_at_exit_bytes"):
        told, should = (sum(row[key] for row in rows) for rows in (nobodys, unseen))
        if told != should:
            yield "%s: %d without a thread, and %d without a call" % (key, told, should)


def faster_churn(t):
    if not t.source or not t.memory["churn"]["bytes_per_second"]:
        return False
    t.memory["churn"]["bytes_per_second"] *= 1.01
    return True


@invariant(spoil=faster_churn)
def churn_leaves_out_what_was_live_before_the_recording(t):
    if not t.source or t.memory["churn"]["bytes_per_second"] is None:
        return
    asked = sum(e["args"]["Bytes"] for e in t.source["traceEvents"] if e.get("name") == "[memory]"
                and e["args"].get("Device Type") == 1 and e["args"]["Bytes"] > 0)
    asked += sum(row["bytes"] for row in t.memory["by_call"] if row["name"] == "allocated_unseen")
    told = t.memory["churn"]["bytes_per_second"] * t.report["wall_ns"] / 1e9
    if abs(told - asked) > 1e-3 * asked + 1:
        yield "%d bytes were allocated, and churn is %d" % (asked, told)


def a_leak(t):
    t.memory["leaked_bytes"] = 1


@invariant(spoil=a_leak)
def a_profiler_knows_no_leak(t):
    """It is switched off before the program ends."""
    if t.source and t.memory["leaked_bytes"] is not None:
        yield "%d bytes leak" % t.memory["leaked_bytes"]
