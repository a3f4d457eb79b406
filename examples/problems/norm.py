"""Layer normalisation operator by operator.  The twin calls the fused one."""

import torch
import torch.nn.functional as F

import problem

STEPS = 30


def make(fixed):
    x = torch.randn(16384, 4096, device="cuda")
    w, b = torch.ones(4096, device="cuda"), torch.zeros(4096, device="cuda")

    def by_hand():
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * w + b

    return (lambda: F.layer_norm(x, (4096,), w, b)) if fixed else by_hand


if __name__ == "__main__":
    problem.main()
