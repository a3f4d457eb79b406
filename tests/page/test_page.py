"""Pages of weir html in a real browser: test_page.py BUILD SOURCE [TEST...].

Each test is a function whose name says what holds; each page has to be silent: no message on the
console, no exception, no request.  With KEEP=FOLDER pages and pictures of them stay there.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback

import browser

build, source = (os.path.abspath(p) for p in sys.argv[1:3])
work = os.environ.get("KEEP") or tempfile.mkdtemp(prefix="weir-page-")
chrome = None
tests = {}

# What the questions below have in common.
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


@test
def complaints_are_heard():
    page = page_of(eager())
    silent(page)
    page.js("console.error('one'); setTimeout(() => { throw new Error('two'); })")
    page.js("new Promise(f => setTimeout(f, 50))")
    assert len(page.complaints()) == 2, page.complaints()


# ---- what the page says ----


@test
def samples_are_told_as_samples():
    """Bytes 176 to 179 of a trace say that one launch in so many was timed."""
    eager()
    with open(work + "/eager.weir", "rb") as whole, open(work + "/sampled.weir", "wb") as out:
        data = bytearray(whole.read())
        data[176] = 8
        out.write(data)
    page = page_of("sampled.weir")
    report = said("report", "sampled.weir")
    assert "One launch in 8 was timed" in text_of(page, "#overview .note")
    assert "One launch in 8 was timed" in text_of(page, "#hints")
    assert "estimated" in text_of(page, "#kernels thead")
    assert page.js("view.lanes.some((l) => l.title.endsWith(', samples'))")
    kernels = page.js("report.kernels.map((k) => k.device_total_estimate_ns)")
    assert kernels == [k["device_total_estimate_ns"] for k in report["kernels"]]
    silent(page)


@test
def tables_hold_the_numbers_of_the_report():
    page = page_of(eager())
    report = said("report", "eager.weir")
    for key, section in (("kernels", "kernels"), ("operators", "operators"), ("calls", "calls")):
        page.js("[...document.querySelectorAll('.more button')].forEach(b => b.click())")
        shown = page.js(f"all('#{section} tbody tr').length")
        assert shown == len(report[key]), f"{section}: {shown} rows, not {len(report[key])}"
        names = page.js(f"all('#{section} tbody td.text button').map(b => b.title)")
        assert sorted(names) == sorted(r["name"] for r in report[key]), section
    first = max(report["kernels"], key=lambda k: k["device_total_ns"])
    row = page.js("[...document.querySelector('#kernels tbody tr').children].map(c => c.innerText)")
    assert row[1] == page.js(f"time({first['device_total_ns']})"), row
    assert str(first["count"]) in row, row
    silent(page)


@test
def the_page_holds_the_whole_report():
    page = page_of(eager())
    for key, command in (("report", "report"), ("memory", "memory")):
        told = json.loads(weir(command, "--json", "eager.weir"), parse_int=float)
        held = json.loads(page.js(f"JSON.stringify(data.{key})"), parse_int=float)
        assert told == held, key
    silent(page)


@test
def parts_of_the_time_add_up_to_the_wall():
    page = page_of(eager())
    report = said("report", "eager.weir")
    parts = sum(p["ns"] for p in report["breakdown"])
    assert parts == report["wall_ns"]
    assert page.js(f"time({parts})") in text_of(page, "#time .note")
    assert page.js("document.querySelectorAll('#time .stack').length") >= 1
    silent(page)


@test
def the_timeline_holds_every_event():
    page = page_of(eager())
    report = said("report", "eager.weir")
    kernels = page.js(
        """rowsOf('stream').reduce((sum, r) =>
            sum + [...r.name].filter(n => !/^Mem/.test(names[n])).length, 0)"""
    )
    assert kernels == report["totals"]["device_kernels"], kernels
    calls = page.js("rowsOf('calls').reduce((sum, r) => sum + r.n, 0)")
    assert calls == report["totals"]["calls"], calls
    busy = page.js("rowsOf('stream').flatMap(r => [...r.busy]).reduce((a, b) => a + b, 0)")
    assert busy == sum(s["device_total_ns"] for s in report["streams"]), busy
    silent(page)


@test
def the_flame_graph_adds_up_to_the_device_time():
    page = page_of(eager())
    folded = weir("flame", "--by", "device", "--format", "folded", "eager.weir").decode()
    total = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())
    assert page.js("flame.graphs.device.total[0]") == total
    assert page.js("flame.graphs.device.self.reduce((a, b) => a + b, 0)") == total
    silent(page)


@test
def memory_shows_the_peak_of_weir_memory():
    page = page_of(allocations())
    memory = said("memory", "alloc.weir")
    label = page.js("document.querySelector('#memory .strong').textContent")
    peak, at = page.js(f"bytes({memory['peak_bytes']})"), page.js(f"time({memory['peak_at_ns']})")
    assert label == f"peak {peak} at {at}", label
    assert str(memory["alloc_count"]) in text_of(page, "#memory").replace(",", "")
    silent(page)


@test
def memory_is_stacked_and_the_layers_add_up():
    for trace in (kineto("transformer-train"), kineto("expandable-segments"), allocations(), source + "/tests/golden/problems/leak.weir"):
        page = page_of(trace)
        memory = said("memory", trace)
        kinds = page.js("stackKinds()")
        assert {"call", "size", "kind"} <= set(kinds), kinds
        assert ("operator" in kinds) == bool(memory["by_operator"]), kinds
        for by in kinds:
            sums = page.js(f"data.stacks.{by}.reduce((sum, l) => sum.map((v, i) => v + liveOf(l)[i]), Array(960).fill(0))")
            assert sums == [p["max_bytes"] for p in memory["series"]], (trace, by)
            if len(kinds) > 1:
                page.js(f"document.querySelector('[data-stack={by}]').click()")
            assert page.js("all('#memory .layer').length") == page.js(f"data.stacks.{by}.length")
            assert page.js("all('#memory .layers span').length") >= page.js(f"data.stacks.{by}.length")
        # Where most was live an operator has what weir memory says.
        if memory["by_operator"]:
            at = max(range(960), key=lambda i: memory["series"][i]["max_bytes"])
            top = {r["name"]: r["at_peak_bytes"] for r in memory["by_operator"]}
            for name, live in page.js(f"data.stacks.operator.filter(l => l.rest === undefined).map(l => [l.name, liveOf(l)[{at}]])"):
                assert live == top.get(name, 0), name
        silent(page)


@test
def what_is_reserved_and_not_live_is_drawn_over_time():
    trace = source + "/tests/golden/problems/fragmentation.weir"
    page = page_of(trace)
    worst = said("memory", trace)["reserved"]["worst"]
    label = page.js("document.querySelector('#memory .share .strong').textContent")
    assert page.js(f"bytes({worst['unused_bytes']})") in label and page.js(f"time({worst['at_ns']})") in label, label
    assert page.js("document.querySelectorAll('#memory .chart .reserved').length") == 2
    rows = page.js("all('#memory table tbody tr').map(r => r.children[0].innerText + r.children[3].innerText)")
    calls = said("memory", trace)["call_time"]["calls"]
    assert sorted(rows) == sorted(c["name"] + f"{c['count']:,}" for c in calls), rows
    silent(page)


@test
def a_roofline_has_the_ceilings_of_the_device():
    page = page_of(eager())
    gpu = said("report", "eager.weir")["gpu"]
    if gpu and page.js("document.querySelectorAll('#roofline .point').length"):
        memory = page.js(f"rateOfBytes({gpu['dram_bytes_per_second']})")
        assert memory in page.js("document.querySelector('#roofline svg').textContent")
    else:
        assert text_of(page, "#roofline .empty")
    silent(page)


@test
def an_empty_trace_says_what_is_missing():
    page = page_of(generated("empty.weir", 0, 1))
    for part in ("time", "timeline", "flame", "memory", "kernels", "operators", "calls", "copies"):
        assert len(text_of(page, f"#{part} .empty") or "") > 20, part
    assert "weir record --gpu" in text_of(page, "#time .empty")
    silent(page)


@test
def a_recording_without_device_times_says_how_to_get_them():
    trace = recording()
    if not trace:
        return
    page = page_of(trace)
    assert "weir record --gpu" in text_of(page, "#kernels")
    assert page.js("view.lanes.every(l => l.kind === 'calls')")
    texts = page.js("data.timeline.details.map(d => names[d.text]).join()")
    assert "bytesize" in texts, "calls have no arguments"
    silent(page)


@test
def hints_are_those_of_the_report():
    page = page_of(eager())
    hints = said("report", "eager.weir")["hints"]
    shown = page.js("[...document.querySelectorAll('.hint')].map(h => h.textContent)")
    assert len(shown) == len(hints), shown
    for hint, text in zip(hints, shown):
        assert hint["title"] in text and hint["evidence"] in text and hint["id"] in text, text
    silent(page)


# ---- what a hostile trace can't do ----

EVIL = [
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "<!--<script>",
    "a\u2028b\u2029c",
    "]]>'\"\\`${document.title='taken'}",
    "\u0001\u0000\u001f\u007f",
    "\u202eevil",
    "x" * 5000,
    "",
    "__proto__",
    "constructor",
]


def hostile():
    events = []
    for i, name in enumerate(EVIL):
        who = {"External id": i + 1, "correlation": i + 1}
        where = {"device": 0, "stream": 7, "grid": [1, 1, 1], "block": [32, 1, 1]}
        for cat, called, pid, at, dur, args in (
            ("cpu_op", name, 7, 0, 50, {"External id": i + 1}),
            ("cuda_runtime", "cudaLaunchKernel", 7, 10, 5, who),
            ("kernel", name, 0, 20, 30, who | where),
        ):
            event = {"ph": "X", "cat": cat, "name": called, "pid": pid, "tid": 7}
            events.append(event | {"ts": 1000 + i * 100 + at, "dur": dur, "args": args})
    events.append({"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "args": {"name": EVIL[0]}})
    devices = [{"id": 0, "name": EVIL[1]}]
    trace = {"schemaVersion": 1, "deviceProperties": devices, "traceEvents": events}
    text = json.dumps(trace).encode()
    with open(work + "/hostile.json", "wb") as out:
        out.write(text.replace(b"constructor", b"\xff\xfe\xed\xa0\x80 <b>"))
    weir("import", "-q", "-o", "hostile.weir", "hostile.json")
    return "hostile.weir"


@test
def hostile_names_are_text():
    page = page_of(hostile())
    assert page.js("document.title").endswith("· weir")
    assert page.js("document.querySelectorAll('img, iframe, object').length") == 0
    assert page.js("document.scripts.length") == 3
    names = page.js("report.kernels.map(k => k.name)")
    assert EVIL[0] in names and EVIL[3] in names and "__proto__" in names, names
    for word in ("script", "proto", "zzz", "x"):
        page.js(f"setSearch({json.dumps(word)})")
        page.drawn()
    page.js("document.querySelector('.timeline .scroll canvas').focus()")
    for key in ["Enter", ".", "Enter", ",", "n", "f", "Escape"]:
        page.key(key)
    assert page.js("document.title").endswith("· weir")
    silent(page)


@test
def hostile_names_are_text_in_two_recordings_too():
    page = page_of((hostile(), "--", eager()))
    assert page.js("document.title").endswith("· weir")
    assert page.js("document.querySelectorAll('img, iframe, object').length") == 0
    assert page.js("document.scripts.length") == 3
    assert EVIL[0] in page.js("all('#kernels td.text button').map(b => b.title)")
    page = page_of((eager(), "--", "hostile.weir"))
    assert EVIL[0] in page.js("all('#kernels td.text button').map(b => b.title)")
    assert page.js("document.title").endswith("· weir")
    silent(page)


@test
def a_page_can_reach_nobody():
    page = page_of(eager())
    silent(page)
    refused = page.js("fetch('https://example.invalid/').then(() => 'reached', () => 'refused')")
    assert refused == "refused"
    violated = page.js(
        """new Promise(f => {
            document.addEventListener('securitypolicyviolation', e => f(e.violatedDirective));
            new Image().src = 'https://example.invalid/x.png';
        })"""
    )
    assert violated == "img-src", violated


# ---- what hands can do ----


@test
def keys_and_wheel_move_the_timeline():
    page = page_of(eager())
    page.js("show('timeline'); view.canvas.focus()")
    page.drawn()
    whole = page.js("view.to - view.from")
    page.key("w")
    assert page.js("view.to - view.from") < whole * 0.7
    before = page.js("view.from")
    page.key("d")
    assert page.js("view.from") > before
    page.key("0")
    assert abs(page.js("view.to - view.from") - whole) < 1
    box = page.js("edge(view.canvas).map((v, i) => v + [500, 40][i])")
    page.mouse("mouseWheel", box[0], box[1], deltaX=0, deltaY=-200)
    page.wait(f"view.to - view.from < {whole} * 0.8")
    silent(page)


@test
def a_click_on_a_kernel_shows_who_launched_it():
    page = page_of(eager())
    page.js("show('timeline')")
    page.js("var chosen = { lane: view.lanes.find(l => l.kind === 'stream'), row: 0, i: 3 }")
    page.js("bringIntoView(chosen)")
    page.drawn()
    box = page.js("boxOf(chosen)")
    left, top = page.js("edge(view.canvas)")
    at = (left + (box["x"] + box["right"]) / 2, top + box["y"] + 5)
    page.mouse("mouseMoved", *at)
    page.drawn()
    assert page.js("tip.style.visibility") == "visible"
    page.click(*at)
    name = page.js("nameOf(chosen)")
    assert text_of(page, ".chosen .name") == name
    assert "launched by" in text_of(page, ".chosen")
    page.key("Enter")
    assert page.js("view.chosen.lane.kind") == "calls"
    assert page.js("linked(view.chosen).some(p => p.lane === chosen.lane && p.i === chosen.i)")
    silent(page)


@test
def an_operator_tells_its_shapes():
    page = page_of(eager())
    page.js(
        """choose((() => { for (const lane of view.lanes) for (let k = 0; k < lane.rows.length; k++)
        for (let i = 0; i < lane.rows[k].n; i++) {
            const pick = { lane, row: k, i };
            if (argumentFacts(pick, 'Input Dims').length) return pick;
        } })(), true)"""
    )
    assert "input dims" in text_of(page, ".chosen")
    silent(page)


@test
def a_page_that_is_cut_says_so():
    page_of(eager())
    with open(work + "/eager.weir.html") as whole:
        text = whole.read()
    cut = text.replace('"timeline":', '"timeline', 1)
    with open(work + "/cut.html", "w") as out:
        out.write(cut)
    there = "document.getElementById('wait') !== null"
    page = browser.Page(chrome, work + "/cut.html", ready=there)
    page.wait("document.getElementById('wait').textContent.includes(\"can't be shown\")")


@test
def the_search_works_in_all_views():
    page = page_of(eager())
    name = said("report", "eager.weir")["kernels"][0]["name"]
    page.key("/")
    assert page.js("document.activeElement.id") == "search"
    page.js(f"document.getElementById('search').value = ''; putSearch({json.dumps(name)})")
    page.drawn()
    assert page.js("all('#kernels tbody tr').length") == 1
    assert page.js("search.matches.reduce((a, b) => a + b, 0)") >= 1
    page.js("chooseMatch(1)")
    assert page.js("nameOf(view.chosen)") == name
    page.js(f"putSearch({json.dumps(name)})")
    assert page.js("search.matches") is None
    silent(page)


@test
def a_click_zooms_the_flame_graph_and_escape_leaves():
    page = page_of(eager())
    page.js("show('flame'); flame.canvas.focus()")
    page.drawn()
    for key in ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]:
        page.key(key)
    assert page.js("flame.root") == 3
    page.key("Escape")
    assert page.js("flame.root") == 0
    silent(page)


@test
def a_heading_sorts_its_table():
    page = page_of(eager())
    page.js("all('#kernels th button').find(b => b.innerText.startsWith('runs')).click()")
    at = page.js("all('#kernels th').findIndex(h => h.getAttribute('aria-sort') === 'descending')")
    cells = page.js(f"all('#kernels tbody tr').map(r => r.children[{at}].innerText)")
    runs = [int(cell.replace(",", "")) for cell in cells]
    assert runs == sorted(runs, reverse=True) and len(runs) > 1, runs
    silent(page)


@test
def the_page_fits_a_phone():
    page = page_of(eager(), width=390, height=844)
    assert page.js("document.documentElement.scrollWidth") <= 390
    silent(page)


# ---- how it looks ----

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


def long_names():
    """A trace whose tables have every column, and long names in them."""
    who = "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::add_functor, "
    events = []
    for i in range(40):
        name = f"{who}std::array<char*, {i}> >(int, float)"
        for cat, called, pid, at, dur, args in (
            ("user_annotation", "training step " + "of a long name " * 9, 7, 0, 900, {"External id": 2 * i + 1}),
            ("cpu_op", "aten::" + "scaled_dot_product_attention_" * 5, 7, 1, 800, {"External id": 2 * i + 2}),
            ("cuda_runtime", "cudaLaunchKernel", 7, 10, 5, {"correlation": i + 1}),
            ("kernel", name, 0, 20, 100 + i, {"correlation": i + 1, "device": 0, "stream": 7,
                                             "grid": [65535, 1024, 64], "block": [1024, 1, 1]}),
        ):
            event = {"ph": "X", "cat": cat, "name": called, "pid": pid, "tid": 7}
            events.append(event | {"ts": 1000 + i * 1000 + at, "dur": dur, "args": args})
    with open(work + "/long.json", "w") as out:
        json.dump({"traceEvents": events}, out)
    weir("import", "-q", "-o", "long.weir", "long.json")
    return "long.weir"


@test
def nothing_is_wider_than_the_window():
    slow = source + "/tests/golden/readme/slow.weir"
    for trace in (long_names(), eager(), slow, (slow, fixed())):
        for width in (800, 1024, 1440, 1920, 2560):
            page = page_of(trace, width=width)
            assert page.js("document.documentElement.scrollWidth") <= width, (trace, width)
            wide = page.js("""all('.sheet, .panel, .legend, .tiles, .tile, nav ul').filter(e => e.scrollWidth > e.clientWidth + 1)
                .map(e => [(e.closest('section') || {}).id, e.className, e.scrollWidth, e.clientWidth])""")
            assert not wide, (trace, width, wide)
            silent(page)


@test
def kernels_of_different_names_have_different_colours():
    for dark in (False, True):
        page = page_of(long_names(), dark=dark)
        page.js(CONTRAST)
        fills = page.js("report.kernels.slice(0, 12).map(k => rgb(colour('kernel', names.indexOf(k.name))))")
        assert len(fills) == 12
        for i, a in enumerate(fills):
            for b in fills[:i]:
                assert sum((x - y) ** 2 for x, y in zip(a, b)) ** 0.5 > 18, (dark, a, b)
        # The same in the table.
        shown = page.js("rgb(getComputedStyle(document.querySelector('#kernels .swatch')).backgroundColor)")
        assert shown in fills, (shown, fills)
        silent(page)


@test
def what_is_filled_stands_out_from_dark_paper_and_its_text_can_be_read():
    page = page_of(eager(), dark=True)
    page.js(CONTRAST)
    lowest = page.js("""Math.min(...Object.keys(hues).flatMap(kind => names.map((_, i) =>
        contrast(rgb(colour(kind, i)), rgb(theme.panel)))))""")
    assert lowest >= 3, lowest
    for dark in (False, True):
        page = page_of(eager(), dark=dark)
        page.js(CONTRAST)
        lowest = page.js("""Math.min(...Object.keys(hues).flatMap(kind => names.map((_, i) =>
            contrast(rgb(colour(kind, i)), rgb(theme.onFill)))))""")
        assert lowest >= 4.5, (dark, lowest)
        silent(page)


@test
def calls_that_are_narrow_are_seen_in_the_dark():
    """Each pixel of the lane that is no paper, of calls too short for one."""
    page = page_of(generated("many.weir", 4000, 1), dark=True)
    page.js(CONTRAST)
    page.js("show('timeline')")
    page.drawn()
    pixels = page.js("""(() => {
        const lane = view.lanes.find(l => l.kind === 'calls'), ratio = view.canvas.width / view.width;
        const y = Math.round((AXIS + lane.y - view.scroller.scrollTop + HEAD + 5) * ratio);
        const row = view.canvas.getContext('2d').getImageData(0, y, view.canvas.width, 1).data;
        const paper = rgb(theme.panel), seen = [];
        for (let x = 0; x < row.length; x += 4)
            if (row[x + 3] > 200 && contrast([row[x], row[x + 1], row[x + 2]], paper) > 1.35)
                seen.push(contrast([row[x], row[x + 1], row[x + 2]], paper));
        return seen.sort((a, b) => a - b);
    })()""")
    assert len(pixels) > 100 and pixels[len(pixels) // 20] >= 3, (len(pixels), pixels[:5])
    silent(page)


@test
def one_odd_kernel_does_not_squeeze_the_roofline():
    page = page_of(eager())
    axes = page.js("""(() => {
        const point = (x, y, time) => ({ x, y, time });
        const crowd = [...Array(20).keys()].map(i => point(10 + i, 1e13 + i * 1e11, 100));
        const peaks = [['fp32', 6e13]], width = 1000;
        const plain = roofAxes(crowd, peaks, 4e12, width);
        const odd = roofAxes([...crowd, point(1e-6, 1e3, 3)], peaks, 4e12, width);
        return { plain: [plain.x0, plain.y0], odd: [odd.x0, odd.y0], beyond: odd.beyond(point(1e-6, 1e3, 3)),
            inside: crowd.some(odd.beyond), x: odd.x(1e-6), left: ROOF.left, y: odd.y(1e3),
            low: ROOF.height - ROOF.bottom };
    })()""")
    assert axes["odd"] == axes["plain"], axes
    assert axes["beyond"] and not axes["inside"], axes
    assert axes["x"] == axes["left"] and axes["y"] == axes["low"], axes
    # One that has a good part of the time is no odd one out.
    wide = page.js("""(() => { const p = { x: 1e-3, y: 1e9, time: 50 };
        return roofAxes([p, { x: 10, y: 1e13, time: 50 }], [['fp32', 6e13]], 4e12, 1000).beyond(p); })()""")
    assert not wide
    silent(page)


@test
def every_column_says_what_it_means():
    for trace in (long_names(), eager(), allocations()):
        page = page_of(trace)
        bare = page.js("all('th').filter(h => (h.title || '').length < 10).map(h => h.innerText)")
        assert not bare, bare
        for table in page.js("all('section:has(details.more)').map(s => s.id)"):
            page.js(f"document.querySelector('#{table} summary').click()")
            listed = page.js(f"all('#{table} .columns dt').map(e => e.innerText)")
            heads = page.js(f"all('#{table} th button').map(e => e.innerText)")
            assert [h.strip() for h in heads] == listed, (table, heads, listed)
        silent(page)


@test
def one_palette_for_kinds_and_for_parts_of_the_time():
    page = page_of(eager())
    strange = page.js("Object.entries(partLook).filter(([, [, kind]]) => !hues[kind]).map(([name]) => name)")
    assert not strange, strange
    assert page.js("partColour('computing') === colourOf('kernel', MIDDLE)")
    assert page.js("partColour('copying') === colourOf('copy', MIDDLE)")
    page.js(CONTRAST)
    picture = weir("flame", "-f", "svg", "eager.weir").decode()
    pixel = lambda text: [int(text[i:i + 2], 16) for i in (0, 2, 4)]
    close = lambda a, b: max(abs(x - y) for x, y in zip(a, b)) <= 1
    for word, kind in (("kernel", "kernel"), ("operator, range", "range"), ("runtime call", "call")):
        fill = re.search(r'fill="#([0-9a-f]{6})"[^<]*<[^<]*' + word + "<", picture)
        assert close(pixel(fill[1]), page.js(f"rgb(colourOf('{kind}', MIDDLE))")), (word, fill[0])
    # A kernel that nobody was in the way of has the same colour there.
    alone = page.js("report.kernels.map(k => k.name).filter(n => kernelPlace.get(n) === hash(n) % kernelFills.length)")
    shown = dict(re.findall(r"<title>([^\n<]*)\n[^<]*</title><rect [^>]*fill=\"#([0-9a-f]{6})", picture))
    both = [name for name in alone if name in shown]
    assert len(both) >= 2, (alone, list(shown)[:9])
    for name in both:
        assert close(pixel(shown[name]), page.js(f"rgb(kernelColour({json.dumps(name)}))")), name
    silent(page)


@test
def light_and_dark_can_be_chosen():
    for dark in (False, True):
        page = page_of(eager(), dark=dark)
        page.js(CONTRAST)
        paper = "light(rgb(getComputedStyle(document.body).backgroundColor))"
        assert (page.js(paper) < 0.1) == dark
        kernel = page.js("rgb(colour('kernel', names.indexOf(report.kernels[0].name)))")
        page.js("document.getElementById('theme').click()")
        page.drawn()
        assert (page.js(paper) < 0.1) != dark, "the button does nothing"
        assert page.js("rgb(colour('kernel', names.indexOf(report.kernels[0].name)))") != kernel
        page.key("t")
        assert (page.js(paper) < 0.1) == dark, "the key does nothing"
        silent(page)


# The contrast of each text with what is behind it, as WCAG counts it; large text may have less.
TEXTS = """
    var behind = (e) => {
        for (; e; e = e.parentElement) {
            const style = getComputedStyle(e);
            if (style.backgroundImage !== "none") return null;
            const c = style.backgroundColor;
            if (c && !/, 0\\)$|transparent/.test(c)) return c;
        }
        return getComputedStyle(document.documentElement).backgroundColor;
    };
    var faint = () => {
        const found = [];
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let n = walk.nextNode(); n; n = walk.nextNode()) {
            const e = n.parentElement, style = getComputedStyle(e);
            if (!n.data.trim() || !e.checkVisibility({ visibilityProperty: true }) || e.closest("script, .skip")) continue;
            const ink = e instanceof SVGElement ? style.fill : style.color, under = behind(e);
            const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
            if (under && contrast(rgb(ink), rgb(under)) < (large ? 3 : 4.5))
                found.push([n.data.trim().slice(0, 40), ink, under, contrast(rgb(ink), rgb(under)).toFixed(2)]);
        }
        return found;
    };
