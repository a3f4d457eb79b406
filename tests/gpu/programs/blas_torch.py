"""Products of known sizes in PyTorch: blas_torch.py [COUNT]; prints the FLOPs of all."""
import sys

import torch

count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
m, n, k, batch = 4096, 2048, 1024, 8
a = torch.randn(m, k, device="cuda", dtype=torch.float16)
b = torch.randn(k, n, device="cuda", dtype=torch.float16)
bias = torch.randn(n, device="cuda", dtype=torch.float16)
c = torch.randn(batch, 256, 64, device="cuda", dtype=torch.bfloat16)
d = torch.randn(batch, 64, 128, device="cuda", dtype=torch.bfloat16)
e = torch.randn(512, 256, device="cuda")
f = torch.randn(256, 128, device="cuda")
for _ in range(count):
    torch.mm(a, b)
    torch.addmm(bias, a, b)
    torch.bmm(c, d)
    torch.mm(e, f)
torch.cuda.synchronize()
print(count * 2 * (2 * m * n * k + batch * 256 * 64 * 128 + 512 * 256 * 128))
