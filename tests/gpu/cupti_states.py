#!/usr/bin/env python3
"""The cost of CUPTI to a real program, by what is asked of it: cupti_states.py [PROGRAM...] (of
programs/timeline.py).

One process goes through the states, round after round, so that none depends on which process it was: without CUPTI;
with each kind of activity enabled; with all disabled again; and after cuptiFinalize.  The least of each, in seconds.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + '/programs')
ROUNDS = 4
KERNEL, MEMCPY, MEMSET, SYNC = 10, 1, 2, 38


def load_switch():
    built = tempfile.mkdtemp() + '/switch.so'
    subprocess.run(['cc', '-O2', '-shared', '-fPIC', HERE + '/programs/cupti_switch.c', '-o', built, '-ldl'], check=True)
    switch = ctypes.CDLL(built)
    here = [line.split()[-1] for line in open('/proc/self/maps') if 'libcupti.so' in line]
    if switch.switch_open((here + ['libcupti.so.13'])[0].encode()):
        sys.exit('libcupti.so.13 is not here')
    return switch


def measure(runs, found, state):
    import torch
    for name, run in runs.items():
        times = []
        while len(times) < 3 or sum(times) < 0.3:
            torch.cuda.synchronize()
            begin = time.monotonic()
            run()
            torch.cuda.synchronize()
            times.append(time.monotonic() - begin)
        found.setdefault(state, {}).setdefault(name, []).append(min(times))


def main():
    import timeline
    names = sys.argv[1:] or ['unet', 'llama', 'streams']
    runs = {name: getattr(timeline, name)() for name in names}
    switch, found = load_switch(), {}
    for run in runs.values():
        run()
    for _ in range(ROUNDS):
        measure(runs, found, 'without CUPTI')
        switch.switch_register()
        kinds = []
        for kind, what in ((KERNEL, 'kernels'), (MEMCPY, '… and memcpys'), (MEMSET, '… and memsets'), (SYNC, '… and synchronisations')):
            switch.switch_enable(kind)
            kinds.append(kind)
            measure(runs, found, what)
        switch.switch_disable(SYNC)
        measure(runs, found, 'without synchronisations again')
        for kind in kinds:
            switch.switch_disable(kind)
        measure(runs, found, 'all disabled')
        switch.switch_finalize()
        measure(runs, found, 'after cuptiFinalize')
    print(('%-32s' + ' %10s' * len(names)) % ('', *names))
    for state, by_name in found.items():
        print(('%-32s' + ' %10.4f' * len(names)) % (state, *(min(by_name[name]) for name in names)))


if __name__ == '__main__':
    main()
