"""Traces of torch.profiler of many small programs, to be kept as tests of what Weir reads in them.

    python3 kineto_traces.py [--jobs N] [--list] FOLDER [CASE ...]

Each case runs in a process of its own and leaves two files in FOLDER: CASE.json.gz, the trace, and CASE.expected.json,
what PyTorch itself knows of the same step by other ways: FLOPs (torch.utils.flop_counter), the memory of its allocator,
operators and kernels as the profiler sums them, the device.  A line for each case says how big its trace is, or why there
is none.  Exits 1 when a case failed, 0 when the rest were made or could not be made here ("skipped").

Needs PyTorch 2.4 or newer and a GPU; transformers for three cases, a second GPU for NCCL (with one, DDP's two processes
share it and speak gloo).  Models have random weights; nothing is fetched.
"""
import argparse
import contextlib
import gzip
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import traceback

CASES = {}
SECONDS = 280  # that a case may take


class Skipped(Exception):
    """The case needs something that is not here."""


def case(name, ranks=1, environment=None, annotate=None, flops=True, **profiler):
    """Registers a case: a function that builds what it needs and returns the step to be profiled.

    ranks: processes that do it together.  annotate: how many steps are profiled, each marked ProfilerStep#N.  flops:
    whether the counter of FLOPs can look at the step (a graph's replay has no operators).
    """
    def register(make):
        options = {"record_shapes": True, "profile_memory": True}
        options.update(profiler)
        CASES[name] = {"make": make, "ranks": ranks, "environment": environment or {}, "annotate": annotate,
                       "flops": flops, "profiler": options}
        return make
    return register


# Programs.


def train(model, inputs, target=None, autocast=None, optimizer=None, loss_of=None):
    import torch
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        context = torch.autocast("cuda", dtype=autocast) if autocast else contextlib.nullcontext()
        with context:
            out = model(*inputs)
            if loss_of:
                loss = loss_of(out)
            elif target is not None:
                loss = torch.nn.functional.cross_entropy(out.float(), target)
            else:
                loss = out.float().square().mean()
        loss.backward()
        optimizer.step()
    return step


def tf32(on):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def convnet():
    from torch import nn
    return nn.Sequential(nn.Conv2d(3, 64, 7, stride=2, padding=3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 128, 1), nn.ReLU(),
                         nn.Conv2d(128, 256, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(256, 100)).cuda()


def images(count, side, channels_last=False):
    import torch
    made = torch.randn(count, 3, side, side, device="cuda")
    return made.to(memory_format=torch.channels_last) if channels_last else made


def labels(count, classes):
    import torch
    return torch.randint(0, classes, (count,), device="cuda")


@case("convnet-fp32", with_flops=True)
def convnet_fp32():
    tf32(False)
    return train(convnet(), (images(16, 128),), labels(16, 100))


@case("convnet-tf32", with_flops=True)
def convnet_tf32():
    tf32(True)
    return train(convnet(), (images(16, 128),), labels(16, 100))


@case("convnet-tf32-channels-last", with_flops=True)
def convnet_channels_last():
    import torch
    tf32(True)
    return train(convnet().to(memory_format=torch.channels_last), (images(16, 128, True),), labels(16, 100))


@case("convnet-bf16-autocast", annotate=2)
def convnet_bf16():
    import torch
    return train(convnet(), (images(16, 128),), labels(16, 100), autocast=torch.bfloat16)


def resnet(blocks, classes=1000):
    """ResNet of bottlenecks; [3, 4, 6, 3] is ResNet-50."""
    from torch import nn

    class Bottleneck(nn.Module):
        def __init__(self, wide, narrow, stride):
            super().__init__()
            out = narrow * 4
            self.body = nn.Sequential(nn.Conv2d(wide, narrow, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(True),
                                      nn.Conv2d(narrow, narrow, 3, stride, 1, bias=False), nn.BatchNorm2d(narrow),
                                      nn.ReLU(True), nn.Conv2d(narrow, out, 1, bias=False), nn.BatchNorm2d(out))
            self.short = nn.Identity()
            if stride != 1 or wide != out:
                self.short = nn.Sequential(nn.Conv2d(wide, out, 1, stride, bias=False), nn.BatchNorm2d(out))
            self.relu = nn.ReLU(True)

        def forward(self, x):
            return self.relu(self.body(x) + self.short(x))

    layers, wide = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
    for at, (count, narrow) in enumerate(zip(blocks, (64, 128, 256, 512))):
        for i in range(count):
            layers.append(Bottleneck(wide, narrow, 2 if at and not i else 1))
            wide = narrow * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, classes)).cuda()


