#!/usr/bin/env python3
"""The cost of a step under weir run --pool, by processes that take turns: turns.py --out FILE
[OPTIONS].

For each work (work.py) some groups of processes live side by side, and one does a few steps at a time while the others wait:

    default     PyTorch's own allocator
    expandable  the same with expandable segments
    run         PyTorch's own allocator under `weir run`
    async       PyTorch's other one, cudaMallocAsync, with the driver's pools and without Weir
    pool        `weir run --pool`, which answers that one's requests

Machines drift by more than the pool costs, so each turn is compared with the default's beside it in time, and the median of
these ratios counts.  All do the same shapes, SHAPES of them again and again; the first round is not timed, since libraries
compile for each shape that is new.

At last each work runs under a quota of --need times the most bytes that its tensors had at once, with the pool and with
expandable segments, to show whether this suffices.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES, TURN = 12, 4
WAYS = 'default', 'expandable', 'run', 'async', 'pool'
CONF = {'expandable': 'expandable_segments:True', 'async': 'backend:cudaMallocAsync'}
MIB = 1 << 20


class Cycle:
    """The same draws in the same order, again after SHAPES steps."""

    def __init__(self):
        self.step = 0
        self.random = random.Random(1)

    def randint(self, least, most):
        return self.random.randint(least, most)

    def next(self):
        self.step += 1
        if self.step % SHAPES == 0:
            self.random = random.Random(1)


def child(name):
    """Does so many steps as each line of its input says, and says in milliseconds what they took."""
    sys.path.insert(0, HERE)
    import torch
    import work
    torch.manual_seed(1)
    cycle = Cycle()
    step = getattr(work, name)(cycle)
    torch.cuda.synchronize()
    print(json.dumps({'ready': True}), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begun = time.perf_counter()
            step()
            torch.cuda.synchronize()
            times.append(1e3 * (time.perf_counter() - begun))
            cycle.next()
        print(json.dumps({'ms': times, 'live': torch.cuda.max_memory_allocated(), 'reserved': torch.cuda.max_memory_reserved()}),
              flush=True)


class Process:
    def __init__(self, args, work, variant, quota=None, share=None):
        self.variant, self.ms, self.said = variant, [], {}
        command = [sys.executable, os.path.abspath(__file__), '--child', work]
        if variant in ('run', 'pool') or quota:
            run = [args.weir_program, 'run', '--isolated', '--share', share or tempfile.mkdtemp(prefix='weir-turns-')]
            run += ['--pool'] * (variant == 'pool') + (['--memory', str(quota)] if quota else [])
            command = run + ['--'] + command
        env = {k: v for k, v in os.environ.items() if k not in ('PYTORCH_CUDA_ALLOC_CONF', 'PYTORCH_ALLOC_CONF')}
        if variant in CONF:
            env['PYTORCH_CUDA_ALLOC_CONF'] = CONF[variant]
        self.log = tempfile.TemporaryFile('w+')
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)

    def answer(self):
        """The next line that it says, or None."""
        for line in self.process.stdout:
            if line.startswith('{'):
                return json.loads(line)
        return None

    def turn(self, steps):
        self.process.stdin.write('%d\n' % steps)
        self.process.stdin.flush()
        said = self.answer()
        if said is None:
            raise RuntimeError(self.end())
        self.said = said
        return said['ms']

    def end(self):
        """Its text on standard error."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()
        self.log.seek(0)
        return self.log.read().strip()[-300:]


def take_turns(group, rounds):
    """By way, the ratios of its turns to the default's beside them, steps of equal shape added up."""
    for p in group:
        p.turn(SHAPES)
    for turn in range(rounds * SHAPES // TURN):
        for p in group if turn % 2 else group[::-1]:
            p.ms.append(sum(p.turn(TURN)))
    default = next(p.ms for p in group if p.variant == 'default')
    return {p.variant: [a / b for a, b in zip(p.ms, default)] for p in group if p.variant != 'default'}


def measure(args, work):
    return work, [[Process(args, work, v) for v in WAYS] for _ in range(args.groups)]


def timed(args, work, groups):
    result = {'ratios': {}, 'ms_a_step': {}, 'said': {}}
    for group in groups:
        if not all(p.answer() for p in group):
            return {'error': ' '.join(p.end() for p in group)}
        for way, ratios in take_turns(group, args.rounds).items():
            result['ratios'].setdefault(way, []).append(ratios)
    result['ratio'] = {way: statistics.median(r for ratios in of for r in ratios) for way, of in result['ratios'].items()}
    for p in [p for group in groups for p in group]:
        result['ms_a_step'].setdefault(p.variant, []).append(statistics.median(p.ms) / TURN)
        result['said'][p.variant] = {'live': p.said['live'], 'reserved': p.said['reserved'], 'errors': p.end()}
    print('%-7s a step takes, of PyTorch by default: %s' % (
        work, ', '.join('%s %.3f' % r for r in result['ratio'].items())), flush=True)
    return result


def contexts(args):
    """The bytes of a context, as Weir measures it with nobody else there."""
    share = tempfile.mkdtemp(prefix='weir-turns-')
    p = Process(args, 'opt', 'pool', 8 << 30, share)
    p.answer()
    p.turn(1)
    said = json.loads(subprocess.run([args.weir_program, 'sched', '--share', share, '--json', 'status'], stdout=subprocess.PIPE).stdout)
    p.end()
    return max((d['context_bytes'] for d in said['devices']), default=0)


def needs(args, results):
    """Whether --need times the live peak suffices, by way, all works of a way at one time."""
    context = contexts(args)
    for way in ('pool', 'expandable'):
        running = []
        for work, result in results.items():
            if 'said' in result:
                quota = int(result['said'][way]['live'] * args.need) // (2 * MIB) * 2 * MIB + context
                running.append((work, quota, Process(args, work, way, quota)))
        for work, quota, p in running:
            ended, why = False, ''
            try:
                ended = bool(p.answer()) and len(p.turn(2 * SHAPES)) == 2 * SHAPES
            except (RuntimeError, BrokenPipeError) as e:
                why = str(e)
            results[work].setdefault('need', {})[way] = {'factor': args.need, 'quota': quota, 'context': context, 'suffices': ended,
                                                         'why': why or p.end()}
            print('%-7s %.2f of the live peak %s, %s' % (work, args.need, 'suffices' if ended else 'does not suffice', way), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--child', help=argparse.SUPPRESS)
    parser.add_argument('--works', default='opt,resnet,llama')
    parser.add_argument('--groups', type=int, default=2, help='groups of processes of a work')
    parser.add_argument('--rounds', type=int, default=4, help='of all shapes, that are timed')
    parser.add_argument('--need', type=float, default=1.02, help='of the live peak; 0: leave that out')
    parser.add_argument('--weir-program', default='weir')
    parser.add_argument('--out')
    args = parser.parse_args()
    if args.child:
        return child(args.child)
    started = [measure(args, work) for work in args.works.split(',')]
    results = {work: timed(args, work, groups) for work, groups in started}
    if args.need:
        needs(args, results)
    with open(args.out, 'w') as out:
        json.dump(results, out, indent=1)
    return any('error' in r for r in results.values())


if __name__ == '__main__':
    sys.exit(main())
