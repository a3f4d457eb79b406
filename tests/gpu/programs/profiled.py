"""torch.profiler inside the program: kernels by name and count, one a line."""
import torch
from torch.profiler import ProfilerActivity, profile

layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).cuda().half().eval()
x = torch.ones(4, 16, 64, device="cuda", dtype=torch.float16)
with torch.inference_mode():
    layer(x)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        for _ in range(10):
            layer(x)
        torch.cuda.synchronize()
for e in sorted(p.key_averages(), key=lambda e: e.key):
    if e.device_type == torch.autograd.DeviceType.CUDA:
        print(e.count, e.key[:100])
