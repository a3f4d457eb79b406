"""The operators inside the range "measured" of a recording, beside those that torch.profiler saw.

compare_operators.py EXPORTED.json SEEN.json: EXPORTED is `weir export -f chrome`.  Prints what differs; exits 1
when an operator's count does, or the counts of the shapes of products of matrices.
"""
import collections
import json
import sys


def is_library(event):
    """A call of a library, which torch.profiler does not list."""
    return event["name"].startswith(("cublas", "cudnn"))


def merged(spans):
    """Without the overloads: what is the only one inside another of its name is a part of it.

    torch.profiler does the same before it shows what it saw.
    """
    around, inside = [], [0] * len(spans)
    parents = []
    for i, e in enumerate(spans):
        while around and spans[around[-1]]["ts"] + spans[around[-1]]["dur"] <= e["ts"]:
            around.pop()
        parents.append(around[-1] if around else None)
        if around:
            inside[around[-1]] += 1
        around.append(i)
    return [e for e, p in zip(spans, parents)
            if p is None or inside[p] > 1 or spans[p]["name"] != e["name"]]


def recorded(path):
    with open(path) as f:
        events = json.load(f)["traceEvents"]
    spans = [e for e in events if e.get("ph") == "X"]
    inside = [e for e in spans if e["name"] == "measured"]
    if len(inside) != 1:
        sys.exit("the range 'measured' is there %d times" % len(inside))
    begin, end, tid = inside[0]["ts"], inside[0]["ts"] + inside[0]["dur"], inside[0]["tid"]
    mine = [e for e in spans if e.get("cat") == "cpu_op" and e["tid"] == tid
            and begin <= e["ts"] < end and not is_library(e)]
    names, shapes = collections.Counter(), collections.Counter()
    for e in merged(sorted(mine, key=lambda e: (e["ts"], -e["dur"]))):
        names[e["name"]] += 1
        dims = json.loads(e["args"].get("arguments", "{}")).get("Input Dims")
        if e["name"] in ("aten::addmm", "aten::mm", "aten::bmm", "aten::linear"):
            shapes["%s %s" % (e["name"], json.dumps(dims))] += 1
    return names, shapes


def differ(what, ours, theirs):
    rows = [(k, ours[k], theirs.get(k, 0)) for k in sorted(set(ours) | set(theirs))]
    wrong = [r for r in rows if r[1] != r[2]]
    print("%s: %d kinds, %d of them in all; %d differ"
          % (what, len(rows), sum(theirs.values()), len(wrong)))
    for name, mine, other in wrong[:20]:
        print("    %s: %d recorded, %d seen by torch.profiler" % (name, mine, other))
    return bool(wrong)


def main():
    names, shapes = recorded(sys.argv[1])
    with open(sys.argv[2]) as f:
        seen = json.load(f)
    # Ranges of the program's own are no operators here; torch.profiler lists them beside.
    theirs = {k: v for k, v in seen["names"].items() if "::" in k or k in names}
    bad = differ("operators", names, theirs)
    bad |= differ("shapes of products", shapes, seen["shapes"])
    sys.exit(bad)


if __name__ == "__main__":
    main()
