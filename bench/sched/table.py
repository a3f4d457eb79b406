"""Reads run.py's file: ratios to alone in the same round, and Markdown of them."""
import select
import statistics


def readable(stream, seconds):
    return select.select([stream], [], [], seconds)[0]


def first_seen(words):
    return list(dict.fromkeys(words))


def ratios(data, cell, variant):
    """The results of one cell with one variant: lists over the rounds, and sums."""
    runs = [r for r in data['runs'] if r['cell'] == cell]
    alone = {}
    for run in runs:
        if run['variant'] == 'alone':
            alone.setdefault(run['round'], {}).update(run)
    found = {'p99': [], 'share': [], 'p50_us': [], 'p95_us': [], 'p99_us': [], 'requests': 0, 'unanswered': 0,
             'errors': [], 'starved': False}
    for run in runs:
        if run['variant'] != variant:
            continue
        if 'error' in run:
            found['errors'].append(run['error'])
            continue
        lc, be, base = run.get('latency'), run.get('best_effort'), alone.get(run['round'], {})
        if lc:
            found['requests'] += lc['requests']
            found['unanswered'] += lc['unanswered']
            for key in ('p50_us', 'p95_us', 'p99_us'):
                found[key].append(lc[key])
        found['starved'] |= run.get('starved', False)
        if lc and base.get('latency'):
            found['p99'].append(lc['p99_us'] / max(1e-9, base['latency']['p99_us']))
        if be and base.get('best_effort', {}).get('rate_s'):
            found['share'].append(be['rate_s'] / base['best_effort']['rate_s'])
    return found

def ratio_text(x):
    return ('%.2f' if x < 10 else '%.0f') % x

def share_text(x):
    return ('%.2f' % x).lstrip('0') if x < .995 else '%.2f' % x

def sign(found):
    return '≥ ' if found['unanswered'] or found['starved'] else ''


def brief(found):
    if not found['p99'] or not found['share']:
        return 'failed' if found['errors'] else '–'
    return sign(found) + ratio_text(statistics.median(found['p99'])) + ' / ' + share_text(statistics.median(found['share']))

def row(*cells):
    return '| ' + ' | '.join(cells) + ' |'

def count(n):
    return format(n, ',').replace(',', ' ')

def alone_text(data, cell):
    found = ratios(data, cell, 'alone')
    if not found['p99_us']:
        return '–'
    return '%.0f / %.0f' % (statistics.median(found['p50_us']), statistics.median(found['p99_us']))

def overview(data, cells, variants):
    lines = [row('cell', 'alone, µs', *variants), '|' + '---|' * (len(variants) + 2)]
    for cell in cells:
        lines.append(row(cell, alone_text(data, cell), *(brief(ratios(data, cell, v)) for v in variants)))
    return lines

def spread(values, text):
    if not values:
        return '–', '–'
    return text(statistics.median(values)), '%s – %s' % (text(min(values)), text(max(values)))

def details(data, cells, variants):
    lines = [row('cell', 'variant', 'requests', 'unanswered', 'p50 µs', 'p95 µs', 'p99 µs', 'p99 ratio', 'range',
                 'share', 'range', 'rounds'), '|' + '---|' * 12]
    for cell in cells:
        for variant in ['alone'] + variants:
            found = ratios(data, cell, variant)
            us = ['%.0f' % statistics.median(found[k]) if found[k] else '–' for k in ('p50_us', 'p95_us', 'p99_us')]
            lines.append(row(cell, variant, count(found['requests']), count(found['unanswered']), *us,
                             *spread(found['p99'], ratio_text), *spread(found['share'], share_text),
                             str(len(found['p99_us']))))
    return lines

def errors(data):
    return first_seen('* %s, %s: %s' % (r['cell'], r['variant'], r['error']) for r in data['runs'] if 'error' in r)

def most_programs(data):
    probes = data.get('capacity', [])
    alone = [p['worst_p99_us'] for p in probes if p['variant'] == 'alone' and p.get('worst_p99_us')]
    if not alone:
        return []
    limit = 2 * alone[-1]
    lines = [row('variant', 'most programs', 'worst p99 there, µs', 'requests of each', 'next tried', 'worst p99 there, µs'),
             '|' + '---|' * 6]
    for variant in first_seen(p['variant'] for p in probes if p['variant'] != 'alone'):
        tried = [p for p in probes if p['variant'] == variant]
        bad = [p for p in tried if not p.get('worst_p99_us') or p['worst_p99_us'] > limit]
        least_bad = min(bad, key=lambda p: p['programs'], default=None)
        good = [p for p in tried if p not in bad and (not least_bad or p['programs'] < least_bad['programs'])]
        best = max(good, key=lambda p: p['programs'], default=None)
        lines.append(row(variant, str(best['programs']) if best else '0',
                         '%.0f' % best['worst_p99_us'] if best else '–',
                         str(min(x['requests'] for x in best['latencies'])) if best else '–',
                         str(least_bad['programs']) if least_bad else '–',
                         least_bad.get('error') or '%.0f' % least_bad['worst_p99_us'] if least_bad else '–'))
    return ['Programs of ResNet-50 inference, 40 requests a second each, that keep p99 within %.0f µs, twice that of one '
            'alone:' % limit, ''] + lines

def whole(data):
    parts = []
    cells = first_seen(r['cell'] for r in data['runs'])
    variants = [v for v in first_seen(r['variant'] for r in data['runs']) if v != 'alone']
    if cells:
        parts += ["LC's p99 / BE's rate, as multiples of alone in the same round, medians over the rounds; alone: p50 / p99. "
                  '≥: some requests were never answered.', ''] + overview(data, cells, variants) + ['']
        parts += details(data, cells, variants)
    if errors(data):
        parts += ['', 'Failed:', ''] + errors(data)
    return '\n'.join(parts + ([''] if parts else []) + most_programs(data))

def one_run(run):
    what = 'round %d %-18s %-20s ' % (run['round'], run['cell'], run['variant'])
    if 'error' in run:
        return what + 'FAILED: ' + run['error']
    lc, be = run.get('latency'), run.get('best_effort')
    if lc:
        what += 'p50 %7.0f p99 %8.0f us of %d%s' % (
            lc['p50_us'], lc['p99_us'], lc['requests'], ', %d unanswered' % lc['unanswered'] if lc['unanswered'] else '')
    return what + ('  BE %.1f/s' % be['rate_s'] if be else '')
