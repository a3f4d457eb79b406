"""Matrix products in plain FP32.  The twin allows TF32."""

import torch

import problem

STEPS = 30


def make(fixed):
    torch.set_float32_matmul_precision("high" if fixed else "highest")
    a, b = (torch.randn(4096, 4096, device="cuda") for _ in range(2))
    return lambda: a @ b


if __name__ == "__main__":
    problem.main()
