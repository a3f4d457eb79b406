"""Every step asks for a number, and so waits for the device.  The twin adds up on the device and asks once."""

import math

import torch

import problem

STEPS = 200


def make(fixed):
    x = torch.randn(16 << 20, device="cuda")
    total = torch.zeros((), device="cuda")

    def step():
        s = x.cumsum(0).sum()
        if fixed:
            total.add_(s)
        elif math.isnan(s.item()):
            raise ValueError("not a number")

    return step


if __name__ == "__main__":
    problem.main()
