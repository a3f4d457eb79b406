"""The pictures of docs/howto/on-call.md, made anew: on_call_pictures.py BUILD.  Needs Debian's Prometheus
(tests/prometheus.sh) and python3-pyte; no GPU.

Panels of the dashboard, drawn from what Prometheus answers to their queries while tools/on_call.py's story happens; and
weir top, as a terminal of 100 columns shows it then.
"""
import fcntl
import html
import json
import os
import pty
import select
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.parse
import urllib.request

from on_call import Scene

sys.path.append("/usr/lib/python3/dist-packages")
import pyte  # noqa: E402

PANELS = ["Requests", "Launches waiting for other programs", "SM clock", "Kernels and requests that became slower"]
WIDTH, HEIGHT, PAD, SECONDS = 460, 190, 62, 40
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"]
FONT = 'font-family="system-ui, sans-serif" font-size="%d"'


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def series(port, target, end):
    """[(legend, [(seconds before the end, value)])]"""
    expr = target["expr"].replace("$__rate_interval", "10s").replace("$instance", ".*").replace("$gpu", ".*")
    query = urllib.parse.urlencode({"query": expr, "start": end - SECONDS, "end": end, "step": 1})
    with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/query_range?%s" % (port, query)) as answer:
        rows = json.load(answer)["data"]["result"]
    for row in rows:
        legend = target["legendFormat"]
        for key, value in row["metric"].items():
            legend = legend.replace("{{%s}}" % key, value)
        yield legend, [(float(t) - end, float(v)) for t, v in row["values"]]


def text(x, y, what, size=11, fill="#555", anchor="start"):
    return '<text x="%.1f" y="%.1f" %s fill="%s" text-anchor="%s">%s</text>' % (x, y, FONT % size, fill, anchor, html.escape(what))


def number(v, unit):
    if unit == "percentunit":
        return "%.0f %%" % (100 * v)
    return "%.2f GHz" % (v / 1e9) if unit == "hertz" else "%.2g" % v if v < 10 else "%.0f" % v


def draw(title, unit, lines, x0, y0):
    most = max([v for _, points in lines for _, v in points] + [1e-9]) * 1.1
    at = lambda t, v: (x0 + PAD + (t + SECONDS) / SECONDS * (WIDTH - PAD - 12), y0 + HEIGHT - 40 - v / most * (HEIGHT - 76))
    out = ['<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="#fff" stroke="#ccc"/>' % (x0, y0, WIDTH - 8, HEIGHT - 8),
           text(x0 + 12, y0 + 20, title, 13, "#111")]
    for part in (0, 0.5, 1):
        (left, y), (right, _) = at(-SECONDS, part * most / 1.1), at(0, 0)
        out.append('<path d="M%.1f %.1fH%.1f" stroke="#e5e5e5"/>' % (left, y, right))
        out.append(text(left - 6, y + 4, number(part * most / 1.1, unit), anchor="end"))
    for i, (legend, points) in enumerate(lines[:4]):
        path, last = "", None
        for t, v in points:
            path += "%s%.1f %.1f" % ("M" if last is None or t - last > 1.5 else "L", *at(t, v))
            last = t
        out.append('<path d="%s" fill="none" stroke="%s" stroke-width="2"/>' % (path, COLOURS[i]))
        out.append(text(x0 + 14 + i * (145 if len(lines) < 4 else 110), y0 + HEIGHT - 18, "\u2014 " + legend, 11, COLOURS[i]))
    return "\n".join(out)


def panels(scene, port, path):
    dashboard = json.load(open(scene.source + "/deploy/grafana/weir.json"))
    wanted = [next(p for p in dashboard["panels"] if p["title"] == title) for title in PANELS]
    end, out = time.time(), []
    for i, p in enumerate(wanted):
        lines = [line for target in p["targets"] for line in series(port, target, end)]
        assert lines, p["title"]
        out.append(draw(p["title"], p["fieldConfig"]["defaults"]["unit"], lines, i % 2 * WIDTH + 4, i // 2 * HEIGHT + 4))
    with open(path, "w") as f:
        f.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d">\n<rect width="100%%" height="100%%" '
                'fill="#f4f5f7"/>\n%s\n</svg>\n' % (2 * WIDTH, 2 * HEIGHT, 2 * WIDTH, "\n".join(out)))


def watch_top(scene, columns=100, lines=12, seconds=8):
    """The picture of a terminal after so long."""
    screen = pyte.Screen(columns, lines)
    stream = pyte.ByteStream(screen)
    pid, fd = pty.fork()
    if not pid:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        os.execve(scene.weir, [scene.weir, "top", "--share", scene.share], dict(scene.environment, TERM="linux", LC_ALL="C.UTF-8"))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            stream.feed(os.read(fd, 65536))
    os.write(fd, b"q")
    os.waitpid(pid, 0)
    return screen


def colour(name, default):
    names = {"red": "#ff6b68", "green": "#6fcf6f", "brown": "#e0c060", "yellow": "#e0c060", "blue": "#6fa8ff", "cyan": "#5fd0d0",
             "magenta": "#d58fe0", "white": "#e6e6e6", "black": "#1c1e22"}
    return names.get(name.replace("bright", ""), default)


def terminal(screen, path):
    wide, high = 7.9, 17
    out = []
    for y in range(screen.lines):
        for x in range(screen.columns):
            c = screen.buffer[y][x]
            front, back = colour(c.fg, "#e6e6e6"), colour(c.bg, "#1c1e22")
            if c.reverse:
                front, back = back, front
            if back != "#1c1e22":
                out.append('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>' % (10 + x * wide, 8 + y * high, wide + 0.8, high, back))
            if c.data.strip():
                out.append('<text x="%.1f" y="%d" fill="%s"%s>%s</text>' % (
                    10 + x * wide, 21 + y * high, front, ' font-weight="bold"' if c.bold else "", html.escape(c.data)))
    width, height = 20 + screen.columns * wide, 16 + screen.lines * high
    with open(path, "w") as f:
        f.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d">\n<rect width="100%%" height="100%%" rx="6" '
                'fill="#1c1e22"/>\n<g font-family="monospace" font-size="13">\n%s\n</g>\n</svg>\n' % (width, height, width, "\n".join(out)))


def main():
    build = sys.argv[1]
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    directory = subprocess.run(["sh", source + "/tests/prometheus.sh", build], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as work:
        scene = Scene(build, source, work, "serve")
        try:
            scene.programs()
            scene.monitor()
            port = free_port()
            scene.prometheus(directory, port)
            scene.slow_down()
            screen = watch_top(scene)
            panels(scene, port, source + "/docs/pictures/on-call-panels.svg")
            terminal(screen, source + "/docs/pictures/on-call-top.svg")
        finally:
            scene.stop_all()


if __name__ == "__main__":
    main()
