"""The tests of pages share this: pages of traces, and which tests there are.

The command line is test_page.py's: BUILD SOURCE [TEST...].
"""
import json
import os
import subprocess
import sys
import tempfile

import browser

build, source = (os.path.abspath(p) for p in sys.argv[1:3])
work = os.environ.get("KEEP") or tempfile.mkdtemp(prefix="weir-page-")
chrome = None  # test_page.py starts it
tests = {}

# The questions below share this.
SHORT = """
    var all = (selector) => [...document.querySelectorAll(selector)];
    var rowsOf = (kind) => view.lanes.filter((l) => l.kind === kind).flatMap((l) => l.rows);
    var show = (id) => document.getElementById(id).scrollIntoView({ behavior: "instant" });
    var edge = (e) => [e.getBoundingClientRect().x, e.getBoundingClientRect().y];
"""


def test(function):
    tests[function.__name__] = function
    return function



def run(*command):
    pipe = subprocess.PIPE
    return subprocess.run(command, cwd=work, check=True, stdout=pipe, stderr=pipe).stdout


def weir(*arguments):
    return run(build + "/bin/weir", *arguments)


def page_of(trace, *options, **how):
    """Writes the page of a trace, or of two, and opens it."""
    traces = [trace] if isinstance(trace, str) else trace
    path = f"{work}/{'-'.join(map(os.path.basename, traces))}.html"
    weir("html", *options, "-o", path, *traces)
    assert os.stat(path).st_mode & 0o777 == 0o600, "others can read the page"
    page = browser.Page(chrome, path, **how)
    page.js(SHORT)
    return page


def fixed():
    return source + "/tests/golden/readme/fixed.weir"


def silent(page):
    complaints = page.complaints()
    assert not complaints, complaints


def said(command, trace):
    return json.loads(weir(command, "--json", trace))


def text_of(page, selector):
    return page.js(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")


def eager():
    weir("import", "-q", "-o", "eager.weir", source + "/tests/golden/kineto/eager.json")
    return "eager.weir"


def kineto(name):
    weir("import", "-q", "-o", name + ".weir", f"{source}/tests/golden/kineto/{name}.json.gz")
    return name + ".weir"


def recording():
    if not os.path.exists(build + "/lib/weir/sim/libcuda.so.1"):
        return None
    weir("record", "--sim", "-q", "-o", "vecadd.weir", "--", build + "/examples/vecadd")
    return "vecadd.weir"


def generated(name, calls, threads, *more):
    numbers = ("-n", str(calls), "-t", str(threads), "-s", "7")
    run(build + "/tests/gen-trace", *numbers, "-p", *more, name)
    return name


def allocations():
    rows = ["time,address,bytes,action"]
    live = []
    for i in range(3000):
        if live and i % 3 == 2:
            address, size = live.pop(i % len(live))
            rows.append(f"{i * 1000},{address},{size},free")
        else:
            live.append((0x7F0000000000 + i * 0x200000, 4096 * (1 + i % 50)))
            rows.append(f"{i * 1000},{live[-1][0]},{live[-1][1]},alloc")
    with open(work + "/alloc.csv", "w") as out:
        out.write("\n".join(rows) + "\n")
    weir("import", "-q", "-o", "alloc.weir", "alloc.csv")
    return "alloc.weir"


# The contrast of WCAG between two colours of the page, as a canvas paints them.
CONTRAST = """
    var rgb = (colour) => {
        const c = new OffscreenCanvas(1, 1).getContext("2d");
        c.fillStyle = colour;
        c.fillRect(0, 0, 1, 1);
        return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    var light = (v) => v.map((x) => x / 255).map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
        .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
    var contrast = (a, b) => {
        const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
        return (x + 0.05) / (y + 0.05);
    };
"""