@case("resnet50-train", with_flops=True)
def resnet50_train():
    tf32(True)
    return train(resnet((3, 4, 6, 3)), (images(32, 224),), labels(32, 1000))


@case("resnet-small-bf16-channels-last", with_flops=True)
def resnet_small():
    import torch
    model = resnet((1, 1, 1, 1), 100).to(memory_format=torch.channels_last)
    return train(model, (images(32, 160, True),), labels(32, 100), autocast=torch.bfloat16)


@case("convolutions", with_flops=True)
def convolutions():
    import torch
    from torch import nn
    tf32(False)
    kinds = [(nn.Conv1d(64, 128, 5, padding=2), (8, 64, 512)), (nn.Conv2d(64, 64, 3, groups=64, padding=1), (8, 64, 56, 56)),
             (nn.Conv2d(64, 128, 3, groups=4, dilation=2), (8, 64, 56, 56)), (nn.Conv3d(16, 32, 3), (2, 16, 16, 32, 32)),
             (nn.ConvTranspose2d(64, 32, 4, 2, 1), (8, 64, 28, 28)), (nn.Conv2d(128, 256, 1), (8, 128, 28, 28))]
    kinds = [(layer.cuda(), torch.randn(shape, device="cuda", requires_grad=True)) for layer, shape in kinds]

    def step():
        for layer, x in kinds:
            layer(x).sum().backward()
    return step


def attention(backend, dtype, lengths=((512, 512), (128, 512))):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    sets = []
    for at, (queries, keys) in enumerate(lengths):
        # Both orders in memory: batch, head, sequence; and batch, sequence, head, as projections
        # leave it.
        for heads_first in (True, False):
            def make(length, heads=12, head=64):
                if heads_first:
                    return torch.randn(4, heads, length, head, device="cuda", dtype=dtype, requires_grad=True)
                flat = torch.randn(4, length, heads, head, device="cuda", dtype=dtype, requires_grad=True)
                return flat.transpose(1, 2)
            sets.append((make(queries), make(keys), make(keys), at == 0 and heads_first))

    def step():
        with sdpa_kernel([getattr(SDPBackend, backend)]):
            for q, k, v, causal in sets:
                out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                torch.autograd.grad(out.sum(), (q, k, v))
    return step


@case("attention-flash", with_flops=True)
def attention_flash():
    import torch
    return attention("FLASH_ATTENTION", torch.float16)


@case("attention-efficient", with_flops=True)
def attention_efficient():
    import torch
    return attention("EFFICIENT_ATTENTION", torch.float32)


@case("attention-math", with_flops=True)
def attention_math():
    import torch
    return attention("MATH", torch.bfloat16)


@case("attention-cudnn", with_flops=True)
def attention_cudnn():
    import torch
    return attention("CUDNN_ATTENTION", torch.bfloat16)


@case("transformer-train", annotate=2)
def transformer_train():
    import torch
    from torch import nn
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 2).cuda()
    return train(model, (torch.randn(8, 128, 256, device="cuda"),), optimizer=torch.optim.AdamW(model.parameters()))


def transformers_of():
    try:
        import transformers
    except ImportError as error:
        raise Skipped("transformers is not installed") from error
    return transformers


