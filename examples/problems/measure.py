"""Times the problems that are named, each with its twin: lines of NAME, microseconds, microseconds of the twin."""

import importlib
import os
import sys

import torch

from problem import timed

for name in sys.argv[1:]:
    module = importlib.import_module(name)
    times = []
    for fixed in (False, True):
        torch.set_float32_matmul_precision("highest")
        times.append(min(timed(module, fixed) for _ in range(2)))
    print(name, *(f"{t:.1f}" for t in times), flush=True)
os._exit(0)
