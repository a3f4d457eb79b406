#!/usr/bin/env python3
"""Settings of the policy in turns, while one pair of programs goes on.

	settings.py WEIR OUT.json CELL [--isolated] [SETTING...]
	settings.py build/bin/weir out.json resnet slowdown=1.15 slowdown=1.3 open

--isolated: without MPS.  CELL is resnet or llama of run.py.  A SETTING is one of `weir sched policy fit`, or `open`: all
gates are open, as under MPS alone.  Between settings BE's rate is taken while LC has no requests.  Starting both anew for
each setting, as run.py does, takes four times as long, in which a host's speed drifts.  Three rounds, each other one
backwards.
"""
import json
import statistics
import subprocess
import sys
import time

import run

ROUNDS, SECONDS, SETTLES, IDLE = 3, {'resnet': 6, 'llama': 12}, 1.5, 1.5


class Pair:
    def __init__(self, cell, lc, be):
        here = [sys.executable, run.HERE + '/%s.py']
        latency, best_effort, _ = run.CELLS[cell]
        self.rate = latency[-1]
        if '--load' in latency:
            calibrated = run.Program([here[0], here[1] % latency[0], 'calibrate'], None)
            self.rate = '%.4g' % (float(latency[-1]) * 1e6 / calibrated.result(300)['request_us'])
            calibrated.close(False)
        self.words = lambda side, more: [here[0], here[1] % side[0], side[1], '--controlled'] + more
        self.latency, self.best_effort, self.lc_words, self.be_words = latency, best_effort, lc, be

    def start_lc(self, seconds, words=()):
        lc = run.Program([*words, *self.words(self.latency, ['--rate', self.rate, '--seconds', str(seconds)])], None)
        lc.ready(240)
        return lc

    def start_be(self, words=()):
        be = run.Program([*words, *self.words(self.best_effort, [])], None)
        be.ready(240)
        be.tell('run')
        time.sleep(run.SETTLE_S)
        return be


def answers(lc, seconds):
    lc.tell('begin')
    return lc.result(3 * seconds + 30)


def rate(be, then):
    be.tell('begin')
    got = then()
    be.tell('end')
    return be.result(30)['rate_s'], got


def alone(pair, seconds):
    lc = pair.start_lc(seconds)
    got = answers(lc, seconds)
    lc.close(False)
    be = pair.start_be()
    found = {'latency': got, 'rate_s': rate(be, lambda: time.sleep(3))[0]}
    be.close(False)
    return found


def one(weir, setting, lc, be, seconds):
    words = ['open'] if setting == 'open' else ['policy', 'fit', setting]
    subprocess.run([weir, 'sched', *words], check=True, stdout=subprocess.DEVNULL)
    time.sleep(SETTLES)
    answers(lc, seconds)  # the budget settles
    rate_s, latency = rate(be, lambda: answers(lc, seconds))
    status = json.loads(subprocess.run([weir, 'sched', '--json', 'status'], stdout=subprocess.PIPE, text=True, check=True).stdout)
    if setting == 'open':
        subprocess.run([weir, 'sched', 'close'], check=True, stdout=subprocess.DEVNULL)
    return {'setting': setting, 'latency': latency, 'rate_s': rate_s, 'idle_rate_s': rate(be, lambda: time.sleep(IDLE))[0],
            'programs': status['programs']}


def main():
    weir, out, cell, *settings = [w for w in sys.argv[1:] if w != '--isolated']
    seconds, isolated = SECONDS[cell], [w for w in sys.argv[1:] if w == '--isolated']
    behind = [weir, 'run', '-q', *isolated, '--class']
    pair = Pair(cell, behind + ['latency', '--'], behind + ['best-effort', '--'])
    found = {'cell': cell, 'rate': pair.rate, 'alone': [alone(pair, seconds)], 'turns': []}
    lc = pair.start_lc(seconds, pair.lc_words)
    found['without_best_effort'] = answers(lc, seconds)
    be = pair.start_be(pair.be_words)
    for number in range(ROUNDS):
        for setting in settings[::-1] if number % 2 else settings:
            found['turns'].append(one(weir, setting, lc, be, seconds))
            print(json.dumps(found['turns'][-1])[:300], flush=True)
            with open(out, 'w') as f:
                json.dump(found, f, indent=1)
    lc.close(False)
    be.close(False)
    found['alone'].append(alone(pair, seconds))
    p99 = statistics.median(a['latency']['p99_us'] for a in found['alone'])
    print('without BE: p99 %.2f' % (found['without_best_effort']['p99_us'] / p99))
    for setting in settings:
        of = [t for t in found['turns'] if t['setting'] == setting]
        print('%s: p99 %.2f, rate %.2f' % (setting, statistics.median(t['latency']['p99_us'] for t in of) / p99,
                                          statistics.median(t['rate_s'] / t['idle_rate_s'] for t in of)))
    with open(out, 'w') as f:
        json.dump(found, f, indent=1)


main()
