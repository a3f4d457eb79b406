#!/usr/bin/env python3
"""Measures how a GPU is shared by a program that must answer soon and one that takes what is left.

    run.py [--cells NAME,...] [--variants NAME,...] [--weir "NAME:LC OPTIONS:BE OPTIONS"]... [--rounds N] --out FILE

A cell is a pair of programs (CELLS below): LC, whose latency counts, and BE, whose rate counts.  A variant is a way of
starting them.  In each round every cell is run with every variant, and each of its programs alone; the table says what
LC's p99 and BE's rate are, as multiples of alone in the same round, medians over the rounds.

    slices               two processes, as CUDA runs them by itself: time slices
    mps                  both under MPS, started for it with directories of its own
    mps+priority         BE with CUDA_MPS_CLIENT_PRIORITY=1, below LC
    mps+cap=N            BE with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=N; also mps+priority+cap=N
    weir                 weir run --class latency -- LC, weir run --class best-effort -- BE
    --weir NAME:LC:BE    the same with further options
    --way NAME:LC:BE     each behind a command of yours
                         (both under MPS if +mps is part of the name)

The device's settings and its compute mode stay as they are.  Every run has a limit; what hangs is killed and said.
FILE holds all runs and is written after each; --report FILE prints its tables again, --append adds rounds to it.
--capacity asks instead how many programs of ResNet-50 inference keep their p99 within twice that of one alone.
"""
import argparse
import contextlib
import datetime
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import table

HERE = os.path.dirname(os.path.abspath(__file__))
BURST = ['--batch', '10', '--work', 'kernel,us=12,blocks=64']
CLOSED = ['load', 'latency', '--arrival', 'closed', '--pause', '2000'] + BURST
POISSON = ['load', 'latency', '--arrival', 'poisson', '--rate', '2288'] + BURST
PERIODIC = ['load', 'latency', '--arrival', 'periodic', '--rate', '458.7'] + BURST
INFERENCE = ['resnet', 'infer', '--rate', '120']
TRAINING = ['resnet', 'train']


def endless(*works):
    return ['load', 'best-effort', '--batch', '32'] + [x for w in works for x in ('--work', w)]


SHORT, ONE_WAVE, WAVES, LONG = ('kernel,us=31,blocks=264', 'kernel,us=566,blocks=264', 'kernel,us=491,blocks=5280',
                                'kernel,us=2800,blocks=264')
CELLS = {  # name: LC, BE, seconds of a run where they are not those of --seconds
    'closed-1wave': (CLOSED, endless(ONE_WAVE), None),
    'closed-short': (CLOSED, endless(SHORT), None),
    'closed-waves': (CLOSED, endless(WAVES), None),
    'closed-long': (CLOSED, endless(LONG), None),
    'poisson-short': (POISSON, endless(SHORT), None),
    'poisson-1wave': (POISSON, endless(ONE_WAVE), None),
    'poisson-mix': (POISSON, endless(SHORT + ',share=95', ONE_WAVE + ',share=5'), None),
    'poisson-copy': (POISSON, endless('copy,us=37'), None),
    'poisson-copy-long': (POISSON, endless('copy,us=546'), None),
    'periodic-short': (PERIODIC, endless(SHORT), None),
    'periodic-1wave': (PERIODIC, endless(ONE_WAVE), None),
    'resnet': (INFERENCE, TRAINING, 17),
    'llama': (['llama', 'decode', '--load', '0.2'], TRAINING, 30),
}
MICRO = [name for name, cell in CELLS.items() if cell[0][0] == 'load']
SETTLE_S = 0.2  # of BE's load, before it counts
START_S = {'load': 60, 'resnet': 240, 'llama': 240}  # limit of the time that a program needs to be ready


class Failed(Exception):
    pass


