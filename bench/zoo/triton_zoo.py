"""Triton kernels with fixed block sizes over many shapes, to be recorded.

    python3 triton_zoo.py --csv calls.csv --seconds 40
    python3 triton_zoo.py --check

Autotuning is off: each block size is a kernel of its own.  Sizes are mostly multiples of 16, since
Triton compiles a kernel again for integers that are not.
"""
import torch
import triton
import triton.language as tl

import zoo_ops

MOST = 1 << 29


@triton.jit
def add_kernel(x, y, z, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    mask = i < n
    tl.store(z + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def silu_mul_kernel(x, y, z, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    mask = i < n
    v = tl.load(x + i, mask=mask).to(tl.float32)
    w = tl.load(y + i, mask=mask).to(tl.float32)
    tl.store(z + i, (v * tl.sigmoid(v) * w).to(z.dtype.element_ty), mask=mask)


@triton.jit
def softmax_kernel(x, z, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    c = tl.arange(0, B)
    mask = c < columns
    v = tl.load(x + row + c, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(z + row + c, (e / tl.sum(e, 0)).to(z.dtype.element_ty), mask=mask)


@triton.jit
def layernorm_kernel(x, w, z, columns, eps, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    c = tl.arange(0, B)
    mask = c < columns
    v = tl.load(x + row + c, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / columns
    d = tl.where(mask, v - mean, 0.0)
    by = 1.0 / tl.sqrt(tl.sum(d * d, 0) / columns + eps)
    scale = tl.load(w + c, mask=mask, other=0.0).to(tl.float32)
    tl.store(z + row + c, (d * by * scale).to(z.dtype.element_ty), mask=mask)


@triton.jit
def matmul_kernel(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    row_at = rows.to(tl.int64)
    column_at = columns.to(tl.int64)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, k, BK):
        i = first + inner
        left = tl.load(a + row_at[:, None] * k + i[None, :],
                       mask=(rows[:, None] < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + i.to(tl.int64)[:, None] * n + column_at[None, :],
                        mask=(i[:, None] < k) & (columns[None, :] < n), other=0.0)
        sums = tl.dot(left, right, sums)
    tl.store(c + row_at[:, None] * n + column_at[None, :], sums.to(c.dtype.element_ty),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def attention_kernel(q, k, v, z, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    base = tl.program_id(1).to(tl.int64) * n * D
    d = tl.arange(0, D)
    query = tl.load(q + base + rows[:, None] * D + d[None, :], mask=rows[:, None] < n, other=0.0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    out = tl.zeros((BM, D), dtype=tl.float32)
    for first in range(0, n, BN):
        columns = first + tl.arange(0, BN)
        key = tl.load(k + base + columns[None, :] * D + d[:, None], mask=columns[None, :] < n,
                      other=0.0)
        score = tl.dot(query, key) * scale
        score = tl.where(columns[None, :] < n, score, -float("inf"))
        now = tl.maximum(most, tl.max(score, 1))
        weight = tl.exp(score - now[:, None])
        fade = tl.exp(most - now)
        total = total * fade + tl.sum(weight, 1)
        value = tl.load(v + base + columns[:, None] * D + d[None, :], mask=columns[:, None] < n,
                        other=0.0)
        out = out * fade[:, None] + tl.dot(weight.to(value.dtype), value)
        most = now
    tl.store(z + base + rows[:, None] * D + d[None, :], (out / total[:, None]).to(z.dtype.element_ty),
             mask=rows[:, None] < n)


TORCH = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
TILES = {  # block of m, n, k; warps; stages
    "32x32": (32, 32, 32, 4, 2),
    "64x64": (64, 64, 32, 4, 3),
    "128x64": (128, 64, 32, 4, 3),
    "128x128": (128, 128, 32, 8, 3),
    "128x256": (128, 256, 64, 8, 3),
}


class Pool:
    def __init__(self):
        numbers = torch.rand(MOST * 2, device="cuda").mul_(2).sub_(1)
        self.numbers = {t: numbers.to(t) for t in (torch.float32, torch.float16, torch.bfloat16)}
        self.out = {t: torch.empty(MOST, device="cuda", dtype=t) for t in self.numbers}

    def get(self, dtype, n, end=False):
        buffer = self.numbers[TORCH[dtype]]
        start = (buffer.numel() - n) // 64 * 64 if end else 0  # aligned, as allocations are
        return buffer[start:start + n]

    def z(self, dtype):
        return self.out[TORCH[dtype]]


def mostly_round(r, low, high):
    return zoo_ops.size(r, low, high, 1 if r.random() < 0.1 else 16)


def draw_vector(flops):
    def draw(r):
        n = mostly_round(r, 256, MOST)
        return dict(n=n), flops * n, 3 * n
    return draw


def draw_rows(flops):
    def draw(r):
        columns = zoo_ops.size(r, 128, 1 << 14, 16)  # a kernel for each power of two
        rows = zoo_ops.size(r, 2, min(1 << 20, MOST // columns))
        return dict(rows=rows, columns=columns), flops * rows * columns, 2 * rows * columns
    return draw


def draw_matmul(r):
    m, n, k = (zoo_ops.size(r, 16, 16384, 16) for _ in range(3))
    if max(m * n, m * k, n * k) > MOST:
        return None
    return dict(m=m, n=n, k=k), 2.0 * m * n * k, m * n + m * k + n * k


def draw_attention(r):
    heads, n, d = zoo_ops.size(r, 2, 1024), zoo_ops.size(r, 32, 8192, 16), r.choice([64, 128])
    if heads * n * d > MOST:
        return None
    return dict(heads=heads, n=n, d=d), 4.0 * heads * n * n * d, 4 * heads * n * d


def make_vector(kernel, block):
    def make(p, t, n):
        x, y, z = p.get(t, n), p.get(t, n, True), p.z(t)
        return lambda: kernel[(triton.cdiv(n, block),)](x, y, z, n, B=block)
    return make


def make_softmax(p, t, rows, columns):
    x, z, block = p.get(t, rows * columns), p.z(t), triton.next_power_of_2(columns)
    warps = 4 if block < 4096 else 8
    return lambda: softmax_kernel[(rows,)](x, z, columns, B=block, num_warps=warps)


def make_layernorm(p, t, rows, columns):
    x, w, z = p.get(t, rows * columns), p.get(t, columns, True), p.z(t)
    block = triton.next_power_of_2(columns)
    warps = 4 if block < 4096 else 8
    return lambda: layernorm_kernel[(rows,)](x, w, z, columns, 1e-5, B=block, num_warps=warps)


def make_matmul(tile):
    bm, bn, bk, warps, stages = TILES[tile]

    def make(p, t, m, n, k):
        a, b, c = p.get(t, m * k), p.get(t, k * n, True), p.z(t)
        grid = (triton.cdiv(m, bm), triton.cdiv(n, bn))
        return lambda: matmul_kernel[grid](a, b, c, m, n, k, BM=bm, BN=bn, BK=bk, num_warps=warps,
                                           num_stages=stages)
    return make


def make_attention(p, t, heads, n, d):
    size = heads * n * d
    q, k, v, z = p.get(t, size), p.get(t, size), p.get(t, size, True), p.z(t)
    grid = (triton.cdiv(n, 64), heads)
    return lambda: attention_kernel[grid](q, k, v, z, n, d ** -0.5, BM=64, BN=64, D=d, num_warps=4)


OPS = {
    "add_1024": (["fp32", "fp16"], draw_vector(1), make_vector(add_kernel, 1024)),
    "add_256": (["fp32"], draw_vector(1), make_vector(add_kernel, 256)),
    "silu_mul_1024": (["fp32", "bf16"], draw_vector(5), make_vector(silu_mul_kernel, 1024)),
    "softmax": (["fp32", "fp16"], draw_rows(5), make_softmax),
    "layernorm": (["fp32", "bf16"], draw_rows(7), make_layernorm),
    "attention": (["fp16", "bf16"], draw_attention, make_attention),
}
for name in TILES:
    OPS[f"matmul_{name}"] = (["fp16", "bf16"], draw_matmul, make_matmul(name))
OPS["matmul_64x64"] = (["tf32", "fp16", "bf16"], draw_matmul, make_matmul("64x64"))


def references(p, op, t, s):
    """What PyTorch says of the same inputs, in 32 bits."""
    f = lambda n, end=False: p.get(t, n, end).float()  # noqa: E731
    if op.startswith("add"):
        return f(s["n"]) + f(s["n"], True)
    if op.startswith("silu"):
        return torch.nn.functional.silu(f(s["n"])) * f(s["n"], True)
    if op == "softmax":
        return torch.softmax(f(s["rows"] * s["columns"]).view(s["rows"], -1), 1)
    if op == "layernorm":
        x = f(s["rows"] * s["columns"]).view(s["rows"], -1)
        return torch.nn.functional.layer_norm(x, (s["columns"],), f(s["columns"], True))
    if op.startswith("matmul"):
        return f(s["m"] * s["k"]).view(s["m"], -1) @ f(s["k"] * s["n"], True).view(s["k"], -1)
    shape = (s["heads"], s["n"], s["d"])
    size = s["heads"] * s["n"] * s["d"]
    q, k, v = f(size).view(shape), f(size).view(shape), f(size, True).view(shape)
    return torch.softmax(q @ k.transpose(1, 2) * s["d"] ** -0.5, 2) @ v


CHECKED = {"n": 1000, "rows": 37, "columns": 144, "m": 160, "k": 96, "heads": 3, "d": 64}


def check(pool):
    bad = 0
    for op, (dtypes, draw, make) in OPS.items():
        for dtype in dtypes:
            rng, names = zoo_ops.rng_for(0, op), None
            while names is None:
                names = draw(rng)
            s = {k: CHECKED[k] for k in names[0]}
            make(pool, dtype, **s)()
            want = references(pool, op, dtype, s).flatten()
            got = pool.z(dtype)[:want.numel()].float()
            error = ((got - want).norm() / want.norm()).item()
            good = error < (1e-2 if dtype != "fp32" else 1e-4)
            bad += not good
            print(f"{'ok' if good else 'BAD':4} {op} {dtype} {error:.1e}")
    return bad


def calls(seed, shapes):
    out = []
    for op, (dtypes, draw, _) in OPS.items():
        for dtype in dtypes:
            rng = zoo_ops.rng_for(seed, op, dtype)
            for key in range(shapes):
                chosen = zoo_ops.choose(rng, draw, dtype)
                if chosen:
                    out.append((op, dtype, key, *chosen))
    return out


def main():
    o = zoo_ops.options("triton_zoo")
    torch.backends.cuda.matmul.allow_tf32 = False
    pool = Pool()
    if o.check:
        raise SystemExit(check(pool) != 0)
    table = zoo_ops.Table(o.csv, o.app)
    todo = zoo_ops.shuffled(calls(o.seed, o.shapes), zoo_ops.rng_for(o.seed, "order"))
    done = zoo_ops.run(table, todo, o.seconds, lambda op, t, s: OPS[op][2](pool, t, **s),
                       torch.cuda.synchronize)
    table.close()
    print(f"triton {triton.__version__}: {done} of {len(todo)} calls in the time given")


if __name__ == "__main__":
    main()
