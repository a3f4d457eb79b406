"""Holds the list of what is in the portable tree to SPDX 2.3 and to the tree itself: spdx.py FILE TREE.

It checks the fields that clauses 6 to 11 of the specification demand, their form, and that each
relationship leads to an element.  Each program and library of the tree is listed with its sums, and
each that the linker put zlib's or another library's code into says so.  Then the control: a file
with one fault each has to be refused.
"""
import copy
import hashlib
import json
import os
import re
import sys

TEXT = r"(?s).+"
ID = r"SPDXRef-[A-Za-z0-9.-]+"
LICENCE = r"NOASSERTION|[A-Za-z0-9.-]+( WITH [A-Za-z0-9.-]+)?"
FORMS = {
    "document": {"spdxVersion": "SPDX-2.3", "dataLicense": r"CC0-1\.0", "SPDXID": "SPDXRef-DOCUMENT", "name": TEXT,
                 "documentNamespace": r"https://[^#\s]+"},
    "creationInfo": {"created": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"},
    "package": {"SPDXID": ID, "name": TEXT, "versionInfo": TEXT, "downloadLocation": "NOASSERTION|NONE|https://.*",
                "licenseConcluded": LICENCE, "licenseDeclared": LICENCE, "copyrightText": TEXT},
    "file": {"SPDXID": ID, "fileName": r"\./.+", "licenseConcluded": LICENCE, "copyrightText": TEXT},
    "relationship": {"spdxElementId": ID, "relationshipType": "DESCRIBES|CONTAINS|STATIC_LINK", "relatedSpdxElement": ID},
}
# A text of the library that is in no other, and what must say that it holds it.
SIGNS = {"zlib1g-dev": b"inflate 1.", "libsqlite3-dev": b"SQLite format 3", "libncurses-dev": b"ncurses"}


def bad_fields(what, of):
    return ["%s: %s is %r" % (of.get("SPDXID", what), key, of.get(key)) for key, form in FORMS[what].items()
            if not isinstance(of.get(key), str) or not re.fullmatch(form, of[key])]


def elves(tree):
    for folder, _, names in os.walk(tree):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    content = file.read()
                if content[:4] == b"\x7fELF":
                    yield "./" + os.path.relpath(path, tree), content


def faults(d, tree):
    bad = bad_fields("document", d) + bad_fields("creationInfo", d["creationInfo"])
    bad += [] if all(re.fullmatch("(Tool|Organization|Person): .+", c) for c in d["creationInfo"]["creators"]) else ["creators"]
    for what in ("package", "file", "relationship"):
        for one in d[what + "s"]:
            bad += bad_fields(what, one)
    ids = [one["SPDXID"] for one in [d] + d["packages"] + d["files"]]
    bad += ["%s stands twice" % i for i in set(ids) if ids.count(i) > 1]
    related = [(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"]) for r in d["relationships"]]
    bad += ["%s leads nowhere" % i for r in related for i in (r[0], r[2]) if i not in ids]
    bad += [] if any(r[:2] == ("SPDXRef-DOCUMENT", "DESCRIBES") for r in related) else ["nothing is described"]
    bad += ["%s: files are not analysed" % p["SPDXID"] for p in d["packages"] if p["filesAnalyzed"] is not False]
    listed = {f["fileName"]: f for f in d["files"]}
    for name, content in elves(tree):
        if name not in listed:
            bad.append(name + " is not listed")
            continue
        sums = {c["algorithm"]: c["checksumValue"] for c in listed.pop(name)["checksums"]}
        if sums != {a: hashlib.new(a.lower(), content).hexdigest() for a in ("SHA1", "SHA256")}:
            bad.append(name + " has other sums")
        this = next(f["SPDXID"] for f in d["files"] if f["fileName"] == name)
        bad += ["%s does not say that %s is linked in" % (name, p) for p, sign in SIGNS.items()
                if sign in content and (this, "STATIC_LINK", "SPDXRef-" + p) not in related]
    return bad + ["%s is not there" % name for name in listed]


def main(path, tree):
    with open(path) as file:
        d = json.load(file)
    bad = faults(d, tree)
    for line in bad:
        print(line)
    spoilers = {
        "a version": lambda d: d.update(spdxVersion="2.3"),
        "a licence": lambda d: d["packages"][1].pop("licenseDeclared"),
        "a file": lambda d: d["files"].pop(),
        "a sum": lambda d: d["files"][0]["checksums"][0].update(checksumValue="0" * 40),
        "a name": lambda d: d["packages"][1].update(SPDXID="SPDXRef-weir"),
        "what is linked": lambda d: d.update(relationships=[r for r in d["relationships"] if r["relationshipType"] != "STATIC_LINK"]),
    }
    for what, spoil in spoilers.items():
        spoiled = copy.deepcopy(d)
        spoil(spoiled)
        if not faults(spoiled, tree):
            print("control: %s may be wrong" % what)
            bad.append(what)
    return 1 if bad else 0


sys.exit(main(*sys.argv[1:]))
