"""The planted problems in PyTorch share this: `python3 NAME.py [--fixed]` runs one and prints how
long its steps took.

A problem is a module with STEPS and make(fixed), which returns the function of one step.
"""

import sys
import time

import torch


def timed(module, fixed):
    """Microseconds of all steps, after three that are not counted."""
    torch.manual_seed(0)
    with torch.no_grad():
        step = module.make(fixed)
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(module.STEPS):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begun) * 1e6


def main():
    if sys.argv[1:] not in ([], ["--fixed"]):
        sys.exit(f"usage: {sys.argv[0]} [--fixed]")
    print(f"hot {timed(sys.modules['__main__'], sys.argv[1:] == ['--fixed']):.1f} us")
