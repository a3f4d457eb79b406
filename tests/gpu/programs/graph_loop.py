"""Two CUDA graphs of matrix products and elementwise kernels, replayed in turns."""
import sys

import torch

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
a = [torch.randn(n, n, device="cuda", dtype=torch.half) for n in (1024, 2048)]
side = torch.cuda.Stream()
graphs = []
for x in a:
    with torch.cuda.stream(side):
        torch.relu(x @ x) @ x
    torch.cuda.synchronize()
    graphs.append(torch.cuda.CUDAGraph())
    with torch.cuda.graph(graphs[-1]):
        y = x
        for _ in range(3):
            y = torch.relu(y @ x)
for i in range(rounds):
    for g in graphs:
        for _ in range(5):
            g.replay()
    torch.cuda.synchronize()