@case("opt-generate", flops=False)
def opt_generate():
    import torch
    transformers = transformers_of()
    model = transformers.OPTForCausalLM(transformers.OPTConfig(
        vocab_size=2048, hidden_size=256, word_embed_proj_dim=256, num_hidden_layers=2, num_attention_heads=4, ffn_dim=1024,
        max_position_embeddings=256)).half().cuda().eval()
    return generation(model, torch.randint(4, 2000, (4, 64), device="cuda"))


@case("llama-generate", flops=False, with_flops=True)
def llama_generate():
    import torch
    return generation(llama().to(torch.bfloat16).eval(), torch.randint(4, 2000, (2, 32), device="cuda"))


def generation(model, tokens):
    import torch

    def step():
        with torch.inference_mode():
            model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=4, min_new_tokens=4, do_sample=False,
                           pad_token_id=0)
    return step


def llama():
    transformers = transformers_of()
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=2048, hidden_size=256, intermediate_size=688, num_hidden_layers=2, num_attention_heads=8,
        num_key_value_heads=2, max_position_embeddings=256)).cuda()


@case("llama-train", with_flops=True)
def llama_train():
    import torch
    model, tokens = llama(), torch.randint(4, 2000, (4, 128), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
    return step


@case("compiled-mlp", flops=False)
def compiled_mlp():
    import torch
    from torch import nn
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 512)).cuda()
    return train(torch.compile(model), (torch.randn(256, 512, device="cuda"),))


@case("cuda-graph", flops=False)
def cuda_graph():
    import torch
    from torch import nn
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda().eval()
    x = torch.randn(64, 256, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode():
        for _ in range(3):
            model(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            y = model(x).relu()

    def step():
        for _ in range(4):
            x.normal_()
            graph.replay()
        return y.sum().item()
    return step


@case("embeddings", annotate=2)
def embeddings():
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag = nn.EmbeddingBag(5000, 64, mode="mean")
            self.table = nn.Embedding(2000, 64)
            self.out = nn.Linear(128, 10)

        def forward(self, bags, offsets, words):
            return self.out(torch.cat([self.bag(bags, offsets), self.table(words).mean(1)], 1))

    bags, words = torch.randint(0, 5000, (640,), device="cuda"), torch.randint(0, 2000, (64, 12), device="cuda")
    return train(Model().cuda(), (bags, torch.arange(0, 640, 10, device="cuda"), words), labels(64, 10))


@case("recurrent")
def recurrent():
    import torch
    from torch import nn
    lstm, gru = nn.LSTM(64, 128, 2, batch_first=True).cuda(), nn.GRU(128, 64, batch_first=True).cuda()
    x = torch.randn(16, 32, 64, device="cuda")

    def step():
        out, _ = lstm(x)
        out, _ = gru(out)
        out.sum().backward()
    return step


@case("norms", with_flops=True)
def norms():
    import torch
    from torch import nn
    kinds = [nn.BatchNorm2d(64), nn.GroupNorm(8, 64), nn.InstanceNorm2d(64, affine=True), nn.LayerNorm([32, 32]),
             nn.LocalResponseNorm(4)]
    if hasattr(nn, "RMSNorm"):
        kinds.append(nn.RMSNorm(32))
    kinds = [kind.cuda() for kind in kinds]
    x = torch.randn(16, 64, 32, 32, device="cuda", requires_grad=True)

    def step():
        for kind in kinds:
            kind(x).sum().backward()
    return step


@case("optimizers")
def optimizers():
    import torch
    from torch import nn

    def made(kind, **options):
        model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)]).cuda()
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        return kind(model.parameters(), **options)
    kinds = [made(torch.optim.SGD, lr=0.1, foreach=True), made(torch.optim.SGD, lr=0.1, foreach=False),
             made(torch.optim.Adam, fused=True), made(torch.optim.AdamW, foreach=True)]

    def step():
        for kind in kinds:
            kind.step()
    return step


@case("grad-scaler")
def grad_scaler():
    import torch
    from torch import nn
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.01), torch.amp.GradScaler("cuda")
    x, y = torch.randn(64, 512, device="cuda"), labels(64, 10)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return step


