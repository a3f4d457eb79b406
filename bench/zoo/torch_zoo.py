"""PyTorch's operators over many shapes and types, one call at a time, to be recorded.

    python3 torch_zoo.py --csv calls.csv --seconds 40

Inputs are views of random numbers that were drawn before, so that almost every launch of the
process belongs to an operator under test.
"""
import torch
import torch.nn.functional as F

import zoo_ops

MOST = 1 << 30  # elements of one operand
FLOAT = ["fp32", "fp16", "bf16"]
PRODUCT = ["fp32", "tf32", "fp16", "bf16"]
TORCH = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Pool:
    """Random tensors of any shape: views of one buffer a type; the second operand from its end."""

    def __init__(self):
        numbers = torch.rand(MOST * 2, device="cuda").mul_(2).sub_(1)
        self.numbers = {t: numbers.to(t) for t in (torch.float32, torch.float16, torch.bfloat16)}
        self.indexes = torch.randint(0, 1 << 62, (1 << 26,), device="cuda")

    def get(self, dtype, *shape, end=False):
        n = 1
        for s in shape:
            n *= s
        buffer = self.numbers[TORCH[dtype]]
        start = (buffer.numel() - n) // 64 * 64 if end else 0  # aligned, as allocations are
        return buffer[start:start + n].view(*shape)

    def index(self, n, below):
        return self.indexes[:n] % below


# Each operator: types, what to draw, how to make the call.  Draws give (sizes, FLOPs, elements).


def draw_mm(r):
    m, n, k = (zoo_ops.size(r, 8, 16384) for _ in range(3))
    return dict(m=m, n=n, k=k), 2.0 * m * n * k, m * k + k * n + m * n


def draw_bmm(r):
    b = zoo_ops.size(r, 1, 512)
    m, n, k = (zoo_ops.size(r, 8, 2048) for _ in range(3))
    if b * max(m * n, m * k, n * k) > MOST:
        return None
    return dict(b=b, m=m, n=n, k=k), 2.0 * b * m * n * k, b * (m * k + k * n + m * n)


