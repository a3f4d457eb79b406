"""Draws the share of requests answered in time over the rate at which they come: goodput_picture.py RESULT.json
OUT.svg

RESULT.json is of h200.py with the part `goodput`.  A line a policy; the same rate asked twice is a mean.
"""
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sched"))
from frontier import COLOURS, SHAPES, line, mark, text

WIDE, HIGH, LEFT, TOP = 620, 330, 56, 52


def picture(goodput):
    points = {}
    for policy, runs in goodput.items():
        rates = {}
        for probe in (p for run in runs for p in run["probes"]):
            rates.setdefault(probe["rate"], []).append(probe["met"] / probe["due"])
        points[policy] = sorted((rate, statistics.mean(met)) for rate, met in rates.items())
    most = max(rate for of in points.values() for rate, _ in of) * 1.05
    right, below = WIDE - 150, HIGH - 44

    def at(rate, met):
        return LEFT + (right - LEFT) * rate / most, below - (below - TOP) * met

    out = [text(LEFT, 22, "Requests answered in time, three models on one GPU", 'font-size="15" font-weight="bold"'),
           text(LEFT, 40, "per cent of all that came; more is better", 'fill="#555"'),
           text((LEFT + right) / 2, HIGH - 8, "requests a second", 'text-anchor="middle" fill="#555"')]
    for met in (0, .25, .5, .75, 1):
        y = at(0, met)[1]
        out += [line(LEFT, y, right, y, "#e4e4e4"), text(LEFT - 6, y + 4, "%d" % (100 * met), 'text-anchor="end" fill="#555"')]
    for rate in range(0, int(most), 2000):
        x = at(rate, 0)[0]
        out.append(text(x, below + 16, "{:,}".format(rate), 'text-anchor="middle" fill="#555"'))
    for i, (policy, of) in enumerate(points.items()):
        places = [at(*p) for p in of]
        out += [line(*a, *b, COLOURS[i], 'stroke-width="2"') for a, b in zip(places, places[1:])]
        out += [mark(SHAPES[i % 4], x, y, COLOURS[i], 4) for x, y in places]
        y = TOP + 14 + 20 * i
        out += [mark(SHAPES[i % 4], right + 20, y - 4, COLOURS[i]), text(right + 32, y, policy.replace(":", " of "))]
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' % (WIDE, HIGH)
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *out, "</svg>"]) + "\n"


def main():
    with open(sys.argv[1]) as f:
        drawn = picture(json.load(f)["goodput"])
    with open(sys.argv[2], "w") as f:
        f.write(drawn)


main()
