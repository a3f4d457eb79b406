set -u
export LD_LIBRARY_PATH=$PWD/devprobe/lib:${LD_LIBRARY_PATH-}
export PATH=$PWD/build/bin:$PATH
ldconfig -p | grep -c libdw
echo "== parts"; s=$(date +%s)
timeout 200 sh tests/gpu/parts.sh build 2>&1 | tail -20; echo "parts: $(($(date +%s)-s)) s"
echo "== waits"
cat > /tmp/t.py <<'P'
import torch, torch.nn as nn
torch.manual_seed(0)
m = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
o = torch.optim.AdamW(m.parameters())
host = torch.randn(2048, 1024)
for i in range(8):
    with torch.profiler.record_function("ProfilerStep#%d" % i):
        x = host.cuda()
        l = m(x).square().mean()
        l.backward()
        o.step(); o.zero_grad()
        l.item()
P
timeout 120 weir record -q --gpu --python --stacks=alloc,sync -o $OUT/waits.weir -- python3 /tmp/t.py; ls -la $OUT
weir report --only waits,steps,queue,breakdown,nvtx_pace -n 6 $OUT/waits.weir
weir report --only call_stacks -n 4 $OUT/waits.weir
weir report --only kernels --sort flops --columns flops,flops_per_second,flops_share,unit,class,name -n 4 $OUT/waits.weir
weir hints $OUT/waits.weir | head -20
