#!/usr/bin/env python3
"""Draws run.py's file: frontier.py FILE.json OUT.svg [--cells NAME,...]

A panel a cell, a point a variant: to the right more of BE's rate, downwards less of LC's p99, so that the best place is
the corner below right.  Bars are the range over the rounds; a point above 30 times stands at the upper edge with its
number.
"""
import argparse
import json
import math
import statistics
from xml.sax.saxutils import escape

import table

COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b8860b', '#56b4e9', '#7f3fbf', '#444444']
SHAPES = ['circle', 'square', 'triangle', 'diamond']
WIDE, HIGH, LEFT, TOP, GAP, COLUMNS = 270, 210, 46, 26, 26, 3
MOST_SHARE, MOST_RATIO = 1.1, 30


def mark(shape, x, y, colour, r=5):
    if shape == 'circle':
        return '<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>' % (x, y, r, colour)
    points = {'square': [(-1, -1), (1, -1), (1, 1), (-1, 1)], 'triangle': [(0, -1.2), (1.1, .9), (-1.1, .9)],
              'diamond': [(0, -1.3), (1.2, 0), (0, 1.3), (-1.2, 0)]}[shape]
    at = ' '.join('%.1f,%.1f' % (x + r * .9 * a, y + r * .9 * b) for a, b in points)
    return '<polygon points="%s" fill="%s"/>' % (at, colour)


def line(x1, y1, x2, y2, colour, more=''):
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" %s/>' % (x1, y1, x2, y2, colour, more)


def text(x, y, words, more=''):
    return '<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, more, escape(words))


class Panel:
    def __init__(self, x, y, worst):
        self.x, self.y, self.worst = x + LEFT, y + TOP, worst
        self.width, self.height = WIDE - LEFT, HIGH - TOP - 22
        self.least = 0.7

    def across(self, share):
        return self.x + self.width * min(share, MOST_SHARE) / MOST_SHARE

    def down(self, ratio):
        ratio = min(max(ratio, self.least), self.worst)
        return self.y + self.height * (1 - math.log(ratio / self.least) / math.log(self.worst / self.least))

    def frame(self, cell):
        out = [text(self.x, self.y - 9, cell, 'font-weight="bold"')]
        for ratio in [1, 1.5, 2, 3, 5, 10, 20]:
            if ratio > self.worst:
                break
            y = self.down(ratio)
            out += [line(self.x, y, self.x + self.width, y, '#999' if ratio == 1 else '#e4e4e4'),
                    text(self.x - 5, y + 3.5, '%g×' % ratio, 'text-anchor="end" fill="#555"')]
        for share in (0, .25, .5, .75, 1):
            x = self.across(share)
            out += [line(x, self.y, x, self.y + self.height, '#999' if share == 1 else '#e4e4e4'),
                    text(x, self.y + self.height + 14, '%g' % share, 'text-anchor="middle" fill="#555"')]
        return out

    def point(self, found, shape, colour):
        p99, share = found['p99'], found['share']
        x, y = self.across(statistics.median(share)), self.down(statistics.median(p99))
        bars = 'stroke-width="1.2" opacity=".6"'
        out = [line(x, self.down(min(p99)), x, self.down(max(p99)), colour, bars),
               line(self.across(min(share)), y, self.across(max(share)), y, colour, bars), mark(shape, x, y, colour)]
        beside = table.sign(found)
        if statistics.median(p99) > self.worst:
            beside += table.ratio_text(statistics.median(p99)) + '× ↑'
        if beside:
            side = -8 if x > self.x + self.width * .6 else 8
            out.append(text(x + side, y + 4, beside, 'fill="%s" font-weight="bold" text-anchor="%s"' % (
                colour, 'end' if side < 0 else 'start')))
        return out


def picture(data, cells):
    variants = [v for v in table.first_seen(r['variant'] for r in data['runs']) if v != 'alone']
    found = {(c, v): table.ratios(data, c, v) for c in cells for v in variants}
    found = {k: f for k, f in found.items() if f['p99'] and f['share']}
    columns, rows = min(COLUMNS, len(cells)), math.ceil(len(cells) / COLUMNS)
    width = max(560, GAP + columns * (WIDE + GAP))
    legend_rows = math.ceil(len(variants) / 3)
    height = 62 + rows * (HIGH + GAP) + legend_rows * 20
    body = [text(GAP, 24, "LC's p99 against BE's rate, each as a multiple of alone", 'font-size="15" font-weight="bold"'),
            text(GAP, 42, 'medians over the rounds, bars: their range; best: below right', 'fill="#555"')]
    for i, cell in enumerate(cells):
        worst = max([max(f['p99']) for (c, _), f in found.items() if c == cell], default=1)
        panel = Panel(GAP + i % COLUMNS * (WIDE + GAP), 54 + i // COLUMNS * (HIGH + GAP), min(MOST_RATIO, max(3.2, worst * 1.15)))
        body += panel.frame(cell)
        for k, variant in enumerate(variants):
            if (cell, variant) in found:
                body += panel.point(found[cell, variant], SHAPES[k % 4], COLOURS[k % 8])
    for k, variant in enumerate(variants):
        x, y = GAP + 8 + k % 3 * (width - GAP) / 3, height - legend_rows * 20 + k // 3 * 20
        body += [mark(SHAPES[k % 4], x, y - 4, COLOURS[k % 8]), text(x + 12, y, variant)]
    head = ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">'
            '<rect width="100%%" height="100%%" fill="white"/>' % (width, height))
    return '\n'.join([head] + body + ['</svg>']) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('file')
    parser.add_argument('out')
    parser.add_argument('--cells', default='')
    args = parser.parse_args()
    with open(args.file) as f:
        data = json.load(f)
    cells = args.cells.split(',') if args.cells else table.first_seen(r['cell'] for r in data['runs'])
    with open(args.out, 'w') as f:
        f.write(picture(data, cells))


if __name__ == '__main__':
    main()
