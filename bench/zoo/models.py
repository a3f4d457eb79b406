"""Whole models with random weights, to be recorded: what applications do, not one operator alone.

    python3 models.py resnet|decoder|opt|train --csv calls.csv --seconds 30 --calls 150

resnet: inference of a ResNet-50, batches and types by chance.  train: its training steps.  decoder:
a GPT-like decoder, prefill and then decoding with a cache of keys and values.  opt: the same with
the transformers library, where that is there.
"""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import zoo_ops

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        self.a, self.na = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.b = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.nb = nn.BatchNorm2d(width)
        self.c, self.nc = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.short = None
        if stride != 1 or inside != 4 * width:
            self.short = nn.Sequential(nn.Conv2d(inside, 4 * width, 1, stride, bias=False),
                                       nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.na(self.a(x)))
        y = F.relu(self.nb(self.b(y)))
        y = self.nc(self.c(y))
        return F.relu(y + (self.short(x) if self.short else x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        layers, inside = [], 64
        for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(blocks):
                layers.append(Bottleneck(inside, width, stride if i == 0 else 1))
                inside = 4 * width
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(inside, 1000)

    def forward(self, x):
        return self.head(self.layers(self.stem(x)).mean((2, 3)))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache):
        b, n, w = x.shape
        parts = self.qkv(self.n1(x)).view(b, n, 3, self.heads, w // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, w))
        return x + self.down(F.gelu(self.up(self.n2(x)))), (k, v)


class Decoder(nn.Module):
    def __init__(self, width=768, heads=12, layers=12, words=50272):
        super().__init__()
        self.words = words
        self.embed, self.place = nn.Embedding(words, width), nn.Embedding(4096, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens, start, caches):
        places = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        x = self.embed(tokens) + self.place(places)
        out = []
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers)):
            x, kept = layer(x, cache)
            out.append(kept)
        logits = F.linear(self.norm(x[:, -1]), self.embed.weight)
        return logits.argmax(-1, keepdim=True), out


class Runs:
    """Runs of a model until the time is over: each call is a row.

    The time begins with the first question whether there is more of it: what was imported and built
    before does not count, which on a machine that has not read those files yet takes longer than the
    runs."""

    def __init__(self, o):
        self.table = zoo_ops.Table(o.csv, o.app)
        self.rng = zoo_ops.rng_for(o.seed, o.app)
        self.seconds = o.seconds
        self.end = None
        self.calls = o.calls

    def more(self):
        torch.cuda.synchronize()
        if self.end is None:
            self.end = time.monotonic() + self.seconds
        return time.monotonic() < self.end and self.table.order < self.calls

    def call(self, function, name, dtype, **sizes):
        return self.table.call(function, name, dtype, sizes=sizes)


def resnet(runs):
    models = {d: ResNet50().cuda().eval().to(DTYPES[d]) for d in ("fp32", "fp16", "bf16")}
    models["tf32"] = models["fp32"]
    with torch.inference_mode():
        while runs.more():
            d, last = runs.rng.choice(list(models)), runs.rng.random() < 0.5
            batch, side = runs.rng.choice([1, 2, 4, 8, 16, 32, 64]), runs.rng.choice([160, 224, 224, 288])
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = d == "tf32"
            form = torch.channels_last if last else torch.contiguous_format
            model = models[d].to(memory_format=form)
            x = torch.randn(batch, 3, side, side, device="cuda", dtype=DTYPES[d])
            x = x.contiguous(memory_format=form)
            for _ in range(3):
                runs.call(lambda: model(x), "resnet50", d, batch=batch, side=side, channels_last=int(last))


def train(runs):
    model = ResNet50().cuda()
    step = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def once(x, y, autocast):
        step.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        step.step()

    while runs.more():
        batch, autocast = runs.rng.choice([4, 8, 16, 32, 64]), runs.rng.random() < 0.5
        x = torch.randn(batch, 3, 224, 224, device="cuda")
        y = torch.randint(0, 1000, (batch,), device="cuda")
        for _ in range(3):
            runs.call(lambda: once(x, y, autocast), "resnet50_train", "bf16" if autocast else "fp32",
                      batch=batch)


def decode(runs, model, d, tokens, steps):
    batch, length = tokens.shape
    last, caches = runs.call(lambda: model(tokens, 0, None), "prefill", d, batch=batch, length=length)
    for i in range(steps):
        at = length + i
        last, caches = runs.call(lambda: model(last, at, caches), "decode", d, batch=batch, cached=at)


def decoder(runs):
    models = {d: Decoder().cuda().eval().to(DTYPES[d]) for d in ("fp32", "fp16", "bf16")}
    with torch.inference_mode():
        while runs.more():
            d, batch = runs.rng.choice(list(models)), runs.rng.choice([1, 2, 4, 8, 16])
            length = zoo_ops.size(runs.rng, 16, 1024)
            tokens = torch.randint(0, models[d].words, (batch, length), device="cuda")
            decode(runs, models[d], d, tokens, 16)


def opt(runs):
    from transformers import OPTConfig, OPTForCausalLM
    model = OPTForCausalLM(OPTConfig()).cuda().eval().half()
    with torch.inference_mode():
        model(torch.zeros(1, 32, dtype=torch.long, device="cuda"))  # loads what it needs
        while runs.more():
            batch, length = runs.rng.choice([1, 2, 4, 8]), zoo_ops.size(runs.rng, 17, 1024)
            tokens = torch.randint(0, 50000, (batch, length), device="cuda")
            out = runs.call(lambda: model(tokens, use_cache=True), "opt_prefill", "fp16", batch=batch,
                            length=length)
            for i in range(16):
                last, kept = out.logits[:, -1:].argmax(-1), out.past_key_values
                out = runs.call(lambda: model(last, past_key_values=kept, use_cache=True), "opt_decode",
                                "fp16", batch=batch, cached=length + i)


MODELS = {"resnet": resnet, "train": train, "decoder": decoder, "opt": opt}


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in MODELS:
        raise SystemExit(f"usage: models.py {'|'.join(MODELS)} [--csv FILE] [--seconds S] [--seed N]")
    name = sys.argv.pop(1)
    torch.manual_seed(1)
    runs = Runs(zoo_ops.options(name))
    try:
        MODELS[name](runs)
    finally:  # what was done before a failure is data too
        runs.table.close()


if __name__ == "__main__":
    main()