@case("ddp", ranks=2, flops=False, annotate=2)
def ddp():
    import torch
    import torch.distributed as dist
    from torch import nn
    rank, several = int(os.environ["RANK"]), torch.cuda.device_count() > 1
    torch.cuda.set_device(rank if several else 0)
    dist.init_process_group("nccl" if several else "gloo")
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
    model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=2)
    return train(model, (torch.randn(64, 512, device="cuda"),), labels(64, 10))


@case("matmuls", with_flops=True)
def matmuls():
    import torch
    tf32(False)
    pairs = []
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        pairs.append((torch.randn(1024, 512, device="cuda").to(dtype), torch.randn(512, 2048, device="cuda").to(dtype)))
    batch = torch.randn(16, 256, 128, device="cuda", dtype=torch.bfloat16)
    small = torch.randn(1024, 1024, device="cuda")

    def step():
        for a, b in pairs:
            a @ b
        batch @ batch.mT
        torch.addmm(small, small, small.T)
        torch.einsum("bik,bjk->bij", batch, batch)
        tf32(True)
        small @ small
        tf32(False)
        small @ small[0]
    return step


@case("matmul-fp8", flops=False)
def matmul_fp8():
    import torch
    a = torch.randn(512, 1024, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(2048, 1024, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")

    def step():
        torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    return step


@case("streams")
def streams():
    import torch
    side = [torch.cuda.Stream() for _ in range(3)]
    parts = [torch.randn(512, 512, device="cuda") for _ in side]
    done = [torch.cuda.Event() for _ in side]

    def step():
        ready = torch.cuda.Event()
        ready.record()
        sums = []
        for stream, part, event in zip(side, parts, done):
            with torch.cuda.stream(stream):
                stream.wait_event(ready)
                sums.append((part @ part).relu().sum())
                event.record(stream)
        for event in done:
            torch.cuda.current_stream().wait_event(event)
        torch.stack(sums).sum().item()
    return step


@case("host-threads", flops=False)
def threads():
    """Four threads, each with a stream of its own, that allocate and free between each other."""
    import torch

    def work(at):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), torch.profiler.record_function("worker %d" % at):
            x = torch.randn(256, 256, device="cuda")
            for i in range(6):
                x = torch.relu(x @ x) + torch.randn(256, 256, device="cuda")
                torch.empty((at + 1) * 1000000, device="cuda", dtype=torch.uint8)
            x.sum().item()

    def step():
        workers = [threading.Thread(target=work, args=(at,)) for at in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return step


@case("fragments")
def fragments():
    """Blocks of growing size whose every second one stays: what is free is never in one piece."""
    import torch

    def step():
        kept = []
        for i in range(1, 24):
            kept.append(torch.empty(i * 3000000, device="cuda", dtype=torch.uint8))
            torch.empty(i * 3100000, device="cuda", dtype=torch.uint8).zero_()
            if i % 2:
                kept.pop()
        torch.zeros(200000000, device="cuda", dtype=torch.uint8)
    return step


@case("expandable-segments", environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
                                          "PYTORCH_ALLOC_CONF": "expandable_segments:True"})
def expandable_segments():
    import torch
    torch.empty(1, device="cuda")

    def step():
        torch.cuda.empty_cache()
        kept = [torch.zeros(i << 20, device="cuda", dtype=torch.uint8) for i in (1, 3, 30, 70)]
        del kept[1::2]
        kept.append(torch.ones(60 << 20, device="cuda", dtype=torch.uint8))
    return step


@case("copies")
def copies():
    import torch
    pageable, pinned = torch.randn(1 << 20), torch.randn(1 << 20).pin_memory()
    here, there = torch.empty(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")

    def step():
        here.copy_(pageable)
        here.copy_(pinned, non_blocking=True)
        there.copy_(here)
        pageable.copy_(here)
        pinned.copy_(there, non_blocking=True)
        torch.cuda.synchronize()
        there.zero_()
        here.view(1024, 1024)[:, :100].cpu()
        here[3].item()
    return step


@case("data-loader", annotate=3, flops=False)
def data_loader():
    import torch
    from torch import nn
    x, y = torch.randn(4096, 128), torch.randint(0, 10, (4096,))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 128, num_workers=2, pin_memory=True)
    model, batches = nn.Linear(128, 10).cuda(), iter(loader)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        data, target = next(batches)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data.cuda(non_blocking=True)), target.cuda(non_blocking=True))
        loss.backward()
        optimizer.step()
    return step


