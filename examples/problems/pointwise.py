"""Eight operators of one element each, and so eight passes over the data.  The twin is compiled to one."""

import torch

import problem

STEPS = 40


def operators(x):
    return ((x * 1.01 + 0.5).square().neg() * 0.5 - 0.25).clamp(max=1.0).sigmoid()


def make(fixed):
    x = torch.randn(32 << 20, device="cuda")
    step = torch.compile(operators) if fixed else operators
    return lambda: step(x)


if __name__ == "__main__":
    problem.main()
