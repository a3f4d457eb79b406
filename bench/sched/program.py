"""The PyTorch programs here share this: orders on standard input, schedules, and the line that
comes out.

The same as load.c, which describes it: a program that can begin prints `ready`, is told `run`, `begin` and `end`,
and prints one line of JSON.  Here it can then be told so again.  Latencies count from the time when a request was due.
"""
import argparse
import json
import math
import os
import random
import select
import sys
import time


def options(roles, **more):
    parser = argparse.ArgumentParser()
    parser.add_argument('role', choices=roles)
    parser.add_argument('--rate', type=float, default=10, help='requests a second, arriving as a Poisson process')
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--requests', type=int, default=0, help='ends after so many requests instead')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--controlled', action='store_true', help='is told on standard input when to begin')
    for name, (default, text) in more.items():
        parser.add_argument('--' + name, type=type(default), default=default, help=text)
    return parser.parse_args()


class Orders:
    """Lines of standard input; without --controlled, what a clock says instead."""

    def __init__(self, args):
        self.controlled, self.seconds, self.text, self.begun, self.rounds = args.controlled, args.seconds, b'', None, 0

    def next(self, wait):
        while b'\n' not in self.text:
            if not wait and not select.select([0], [], [], 0)[0]:
                return None
            got = os.read(0, 64)
            if not got:
                sys.exit(0)
            self.text += got
        line, self.text = self.text.split(b'\n', 1)
        return line.decode()

    def ready(self, order):
        """False: it has done what it was started for."""
        self.rounds += 1
        if not self.controlled:
            return self.rounds == 1
        print('ready', flush=True)
        while self.next(True) != order:
            pass
        return True

    def now(self):
        if self.controlled:
            return self.next(False)
        if self.begun is None:
            self.begun = time.monotonic()
            return 'begin'
        return 'end' if time.monotonic() - self.begun >= self.seconds else None


def schedule(args):
    """When requests are due, in seconds from the beginning; as long as the options say."""
    draw, due, sent = random.Random(args.seed), 0.0, 0
    while True:
        due += draw.expovariate(args.rate)
        if (sent >= args.requests) if args.requests else (due >= args.seconds):
            return
        sent += 1
        yield due


def quantile(ordered, q):
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)] if ordered else 0


def wait_until(due):
    left = due - time.monotonic()
    if left > 500e-6:
        time.sleep(left - 400e-6)
    while time.monotonic() < due:
        pass


def serve(args, request, **more):
    """Sends requests by their schedule; request() answers one."""
    orders = Orders(args)
    while orders.ready('begin'):
        us, unanswered, length = [], 0, args.requests / args.rate if args.requests else args.seconds
        begun = time.monotonic()
        latest = begun + 2 * length + 1
        for at in schedule(args):
            due = begun + at
            wait_until(min(due, latest))
            if time.monotonic() >= latest:
                unanswered += 1
            else:
                request()
            us.append(max(0, time.monotonic() - due) * 1e6)
        window = time.monotonic() - begun
        us.sort()
        print(json.dumps({
            'role': 'latency', 'requests': len(us), 'answered': len(us) - unanswered, 'unanswered': unanswered,
            'p50_us': round(quantile(us, .5), 1), 'p95_us': round(quantile(us, .95), 1),
            'p99_us': round(quantile(us, .99), 1), 'max_us': round(quantile(us, 1), 1),
            'mean_us': round(sum(us) / max(1, len(us)), 1), 'rate_s': round((len(us) - unanswered) / window, 2),
            'window_s': round(window, 4), **more}), flush=True)


def work(args, step, **more):
    """Steps without end; step() returns when the step before the one that it began has ended."""
    orders, begun, last, steps = Orders(args), None, None, 0
    orders.ready('run')
    while True:
        step()
        steps += 1
        here, order = (time.monotonic(), steps), orders.now()
        if order == 'begin':
            begun = here
        if order == 'end' and begun:
            if not last or last[1] <= begun[1]:
                last = here
            done, window = last[1] - begun[1], last[0] - begun[0]
            print(json.dumps({'role': 'best-effort', 'batches': done, 'work_done': done,
                              'rate_s': round(done / window, 4) if done else 0, 'window_s': round(window, 4), **more}),
                  flush=True)
            if not args.controlled:
                return
            begun = None
        last = here


def calibrate(request, **more):
    """How long a request lasts when nothing else runs: the median of 50."""
    us = []
    for _ in range(50):
        begun = time.monotonic()
        request()
        us.append((time.monotonic() - begun) * 1e6)
    print(json.dumps({'role': 'calibrate', 'request_us': round(quantile(sorted(us), .5), 1), **more}), flush=True)
