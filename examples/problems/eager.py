"""A small network whose operators take less time than their launch.  The twin is compiled, with graphs."""

import torch

import problem

STEPS = 20


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def make(fixed):
    network = torch.nn.Sequential(*(Block(512) for _ in range(16))).cuda().half()
    x = torch.randn(64, 512, device="cuda", dtype=torch.float16)
    step = torch.compile(network, mode="reduce-overhead") if fixed else network
    return lambda: step(x)


if __name__ == "__main__":
    problem.main()