class Program:
    """A program that is told what to do on its standard input (load.c says how)."""

    def __init__(self, argv, env):
        self.name, self.text, self.log = ' '.join(argv[:3]), b'', tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                            env=env, start_new_session=True)
        except OSError as e:
            raise Failed('%s: %s' % (argv[0], e.strerror))

    def said(self):
        self.log.seek(0)
        lines = self.log.read().decode(errors='replace').strip().splitlines()
        return lines[-1] if lines else 'it said nothing'

    def line(self, limit_s):
        end = time.monotonic() + limit_s
        while b'\n' not in self.text:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if not table.readable(self.process.stdout, left):
                continue
            got = os.read(self.process.stdout.fileno(), 65536)
            if not got:
                raise Failed('%s ended early: %s' % (self.name, self.said()))
            self.text += got
        line, self.text = self.text.split(b'\n', 1)
        return line.decode(errors='replace')

    def ready(self, limit_s):
        try:
            while self.line(limit_s) != 'ready':
                pass
        except TimeoutError:
            raise Failed('%s was not ready after %g s and was killed' % (self.name, limit_s))

    def result(self, limit_s):
        while True:
            line = self.line(limit_s)
            if line.startswith('{'):
                return json.loads(line)

    def tell(self, order):
        try:
            self.process.stdin.write(order.encode() + b'\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed('%s ended early: %s' % (self.name, self.said()))

    def close(self, failed):
        """The end of its input ends it, and a signal after a failure.  A process that does not end
        then is killed, with all that it has started; a command before the program may have a daemon
        to stop, so it gets some time."""
        if self.log.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        end = time.monotonic() + 15
        if failed and not self.has_ended():
            os.killpg(self.process.pid, signal.SIGTERM)
        while not self.has_ended() and time.monotonic() < end:
            time.sleep(0.005)
        if not self.has_ended():
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def has_ended(self):
        """Without reaping it, so that its id is still its own."""
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


class Mps:
    """A control daemon with directories of its own, so that nobody else's programs come to it."""

    def __init__(self):
        self.place = tempfile.mkdtemp(prefix='mps')
        self.env = {'CUDA_MPS_PIPE_DIRECTORY': self.place, 'CUDA_MPS_LOG_DIRECTORY': self.place}
        if not shutil.which('nvidia-cuda-mps-control'):
            os.rmdir(self.place)
            raise Failed('nvidia-cuda-mps-control is not installed')
        if not self.control(['-d'], b''):
            shutil.rmtree(self.place, ignore_errors=True)
            raise Failed('nvidia-cuda-mps-control -d did not start a daemon')

    def control(self, options, text):
        try:
            done = subprocess.run(['nvidia-cuda-mps-control'] + options, input=text, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env={**os.environ, **self.env}, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def daemon(self):
        try:
            with open(os.path.join(self.place, 'nvidia-cuda-mps-control.pid')) as f:
                pid = int(f.read())
            with open('/proc/%d/stat' % pid) as f:
                return pid if f.read().rsplit(')', 1)[1].split()[0] != 'Z' else None
        except (OSError, ValueError):
            return None

    def stop(self):
        self.control([], b'quit\n')
        end = time.monotonic() + 10
        while self.daemon() and time.monotonic() < end:
            time.sleep(0.02)
        if self.daemon():
            print('the MPS daemon did not quit and is killed', file=sys.stderr)
            os.kill(self.daemon(), signal.SIGKILL)
        shutil.rmtree(self.place, ignore_errors=True)


class Variant:
    def __init__(self, name, lc=(), be=(), mps=False, be_env=None):
        self.name, self.lc, self.be, self.mps, self.be_env = name, list(lc), list(be), mps, be_env or {}


def mps_variant(name):
    env = {}
    for word in name.split('+')[1:]:
        if word == 'priority':
            env['CUDA_MPS_CLIENT_PRIORITY'] = '1'
        elif word.startswith('cap=') and word[4:].isdigit():
            env['CUDA_MPS_ACTIVE_THREAD_PERCENTAGE'] = word[4:]
        else:
            sys.exit('run.py: %s: behind mps there are +priority and +cap=PERCENT' % name)
    return Variant(name, mps=True, be_env=env)


def behind(weir, lc, be):
    return ([weir, 'run', '--class', 'latency'] + shlex.split(lc) + ['--'],
            [weir, 'run', '--class', 'best-effort'] + shlex.split(be) + ['--'])


def split_way(text):
    parts = text.split(':', 2)
    if len(parts) != 3 or not parts[0]:
        sys.exit('run.py: %s: wanted NAME:WHAT IS BEFORE LC:WHAT IS BEFORE BE' % text)
    return parts


def variants_of(args):
    """Variants under MPS run one after the other, so that a daemon serves all of them."""
    found = []
    for name in filter(None, args.variants.split(',')):
        if name == 'alone':
            continue
        if name == 'slices':
            found.append(Variant(name))
        elif name == 'weir':
            found.append(Variant(name, *behind(args.weir_program, '', '')))
        elif name.split('+')[0] == 'mps':
            found.append(mps_variant(name))
        else:
            sys.exit('run.py: %s is no variant: slices, mps, mps+priority, mps+cap=PERCENT, weir' % name)
    for text in args.weir:
        name, lc, be = split_way(text)
        found.append(Variant(name, *behind(args.weir_program, lc, be), mps='mps' in name.split('+')))
    for text in args.way:
        name, lc, be = split_way(text)
        found.append(Variant(name, shlex.split(lc), shlex.split(be), mps='mps' in name.split('+')))
    return sorted(found, key=lambda v: v.mps)


class Bench:
    """One call of this program: what is measured with, and the file that it goes to."""

    def __init__(self, args):
        self.args, self.mps, self.failed, self.until = args, None, False, time.monotonic() + args.budget
        self.data = {'amounts': {}, 'request_us': {}, 'runs': [], 'capacity': []}
        if os.path.exists(args.out):
            if not args.append:
                sys.exit('run.py: %s is there already; --append adds to it' % args.out)
            with open(args.out) as f:
                self.data = json.load(f)
        self.programs = {name: [sys.executable, os.path.join(HERE, name + '.py')] for name in ('resnet', 'llama')}
        for text in args.program:
            name, _, words = text.partition('=')
            if name not in self.programs or not words:
                sys.exit('run.py: %s: wanted resnet or llama, =, and a command' % text)
            self.programs[name] = shlex.split(words)
        self.scratch = tempfile.mkdtemp(prefix='sched')
        self.programs['load'] = [args.load or self.build()]
        self.data['commands'] = self.data.get('commands', []) + [
            {'argv': sys.argv[1:], 'date': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds')}]

    def build(self):
        path = os.path.join(self.scratch, 'load')
        cc = os.environ.get('CC') or shutil.which('cc') or 'gcc'
        subprocess.run([cc, '-O2', '-o', path, os.path.join(HERE, 'load.c'), '-ldl', '-lm'], check=True)
        return path

    def close(self):
        self.want_mps(False)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def save(self):
        fresh = self.args.out + '.new'
        with open(fresh, 'w') as f:
            json.dump(self.data, f, indent=1)
        os.replace(fresh, self.args.out)

    def want_mps(self, wanted):
        if self.mps and not wanted:
            self.mps.stop()
            self.mps = None
        if wanted and not self.mps:
            self.mps = Mps()

    def env(self, variant, more):
        """Without MPS a program is kept from a daemon that somebody else may have started."""
        if variant.mps:
            return {**os.environ, **self.mps.env, **more}
        if variant.lc or variant.be:
            return dict(os.environ)
        return {**os.environ, 'CUDA_MPS_PIPE_DIRECTORY': os.path.join(self.scratch, 'no-mps')}

    def command(self, side, more):
        """Words of a cell, with what calibration has found."""
        words = self.programs[side[0]] + side[1:] + ['--controlled'] + more
        for i, word in enumerate(words):
            if words[i - 1] == '--pause':
                words[i] = '%g' % (float(word) * self.args.slower)
            if words[i - 1] == '--rate':
                words[i] = '%g' % (float(word) / self.args.slower)
            if word == '--load':
                words[i] = '--rate'
                words[i + 1] = '%.4g' % (float(words[i + 1]) * 1e6 / self.data['request_us'][side[0]])
            if words[i - 1] == '--work':
                words[i] += ',amount=%d' % self.data['amounts'][word.split(',share')[0]]
        return words

    def slower(self, work):
        """The same work for a device that is slower."""
        words = (word.split('=') for word in work.split(','))
        return ','.join('us=%g' % (float(x[1]) * self.args.slower) if x[0] == 'us' else '='.join(x) for x in words)

    def calibrate(self, cells):
        """Once, so that all variants do the same work."""
        works = {w.split(',share')[0] for cell in cells for side in cell[:2] for i, w in enumerate(side)
                 if side[i - 1] == '--work'} - set(self.data['amounts'])
        plain = Variant('calibrate')
        if works:
            order = sorted(works)
            words = self.programs['load'] + ['calibrate'] + [x for w in order for x in ('--work', self.slower(w))]
            found = self.once(words, plain, 60 * max(1, self.args.slower))
            self.data['amounts'].update({w: x['amount'] for w, x in zip(order, found['work'])})
            self.data['calibration'] = self.data.get('calibration', []) + [found]
            for w, x in zip(order, found['work']):
                if not x['calibrated']:
                    print('%s: no amount of work lasts so long here; %d is used' % (w, x['amount']), file=sys.stderr)
        for name in {cell[0][0] for cell in cells if '--load' in cell[0]} - set(self.data['request_us']):
            self.data['request_us'][name] = self.once(self.programs[name] + ['calibrate'], plain, 300)['request_us']

    def once(self, words, variant, limit_s):
        program = Program(words, self.env(variant, {}))
        try:
            return program.result(limit_s)
        except TimeoutError:
            raise Failed('%s did not end within %d s' % (program.name, limit_s))
        finally:
            end_all([program])

    def length(self, cell):
        return self.args.model_seconds or cell[2] if cell[2] else self.args.seconds

    def limit(self, side):
        return self.args.start_limit or START_S[side[0]]

    def of_latency(self, cell):
        more = ['--seconds', '%g' % self.length(cell), '--seed', str(self.args.seed)]
        return self.command(cell[0], more + (['--requests', str(self.args.requests)] if self.args.requests else []))

    def run_latency_alone(self, cell):
        return {'latency': measure_latency([Program(self.of_latency(cell), self.env(Variant('alone'), {}))],
                                           self.length(cell), self.limit(cell[0]))[0]}

    def run_rate_alone(self, cell):
        be = Program(self.command(cell[1], []), self.env(Variant('alone'), {}))
        try:
            be.ready(self.limit(cell[1]))
            be.tell('run')
            time.sleep(SETTLE_S)
            be.tell('begin')
            time.sleep(min(self.length(cell), 6))
            be.tell('end')
            return {'best_effort': be.result(30)}
        except TimeoutError:
            raise Failed('%s did not end within 30 s and was killed' % be.name)
        finally:
            end_all([be])

    def run_pair(self, cell, variant):
        """LC is there first: the first client of MPS has quicker kernels than those that come later."""
        programs = []
        try:
            programs.append(Program(variant.lc + self.of_latency(cell), self.env(variant, {})))
            programs[0].ready(self.limit(cell[0]))
            programs.append(Program(variant.be + self.command(cell[1], []), self.env(variant, variant.be_env)))
            programs[1].ready(self.limit(cell[1]))
            return measure_pair(programs[1], programs[0], self.length(cell))
        finally:
            end_all(programs)

    def note(self, **run):
        self.failed |= 'error' in run
        self.data['runs'].append(run)
        self.save()
        print(table.one_run(run), flush=True)

    def turn(self, number, names, variants, alone):
        """One cell after the other, with all variants; forwards and backwards in turn."""
        for name in names:
            cell = CELLS[name]
            order = variants if number % 2 else variants[::-1]
            for side, run in ((0, self.run_latency_alone), (1, self.run_rate_alone)):
                key = ' '.join(cell[side]) + ' %g' % self.length(cell)
                if key not in alone:
                    self.want_mps(False)
                    alone[key] = attempt(run, cell)
                self.note(cell=name, variant='alone', round=number, **alone[key])
            for variant in order:
                if time.monotonic() > self.until:
                    return False
                self.note(cell=name, variant=variant.name, round=number, **attempt(self.try_pair, cell, variant))
        return True

    def try_pair(self, cell, variant):
        self.want_mps(variant.mps)
        return self.run_pair(cell, variant)


def attempt(run, *words):
    try:
        return run(*words)
    except Failed as e:
        return {'error': str(e)}


def end_all(programs):
    failed = sys.exc_info()[0] is not None
    for program in programs:
        program.close(failed)


def measure_latency(programs, seconds, start_limit_s):
    """Programs of one kind at the same time, each its result."""
    try:
        for program in programs:
            program.ready(start_limit_s)
        for program in programs:
            program.tell('begin')
        return [program.result(3 * seconds + 30) for program in programs]
    except TimeoutError:
        raise Failed('%s did not end within %d s and was killed' % (programs[0].name, 3 * seconds + 30))
    finally:
        end_all(programs)


def measure_pair(be, lc, seconds):
    be.tell('run')
    time.sleep(SETTLE_S)
    be.tell('begin')
    lc.tell('begin')
    run = {}
    try:
        run['latency'] = lc.result(3 * seconds + 5)
    except TimeoutError:
        run['starved'] = True  # it may end once it is alone
    be.tell('end')
    try:
        run['best_effort'] = be.result(30)
        if 'starved' in run:
            be.close(False)
            run['latency'] = lc.result(30)
    except TimeoutError:
        hung = be.name if 'best_effort' not in run else lc.name
        raise Failed('%s did not end within 30 s of the end and was killed' % hung)
    return run


def probe(bench, variant, n):
    """n programs of inference with a variant."""
    bench.want_mps(variant.mps)
    side, seconds = ['resnet', 'infer', '--rate', '40'], bench.args.model_seconds or 15
    programs = []
    try:
        for i in range(n):
            more = ['--seconds', '%g' % seconds, '--seed', str(bench.args.seed + i)]
            programs.append(Program(variant.lc + bench.command(side, more), bench.env(variant, {})))
    except Failed:
        end_all(programs)
        raise
    return {'latencies': measure_latency(programs, seconds, bench.limit(side))}


def capacity(bench, variants):
    """Doubles the number of programs until one of them is too slow, then halves the gap."""
    def ask(variant, n):
        found = {'variant': variant.name, 'programs': n, **attempt(probe, bench, variant, n)}
        found['worst_p99_us'] = max((x['p99_us'] for x in found.get('latencies', [])), default=None)
        bench.data['capacity'].append(found)
        bench.save()
        print('%-20s %2d programs: %s' % (variant.name, n, found.get('error') or 'worst p99 %.0f us'
                                         % found['worst_p99_us']), flush=True)
        return found['worst_p99_us']

    alone = ask(Variant('alone'), 1)
    if alone is None:
        return
    for variant in variants:
        good, bad = 0, bench.args.most + 1
        while bad - good > 1 and time.monotonic() < bench.until:
            n = min(max(1, good * 2), (good + bad) // 2)
            p99 = ask(variant, n)
            good, bad = (n, bad) if p99 is not None and p99 <= 2 * alone else (good, n)


def rounds(bench, names, variants):
    bench.calibrate([CELLS[name] for name in names])
    first, longest = max([r['round'] for r in bench.data['runs']], default=0) + 1, 0
    if not bench.args.seconds:
        bench.args.seconds = affordable(bench, names, variants)
    bench.data['seconds'] = bench.args.seconds
    for number in range(first, first + bench.args.rounds):
        begun = time.monotonic()
        if begun + longest > bench.until:
            print('no time for round %d: --budget %d' % (number, bench.args.budget), file=sys.stderr)
            return
        if not bench.turn(number, names, variants, {}):
            print('round %d ended early: --budget %d' % (number, bench.args.budget), file=sys.stderr)
            return
        longest = max(longest, time.monotonic() - begun)


def start_seconds(bench, variant):
    begun = time.monotonic()
    bench.want_mps(variant.mps)
    bench.once(bench.programs['load'] + ['calibrate', '--work', 'kernel,amount=1000'], variant, 60)
    bench.want_mps(False)
    return time.monotonic() - begun


def affordable(bench, names, variants):
    """Seconds of a run without PyTorch, such that all rounds are within the budget."""
    own = [CELLS[name] for name in names if not CELLS[name][2]]
    if not own:
        return 2
    start = start_seconds(bench, Variant('start'))
    per_round = sum((len(variants) + 1) * (CELLS[name][2] + 15) + 15 for name in names if CELLS[name][2])
    if any(v.mps for v in variants):
        per_round += len(names) * mps_seconds(bench)
    runs = len(own) * len(variants) + len({' '.join(side) for cell in own for side in cell[:2]})
    left = 0.9 * (bench.until - time.monotonic()) / bench.args.rounds - per_round
    return round(min(5, max(0.5, left / runs - 1.3 * start - SETTLE_S - 0.2)), 1)


def mps_seconds(bench):
    try:
        return start_seconds(bench, Variant('start', mps=True))
    except Failed:
        return 0


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cells', default='micro', help='names, micro (those without PyTorch) and all, with commas between; also --list')
    parser.add_argument('--list', action='store_true', help='print the cells')
    parser.add_argument('--variants', default='slices,mps,mps+priority,mps+priority+cap=80', metavar='NAME,...')
    parser.add_argument('--weir', action='append', default=[], metavar='NAME:LC:BE')
    parser.add_argument('--way', action='append', default=[], metavar='NAME:LC:BE')
    parser.add_argument('--weir-program', default='weir')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, help='of a run; default: what --budget allows, 0.5 to 5')
    parser.add_argument('--model-seconds', type=float, help='of a run with PyTorch; default 17 and 30, capacity 15')
    parser.add_argument('--requests', type=int, help='of LC in a run, in place of its seconds')
    parser.add_argument('--slower', type=float, default=1, metavar='N',
                        help='kernels, pauses and intervals N times as long; on a simulated device with speed=1/N')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--budget', type=float, default=540, help='seconds; no round is begun that would exceed it')
    parser.add_argument('--start-limit', type=float, help='seconds that a program has to be ready; default 60 and 240')
    parser.add_argument('--load', help='load.c, built; default: cc builds it')
    parser.add_argument('--program', action='append', default=[], metavar='NAME=COMMAND',
                        help='another program in place of resnet or llama, with their roles and options')
    parser.add_argument('--out', metavar='FILE')
    parser.add_argument('--append', action='store_true', help='add rounds to FILE')
    parser.add_argument('--report', metavar='FILE', help='print the tables of FILE')
    parser.add_argument('--capacity', action='store_true')
    parser.add_argument('--most', type=int, default=16, help='programs that --capacity tries')
    return parser.parse_args()


def names_of(args):
    sets = {'micro': MICRO, 'all': list(CELLS)}
    names = list(dict.fromkeys(n for word in args.cells.split(',') for n in sets.get(word, [word])))
    for name in names:
        if name not in CELLS:
            sys.exit('run.py: %s is no cell: %s' % (name, ', '.join(CELLS)))
    return names


def main():
    args = options()
    if args.list:
        for name, (lc, be, _) in CELLS.items():
            print('%-18s %s\n%-18s %s' % (name, ' '.join(lc), '', ' '.join(be)))
        return
    if args.report:
        with open(args.report) as f:
            print(table.whole(json.load(f)))
        return
    if not args.out:
        sys.exit('run.py: --out FILE is missing: where the runs go')
    names, variants, bench = names_of(args), variants_of(args), Bench(args)
    try:
        if args.capacity:
            capacity(bench, variants)
        else:
            rounds(bench, names, variants)
    except Failed as e:
        sys.exit('run.py: %s' % e)
    finally:
        bench.close()
    print('\n' + table.whole(bench.data))
    return 1 if bench.failed else 0


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('run.py: ended by a signal'))
    sys.exit(main())
