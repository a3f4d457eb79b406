"""Triton kernels with fixed constants over many shapes, to be recorded.

    python3 triton_zoo.py --csv calls.csv --seconds 40
    python3 triton_zoo.py --check

Autotuning is off: each tile, number of warps and of stages is a kernel of its own, with a name of its
own, made from the sources in triton_kernels.py.  Sizes are mostly multiples of 16, since Triton
compiles a kernel again for integers that are not.  All are compiled before the first row.
"""
import collections
import importlib.util
import inspect
import os
import subprocess
import sys
import tempfile
import time

import torch
import triton

import triton_kernels
import zoo_ops
from zoo_ops import ELEMENT_BYTES, Op

MOST = 1 << 29
SHAPES, FEW = 60, 30
PROCESSES = 8  # that compile
WARM_SECONDS = 90
TORCH = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
HALF = ["fp16", "bf16"]

# A launch: name of the kernel, function in triton_kernels.py, and what the launch is given.
Launch = collections.namedtuple("Launch", "name source grid args options")


class Pool:
    """Inputs and outputs in two buffers a type; of few elements where kernels are only compiled."""

    def __init__(self, elements=2 * MOST):
        numbers = torch.rand(elements, device="cuda").mul_(2).sub_(1)
        self.numbers = {t: numbers.to(t) for t in set(TORCH.values())}
        self.out = {t: torch.empty_like(numbers, dtype=t) for t in self.numbers}

    def get(self, dtype, n, end=False):
        buffer = self.numbers[TORCH[dtype]]
        start = max(0, buffer.numel() - n) // 64 * 64 if end else 0  # aligned, as allocations are
        return buffer[start:start + n]

    def z(self, dtype):
        return self.out[TORCH[dtype]]


class Nothing:
    """A pool of which only the names of launches are asked."""

    def get(self, dtype, n, end=False):
        return None

    def z(self, dtype):
        return None


def mostly_round(r, low, high):
    return zoo_ops.size(r, low, high, 1 if r.random() < 0.1 else 16)


def draw_vector(flops, moved):
    def draw(r, t):
        n = mostly_round(r, 256, MOST)
        return dict(n=n), flops * n, moved * n * ELEMENT_BYTES[t]
    return draw


