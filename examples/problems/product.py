"""A product, and GELU in a kernel of its own.  The twin calls one kernel for both, which needs build/lib/weir/python on
PYTHONPATH."""

import torch
import torch.nn.functional as F

import problem

STEPS = 30


def make(fixed):
    x, w = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    b = torch.zeros(8192, device="cuda", dtype=torch.bfloat16)
    if not fixed:
        return lambda: F.gelu(F.linear(x, w, b), approximate="tanh")
    from weir import kernels
    return lambda: kernels.linear(x, w, b, "gelu")


if __name__ == "__main__":
    problem.main()
