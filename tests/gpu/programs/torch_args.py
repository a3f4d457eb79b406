"""Adds tensors of two sizes over and over: one kernel, two keys."""
import torch

small = torch.randn(100_000, device="cuda")
large = torch.randn(200_000, device="cuda")
for _ in range(50):
    small + 1.5
    large + 1.5
    small + 2.5
torch.cuda.synchronize()