def draw_rows(flops, low, high, written=True):
    def draw(r, t):
        columns = zoo_ops.size(r, low, high, 16)  # a kernel for each power of two
        rows = zoo_ops.size(r, 2, min(1 << 20, MOST // columns))
        out = rows * columns if written else rows
        moved = (rows * columns + out) * ELEMENT_BYTES[t]
        return dict(rows=rows, columns=columns), flops * rows * columns, moved
    return draw


def draw_matmul(split=0):
    """split: how many matrices of 32-bit sums are written instead of one of the type."""
    def draw(r, t):
        m, n, k = (zoo_ops.size(r, 16, 16384, 16) for _ in range(3))
        if max(m * n * (split or 1), m * k, n * k) > MOST:
            return None
        w = ELEMENT_BYTES[t]
        return dict(m=m, n=n, k=k), 2.0 * m * n * k, w * (m * k + n * k) + (4 * split or w) * m * n
    return draw


def draw_attention(d, causal):
    def draw(r, t):
        heads, n = zoo_ops.size(r, 2, 1024), zoo_ops.size(r, 32, 8192, 16)
        if heads * n * d > MOST:
            return None
        pairs = n * (n + 1) / 2 if causal else n * n
        return dict(heads=heads, n=n), 4.0 * heads * pairs * d, 4 * heads * n * d * ELEMENT_BYTES[t]
    return draw


def make_vector(source, block):
    def make(p, t, n):
        args = p.get(t, n), p.get(t, n, True), p.z(t), n
        return Launch(f"{source}_{block}_e{ELEMENT_BYTES[t]}", source, (triton.cdiv(n, block),), args,
                      dict(B=block))
    return make


def make_rows(source, warps):
    def make(p, t, rows, columns):
        block = triton.next_power_of_2(columns)
        args = p.get(t, rows * columns), p.get(t, columns, True), p.z(t), columns
        return Launch(f"{source}_{block}_w{warps}_e{ELEMENT_BYTES[t]}", source, (rows,), args,
                      dict(B=block, num_warps=warps))
    return make


def make_reduce(block, warps):
    def make(p, t, rows, columns):
        args = p.get(t, rows * columns), p.z(t), columns
        return Launch(f"reduce_rows_{block}_w{warps}_e{ELEMENT_BYTES[t]}", "reduce_rows", (rows,), args,
                      dict(B=block, num_warps=warps))
    return make


def tile_word(tile):
    bm, bn, bk, warps, stages = tile
    return f"{bm}x{bn}x{bk}_w{warps}_s{stages}"


def make_matmul(source, tile, more=0):
    """more: tiles of a group, or parts of the inner side."""
    bm, bn, bk, warps, stages = tile
    options = dict(BM=bm, BN=bn, BK=bk, num_warps=warps, num_stages=stages)
    word = tile_word(tile) + (f"_x{more}" if more else "")
    if source == "matmul_grouped":
        options["GROUP"] = more

    def make(p, t, m, n, k):
        a, b, c = p.get(t, m * k), p.get(t, k * n, True), p.z(t)
        grid, args = (triton.cdiv(m, bm), triton.cdiv(n, bn)), (a, b, c, m, n, k)
        if source == "matmul_grouped":
            grid = (grid[0] * grid[1],)
        elif source == "matmul_split":
            part = triton.cdiv(triton.cdiv(k, more), bk) * bk
            grid, args = (*grid, more), (a, b, p.z("fp32"), m, n, k, part)
        elif source == "matmul_bias_relu":
            args = a, b, c, p.get(t, n), m, n, k
        return Launch(f"{source}_{word}_e{ELEMENT_BYTES[t]}", source, grid, args, options)
    return make


def make_attention(bm, bn, d, causal, warps):
    kind = "attention_causal" if causal else "attention"

    def make(p, t, heads, n):
        size = heads * n * d
        args = p.get(t, size), p.get(t, size), p.get(t, size, True), p.z(t), n, d ** -0.5
        options = dict(BM=bm, BN=bn, D=d, CAUSAL=causal, num_warps=warps, num_stages=2)
        return Launch(f"{kind}_{bm}x{bn}_d{d}_w{warps}_e{ELEMENT_BYTES[t]}", "attention",
                      (triton.cdiv(n, bm), heads), args, options)
    return make


TILES = [  # block of m, n, k; warps; stages
    (16, 64, 64, 4, 3), (32, 32, 32, 4, 2), (32, 128, 64, 4, 3),
    (64, 32, 32, 4, 3), (64, 64, 32, 4, 3), (64, 64, 64, 4, 4), (64, 128, 32, 4, 4), (64, 128, 64, 4, 3),
    (64, 256, 32, 8, 3), (128, 32, 64, 4, 3), (128, 64, 32, 4, 3), (128, 64, 64, 8, 3),
    (128, 128, 32, 4, 3), (128, 128, 32, 8, 3), (128, 128, 64, 4, 4), (128, 128, 128, 8, 2),
    (128, 256, 64, 8, 3), (256, 64, 32, 4, 4), (256, 64, 64, 8, 3), (256, 128, 64, 8, 3),
]
WITH_TF32 = [(32, 32, 32, 4, 2), (64, 64, 32, 4, 3), (128, 64, 32, 4, 3), (128, 128, 32, 8, 3)]
SOME_TILES = [(32, 64, 64, 4, 3), (64, 64, 64, 4, 3), (64, 128, 32, 4, 3), (128, 128, 64, 8, 3),
              (128, 256, 64, 8, 3)]
ATTENTION = [  # block of queries, of keys; warps
    (32, 32, 4), (32, 64, 4), (64, 32, 4), (64, 64, 4), (64, 128, 4), (128, 32, 4), (128, 64, 4),
    (128, 64, 8), (128, 128, 8),
]
OPS = {}
for source, (flops, moved, types) in {"add": (1, 3, ["fp32", "fp16"]), "scale": (2, 2, ["fp32", "fp16"]),
                                      "silu_mul": (5, 3, ["fp32", "bf16"])}.items():
    for block in (128, 256, 512, 1024, 2048, 4096):
        OPS[f"{source}_{block}"] = Op(FEW, types, draw_vector(flops, moved), make_vector(source, block))
for warps in (1, 2, 4, 8):
    low, high = 64 * warps, 2048 * warps
    for source, flops in (("softmax", 5), ("layernorm", 7), ("rmsnorm", 4)):
        OPS[f"{source}_w{warps}"] = Op(SHAPES, ["fp32", "bf16"], draw_rows(flops, low, high),
                                       make_rows(source, warps))
    for block in (64 * warps, 256 * warps):
        OPS[f"reduce_rows_{block}_w{warps}"] = Op(FEW, ["fp32", "fp16"], draw_rows(1, 64, 1 << 16, False),
                                                  make_reduce(block, warps))
for tile in TILES:
    types = HALF + (["tf32"] if tile in WITH_TF32 else [])
    OPS[f"matmul_{tile_word(tile)}"] = Op(SHAPES, types, draw_matmul(), make_matmul("matmul", tile))
for tile in SOME_TILES:
    word = tile_word(tile)
    OPS[f"matmul_grouped_{word}"] = Op(SHAPES, HALF, draw_matmul(), make_matmul("matmul_grouped", tile, 8))
    OPS[f"matmul_bias_relu_{word}"] = Op(SHAPES, HALF, draw_matmul(), make_matmul("matmul_bias_relu", tile))
    for parts in (2, 8):
        OPS[f"matmul_split_{word}_x{parts}"] = Op(FEW, HALF, draw_matmul(parts),
                                                  make_matmul("matmul_split", tile, parts))
for bm, bn, warps in ATTENTION:
    for d in (64, 128):
        for causal in (0, 1):
            OPS[f"attention{'_causal' * causal}_{bm}x{bn}_d{d}_w{warps}"] = Op(
                FEW, HALF, draw_attention(d, causal), make_attention(bm, bn, d, causal, warps))


def text_of(source, name):
    function = getattr(triton_kernels, source)
    return "\n\n@triton.jit\n" + inspect.getsource(function).replace(f"def {source}(", f"def {name}(", 1)


def kernels_of(launches, folder):
    """Kernels by name, in a module that is written: Triton reads a kernel's text from its file."""
    names = {launch.name: launch.source for launch in launches}
    path = os.path.join(folder, "zoo_variants.py")
    with open(path, "w") as f:
        f.write("import triton\nimport triton.language as tl\n")
        f.write(text_of("tile_sums", "tile_sums"))
        f.writelines(text_of(names[name], name) for name in sorted(names))
    spec = importlib.util.spec_from_file_location("zoo_variants", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return {name: getattr(module, name) for name in names}


def distinct(calls):
    """One call of all that need the same compilation."""
    found = {}
    for op, dtype, _, sizes, _, _ in calls:
        launch = OPS[op].make(Nothing(), dtype, **sizes)
        integers = tuple((a % 16 == 0, a == 1) for a in launch.args if isinstance(a, int))
        found.setdefault((launch.name, dtype, integers), (op, dtype, sizes))
    return list(found.values())


def compile_some(kernels, jobs, pool, seconds):
    """Into Triton's cache, and launches nothing; what fails here will fail again and be told then."""
    end = time.monotonic() + seconds
    for op, dtype, sizes in jobs:
        if time.monotonic() > end:
            break
        launch = OPS[op].make(pool, dtype, **sizes)
        try:
            kernels[launch.name].warmup(*launch.args, grid=launch.grid, **launch.options)
        except Exception:
            pass


def compile_in_parallel(o):
    """This program some times, each with a share of the kernels."""
    command = [sys.executable, os.path.abspath(__file__), "--seed", str(o.seed), "--shapes", str(o.shapes)]
    end = time.monotonic() + WARM_SECONDS
    children = [subprocess.Popen(command + ["--warm", str(i)] + ["--check"] * o.check)
                for i in range(PROCESSES)]
    for child in children:
        try:
            child.wait(max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def references(p, op, t, s):
    """PyTorch's answer for the same inputs, in 32 bits."""
    f = lambda n, end=False: p.get(t, n, end).float()  # noqa: E731
    if op.startswith("add"):
        return f(s["n"]) + f(s["n"], True)
    if op.startswith("scale"):
        return f(s["n"]) * f(s["n"], True)[0] + 1
    if op.startswith("silu"):
        return torch.nn.functional.silu(f(s["n"])) * f(s["n"], True)
    if "rows" in s:
        x = f(s["rows"] * s["columns"]).view(s["rows"], -1)
        if op.startswith("softmax"):
            return torch.softmax(x, 1)
        if op.startswith("reduce"):
            return x.sum(1)
        norm = torch.nn.functional.layer_norm if op.startswith("layer") else torch.nn.functional.rms_norm
        return norm(x, (s["columns"],), f(s["columns"], True), eps=1e-5)
    if op.startswith("matmul"):
        out = f(s["m"] * s["k"]).view(s["m"], -1) @ f(s["k"] * s["n"], True).view(s["k"], -1)
        return (out + f(s["n"])).relu() if "bias" in op else out
    d = 128 if "_d128_" in op else 64
    shape, size = (s["heads"], s["n"], d), s["heads"] * s["n"] * d
    q, k, v = f(size).view(shape), f(size).view(shape), f(size, True).view(shape)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal="causal" in op)


def answer(pool, op, dtype, want, launch):
    if launch.source == "matmul_split":
        return pool.z("fp32")[:want.numel() * launch.grid[2]].view(launch.grid[2], -1).sum(0)
    return pool.z(dtype)[:want.numel()].float()


CHECKED = {"n": 1000, "rows": 37, "columns": 144, "m": 160, "k": 96, "heads": 3}


def checks():
    """The calls that are checked, one of each operator and type."""
    for op, (_, dtypes, draw, _) in OPS.items():
        for dtype in dtypes:
            rng, drawn = zoo_ops.rng_for(0, op), None
            while drawn is None:
                drawn = draw(rng, dtype)
            yield op, dtype, 0, {k: CHECKED[k] for k in drawn[0]}, 0, 0


def check(kernels, pool):
    bad = 0
    for op, dtype, _, sizes, _, _ in checks():
        launch = OPS[op].make(pool, dtype, **sizes)
        want = references(pool, op, dtype, sizes).flatten()
        try:
            kernels[launch.name][launch.grid](*launch.args, **launch.options)
            error = ((answer(pool, op, dtype, want, launch) - want).norm() / want.norm()).item()
        except Exception as e:  # too much shared memory, say: the others are checked
            error = float("inf")
            print((str(e).strip() or "?").splitlines()[0])
        good = error < (1e-2 if dtype != "fp32" else 1e-4)
        bad += not good
        print(f"{'ok' if good else 'BAD':4} {op} {dtype} {error:.1e}")
    return bad


def main():
    o = zoo_ops.options("triton_zoo")
    torch.backends.cuda.matmul.allow_tf32 = False
    calls = list(checks()) if o.check else zoo_ops.calls(OPS, o.seed, o.shapes)
    launches = [OPS[op].make(Nothing(), dtype, **sizes) for op, dtype, _, sizes, _, _ in calls]
    jobs = distinct(calls)
    with tempfile.TemporaryDirectory() as folder:
        kernels = kernels_of(launches, folder)
        if o.warm is not None:
            compile_some(kernels, jobs[o.warm::PROCESSES], Pool(1 << 10), WARM_SECONDS)
            return
        began = time.monotonic()
        compile_in_parallel(o)
        pool = Pool()
        compile_some(kernels, jobs, pool, WARM_SECONDS)
        print(f"{len(jobs)} kernels compiled in {time.monotonic() - began:.0f} s")
        if o.check:
            raise SystemExit(check(kernels, pool) != 0)
        run(o, calls, kernels, pool)


def run(o, calls, kernels, pool):
    table = zoo_ops.Table(o.csv, o.app)
    todo = zoo_ops.shuffled(calls, zoo_ops.rng_for(o.seed, "order"))

    def prepare(op, dtype, sizes):
        launch = OPS[op].make(pool, dtype, **sizes)
        return lambda: kernels[launch.name][launch.grid](*launch.args, **launch.options)

    done = zoo_ops.run(table, todo, o.seconds, prepare, torch.cuda.synchronize)
    table.close()
    print(f"triton {triton.__version__}: {done} of {len(todo)} calls in the time given")


if __name__ == "__main__":
    main()
