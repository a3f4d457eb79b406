"""The operators inside the range "measured" of a recording, beside those that torch.profiler saw.

compare_operators.py EXPORTED.json SEEN.json: EXPORTED is `weir export -f chrome`.  Prints what differs; exits 1
when an operator's count does, or the counts of the shapes of products of matrices.
"""
import collections
import json
import sys


def recorded(path):
    with open(path) as f:
        events = json.load(f)["traceEvents"]
    spans = [e for e in events if e.get("ph") == "X"]
    inside = [e for e in spans if e["name"] == "measured"]
    if len(inside) != 1:
        sys.exit("the range 'measured' is there %d times" % len(inside))
    begin, end, tid = inside[0]["ts"], inside[0]["ts"] + inside[0]["dur"], inside[0]["tid"]
    names, shapes = collections.Counter(), collections.Counter()
    for e in spans:
        if e.get("cat") != "cpu_op" or e["tid"] != tid or not begin <= e["ts"] < end:
            continue
        if e["name"].startswith(("cublas", "cudnn")):  # calls of libraries, which it does not list
            continue
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
