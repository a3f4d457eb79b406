#!/usr/bin/env python3
"""The cost of recording eight programs, by the way of recording, and how right --gpu=predict is:
timeline.py BUILD [OPTIONS].

All runs of a program import their modules at the same time and then take turns at the GPU, plain, under --gpu,
--gpu=predict, Nsight Systems and torch.profiler, round after round.  The table has the least of each way's rounds, in
seconds, and that over the plain one.  One more run of each program times all activities both ways, and
compare-reconstruction says how far they are apart.

Needs a GPU, CUPTI and PyTorch; programs that need more (transformers, torchvision, JAX, CuPy, two GPUs) are left out where
that is missing, and so is nsys.  Exits 1 when a timeline is further off than the bounds of compare-reconstruction.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs', 'timeline.py')
NAMES = 'llama resnet unet jax cupy graph streams ddp'.split()
LIMIT_S = 120


class Run:
    """One program on its way to its turn."""

    def __init__(self, args, name, way, number):
        self.stem = os.path.join(args.work, '%s.%s.%d' % (name, way, number))
        self.way, self.go, self.lines = way, self.stem + '.turn', []
        self.trace = self.stem + '.weir'
        program, env = [sys.executable, PROGRAM, name], {**os.environ, 'TIMELINE_TURN': self.go}
        weir = [args.build + '/bin/weir', 'record', '-q', '-o', self.trace]
        command = {
            'plain': program,
            'record': weir + ['--'] + program,
            'gpu': weir + ['--gpu', '--'] + program,
            'predict': weir + ['--gpu=predict', '--'] + program,
            'nsys': ['nsys', 'profile', '-t', 'cuda', '-s', 'none', '-f', 'true', '-o', self.stem] + program,
            'profiler': program + ['profile'],
            'both': program,
        }[way]
        if way == 'both':
            env['LD_PRELOAD'] = args.build + '/lib/weir/libweir.so'
            env['WEIR'] = 'gpu=predict:32,window=4000000000,args,record:' + self.trace
        self.log = open(self.stem + '.log', 'w+')
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        start_new_session=True)
        self.imported, self.measured = threading.Event(), threading.Event()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if line.startswith('imported'):
                self.imported.set()
            if line.startswith('seconds'):
                self.measured.set()
        self.imported.set()
        self.measured.set()

    def turn(self):
        """Seconds, or None.  The next one waits for its end: a process that leaves the GPU stalls others' launches."""
        open(self.go, 'w').close()
        if not self.measured.wait(LIMIT_S):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.end()
        said = [line for line in self.lines if line.startswith('seconds ')]
        return float(said[-1].split()[1]) if said else None

    def end(self):
        """Nsight Systems may work on its report for minutes: nobody reads it."""
        try:
            self.process.wait(2 if self.way == 'nsys' else LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def why(self):
        self.log.seek(0)
        return (self.lines + self.log.read().strip().splitlines() or ['it said nothing'])[-1]


def ways_of(args):
    found = [w for w in args.ways.split(',') if w != 'nsys' or shutil.which('nsys')]
    return found


def measure(args, name):
    """Each way's seconds, and the trace that was timed both ways."""
    runs = [Run(args, name, way, number) for number in range(args.rounds)
            for way in (ways_of(args) if number % 2 else ways_of(args)[::-1])] + [Run(args, name, 'both', 0)]
    seconds, trace, why = {}, None, None
    for run in runs:
        run.imported.wait(LIMIT_S)
    for run in runs:
        took = run.turn()
        if took is None:
            why = why or '%s: %s' % (run.way, run.why())
            print('%-10s %s' % (name, why), flush=True)
        elif run.way == 'both':
            trace = run.trace
        else:
            seconds.setdefault(run.way, []).append(took)
    return seconds, trace, why


def compare(args, trace):
    done = subprocess.run([args.build + '/tests/compare-reconstruction', '-r', '32', '-w', '1024', trace],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout.strip().splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('programs', nargs='*', default=NAMES)
    parser.add_argument('--work', help='a folder for the recordings')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--ways', default='plain,record,gpu,predict,nsys,profiler')
    parser.add_argument('--out', help='a file for all results, as JSON')
    args = parser.parse_intermixed_args()
    args.build, args.work = os.path.abspath(args.build), args.work or tempfile.mkdtemp(prefix='timeline-')
    os.makedirs(args.work, exist_ok=True)
    ways, results, failed = ways_of(args), {}, False
    print(('%-10s' + ' %14s' * len(ways)) % ('program', *ways), flush=True)
    for name in args.programs:
        seconds, trace, why = measure(args, name)
        if 'plain' not in seconds:
            print('%-10s left out: %s' % (name, why), flush=True)
            continue
        plain = min(seconds['plain'])
        cells = ['%.4f %.3fx' % (min(seconds[w]), min(seconds[w]) / plain) if w in seconds else '-' for w in ways]
        print(('%-10s' + ' %14s' * len(ways)) % (name, *cells), flush=True)
        status, said = compare(args, trace) if trace else (1, ['no trace'])
        failed |= status != 0
        print('\n'.join('    ' + line for line in said), flush=True)
        results[name] = {'seconds': seconds, 'reconstruction': said}
        if args.out:
            with open(args.out, 'w') as out:
                json.dump(results, out, indent=1)
    return failed


if __name__ == '__main__':
    sys.exit(main())
