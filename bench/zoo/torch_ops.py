"""PyTorch's other operators: element by element, reductions, normalisation, images, and what moves data.

FLOPs are counted as for the C kernels: exp, sqrt, division and the like are 1, comparisons and work
on integers 0.  Bytes: each element that must be read or written, once.  No operand has 2 GB: beyond
it PyTorch halves the call.
"""
import torch
import torch.nn.functional as F

import zoo_ops
from zoo_ops import ELEMENT_BYTES, Op

FLOAT = ["fp32", "fp16", "bf16"]
WIDE = ["fp64"] + FLOAT
ANY = WIDE + ["int32", "uint8"]
INTEGER = ["int32", "uint8"]
SHAPES, FEW = 40, 20
INDEX = 8  # bytes
SECTOR = 32
INDEXES = 1 << 26  # how many the pool has


def limit(t, bytes_=0):
    """Elements of the largest operand; bytes_ where another operand has larger elements."""
    return (1 << 31) // max(ELEMENT_BYTES[t], bytes_) - 64


def count(t, flops):
    return 0.0 if t in INTEGER else float(flops)


def draw_vector(flops, moved, extra=0, most=1 << 31, wide=0):
    """moved: operands of the type, read and written; extra: further bytes an element."""
    def draw(r, t):
        n = zoo_ops.size(r, 256, min(limit(t, wide), most))
        return dict(n=n), count(t, flops * n), n * (moved * ELEMENT_BYTES[t] + extra)
    return draw


def vectors(operands, function, masked=False):
    def make(p, t, n):
        x = [p.get(t, n, at=i / 2) for i in range(operands)]
        if masked:
            x.insert(0, p.mask[:n])
        return lambda: function(*x)
    return make


UNARY = {  # FLOPs, function, types
    "exp": (1, torch.exp, WIDE),
    "expm1": (1, torch.expm1, FLOAT),
    "log": (1, torch.log, WIDE),
    "log1p": (1, torch.log1p, FLOAT),
    "sqrt": (1, torch.sqrt, WIDE),
    "rsqrt": (2, torch.rsqrt, FLOAT),
    "reciprocal": (1, torch.reciprocal, FLOAT),
    "sin": (1, torch.sin, WIDE),
    "cos": (1, torch.cos, FLOAT),
    "tanh": (1, torch.tanh, WIDE),
    "erf": (1, torch.erf, FLOAT),
    "sigmoid": (3, torch.sigmoid, WIDE),
    "silu": (4, F.silu, FLOAT),
    "gelu": (9, F.gelu, FLOAT),
    "gelu_tanh": (9, lambda x: F.gelu(x, approximate="tanh"), FLOAT),
    "softplus": (3, F.softplus, FLOAT),
    "elu": (2, F.elu, FLOAT),
    "hardswish": (3, F.hardswish, FLOAT),
    "relu": (0, torch.relu, ANY),
    "leaky_relu": (1, F.leaky_relu, FLOAT),
    "abs": (0, torch.abs, ANY),
    "neg": (0, torch.neg, ANY),
    "floor": (0, torch.floor, FLOAT),
    "sign": (0, torch.sign, FLOAT),
    "clamp": (0, lambda x: torch.clamp(x, 0, 1), ANY),
    "square": (1, torch.square, WIDE),
    "pow_scalar": (1, lambda x: torch.pow(x, 2.5), FLOAT),
    "add_scalar": (1, lambda x: x + 3, ANY),
    "mul_scalar": (1, lambda x: x * 3, ANY),
}
BINARY = {
    "add": (1, torch.add, ANY),
    "sub": (1, torch.sub, ANY),
    "mul": (1, torch.mul, ANY),
    "div": (1, torch.div, WIDE),
    "maximum": (0, torch.maximum, ANY),
    "minimum": (0, torch.minimum, ANY),
    "pow": (1, torch.pow, FLOAT),
    "atan2": (1, torch.atan2, FLOAT),
    "hypot": (4, torch.hypot, FLOAT),
    "fmod": (1, torch.fmod, FLOAT),
    "bitwise_and": (0, torch.bitwise_and, INTEGER),
    "add_alpha": (2, lambda x, y: torch.add(x, y, alpha=3), ANY),
    "lerp_scalar": (3, lambda x, y: torch.lerp(x, y, 0.3), FLOAT),
    "mse": (2, lambda x, y: F.mse_loss(x, y, reduction="none"), FLOAT),
    "smooth_l1": (3, lambda x, y: F.smooth_l1_loss(x, y, reduction="none"), FLOAT),
    "sigmoid_backward": (3, torch.ops.aten.sigmoid_backward, FLOAT),
    "tanh_backward": (3, torch.ops.aten.tanh_backward, FLOAT),
    "gelu_backward": (14, torch.ops.aten.gelu_backward, FLOAT),
    "silu_backward": (8, torch.ops.aten.silu_backward, FLOAT),
    "relu_backward": (0, lambda x, y: torch.ops.aten.threshold_backward(x, y, 0), FLOAT),
}
TERNARY = {
    "addcmul": (3, lambda x, y, z: torch.addcmul(x, y, z, value=0.5), WIDE),
    "addcdiv": (3, lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), WIDE),
    "lerp": (3, torch.lerp, WIDE),
}
COMPARE = {"eq": torch.eq, "gt": torch.gt, "le": torch.le}
OPS = {}
for operands, group in ((1, UNARY), (2, BINARY), (3, TERNARY)):
    for name, (flops, function, types) in group.items():
        OPS[name] = Op(SHAPES, types, draw_vector(flops, operands + 1), vectors(operands, function))
