#!/usr/bin/env python3
"""What MPS itself costs: the time that a request's CUDA graph takes on the GPU while no other program works.

    mps.py WEIR OUT.json

Each way is a program of its own, which answers requests of ResNet-50 at random, 120 a second, and then decodes tokens
of Llama (resnet.py and llama.py).  Medians of three rounds.
"""
import json
import os
import random
import statistics
import subprocess
import sys
import time

ROUNDS, SECONDS, TOKENS = 3, 1, 100
OUTSIDE = {'CUDA_MPS_PIPE_DIRECTORY': '/nowhere'}  # where no daemon is


def worker():
    import torch

    import llama
    import program
    import resnet
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(1)
    print('imported', flush=True)
    sys.stdin.readline()
    answer, decoder = resnet.inference(), llama.Decoder()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def took(graph, stream, due):
        program.wait_until(due)
        with torch.cuda.stream(stream):
            events[0].record()
            graph.replay()
            events[1].record()
        stream.synchronize()
        return events[0].elapsed_time(events[1]) * 1e3

    print('ready', flush=True)
    while sys.stdin.readline():
        draw, due, us, tokens = random.Random(1), time.monotonic(), [], []
        end = due + SECONDS
        while due < end:
            due += draw.expovariate(120)
            us.append(took(answer.graph, answer.stream, due))
        with torch.cuda.stream(decoder.stream):
            decoder.restart(7)
        for _ in range(TOKENS):
            tokens.append(took(decoder.graph, decoder.stream, 0))
        print(json.dumps([statistics.median(us), statistics.median(tokens)]), flush=True)


class Worker:
    def __init__(self, words, env):
        self.process = subprocess.Popen([*words, sys.executable, __file__, '--worker'], env={**os.environ, **env},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def next(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit('mps.py: a program ended early')
        return line

    def ask(self):
        self.process.stdin.write('\n')
        self.process.stdin.flush()
        return self.next()

    def begin(self):
        self.next()
        self.ask()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    import run
    weir, out = sys.argv[1:]
    mps, found = run.Mps(), {}
    try:
        ways = {
            'without MPS': Worker([], OUTSIDE),
            'under MPS': Worker([], mps.env),
            'with CUDA_DEVICE_MAX_CONNECTIONS=1': Worker([], {**mps.env, 'CUDA_DEVICE_MAX_CONNECTIONS': '1'}),
            'with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100':
                Worker([], {**mps.env, 'CUDA_MPS_ACTIVE_THREAD_PERCENTAGE': '100'}),
            'with CUDA_MPS_CLIENT_PRIORITY=0': Worker([], {**mps.env, 'CUDA_MPS_CLIENT_PRIORITY': '0'}),
            'beside a client that does nothing': Worker([], mps.env),
            'weir run --isolated': Worker([weir, 'run', '-q', '--isolated', '--class', 'latency', '--'], {}),
            'weir run': Worker([weir, 'run', '-q', '--class', 'latency', '--'], {}),
        }
        idle = Worker([], mps.env)
        print('| way | ResNet-50, µs | token of Llama, µs |\n|---|---|---|')
        for name, program in ways.items():
            if name.startswith('beside'):
                idle.begin()
            if name == 'weir run --isolated':  # each daemon has a server of its own
                idle.close()
                mps.stop()
            program.begin()
            rounds = [json.loads(program.ask()) for _ in range(ROUNDS)]
            program.close()
            found[name] = rounds
            with open(out, 'w') as f:
                json.dump(found, f, indent=1)
            print('| %s | %.0f | %.0f |' % (name, *(statistics.median(x) for x in zip(*rounds))), flush=True)
    finally:
        if mps.daemon():
            mps.stop()


if __name__ == '__main__':
    sys.exit(worker() if sys.argv[1:] == ['--worker'] else main())
