"""Convolutions in plain FP32.  The twin allows TF32."""

import torch

import problem

STEPS = 20


def make(fixed):
    torch.backends.cudnn.allow_tf32 = fixed
    model = torch.nn.Conv2d(256, 256, 3, padding=1, bias=False).cuda().to(memory_format=torch.channels_last)
    images = torch.randn(64, 256, 56, 56, device="cuda").contiguous(memory_format=torch.channels_last)
    return lambda: model(images)


if __name__ == "__main__":
    problem.main()
