"""Convolutions of all kinds, forward and back.

    python3 convolutions.py [--count | --profile FILE]

With --count PyTorch counts the FLOPs of one forward itself and prints them; with --profile torch.profiler looks
on and writes its trace.
"""
import sys

import torch
from torch import nn


def model():
    return nn.Sequential(
        nn.Conv2d(8, 16, 3, padding=1),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.Conv2d(32, 32, 3, groups=4, padding="same"),
        nn.Conv2d(32, 32, 3, dilation=2, bias=False),
        nn.ConvTranspose2d(32, 16, 2, stride=2),
        nn.Conv2d(16, 16, 3, padding=1, padding_mode="circular"),
        nn.Conv2d(16, 16, 5, padding="valid"),
    ).cuda()


def step(net, x):
    net(x).sum().backward()
    torch.cuda.synchronize()


net = model()
# With a gradient of its own, so that every convolution has both of its gradients to make.
x = torch.randn(4, 8, 64, 64, device="cuda", requires_grad=True)
if "--count" in sys.argv:
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as counter:
        net(x)
    print(sum(n for op, n in counter.get_flop_counts()["Global"].items() if "convolution" in str(op)))
elif "--profile" in sys.argv:
    with torch.profiler.profile(record_shapes=True) as p:
        step(net, x)
    p.export_chrome_trace(sys.argv[sys.argv.index("--profile") + 1])
else:
    step(net, x)
