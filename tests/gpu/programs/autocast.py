import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.n1, s.n2, s.h = nn.LayerNorm(d), nn.LayerNorm(d), h
        s.qkv, s.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        s.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
    def forward(s, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, s.h, d // s.h).transpose(1, 2) for y in s.qkv(s.n1(x)).chunk(3, -1))
        x = x + s.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + s.mlp(s.n2(x))
class Net(nn.Module):
    def __init__(s, d=768, n=4):
        super().__init__()
        s.stem = nn.Conv1d(80, d, 3, padding=1)
        s.blocks = nn.ModuleList(Block(d, 12) for _ in range(n))
        s.head = nn.Linear(d, 1000)
    def forward(s, x):
        x = s.stem(x).transpose(1, 2)
        for b in s.blocks:
            x = b(x)
        return s.head(x.mean(1))
net = Net().cuda()
opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
for i in range(12):
    with torch.profiler.record_function("step %d" % i):
        x, y = torch.randn(32, 80, 512).cuda(), torch.randint(1000, (32,)).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step(); opt.zero_grad()
        if i % 3 == 0:
            loss.item()
torch.cuda.synchronize()