def draw_conv(r):
    n, c, o = zoo_ops.size(r, 1, 128), zoo_ops.size(r, 3, 512), zoo_ops.size(r, 8, 512)
    side, k, stride = r.choice([7, 14, 28, 32, 56, 64, 112, 224]), r.choice([1, 3, 3, 5, 7]), r.choice([1, 1, 2])
    out = (side + 2 * (k // 2) - k) // stride + 1
    if n * max(c, o) * side * side > MOST:
        return None
    sizes = dict(n=n, c=c, o=o, side=side, k=k, stride=stride)
    elements = n * c * side * side + o * c * k * k + n * o * out * out
    return sizes, 2.0 * n * o * out * out * c * k * k, elements


def draw_rows(flops, written=True):
    """Rows that are read and, unless only a number is left of each, written."""
    def draw(r):
        columns = zoo_ops.size(r, 16, 1 << 16)
        rows = zoo_ops.size(r, 1, max(1, min(1 << 20, MOST // columns)))
        out = rows * columns if written else rows
        return dict(rows=rows, columns=columns), flops * rows * columns, rows * columns + out
    return draw


def draw_vector(flops, moved, most=MOST):
    def draw(r):
        n = zoo_ops.size(r, 256, most)
        return dict(n=n), flops * n, moved * n
    return draw


def draw_embedding(r):
    width = zoo_ops.size(r, 16, 4096)
    table = zoo_ops.size(r, 256, max(256, min(1 << 18, MOST // width)))
    n = zoo_ops.size(r, 16, max(16, min(1 << 20, MOST // width)))
    return dict(n=n, width=width, table=table), 0.0, 2 * n * width


def draw_index(r):
    n = zoo_ops.size(r, 256, 1 << 26)
    table = zoo_ops.size(r, 256, MOST)
    return dict(n=n, table=table), 0.0, 2 * n


def draw_topk(r):
    columns = zoo_ops.size(r, 64, 1 << 17)
    rows = zoo_ops.size(r, 1, max(1, min(4096, (1 << 27) // columns)))
    k = min(columns, zoo_ops.size(r, 1, 256))
    return dict(rows=rows, columns=columns, k=k), 0.0, rows * (columns + 5 * k)


def draw_attention(r):
    b, h, d = zoo_ops.size(r, 1, 64), r.choice([4, 8, 12, 16, 32]), r.choice([32, 64, 128])
    q = r.choice([1, zoo_ops.size(r, 16, 4096)])
    kv = max(q, zoo_ops.size(r, 16, 8192)) if q == 1 else q
    if b * h * d * kv > MOST or b * h * q * kv > MOST:
        return None
    sizes = dict(b=b, h=h, d=d, q=q, kv=kv)
    pairs = q * (q + 1) / 2 if q == kv else q * kv  # causal: no query sees what comes after it
    return sizes, 4.0 * b * h * pairs * d, b * h * d * (2 * q + 2 * kv)


def make_mm(p, t, m, n, k):
    a, b = p.get(t, m, k), p.get(t, k, n, end=True)
    return lambda: torch.mm(a, b)


def make_addmm(p, t, m, n, k):
    a, b, c = p.get(t, m, k), p.get(t, k, n, end=True), p.get(t, n)
    return lambda: torch.addmm(c, a, b)


def make_linear(p, t, m, n, k):
    a, b = p.get(t, m, k), p.get(t, n, k, end=True)
    return lambda: F.linear(a, b)


def make_bmm(p, t, b, m, n, k):
    x, y = p.get(t, b, m, k), p.get(t, b, k, n, end=True)
    return lambda: torch.bmm(x, y)


def make_conv(p, t, n, c, o, side, k, stride):
    x, w = p.get(t, n, c, side, side), p.get(t, o, c, k, k, end=True)
    return lambda: F.conv2d(x, w, stride=stride, padding=k // 2)


def make_layer_norm(p, t, rows, columns):
    x, w = p.get(t, rows, columns), p.get(t, columns, end=True)
    return lambda: F.layer_norm(x, (columns,), w, w)


def make_softmax(p, t, rows, columns):
    x = p.get(t, rows, columns)
    return lambda: torch.softmax(x, -1)


def make_sum(p, t, rows, columns):
    x = p.get(t, rows, columns)
    return lambda: x.sum(-1)


def make_transpose(p, t, rows, columns):
    x = p.get(t, rows, columns).t()
    return lambda: x.contiguous()


def make_topk(p, t, rows, columns, k):
    x = p.get(t, rows, columns)
    return lambda: torch.topk(x, k, dim=-1)


def make_embedding(p, t, n, width, table):
    w, i = p.get(t, table, width), p.index(n, table)
    return lambda: F.embedding(i, w)


def make_index(p, t, n, table):
    x, i = p.get(t, table), p.index(n, table)
    return lambda: x[i]


def make_cat(p, t, n):
    x = p.get(t, n)
    y = p.get(t, n // 2 + 1, end=True)
    return lambda: torch.cat([x, y])


def make_attention(p, t, b, h, d, q, kv):
    x, k = p.get(t, b, h, q, d), p.get(t, b, h, kv, d)
    v = p.get(t, b, h, kv, d, end=True)
    return lambda: F.scaled_dot_product_attention(x, k, v, is_causal=q == kv)


def unary(function):
    def make(p, t, n):
        x = p.get(t, n)
        return lambda: function(x)
    return make


def binary(function):
    def make(p, t, n):
        x, y = p.get(t, n), p.get(t, n, end=True)
        return lambda: function(x, y)
    return make


OPS = {
    "mm": (PRODUCT, draw_mm, make_mm),
    "addmm": (PRODUCT, draw_mm, make_addmm),
    "linear": (PRODUCT, draw_mm, make_linear),
    "bmm": (PRODUCT, draw_bmm, make_bmm),
    "conv2d": (PRODUCT, draw_conv, make_conv),
    "layer_norm": (FLOAT, draw_rows(7), make_layer_norm),
    "softmax": (FLOAT, draw_rows(5), make_softmax),
    "sum": (FLOAT, draw_rows(1, written=False), make_sum),
    "transpose": (FLOAT, draw_rows(0), make_transpose),
    "gelu": (FLOAT, draw_vector(9, 2), unary(F.gelu)),
    "exp": (FLOAT, draw_vector(1, 2), unary(torch.exp)),
    "add": (FLOAT, draw_vector(1, 3), binary(torch.add)),
    "mul": (FLOAT, draw_vector(1, 3), binary(torch.mul)),
    "where": (FLOAT, draw_vector(0, 3), binary(lambda x, y: torch.where(x > y, x, y))),
    "cumsum": (["fp32"], draw_vector(1, 2, 1 << 28), unary(lambda x: torch.cumsum(x, 0))),
    "sort": (["fp32", "fp16"], draw_vector(0, 4, 1 << 27), unary(torch.sort)),
    "topk": (["fp32", "fp16"], draw_topk, make_topk),
    "cat": (FLOAT, draw_vector(0, 3, MOST // 2), make_cat),
    "embedding": (FLOAT, draw_embedding, make_embedding),
    "index": (FLOAT, draw_index, make_index),
    "attention": (PRODUCT, draw_attention, make_attention),
}


def calls(seed, shapes):
    """All calls that are to be made: (op, dtype, key, sizes, FLOPs, bytes)."""
    out = []
    for op, (dtypes, draw, _) in OPS.items():
        for dtype in dtypes:
            rng = zoo_ops.rng_for(seed, op, dtype)
            for key in range(shapes):
                chosen = zoo_ops.choose(rng, draw, dtype)
                if chosen:
                    out.append((op, dtype, key, *chosen))
    return out


def set_precision(dtype):
    tf32 = dtype == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def main():
    o = zoo_ops.options("torch_zoo")
    torch.set_grad_enabled(False)
    pool = Pool()
    table = zoo_ops.Table(o.csv, o.app)

    def prepare(op, dtype, sizes):
        set_precision(dtype)
        return OPS[op][2](pool, dtype, **sizes)

    todo = zoo_ops.shuffled(calls(o.seed, o.shapes), zoo_ops.rng_for(o.seed, "order"))
    done = zoo_ops.run(table, todo, o.seconds, prepare, torch.cuda.synchronize)
    table.close()
    print(f"torch {torch.__version__}: {done} of {len(todo)} calls in the time given")


if __name__ == "__main__":
    main()