for name, function in COMPARE.items():
    OPS[name] = Op(SHAPES, ANY, draw_vector(0, 2, extra=1), vectors(2, function))

CONVERTED = {  # to what: its bytes, from what
    "fp64": (8, torch.float64, ["fp32"]),
    "fp32": (4, torch.float32, ["fp64", "fp16", "bf16", "int32", "uint8"]),
    "fp16": (2, torch.float16, ["fp32", "bf16", "uint8"]),
    "bf16": (2, torch.bfloat16, ["fp32", "fp16", "int32"]),
    "int32": (4, torch.int32, ["fp32", "fp16", "uint8"]),
    "uint8": (1, torch.uint8, ["fp32", "fp16", "int32"]),
}


def converts(to):
    def make(p, t, n):
        x = p.get(t, n)
        return lambda: x.to(to)
    return make


for name, (width, to, types) in CONVERTED.items():
    OPS[f"to_{name}"] = Op(SHAPES, types, draw_vector(0, 1, extra=width, wide=width), converts(to))

OPS.update({
    "where": Op(SHAPES, ANY, draw_vector(0, 3, extra=1), vectors(2, torch.where, masked=True)),
    "dropout": Op(SHAPES, FLOAT, draw_vector(2, 2, extra=1),
                  vectors(1, lambda x: F.dropout(x, 0.5, training=True))),
    "fill": Op(SHAPES, ANY, draw_vector(0, 1), vectors(1, lambda x: torch.full_like(x, 1))),
    "uniform": Op(SHAPES, WIDE, draw_vector(0, 1), vectors(1, torch.rand_like)),
    "normal": Op(SHAPES, WIDE, draw_vector(0, 1), vectors(1, torch.randn_like)),
    "flip": Op(SHAPES, FLOAT, draw_vector(0, 2), vectors(1, lambda x: torch.flip(x, (0,)))),
    "roll": Op(SHAPES, FLOAT, draw_vector(0, 2), vectors(1, lambda x: torch.roll(x, 1000))),
    "cumsum": Op(SHAPES, ["fp32"], draw_vector(1, 2, most=1 << 28),
                 vectors(1, lambda x: torch.cumsum(x, 0))),
    "sort": Op(FEW, ["fp32", "fp16"], draw_vector(0, 2, extra=INDEX, most=1 << 27), vectors(1, torch.sort)),
    "dot": Op(SHAPES, WIDE, draw_vector(2, 2, most=1 << 28), vectors(2, torch.dot)),
})


# Inputs that are views of larger ones, and broadcast ones.


