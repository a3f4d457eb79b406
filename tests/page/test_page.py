"""Pages of weir html in a real browser: test_page.py BUILD SOURCE [TEST...].

Each test is a function whose name says what holds; each page has to be silent: no message on the
console, no exception, no request.  With KEEP=FOLDER pages and pictures of them stay there.
"""
import json
import os
import sys
import traceback

import browser
import looks, pages, timelines
from pages import (allocations, eager, generated, kineto, page_of, recording, run, said, silent, source, test, text_of, weir, work)


@test
def complaints_are_heard():
    page = page_of(eager())
    silent(page)
    page.js("console.error('one'); setTimeout(() => { throw new Error('two'); })")
    page.js("new Promise(f => setTimeout(f, 50))")
    assert len(page.complaints()) == 2, page.complaints()


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
def numbers_are_written_as_in_the_report():
    """Kernels and copies whose numbers lie where another unit, fewer digits or another last digit begin."""
    times = [999, 1000, 1125, 9995, 9997, 12250, 99950, 999499, 999500, 1125000, 60062500, 999999000]
    sizes = {"HtoD (Pinned -> Device)": 1152, "DtoH (Device -> Pinned)": 1026048, "DtoD (Device -> Device)": 1047527424}
    events = [("kernel", "k%02d" % i, ns, {}) for i, ns in enumerate(times)]
    events += [("gpu_memcpy", "Memcpy " + way, 1000, {"bytes": size}) for way, size in sizes.items()]
    with open(work + "/numbers.json", "w") as out:
        json.dump({"traceEvents": [
            {"ph": "X", "cat": kind, "name": name, "pid": 0, "tid": 7, "ts": 1e6 * i, "dur": ns / 1000,
             "args": {"device": 0, "context": 1, "stream": 7, **more}}
            for i, (kind, name, ns, more) in enumerate(events)]}, out)
    weir("import", "-q", "-o", "numbers.weir", "numbers.json")
    page = page_of("numbers.weir")
    report = said("report", "numbers.weir")
    lines = weir("report", "-n", "0", "numbers.weir").decode().partition("Kernels by time")[2].splitlines()
    for kernel in report["kernels"]:
        line = next(line for line in lines if line.endswith("  " + kernel["name"]))
        shown = page.js(f"time({kernel['device_total_ns']})")
        assert line.strip().startswith(shown + "  "), (line, shown)
    for copy in report["memcpys"]:
        line = next(line for line in lines if f"  {copy['direction']}, " in line)
        shown = page.js(f"bytes({copy['bytes']})")
        assert f" {shown} " in line, (line, shown)
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
        # At the peak of live memory an operator has the bytes that weir memory says.
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
        number = "%.3g" % ((hint["gain_of_step_ns"] or hint["gain_ns"]) / 1e3)
        assert hint["gain_ns"] is None or "about " + number in text, (number, text)
    silent(page)


@test
def the_head_has_the_summary_of_the_report():
    page = page_of(eager())
    shown = page.js("[...document.querySelectorAll('header .summary')].map(p => p.textContent)")
    assert shown and shown == said("report", "eager.weir")["summary"], shown
    silent(page)


def live(name):
    return f"{source}/tests/golden/live/{name}.weir"


def sentence(command, trace, label):
    """The text behind a label, with the lines below that are set in as far."""
    lines = weir(command, trace).decode().splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith(f"  {label} ")), None)
    if at is None:
        return ""
    words = lines[at].split()[1:]
    for line in lines[at + 1:]:
        if not line.startswith(" " * 9):
            break
        words += line.split()
    return " ".join(words)


@test
def sentences_of_the_page_are_those_of_the_text():
    growths = 0
    for name in ("leak", "resnet", "autocast"):
        trace = live(name)
        page = page_of(trace)
        assert page.js("saidText('slack')") == sentence("report", trace, "slack"), name
        assert page.js("all('#time .note').map(n => n.textContent)").count(sentence("report", trace, "slack")) == 1, name
        growth = sentence("memory", trace, "growth")
        facts = page.js("all('#memory .facts > *').map(f => f.textContent).join('\\n')")
        assert page.js("saidText('growth')") == growth and growth in facts, (name, growth)
        growths += bool(growth)
        assert page.js("all('header .summary').map(p => p.textContent)") == said("report", trace)["summary"], name
        hints, ids = said("hints", trace)["hints"], page.js("all('.hint .id').map(p => p.textContent)")
        assert ids == [f"{h['id']} · confidence {h['confidence_word']}" for h in hints], (ids, hints)
        silent(page)
    assert growths >= 2, growths


@test
def the_tile_of_failing_calls_leaves_probes_out():
    page = page_of(live("resnet"))
    totals = said("report", live("resnet"))["totals"]
    tile = "all('.tile').find(t => t.querySelector('dt').textContent === 'failing calls')"
    assert totals["errors"] == totals["probes"] > 0, totals
    assert page.js(f"{tile}.querySelector('dd').textContent") == "0" + f"{totals['probes']} probes"
    assert page.js(f"{tile}.classList.contains('bad')") is False
    page = page_of(generated("failing.weir", 20000, 2))
    totals = said("report", "failing.weir")["totals"]
    faults = totals["errors"] - totals["probes"]
    assert faults > 0, totals
    assert page.js(f"{tile}.querySelector('dd').firstChild.textContent").replace(",", "") == str(faults)
    assert page.js(f"{tile}.classList.contains('bad')") is True
    silent(page)


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
    page.drawn()
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
    page = browser.Page(pages.chrome, work + "/cut.html", ready=there)
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


def main():
    wanted = sys.argv[3:] or list(pages.tests)
    if not browser.find():
        print("there is no Chromium: apt-get install chromium-headless-shell")
        return 77
    pages.chrome = browser.Browser()
    bad = 0
    try:
        for name in wanted:
            try:
                pages.tests[name]()
                print("ok  ", name)
            except Exception:
                bad += 1
                print("BAD ", name)
                traceback.print_exc()
            pages.chrome.close_pages()
    finally:
        pages.chrome.close()
        if not os.environ.get("KEEP"):
            run("rm", "-rf", work)
    return 1 if bad else 0


sys.exit(main())