@case("stacks-modules", with_stack=True, with_modules=True)
def stacks_modules():
    import torch
    from torch import nn
    return train(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).cuda(),
                 (torch.randn(32, 64, device="cuda"),), labels(32, 10))


@case("bare", record_shapes=False, profile_memory=False)
def bare():
    """Nothing but what the profiler always says."""
    import torch
    x = torch.randn(256, 256, device="cuda")
    return lambda: torch.softmax(x @ x, -1).topk(8).values.sum().item()


@case("reductions", with_flops=True)
def reductions():
    import torch
    x, picks = torch.randn(512, 4096, device="cuda"), torch.randint(0, 512, (64,), device="cuda")

    def step():
        for did in (x.sum(), x.mean(0), x.amax(1), x.softmax(-1), x.cumsum(1), x.sort(1)[0], x.topk(16)[0], x[picks],
                    x.t().contiguous(), torch.where(x > 0, x, -x), x.to(torch.bfloat16), torch.unique(picks)):
            del did
    return step


# One case, in a process of its own.


def flops_of(step):
    from torch.utils.flop_counter import FlopCounterMode
    counter = FlopCounterMode(display=False)
    with counter:
        step()
    return {str(op): count for op, count in counter.get_flop_counts().get("Global", {}).items()}


def rows_of(prof):
    rows = []
    for row in prof.key_averages():
        rows.append({"key": row.key, "count": row.count, "device": str(row.device_type).rsplit(".", 1)[-1],
                     "self_cpu_us": row.self_cpu_time_total,
                     "self_device_us": getattr(row, "self_device_time_total", None),
                     "flops": getattr(row, "flops", 0) or 0})
    return rows


