"""How pages look: widths, colours, contrast, what is named.  Run by test_page.py."""
import json
import re

from pages import CONTRAST, allocations, eager, fixed, generated, page_of, silent, source, test, weir, work


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
        out.write(json.dumps({"traceEvents": events}))
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
