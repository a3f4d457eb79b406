"""Large BF16 products of an inference.  The twin multiplies in FP8."""

import torch

import problem

STEPS = 20


def make(fixed):
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    if not fixed:
        return lambda: a @ b
    one = torch.ones((), device="cuda")
    a8, b8 = a.to(torch.float8_e4m3fn), b.t().contiguous().to(torch.float8_e4m3fn).t()
    return lambda: torch._scaled_mm(a8, b8, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


if __name__ == "__main__":
    problem.main()