def profiled(step, steps, options):
    """The profiler when it has looked at the steps, marked by number when there are several."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities, **options):
        torch.ones(1, device="cuda")  # CUPTI starts
        torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    memory = {"start_allocated": torch.cuda.memory_allocated(), "start_reserved": torch.cuda.memory_reserved()}
    if steps:
        schedule = torch.profiler.schedule(wait=0, warmup=1, active=steps)
        options = dict(options, schedule=schedule)
    with profile(activities=activities, **options) as prof:
        if steps:
            step()
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            memory = {"start_allocated": torch.cuda.memory_allocated(), "start_reserved": torch.cuda.memory_reserved()}
            prof.step()
        for at in range(steps or 1):
            step()
            if steps and at + 1 < steps:
                prof.step()
        torch.cuda.synchronize()
        memory.update(peak_allocated=torch.cuda.max_memory_allocated(), peak_reserved=torch.cuda.max_memory_reserved(),
                      end_allocated=torch.cuda.memory_allocated(), end_reserved=torch.cuda.memory_reserved())
    return prof, memory


def expected_of(name, prof, memory, flops, steps):
    import torch
    about = torch.cuda.get_device_properties(torch.cuda.current_device())
    rows = rows_of(prof)
    return {"name": name, "torch": torch.__version__, "cuda": torch.version.cuda, "steps": steps or 1,
            "device": {"name": about.name, "sms": about.multi_processor_count, "memory_bytes": about.total_memory,
                       "capability": [about.major, about.minor]},
            "memory": memory, "flops_a_step": flops,
            "kernels_and_copies": sum(row["count"] for row in rows if row["device"] == "CUDA"), "rows": rows}


def run_case(name, folder):
    import torch
    if not torch.cuda.is_available():
        raise Skipped("no GPU")
    about, rank = CASES[name], os.environ.get("RANK")
    torch.manual_seed(1 + int(rank or 0))
    step = about["make"]()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    flops = None
    if about["flops"]:
        try:
            flops = flops_of(step)
        except Exception as error:  # the counter does not know every operator; the trace is wanted all the same
            print("%s: no FLOPs: %s" % (name, error), file=sys.stderr)
    prof, memory = profiled(step, about["annotate"], about["profiler"])
    if rank is not None:
        name += "-rank" + rank
    plain = os.path.join(folder, "." + name + ".json")
    prof.export_chrome_trace(plain)
    with open(plain, "rb") as trace, open(os.path.join(folder, name + ".json.gz"), "wb") as packed:
        with gzip.GzipFile("", "wb", 9, packed, 0) as out:
            out.write(trace.read())
    os.unlink(plain)
    with open(os.path.join(folder, name + ".expected.json"), "w") as out:
        json.dump(expected_of(name, prof, memory, flops, about["annotate"]), out, indent=0)
    if rank is not None:
        torch.distributed.destroy_process_group()


def run_here(name, folder):
    try:
        run_case(name, folder)
    except Skipped as why:
        print("skipped: %s" % why)
        return 77
    except Exception as error:
        traceback.print_exc()
        print("%s: %s" % (type(error).__name__, str(error).split("\n")[0]))
        return 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # what a backend does when Python ends is none of the trace's business


# All of them.


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def start(name, folder):
    ranks = CASES[name]["ranks"]
    common = dict(os.environ, **CASES[name]["environment"])
    if ranks > 1:
        common.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(), WORLD_SIZE=str(ranks))
    for rank in range(ranks):
        environment = dict(common, RANK=str(rank), LOCAL_RANK=str(rank)) if ranks > 1 else common
        yield subprocess.Popen([sys.executable, os.path.abspath(__file__), "--one", folder, name], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def supervise(name, folder):
    begin, said, codes = time.time(), [], []
    children = list(start(name, folder))
    for child in children:
        try:
            out, err = child.communicate(timeout=max(1, SECONDS - (time.time() - begin)))
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            out = "not done after %d s" % SECONDS
        codes.append(child.returncode)
        said.append((out.strip().split("\n") or [""])[-1])
        if child.returncode not in (0, 77):
            sys.stderr.write("".join("%s: %s\n" % (name, line) for line in err.strip().split("\n")[-12:]))
    made = [f for f in sorted(os.listdir(folder)) if f.endswith(".json.gz") and
            (f == name + ".json.gz" or f.startswith(name + "-rank"))] if not any(codes) else []
    size = ", ".join("%s %d KiB" % (f, (os.path.getsize(os.path.join(folder, f)) + 1023) // 1024) for f in made)
    what = size or (said[0] if said[0].startswith("skipped") else "FAILED: " + "; ".join(filter(None, said)))
    print("%-32s %5.1f s  %s" % (name, time.time() - begin, what), flush=True)
    return any(code not in (0, 77) for code in codes)


def supervise_all(names, folder, jobs):
    waiting, failed = queue.Queue(), []
    for name in names:
        waiting.put(name)

    def work():
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            if supervise(name, folder):
                failed.append(name)

    workers = [threading.Thread(target=work) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time (times on the device suffer from company)")
    parser.add_argument("--list", action="store_true", help="print the cases' names")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(CASES))
        return 0
    unknown = [name for name in options.cases if name not in CASES]
    if not options.folder or unknown:
        parser.error("no such case: " + ", ".join(unknown) if unknown else "where to?  Name a folder")
    if options.one:
        return run_here(options.cases[0], options.folder)
    os.makedirs(options.folder, exist_ok=True)
    failed = supervise_all(options.cases or list(CASES), options.folder, max(1, options.jobs))
    if failed:
        print("failed: " + ", ".join(failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
