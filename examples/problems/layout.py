"""Convolutions of images that lie channel by channel, so that each brings them to the other layout.  In the twin
they lie pixel by pixel."""

import torch

import problem

STEPS = 30


def make(fixed):
    layers = [torch.nn.Conv2d(256, 256, 3, padding=1, bias=False) for _ in range(4)]
    model = torch.nn.Sequential(*layers).cuda().half()
    images = torch.randn(64, 256, 56, 56, device="cuda", dtype=torch.half)
    if fixed:
        model = model.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    return lambda: model(images)


if __name__ == "__main__":
    problem.main()
