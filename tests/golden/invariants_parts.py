"""The invariants of a trace that is read in part: a part of invariants.py."""
import json

from invariant import invariant

PARTS = 7  # one after the other, and together the whole


def part_reports(t):
    """(the part's name, its report, what was said on standard error), of consecutive parts; kept with the trace."""
    if "parts" not in t.__dict__:
        edges = [t.report["wall_ns"] * k // PARTS for k in range(PARTS)] + [None]
        t.parts = [part_report(t, *span) for span in zip(edges, edges[1:]) if span[0] != span[1]]
    return t.parts


def part_report(t, after, before):
    options = (["--after=%dns" % after] if after else []) + (["--before=%dns" % before] if before else [])
    report = json.loads(t.run("report", "--json", "-n", "0", *options, t.weir))
    return " ".join(options), report, t.said


def longer_launches(t):
    for _, report, _ in part_reports(t):
        for row in report.get("critical_path", ()):
            if row["name"] == "launch":
                row["ns"] += 1
                return True
    return False


@invariant(spoil=longer_launches)
def breakdown_and_critical_path_of_a_part_add_up_to_its_wall_time(t):
    for name, report, said in part_reports(t):
        if "checks of weir itself failed" in said:
            yield "%s: %s" % (name, said.strip())
        for key in ("breakdown", "critical_path"):
            rows = report.get(key)
            if rows and sum(row["ns"] for row in rows) != report["wall_ns"]:
                yield "%s: %s has %d ns in parts of %d ns" % (
                    name, key, sum(row["ns"] for row in rows), report["wall_ns"])


def one_joined_twice(t):
    for _, report, _ in part_reports(t):
        if "join" in report:
            report["join"]["joined"] += 1
            return True
    return False


@invariant(spoil=one_joined_twice)
def parts_have_together_the_activities_and_joins_of_the_whole(t):
    for key in ("activities", "joined", "checked"):
        parts = [report.get("join", {}).get(key, 0) for _, report, _ in part_reports(t)]
        whole = t.report.get("join", {}).get(key, 0)
        if sum(parts) != whole:
            yield "%s: parts have %s, the whole %d" % (key, parts, whole)
