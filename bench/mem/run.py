#!/usr/bin/env python3
"""How little memory a model needs, and what that costs, by who serves it: run.py --out FILE [OPTIONS].

For each work (work.py) and each variant:

    default      PyTorch's own allocator
    expandable   with expandable_segments:True
    async        with backend:cudaMallocAsync, the driver's pools
    pool         weir run --pool

`smallest` runs each variant under quotas (weir run --memory), several at once, and says the smallest at which it comes to
its end, less the contexts, as a multiple of the most bytes that its tensors had at once.  `time` runs the variants in
turns without a quota, then the pool at a limit, and compares the sum of all steps with the default's.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CONF = {'default': '', 'expandable': 'expandable_segments:True', 'async': 'backend:cudaMallocAsync', 'pool': ''}
MIB = 1 << 20


class Bench:
    def __init__(self, args):
        self.args, self.share = args, tempfile.mkdtemp(prefix='weir-mem-')
        self.numbers = itertools.count(1)  # of the runs: threads share it

    def run(self, work, variant, quota=None, steps=None, share=None):
        """One run: what work.py says, and what the scheduler's status said of its contexts."""
        share = share or '%s/%d' % (self.share, next(self.numbers))
        env = dict(os.environ)
        env.pop('PYTORCH_CUDA_ALLOC_CONF', None)
        if CONF[variant]:
            env['PYTORCH_CUDA_ALLOC_CONF'] = CONF[variant]
        command = [sys.executable, HERE + '/work.py', work, '--steps', str(steps or self.args.steps)]
        if variant == 'pool' or quota:
            run = [self.args.weir_program, 'run', '--isolated', '--share', share]
            run += ['--pool'] if variant == 'pool' else []
            run += ['--memory', str(quota)] if quota else []
            command = run + ['--'] + command
        try:
            done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=self.args.limit)
        except subprocess.TimeoutExpired:
            return {'ok': False, 'error': 'it took more than %d s' % self.args.limit}
        lines = [x for x in done.stdout.decode().splitlines() if x.startswith('{')]
        if not lines:
            return {'ok': False, 'error': (done.stderr.decode().strip().splitlines() or ['it said nothing'])[-1][:200]}
        return json.loads(lines[-1])

    def contexts(self):
        """The bytes of a context, as Weir has measured it with nobody else there."""
        share = self.share + '/contexts'
        self.run('opt', 'pool', 8 << 30, 1, share)
        done = subprocess.run([self.args.weir_program, 'sched', '--share', share, '--json', 'status'], stdout=subprocess.PIPE)
        return json.loads(done.stdout)['devices'][0]['context_bytes']

    def smallest(self, work, live, contexts):
        """By variant, the smallest of the quotas between live and their multiple of it; many runs at once, since none
        waits for another."""
        tried = [(v, f, int(live * f) // (2 * MIB) * 2 * MIB + contexts)
                 for v in self.args.variants.split(',') for f in map(float, self.args.factors.split(','))]
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            said = list(pool.map(lambda t: self.run(work, t[0], t[2]), tried))
        found = {}
        for (variant, factor, quota), result in zip(tried, said):
            result.pop('times_ms', None)
            found.setdefault(variant, {'smallest': None, 'runs': []})['runs'].append({'factor': factor, 'quota': quota, **result})
        for rows in found.values():
            for row in reversed(rows['runs']):
                if not row['ok']:
                    break
                rows['smallest'] = row['factor']
        return found


def write(path, result):
    with open(path, 'w') as out:
        json.dump(result, out, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--works', default='opt,llama,resnet')
    parser.add_argument('--variants', default='default,expandable,async,pool')
    parser.add_argument('--what', default='smallest,time')
    parser.add_argument('--factors', default='1.0,1.01,1.02,1.03,1.05,1.08,1.12,1.2,1.35,1.5', help='of the live peak, that are tried as quotas')
    parser.add_argument('--steps', type=int, default=60)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--jobs', type=int, default=10, help='runs at once under quotas')
    parser.add_argument('--limit', type=int, default=240, help='seconds of a run')
    parser.add_argument('--weir-program', default='weir')
    parser.add_argument('--out', required=True)
    args = parser.parse_args()
    bench, result = Bench(args), {}
    contexts = bench.contexts()
    print('a context takes %.0f MiB' % (contexts / MIB), flush=True)
    for work in args.works.split(','):
        first = bench.run(work, 'default')
        if not first['ok']:
            sys.exit('%s: %s' % (work, first['error']))
        here = result.setdefault(work, {'live_peak': first['live_peak'], 'default': first})
        print('%s: live peak %.0f MiB, default reserves %.0f, %.2f ms a step' % (
            work, first['live_peak'] / MIB, first['reserved_peak'] / MIB, first['median_ms']), flush=True)
        if 'smallest' in args.what:
            here['smallest'] = bench.smallest(work, first['live_peak'], contexts)
            for variant, found in here['smallest'].items():
                ended = [r for r in found['runs'] if r['ok']]
                most = max((r['live_peak'] / r['reserved_peak'] for r in ended), default=0)
                print('%-7s %-10s smallest quota %s of the live peak; live / reserved at most %.3f' % (
                    work, variant, found['smallest'], most), flush=True)
            write(args.out, result)
        for number in range(args.rounds if 'time' in args.what else 0):
            for variant in args.variants.split(',')[::1 if number % 2 else -1]:
                here.setdefault('time', {}).setdefault(variant, []).append(bench.run(work, variant))
            limit = int(first['live_peak'] * 1.05) + contexts
            here['time'].setdefault('pool at 1.05', []).append(bench.run(work, 'pool', limit))
        for variant, runs in here.get('time', {}).items():
            ok = [r for r in runs if r['ok']]
            if ok:
                total = statistics.median(r['total_ms'] for r in ok)
                base = statistics.median(r['total_ms'] for r in here['time']['default'] if r['ok'])
                extra = max(a - b for a, b in zip(ok[-1]['times_ms'], here['time']['default'][-1]['times_ms']))
                print('%-7s %-12s %.0f ms, %.3f of the default; longest a step took longer: %.1f ms; reserved %.0f MiB' % (
                    work, variant, total, total / base, extra, ok[-1]['reserved_peak'] / MIB), flush=True)
            else:
                print('%-7s %-12s failed: %s' % (work, variant, runs[-1].get('error')), flush=True)
        write(args.out, result)


if __name__ == '__main__':
    main()
