"""Timelines of two recordings, of many processes and GPUs, of a million calls.  Run by test_page.py."""
import json
import os

from pages import (CONTRAST, fixed, generated, kineto, page_of, recording, said, silent, source, test, text_of, weir, work)


@test
def requests_lie_over_the_kernels_that_ran_for_them():
    served = source + "/tests/golden/serve/served.weir"
    report = json.loads(weir("report", "--json", "--only", "requests", served))["requests"]
    page = page_of(served)
    assert page.js("view.lanes.map(l => l.kind)")[:2] == ["requests", "stream"]
    told = page.js("""rowsOf('requests').flatMap(row => Array.from({ length: row.n }, (_, i) =>
        [JSON.parse(names[detailOf(row, i).text]).request, names[row.name[i]], row.end[i] - row.start[i]]))""")
    assert sorted(told) == sorted([q["id"], q["model"] or "unknown model", q["total_ns"]] for q in report)
    assert page.js("rowsOf('requests').every(row => row.start.every((t, i) => !i || t >= row.end[i - 1]))")
    page.js("choose((() => { const lane = view.lanes.find(l => l.kind === 'requests'); return { lane, row: 0, i: 0 }; })())")
    page.drawn()
    assert "gather" in page.js("document.body.innerText"), "what took the time of the chosen request"
    silent(page)


@test
def two_recordings_are_beside_each_other():
    slow = source + "/tests/golden/readme/slow.weir"
    page = page_of((slow, fixed()))
    diff = json.loads(weir("diff", "--json", slow, fixed()), parse_int=float)
    held = json.loads(page.js("JSON.stringify(data.diff)"), parse_int=float)
    assert {k: v for k, v in diff.items() if k != "fail_conditions"} == {k: v for k, v in held.items() if k != "fail_conditions"}
    # The differences stand first: what it comes to, the totals of both, and their ratio.
    assert page.js("all('#overview .conclusion').map(e => e.innerText)") == [" ".join(diff["conclusion"])]
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
    # An item shows its own time, and its links stay in its recording.
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
    # Activities are seen in the one row that is left.
    page.js(CONTRAST)
    seen = page.js("""(() => {
        const ratio = view.canvas.width / view.width, y = Math.round((AXIS + view.groups[0].y + GROUP + 5) * ratio);
        const row = view.canvas.getContext('2d').getImageData(0, y, view.canvas.width, 1).data;
        let n = 0;
        for (let x = 3; x < row.length; x += 4) n += row[x] > 200 && row[x - 3] + row[x - 1] < 480;
        return n;
    })()""")
    assert seen > 50, seen
    # A link into a folded group shows its target.
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
        out.write(json.dumps({"deviceProperties": devices, "traceEvents": events}))
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
    assert "are merged. Nearby each is there" in note, note
    page.js("show('timeline')")
    page.drawn()
    # As it is before anybody has looked closely.
    page.js("""(async () => { window.closely = queueCloseLook; queueCloseLook = () => clearTimeout(fine.timer);
        queueCloseLook(); await fine.look;
        for (const lane of view.lanes) { for (const s of lane.sources) { s.loaded.clear(); s.shown.clear(); } lane.rows = rowsOfSources(lane); } })()""")
    assert page.js("view.lanes.flatMap(l => l.rows).reduce((a, r) => a + r.n, 0)") == page.js("data.timeline.items")
    # If there are many, it says how many there are of which.
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