def draw_step(flops):
    """If every second element is read, so are all sectors."""
    def draw(r, t):
        n = zoo_ops.size(r, 256, limit(t) // 2)
        return dict(n=n), count(t, flops * n), 3 * n * ELEMENT_BYTES[t]
    return draw


def make_step(function):
    def make(p, t, n):
        x = p.get(t, 2 * n)[::2]
        return lambda: function(x)
    return make


def draw_rows(flops, matrices=2, rows=0, columns=0, narrow=1, each=0, extra=0, widest=1 << 16):
    """Matrices that are moved, further vectors that are as long as a row or a column, and each
    row's and each element's further bytes; narrow: how many times as wide is what they are a part of."""
    def draw(r, t):
        wide = zoo_ops.size(r, 16, widest)
        high = zoo_ops.size(r, 1, max(1, min(1 << 20, limit(t) // wide // narrow)))
        elements = matrices * high * wide + rows * wide + columns * high
        bytes_ = elements * ELEMENT_BYTES[t] + each * high + extra * high * wide
        return dict(rows=high, columns=wide), count(t, flops * high * wide), bytes_
    return draw


def matrices(operands, function, view=None):
    """view(matrix, i): what of the i-th operand is used."""
    def make(p, t, rows, columns):
        x = []
        for i in range(operands):
            x.append(view(p, t, rows, columns, i) if view else p.get(t, rows, columns, at=i / 2))
        return lambda: function(*x)
    return make


def part(p, t, rows, columns, i):
    return p.get(t, rows, 2 * columns, at=i / 2)[:, :columns]


def turned(p, t, rows, columns, i):
    return p.get(t, columns, rows).t() if i == 0 else p.get(t, rows, columns, at=i / 2)


def row(p, t, rows, columns, i):
    return p.get(t, rows, columns) if i == 0 else p.get(t, columns, at=1.0)


def column(p, t, rows, columns, i):
    return p.get(t, rows, columns) if i == 0 else p.get(t, rows, 1, at=1.0)


def sides(p, t, rows, columns, i):
    return p.get(t, rows, 1) if i == 0 else p.get(t, columns, at=1.0)


for name in ("exp", "sigmoid", "abs"):
    flops, function, _ = UNARY[name]
    OPS[f"{name}_step"] = Op(SHAPES, FLOAT, draw_step(flops), make_step(function))
    OPS[f"{name}_part"] = Op(SHAPES, FLOAT, draw_rows(flops, narrow=2), matrices(1, function, part))
for name in ("add", "mul", "maximum"):
    flops, function, _ = BINARY[name]
    OPS[f"{name}_part"] = Op(SHAPES, FLOAT, draw_rows(flops, 3, narrow=2), matrices(2, function, part))
    OPS[f"{name}_turned"] = Op(SHAPES, FLOAT, draw_rows(flops, 3), matrices(2, function, turned))
    OPS[f"{name}_row"] = Op(SHAPES, WIDE, draw_rows(flops, 2, rows=1), matrices(2, function, row))
    OPS[f"{name}_column"] = Op(SHAPES, FLOAT, draw_rows(flops, 2, columns=1),
                               matrices(2, function, column))
OPS.update({
    "transpose": Op(SHAPES, ANY, draw_rows(0), matrices(1, lambda x: x.contiguous(), turned)),
    "outer": Op(SHAPES, FLOAT, draw_rows(1, 1, rows=1, columns=1), matrices(2, torch.mul, sides)),
})


REDUCE = {  # FLOPs an element, bytes of an answer that is none of the type's, function
    "sum": (1, 0, lambda x, d: torch.sum(x, dim=d)),
    "mean": (1, 0, lambda x, d: torch.mean(x, dim=d)),
    "max": (0, 0, lambda x, d: torch.amax(x, dim=() if d is None else d)),
    "norm": (2, 0, lambda x, d: torch.linalg.vector_norm(x, dim=d)),
    "norm1": (1, 0, lambda x, d: torch.linalg.vector_norm(x, 1, dim=d)),
    "var": (3, 0, lambda x, d: torch.var(x, dim=d)),
    "argmax": (0, INDEX, lambda x, d: torch.argmax(x, dim=d)),
}


def draw_reduce(flops, answer, dim):
    def draw(r, t):
        columns = zoo_ops.size(r, 16, 1 << 16)
        rows = zoo_ops.size(r, 2, max(2, min(1 << 20, limit(t) // columns)))
        answers = {None: 1, 0: columns, -1: rows}[dim]
        w = ELEMENT_BYTES[t]
        return (dict(rows=rows, columns=columns), count(t, flops * rows * columns),
                rows * columns * w + answers * (answer or w))
    return draw


for name, (flops, answer, function) in REDUCE.items():
    for dim, suffix in ((-1, ""), (0, "_0"), (None, "_all")):
        types = WIDE + (["int32"] if name in ("max", "argmax") else [])
        OPS[name + suffix] = Op(SHAPES, types, draw_reduce(flops, answer, dim),
                                matrices(1, lambda x, f=function, d=dim: f(x, d)))


def make_layer_norm(p, t, rows, columns):
    x, w = p.get(t, rows, columns), p.get(t, columns, at=1.0)
    return lambda: F.layer_norm(x, (columns,), w, w)


def make_rms_norm(p, t, rows, columns):
    x, w = p.get(t, rows, columns), p.get(t, columns, at=1.0)
    return lambda: F.rms_norm(x, (columns,), w, 1e-5)


def make_nll(p, t, rows, columns):
    x, i = p.get(t, rows, columns), p.index(rows, columns)
    return lambda: F.nll_loss(x, i)


def draw_nll(r, t):
    columns = zoo_ops.size(r, 16, 1 << 16)
    rows = zoo_ops.size(r, 16, max(16, min(1 << 20, limit(t) // columns)))
    return dict(rows=rows, columns=columns), rows, rows * (INDEX + SECTOR)


def draw_topk(r, t):
    columns = zoo_ops.size(r, 64, 1 << 17)
    rows = zoo_ops.size(r, 1, max(1, min(4096, (1 << 27) // columns)))
    k = min(columns, zoo_ops.size(r, 1, 256))
    w = ELEMENT_BYTES[t]
    return dict(rows=rows, columns=columns, k=k), 0.0, rows * (columns * w + k * (w + INDEX))


def make_topk(p, t, rows, columns, k):
    x = p.get(t, rows, columns)
    return lambda: torch.topk(x, k, dim=-1)


def lower(rows, columns):
    """Elements on the diagonal and below."""
    steps = min(rows, columns)
    return steps * (steps + 1) // 2 + max(0, rows - columns) * columns


def draw_triangle(is_lower):
    def draw(r, t):
        rows, columns = zoo_ops.size(r, 16, 1 << 14), zoo_ops.size(r, 16, 1 << 14)
        read = lower(rows, columns)
        if not is_lower:
            read = rows * columns - lower(rows - 1, columns)
        return dict(rows=rows, columns=columns), 0.0, (rows * columns + read) * ELEMENT_BYTES[t]
    return draw


def make_masked_fill(p, t, n):
    x, mask = p.get(t, n).clone(), p.mask[:n]
    return lambda: x.masked_fill_(mask, 0.5)


def draw_cat_columns(r, t):
    columns = zoo_ops.size(r, 16, 1 << 14)
    rows = zoo_ops.size(r, 1, max(1, min(1 << 20, limit(t) // columns // 2)))
    return dict(rows=rows, columns=columns), 0.0, 4 * rows * columns * ELEMENT_BYTES[t]


OPS.update({
    "softmax": Op(SHAPES, WIDE, draw_rows(5), matrices(1, lambda x: torch.softmax(x, -1))),
    "softmax_0": Op(SHAPES, FLOAT, draw_rows(5), matrices(1, lambda x: torch.softmax(x, 0))),
    "log_softmax": Op(SHAPES, WIDE, draw_rows(5), matrices(1, lambda x: torch.log_softmax(x, -1))),
    "log_softmax_0": Op(SHAPES, FLOAT, draw_rows(5), matrices(1, lambda x: torch.log_softmax(x, 0))),
    "layer_norm": Op(SHAPES, WIDE, draw_rows(7, rows=1), make_layer_norm),
    "layer_norm_narrow": Op(SHAPES, FLOAT, draw_rows(7, rows=1, widest=1024), make_layer_norm),
    "rms_norm": Op(SHAPES, FLOAT, draw_rows(4, rows=1), make_rms_norm),
    "cumsum_rows": Op(SHAPES, WIDE, draw_rows(1), matrices(1, lambda x: torch.cumsum(x, -1))),
    "cumsum_0": Op(SHAPES, WIDE, draw_rows(1), matrices(1, lambda x: torch.cumsum(x, 0))),
    "cummax_rows": Op(FEW, FLOAT, draw_rows(0, extra=INDEX), matrices(1, lambda x: torch.cummax(x, -1))),
    "sort_rows": Op(FEW, FLOAT, draw_rows(0, extra=INDEX, widest=2048),
                    matrices(1, lambda x: torch.sort(x, dim=-1))),
    "max_index": Op(SHAPES, FLOAT, draw_rows(0, 1, columns=1, each=INDEX),
                    matrices(1, lambda x: torch.max(x, -1))),
    "nll_loss": Op(SHAPES, ["fp32", "bf16"], draw_nll, make_nll),
    "topk": Op(FEW, ["fp32", "fp16"], draw_topk, make_topk),
    "tril": Op(SHAPES, FLOAT, draw_triangle(True), matrices(1, torch.tril)),
    "triu": Op(SHAPES, FLOAT, draw_triangle(False), matrices(1, torch.triu)),
    "masked_fill": Op(SHAPES, FLOAT, draw_vector(0, 2, extra=1), make_masked_fill),
    "cat": Op(SHAPES, FLOAT, draw_vector(0, 4, most=1 << 28), vectors(2, lambda x, y: torch.cat([x, y]))),
    "cat_columns": Op(SHAPES, FLOAT, draw_cat_columns, matrices(2, lambda x, y: torch.cat([x, y], 1))),
    "glu": Op(SHAPES, FLOAT, draw_rows(4, 3, narrow=2),
              lambda p, t, rows, columns: lambda x=p.get(t, rows, 2 * columns): F.glu(x)),
})


def draw_table(r, t):
    width = zoo_ops.size(r, 16, 4096)
    most = limit(t) // width
    table = zoo_ops.size(r, 256, max(256, min(1 << 18, most)))
    n = zoo_ops.size(r, 16, max(16, min(1 << 20, most)))
    moved = (n + min(n, table)) * width * ELEMENT_BYTES[t] + INDEX * n
    return dict(n=n, width=width, table=table), 0.0, moved


def random_bytes(t, n, table):
    """The bytes that n random reads of a table touch: sectors, but no more than there are."""
    return min(SECTOR * n, table * ELEMENT_BYTES[t])


def draw_index(flops=0, times=1, most=INDEXES, least=256):
    """times: how often a sector is moved; least: elements of the table."""
    def draw(r, t):
        n = zoo_ops.size(r, 256, most)
        table = zoo_ops.size(r, least, limit(t))
        moved = n * (INDEX + ELEMENT_BYTES[t]) + times * random_bytes(t, n, table)
        return dict(n=n, table=table), count(t, flops * n), moved
    return draw


def draw_gather(r, t):
    columns = zoo_ops.size(r, 16, 1 << 14)
    rows = zoo_ops.size(r, 1, max(1, INDEXES // columns))
    n = rows * columns
    return dict(rows=rows, columns=columns), 0.0, n * (INDEX + 2 * ELEMENT_BYTES[t])


def make_embedding(p, t, n, width, table):
    w, i = p.get(t, table, width), p.index(n, table)
    return lambda: F.embedding(i, w)


def make_index_select(p, t, n, width, table):
    w, i = p.get(t, table, width), p.index(n, table)
    return lambda: torch.index_select(w, 0, i)


def make_index(p, t, n, table):
    x, i = p.get(t, table), p.index(n, table)
    return lambda: x[i]


def make_take(p, t, n, table):
    x, i = p.get(t, table), p.index(n, table)
    return lambda: torch.take(x, i)


def make_gather(p, t, rows, columns):
    x, i = p.get(t, rows, columns), p.index(rows * columns, columns).view(rows, columns)
    return lambda: torch.gather(x, 1, i)


def make_scatter_add(p, t, n, table):
    x, i, y = p.get(t, table).clone(), p.index(n, table), p.get(t, n, at=1.0)
    return lambda: x.scatter_add_(0, i, y)


OPS.update({
    "embedding": Op(SHAPES, FLOAT, draw_table, make_embedding),
    "index_select": Op(SHAPES, FLOAT, draw_table, make_index_select),
    "index": Op(SHAPES, WIDE, draw_index(), make_index),
    "take": Op(SHAPES, FLOAT, draw_index(), make_take),
    "gather": Op(SHAPES, WIDE, draw_gather, make_gather),
    # few elements that many add to would wait for each other, for seconds
    "scatter_add": Op(SHAPES, FLOAT, draw_index(1, times=2, most=1 << 23, least=1 << 14), make_scatter_add),
})


def draw_image(flops, written, extra=0, kernels=(1,)):
    """written(side, k): how large a side is of what is written; flops(k) and extra of one element of it."""
    def draw(r, t):
        n, c = zoo_ops.size(r, 1, 128), zoo_ops.size(r, 1, 1024, r.choice([1, 8, 32]))
        side, k = r.choice([7, 14, 28, 32, 56, 64, 112, 224]), r.choice(kernels)
        out = written(side, k)
        if n * c * max(side, out) ** 2 > limit(t, extra):
            return None
        read, outs, w = n * c * side * side, n * c * out * out, ELEMENT_BYTES[t]
        return dict(n=n, c=c, side=side, k=k), flops(k) * outs, read * w + outs * (w + extra)
    return draw


def images(function, last=False):
    def make(p, t, n, c, side, k):
        x = p.get(t, n, side, side, c).permute(0, 3, 1, 2) if last else p.get(t, n, c, side, side)
        return lambda: function(x, k)
    return make


def half(side, k):
    return (side + 2 * (k // 2) - k) // 2 + 1


def make_batch_norm(last):
    def make(p, t, n, c, side, k):
        x = p.get(t, n, side, side, c).permute(0, 3, 1, 2) if last else p.get(t, n, c, side, side)
        mean, var = p.get("fp32", c, at=0.5), p.get("fp32", c, at=1.0).abs()
        return lambda: F.batch_norm(x, mean, var, mean, mean)
    return make


IMAGE = {  # FLOPs of an element that is written, its side, further bytes, windows, function
    "max_pool2d": (lambda k: 0, half, INDEX, (2, 3), lambda x, k: F.max_pool2d(x, k, 2, k // 2)),
    "avg_pool2d": (lambda k: k * k, half, 0, (2, 3), lambda x, k: F.avg_pool2d(x, k, 2, k // 2)),
    "nearest": (lambda k: 0, lambda side, k: side * k, 0, (2, 3),
                lambda x, k: F.interpolate(x, scale_factor=k, mode="nearest")),
    "bilinear": (lambda k: 11, lambda side, k: side * k, 0, (2, 3),
                 lambda x, k: F.interpolate(x, scale_factor=k, mode="bilinear")),
}
for name, (flops, side, extra, kernels, function) in IMAGE.items():
    draw = draw_image(flops, side, extra, kernels)
    OPS[name] = Op(SHAPES, FLOAT, draw, images(function))
    OPS[f"{name}_nhwc"] = Op(SHAPES, FLOAT, draw, images(function, last=True))


def same(side, k):
    return side


OPS.update({
    "batch_norm": Op(SHAPES, FLOAT, draw_image(lambda k: 4, same), make_batch_norm(False)),
    "batch_norm_nhwc": Op(SHAPES, FLOAT, draw_image(lambda k: 4, same), make_batch_norm(True)),
    "group_norm": Op(FEW, FLOAT, draw_image(lambda k: 7, same), images(lambda x, k: F.group_norm(x, 1))),
    "reflection_pad2d": Op(SHAPES, FLOAT, draw_image(lambda k: 0, lambda side, k: side + 2),
                           images(lambda x, k: F.pad(x, (1, 1, 1, 1), mode="reflect"))),
    "to_nhwc": Op(SHAPES, FLOAT, draw_image(lambda k: 0, same),
                  images(lambda x, k: x.contiguous(memory_format=torch.channels_last))),
    "to_nchw": Op(SHAPES, FLOAT, draw_image(lambda k: 0, same),
                  images(lambda x, k: x.contiguous(), last=True)),
})