"""


@test
def all_text_can_be_read_in_light_and_dark():
    slow = source + "/tests/golden/readme/slow.weir"
    for trace in (long_names(), allocations(), slow, (slow, fixed())):
        for dark in (False, True):
            page = page_of(trace, dark=dark)
            page.js(CONTRAST + TEXTS)
            page.js("all('details').forEach(d => (d.open = true))")
            bad = page.js("faint()")
            assert not bad, (trace, dark, bad[:5])
            page.js("document.querySelector('h1').style.color = 'var(--line)'")
            assert page.js("faint()"), "it notices nothing"
            silent(page)


@test
def names_stand_first():
    for trace in (long_names(), eager(), source + "/tests/golden/readme/slow.weir"):
        page = page_of(trace)
        first = page.js("all('table').map(t => t.querySelector('th').innerText.trim())")
        assert first and set(first) <= {"name", "call", "direction", "cause"}, first
        silent(page)


@test
def ceilings_that_were_measured_are_not_called_a_data_sheet():
    page = page_of(eager())
    made = page.js("""[true, false].map(measured => {
        report.gpu = { name: '*H200*', source: 'H200 datasheet 2024', measured };
        return roofLegend([]).innerText || roofLegend([]).textContent; })""")
    assert "benchmarks reached" in made[0] and "datasheet" not in made[0], made
    assert "datasheet" in made[1], made
    silent(page)


# ---- two recordings ----


@test
def two_recordings_are_beside_each_other():
    slow = source + "/tests/golden/readme/slow.weir"
    page = page_of((slow, fixed()))
    diff = json.loads(weir("diff", "--json", slow, fixed()), parse_int=float)
    held = json.loads(page.js("JSON.stringify(data.diff)"), parse_int=float)
    assert {k: v for k, v in diff.items() if k != "gates"} == {k: v for k, v in held.items() if k != "gates"}
    # What differs stands first: the totals of both, and their ratio.
    assert page.js("all('main section')[0].id") == "overview"
    rows = page.js("all('#overview tbody tr').map(r => [...r.children].map(c => c.innerText))")
    peak = diff["totals"]["peak_bytes"]
    shown = next(r for r in rows if r[0] == "memory, peak")
    assert shown[1:4] == [page.js(f"bytes({peak['a']})"), page.js(f"bytes({peak['b']})"),
                          f"{peak['b'] / peak['a']:.2f}×"], shown
    changes = page.js("all('.changes li b').map(e => e.innerText)")
    most = max(diff["kernels"], key=lambda k: abs(k["change_ns"]))
    assert changes[0] == page.js(f"signed({most['change_ns']}, time)"), changes
    # Tables have the numbers of both.
    kernels = page.js("all('#kernels tbody tr').map(r => [...r.children].map(c => c.innerText))")
    assert len(kernels) == len(diff["kernels"])
    same = next(k for k in diff["kernels"] if k["a"] and k["b"])
    row = next(r for r in kernels if page.js(f"time({same['b']['total_ns']})") in r)
    assert page.js(f"time({same['a']['total_ns']})") in row, row
    # One scale of time, aligned at the start; each recording has groups of its own.
    assert page.js("view.groups.map(g => g.title.slice(0, 1))") == ["A", "B", "A", "B"]
    starts = page.js("""['A', 'B'].map(letter => Math.min(...view.lanes.filter(l => l.side.letter === letter)
        .flatMap(l => l.rows).filter(r => r.n).map(r => r.start[0])))""")
    assert starts[0] == starts[1], starts
    # What is said of an item is its own time, and its links stay in its recording.
    at = page.js("""(() => { const lane = view.lanes.find(l => l.side.letter === 'B' && l.kind === 'stream');
        choose({ lane, row: 0, i: lane.rows[0].n - 1 }, true);
        return [moment(lane.rows[0].start[lane.rows[0].n - 1] - data.other.shift), linked(view.chosen).map(p => p.lane.side.letter)]; })()""")
    assert at[0] in text_of(page, ".chosen") and at[1] == ["B"], at
    alone = page_of(fixed())
    own = alone.js("(() => { const r = view.lanes.find(l => l.kind === 'stream').rows[0]; return moment(r.start[r.n - 1]); })()")
    assert own == at[0]
    # Memory and flame graphs of both.
    assert page.js("all('#memory .panel').length") == 2
    for by in ("Adevice", "Bdevice", "Ahost", "Bhost"):
        page.js(f"document.querySelector('[data-flame={by}]').click()")
        folded = weir("flame", "--by", by[1:], "--format", "folded", slow if by[0] == "A" else fixed()).decode()
        assert page.js(f"flame.graphs.{by}.total[0]") == sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())
    silent(page)
    silent(alone)


@test
def two_recordings_are_one_when_they_ran_at_once():
    """As ranks of a program do; with -- between them they are compared all the same."""
    one, two = kineto("ddp-rank0"), kineto("ddp-rank1")
    page = page_of((one, two))
    assert page.js("two") is False
    page = page_of((one, "--", two))
    assert page.js("two") is True
    assert page.js("data.diff.runs.a[0].file") == one and page.js("data.diff.runs.b[0].file") == two
    slow = source + "/tests/golden/readme/slow.weir"
    page = page_of((slow, fixed(), "--"))
    assert page.js("two") is False and page.js("report.processes.length") == 2
    silent(page)


@test
def bands_of_the_second_recording_are_gone_into_too():
    slow, options = source + "/tests/golden/readme/slow.weir", ("--items", "1000")
    page = page_of((slow, fixed()), *options)
    assert page.js("sides.every(s => s.timeline.fine_items > 0)")
    page.js("""(async () => { for (let i = 0; i < 20; i++) {
        look(view.lo + (view.hi - view.lo) * i / 20, view.lo + (view.hi - view.lo) * (i + 1) / 20);
        view.width = 1e6; view.height = 1e5; await lookClosely(); } window.walked = true; })()""")
    page.wait("window.walked")
    events = "view.lanes.filter(l => l.side.letter === 'B').flatMap(l => l.rows.flatMap(r => [...r.start].map((s, i) => [names[r.name[i]], Math.round(s - data.other.shift), r.count[i]])))"
    alone = page_of(fixed())
    every = "view.lanes.flatMap(l => l.rows.flatMap(r => [...r.start].map((s, i) => [names[r.name[i]], s, r.count[i]])))"
    assert sorted(map(tuple, page.js(events))) == sorted(map(tuple, alone.js(every)))
    silent(page)


# ---- groups and bands ----


def kineto(name):
    weir("import", "-q", "-o", name + ".weir", f"{source}/tests/golden/kineto/{name}.json.gz")
    return name + ".weir"


@test
def lanes_stand_in_groups_that_fold():
    page = page_of(kineto("transformer-train"))
    titles = page.js("view.groups.map(g => g.title)")
    assert titles == ["GPU 0 · NVIDIA H200", "process 1880"], titles
    assert page.js("view.groups[0].lanes.every(onDevice) && !view.groups[1].lanes.some(onDevice)")
    page.js("show('timeline')")
    page.drawn()
    tall = page.js("view.tall")
    left, top = page.js("edge(view.canvas)")
    page.click(left + 60, top + page.js("AXIS + view.groups[0].y + GROUP / 2"))
    assert page.js("view.groups.map(g => g.folded)") == [True, False]
    assert page.js("view.tall") < tall
    # What ran is seen in the one row that is left.
    page.js(CONTRAST)
    seen = page.js("""(() => {
        const ratio = view.canvas.width / view.width, y = Math.round((AXIS + view.groups[0].y + GROUP + 5) * ratio);
        const row = view.canvas.getContext('2d').getImageData(0, y, view.canvas.width, 1).data;
        let n = 0;
        for (let x = 3; x < row.length; x += 4) n += row[x] > 200 && row[x - 3] + row[x - 1] < 480;
        return n;
    })()""")
    assert seen > 50, seen
    # Whoever is sent into a folded group sees it.
    page.js("choose({ lane: view.groups[0].lanes.find(l => l.kind === 'stream'), row: 0, i: 2 }, true)")
    assert page.js("view.groups[0].folded") is False and page.js("view.tall") == tall
    page.js("view.canvas.focus()")
    page.key("g")
    assert page.js("view.groups.every(g => g.folded)")
    page.key("g")
    assert page.js("view.groups.every(g => !g.folded)")
    silent(page)


def ranks(n):
    """Processes that each have a GPU of their own, and two streams on it."""
    events = []
    for rank in range(n):
        for i in range(6):
            who = {"correlation": rank * 100 + i + 1}
            where = {"device": rank, "stream": 7 + i % 2, "grid": [1, 1, 1], "block": [32, 1, 1]}
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 70 + rank,
                           "tid": 70 + rank, "ts": 1000 + i * 40, "dur": 5, "args": who})
            events.append({"ph": "X", "cat": "kernel", "name": f"kernel_{i}", "pid": rank, "tid": 7,
                           "ts": 1010 + i * 40, "dur": 30, "args": who | where})
    devices = [{"id": i, "name": f"GPU of rank {i}"} for i in range(n)]
    with open(work + "/ranks.json", "w") as out:
        json.dump({"deviceProperties": devices, "traceEvents": events}, out)
    weir("import", "-q", "-o", "ranks.weir", "ranks.json")
    return "ranks.weir"


@test
def each_process_and_each_gpu_is_a_group():
    page = page_of(ranks(4))
    groups = page.js("view.groups.map(g => [g.title, g.lanes.length])")
    assert [g[0] for g in groups[:4]] == [f"GPU {i} · GPU of rank {i}" for i in range(4)], groups
    assert [g[1] for g in groups] == [2] * 4 + [1] * (len(groups) - 4), groups
    assert [g[0] for g in groups[4:]] == [f"process {70 + i}" for i in range(4)], groups
    silent(page)


@test
def a_band_is_gone_into_until_single_events_show():
    trace = kineto("transformer-train")
    whole = page_of(trace)
    events = "view.lanes.flatMap(l => l.rows.flatMap(r => [...r.start].map((s, i) => [names[r.name[i]], s, r.end[i], r.count[i]])))"
    every = sorted(map(tuple, whole.js(events)))
    page = page_of(trace, "--items", "1000")
    note = text_of(page, "#timeline .note")
    assert "are merged; nearby each is there" in note, note
    page.js("show('timeline')")
    page.drawn()
    # As it is before anybody has looked closely.
    page.js("""var closely = queueCloseLook; queueCloseLook = () => clearTimeout(fine.timer); queueCloseLook();
        for (const lane of view.lanes) { for (const s of lane.sources) { s.loaded.clear(); s.shown.clear(); } lane.rows = rowsOfSources(lane); }""")
    assert page.js("view.lanes.flatMap(l => l.rows).reduce((a, r) => a + r.n, 0)") == page.js("data.timeline.items")
    # Of many it says how many there are of which.
    page.js("""var band = (() => { for (const lane of view.lanes) for (let k = 0; k < lane.rows.length; k++)
        for (let i = 0; i < lane.rows[k].n; i++) if (lane.rows[k].count[i] > 4) return { lane, row: k, i }; })()""")
    row, start, end, n = page.js("""(() => { const row = band.lane.rows[band.row];
        return [band.row, row.start[band.i], row.end[band.i], row.count[band.i]]; })()""")
    lane = page.js("band.lane.title")
    inside = whole.js(f"""(() => {{ const row = view.lanes.find(l => l.title === {json.dumps(lane)}).rows[{row}], found = {{}};
        for (let i = 0; i < row.n; i++) if (row.start[i] >= {start} && row.end[i] <= {end})
            found[names[row.name[i]]] = (found[names[row.name[i]]] || 0) + 1;
        return found; }})()""")
    assert sum(inside.values()) == n, (inside, n)
    page.js("var inside; namesIn({ pick: band, first: band.i, last: band.i }).then(f => (inside = f.map(([name, v]) => [names[name], v.count])))")
    page.wait("inside !== undefined")
    assert dict(page.js("inside")) == inside
    page.js("look(view.lo, view.hi); choose(band, true)")
    page.wait("document.querySelectorAll('.chosen dt').length > 4")
    said = text_of(page, ".chosen")
    assert "short events" in said, said
    # Going into it shows them all; so does zooming.
    page.js("queueCloseLook = closely")
    page.js("document.getElementById('enter').click()")
    page.wait(f"""(() => {{ const row = view.lanes.find(l => l.title === {json.dumps(lane)}).rows[{row}];
        for (let i = 0; i < row.n; i++) if (row.start[i] >= {start} && row.end[i] <= {end} && row.count[i] > 1) return false;
        return true; }})()""")
    # All of it, bit by bit, is what there is without merging.
    page.js("""(async () => { for (let i = 0; i < 40; i++) {
        look(view.lo + (view.hi - view.lo) * i / 40, view.lo + (view.hi - view.lo) * (i + 1) / 40);
        view.width = 1e6; await lookClosely(); } look(view.lo, view.hi); window.walked = true; })()""")
    page.wait("window.walked")
    assert sorted(map(tuple, page.js(events))) == every
    silent(page)


@test
def what_is_merged_even_nearby_says_how_to_see_it():
    page = page_of(kineto("transformer-train"), "--items", "1000", "--detail", "1500")
    assert "nearby those shorter than" in text_of(page, "#timeline .note")
    page.js("""(async () => { for (let i = 0; i < 20; i++) {
        look(view.lo + (view.hi - view.lo) * i / 20, view.lo + (view.hi - view.lo) * (i + 1) / 20);
        view.width = 1e6; await lookClosely(); } window.walked = true; })()""")
    page.wait("window.walked")
    total = page.js("view.lanes.flatMap(l => l.rows.flatMap(r => [...r.count])).reduce((a, b) => a + b, 0)")
    assert total == page.js("data.timeline.events"), total
    page.js("""choose((() => { for (const lane of view.lanes) for (let k = 0; k < lane.rows.length; k++)
        for (let i = 0; i < lane.rows[k].n; i++) if (lane.rows[k].count[i] > 1) return { lane, row: k, i }; })(), true)""")
    command = text_of(page, ".chosen code")
    assert command.startswith("weir html --after "), command
    options = command.split()[2:6]
    assert len(weir("html", *options, "transformer-train.weir")) > 1000
    silent(page)


# ---- large ones ----


@test
def a_million_calls_are_a_small_page():
    page = page_of(generated("million.weir", 1000000, 4))
    size = os.path.getsize(work + "/million.weir.html")
    assert size < 8 << 20, size
    count = page.js("rowsOf('calls').flatMap(r => [...r.count]).reduce((a, b) => a + b, 0)")
    assert count == page.js("data.timeline.events") and count >= 1000000, count
    assert page.js("data.timeline.items") <= 300000
    assert "merged" in text_of(page, "#timeline .note")
    silent(page)


def main():
    global chrome
    wanted = sys.argv[3:] or list(tests)
    if not browser.find():
        print("there is no Chromium: apt-get install chromium-headless-shell")
        return 77
    chrome = browser.Browser()
    bad = 0
    try:
        for test in wanted:
            try:
                tests[test]()
                print("ok  ", test)
            except Exception:
                bad += 1
                print("BAD ", test)
                traceback.print_exc()
    finally:
        chrome.close()
        if not os.environ.get("KEEP"):
            run("rm", "-rf", work)
    return 1 if bad else 0


sys.exit(main())
