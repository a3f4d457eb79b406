# The pictures of the documentation, made anew: pictures.sh BUILD.  Needs python3 and Chromium, no GPU: they show a
# training step of PyTorch that is kept in the tree, so that the same pictures come out until the program changes.
set -eu
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
weir=$build/bin/weir

"$weir" import -q -o step.weir "$root/tests/golden/kineto/transformer-train.json.gz"
"$weir" html -o page.html step.weir
cp "$root/tests/golden/readme/slow.weir" a.weir
cp "$root/tests/golden/readme/fixed.weir" b.weir
"$weir" html -o two.html a.weir b.weir
"$weir" html -o requests.html "$root/tests/golden/serve/served.weir" "$root/tests/golden/serve/beside.weir"
"$weir" flame -o flame.svg step.weir
"$weir" report -n 6 step.weir >report.txt
PYTHONPATH=$root/tests/page python3 - "$root/docs/pictures" <<'END'
import html
import os
import shutil
import sys

import browser

folder = sys.argv[1]
LIMIT = 150 * 1024

chrome = browser.Browser()


def keep(page, name, clip):
    page.drawn()
    page.picture("new.png", clip)
    size = os.stat("new.png").st_size
    if size > LIMIT:
        sys.exit(f"{name}.png would have {size} bytes, more than {LIMIT}: show less")
    shutil.copyfile("new.png", f"{folder}/{name}.png")
    print(f"{folder}/{name}.png: {size // 1024} KiB")


def box(page, selector):
    x, y, w, h = page.js(
        f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();"
        " return [b.x + scrollX, b.y + scrollY, b.width, b.height]; })()"
    )
    return {"x": x, "y": y, "width": w, "height": h, "scale": 1}


def whole(width, height):
    return {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}


try:
    page = browser.Page(chrome, "page.html", 1440, 860)
    keep(page, "page", whole(1440, 775))
    page.js("document.getElementById('timeline').scrollIntoView({ behavior: 'instant' })")
    keep(page, "timeline", box(page, "#timeline"))
    page.js("document.getElementById('roofline').scrollIntoView({ behavior: 'instant' })")
    keep(page, "roofline", box(page, "#roofline"))
    page.js("document.getElementById('memory').scrollIntoView({ behavior: 'instant' })")
    keep(page, "memory", box(page, "#memory .chartbox"))

    page = browser.Page(chrome, "two.html", 1440, 860)
    keep(page, "two", whole(1440, 700))

    page = browser.Page(chrome, "requests.html", 1440, 860)
    page.js("document.getElementById('timeline').scrollIntoView({ behavior: 'instant' })")
    page.drawn()
    page.js("""(() => { const lane = view.lanes.find(l => l.kind === 'requests'), row = lane.rows.findIndex(r => r.n === 1);
        look(lane.rows[row].start[0] - 3e6, lane.rows[row].start[0] + 5e6); choose({ lane, row, i: 0 }); })()""")
    keep(page, "requests", box(page, "#timeline"))

    page = browser.Page(chrome, "flame.svg", 1200, 600, ready="document.documentElement.nodeName === 'svg'")
    keep(page, "flame", whole(1200, 330))

    with open("report.txt", encoding="utf-8") as report:
        first, _ = report.read().split("\nLongest ", 1)  # the tables behind it are wide
    text = html.escape(first)
    with open("report.html", "w", encoding="utf-8") as out:
        out.write(
            "<!doctype html><meta charset=utf-8><style>body { margin: 0; width: max-content }"
            "pre { margin: 16px; font: 14px/1.35 monospace; color: #222 }</style><pre>$ weir report step.weir\n"
            + text + "</pre>"
        )
    page = browser.Page(chrome, "report.html", 1200, 800, ready="document.readyState === 'complete'")
    keep(page, "report", box(page, "body"))
finally:
    chrome.close()
END
