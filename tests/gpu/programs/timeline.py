#!/usr/bin/env python3
"""Eight programs of several kinds, for comparing ways of recording them: timeline.py NAME [profile].

Prints `seconds N`, the least time of its part that matters, after a warm-up.  Nothing is downloaded: models have random
weights.  With `profile` torch.profiler records the GPU meanwhile.  Exits 77 where what it needs is not there.
With TIMELINE_TURN=FILE in the environment it prints `imported` before it touches the GPU and goes on when FILE is there.
"""
import contextlib
import os
import sys
import time

try:
    import torch
except ImportError:
    print("needs PyTorch")
    sys.exit(77)


def turn():
    """Modules are imported, the GPU is not used yet: many can come to here at the same time."""
    if "TIMELINE_TURN" in os.environ:
        print("imported", flush=True)
        while not os.path.exists(os.environ["TIMELINE_TURN"]):
            time.sleep(0.01)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    turn()
    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16, vocab_size=32000)
    model = LlamaForCausalLM(config).half().cuda().eval()
    ids = torch.randint(0, 32000, (4, 64), device="cuda")
    return lambda: model.generate(ids, max_new_tokens=48, do_sample=False, pad_token_id=0)


def resnet():
    from torchvision.models import resnet50

    turn()
    model = resnet50().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,), device="cuda")

    def run():
        for _ in range(10):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels)
            loss.backward()
            optimizer.step()

    return run


def unet():
    def block(i, o):
        return torch.nn.Sequential(torch.nn.Conv2d(i, o, 3, padding=1), torch.nn.GroupNorm(8, o), torch.nn.SiLU())

    turn()
    widths = [64, 128, 256]
    down = torch.nn.ModuleList([block(a, b) for a, b in zip([4] + widths[:-1], widths)]).half().cuda()
    up = torch.nn.ModuleList([block(2 * b, a) for a, b in zip([8, 64, 128], widths)][::-1]).half().cuda()

    def step(x):
        kept = []
        for layer in down:
            x = layer(x) if not kept else layer(torch.nn.functional.avg_pool2d(x, 2))
            kept.append(x)
        for layer, other in zip(up, kept[::-1]):
            x = layer(torch.cat([torch.nn.functional.interpolate(x, other.shape[-2:]), other], 1))
        return x

    def run():
        x = torch.randn(2, 4, 128, 128, device="cuda", dtype=torch.half)
        with torch.inference_mode():
            for _ in range(50):
                x = x[:, :4] - 0.1 * step(x[:, :4])[:, :4]

    return run


def jax():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy as np

    turn()
    if jax.default_backend() != "gpu":
        raise ImportError("jax for GPUs")
    step = jax.jit(lambda x: np.tanh(x @ x) / 100)
    start = jax.random.normal(jax.random.PRNGKey(0), (2048, 2048))

    def run():
        x = start
        for _ in range(200):
            x = step(x)
        x.block_until_ready()

    return run


def cupy():
    import cupy as cp

    turn()
    x = cp.random.rand(1 << 20, dtype=cp.float32)

    def run():
        for _ in range(50):
            cp.sort(x)
            cp.fft.fft(x)
            float((x * 2 + 1).sum())

    return run


def graph():
    turn()
    layers = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(20)]).half().cuda()
    x = torch.randn(64, 512, device="cuda", dtype=torch.half)
    with torch.inference_mode():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            layers(x)
        torch.cuda.synchronize()
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            layers(x)

    def run():
        for i in range(300):
            recorded.replay()
            if i % 50 == 49:
                torch.cuda.synchronize()

    return run


def streams():
    turn()
    many = [torch.cuda.Stream() for _ in range(4)]
    data = [torch.randn(1024, 1024, device="cuda") for _ in many]

    def run():
        for _ in range(100):
            for stream, x in zip(many, data):
                with torch.cuda.stream(stream):
                    (x @ x).relu_()
            for stream in many:
                torch.cuda.current_stream().wait_stream(stream)
            sum(x.sum() for x in data)

    return run


def ddp_worker(rank, seconds):
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2)
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    x = torch.randn(256, 2048, device="cuda")
    seconds.value = float("inf")
    for part in range(8):
        torch.cuda.synchronize()
        begin = time.monotonic()
        for _ in range(30):
            model(x).sum().backward()
        torch.cuda.synchronize()
        seconds.value = min(seconds.value, time.monotonic() - begin) if part else seconds.value
    dist.destroy_process_group()


def ddp():
    import torch.multiprocessing as mp

    turn()
    if torch.cuda.device_count() < 2:
        raise ImportError("two GPUs")
    seconds = mp.get_context("spawn").Value("d", 0)
    mp.spawn(ddp_worker, args=(seconds,), nprocs=2)
    print(f"seconds {seconds.value:.4f}")
    sys.exit(0)


def main():
    programs = {f.__name__: f for f in (llama, resnet, unet, jax, cupy, graph, streams, ddp)}
    profile = contextlib.nullcontext()
    if sys.argv[2:] == ["profile"]:
        profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    try:
        run = programs[sys.argv[1]]()
    except ImportError as e:
        print(f"needs {e}")
        sys.exit(77)
    run()
    torch.cuda.synchronize()
    with profile:
        least = float("inf")
        began, times = time.monotonic(), 0
        while times < 3 or time.monotonic() - began < 0.6:
            begin = time.monotonic()
            run()
            torch.cuda.synchronize()
            least = min(least, time.monotonic() - begin)
            times += 1
    print(f"seconds {least:.4f}")


if __name__ == "__main__":
    main()
