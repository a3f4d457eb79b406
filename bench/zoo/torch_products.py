"""PyTorch's products: matrices, convolutions and attention, in all the ways that lead to other kernels.

Operands may be transposed, images have channels first or last, and attention goes through each
library that PyTorch has for it.  FLOPs of a convolution are those at all places, padding included.
"""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import zoo_ops
from zoo_ops import ELEMENT_BYTES, Op

MOST = 1 << 29  # elements of one operand of a convolution
PRODUCT = ["fp32", "tf32", "fp16", "bf16"]
TENSOR = ["tf32", "fp16", "bf16"]
SHAPES, FEW = 100, 40


def matrices(t, b, m, n, k, out_bytes=None):
    w = ELEMENT_BYTES[t]
    moved = w * (m * k + k * n) + (out_bytes or w) * m * n
    return 2.0 * b * m * n * k, b * moved


def draw_mm(low=8, multiple=1, rows=None, out_bytes=None):
    def draw(r, t):
        m = zoo_ops.size(r, *(rows or (low, 16384)), multiple)
        n, k = (zoo_ops.size(r, low, 16384, multiple) for _ in range(2))
        return dict(m=m, n=n, k=k), *matrices(t, 1, m, n, k, out_bytes)
    return draw


def draw_bmm(batch, low, high):
    def draw(r, t):
        b = zoo_ops.size(r, *batch)
        m, n, k = (zoo_ops.size(r, low, high) for _ in range(3))
        if b * max(m * n, m * k, n * k) * ELEMENT_BYTES[t] > 1 << 32:
            return None
        return dict(b=b, m=m, n=n, k=k), *matrices(t, b, m, n, k)
    return draw


def matrix(p, t, rows, columns, turned, at=0.0):
    return p.get(t, columns, rows, at=at).t() if turned else p.get(t, rows, columns, at=at)


def make_mm(left=False, right=False):
    """A product of operands that are transposed, or are not."""
    def make(p, t, m, n, k):
        a, b = matrix(p, t, m, k, left), matrix(p, t, k, n, right, at=1.0)
        return lambda: torch.mm(a, b)
    return make


def make_addmm(p, t, m, n, k):
    a, b, c = p.get(t, m, k), p.get(t, k, n, at=1.0), p.get(t, n)
    return lambda: torch.addmm(c, a, b)


def make_linear(p, t, m, n, k):
    a, b = p.get(t, m, k), p.get(t, n, k, at=1.0)
    return lambda: F.linear(a, b)


def make_linear_bias(p, t, m, n, k):
    a, b, c = p.get(t, m, k), p.get(t, n, k, at=1.0), p.get(t, n)
    return lambda: F.linear(a, b, c)


def make_bmm(left=False, right=False):
    def make(p, t, b, m, n, k):
        x = p.get(t, b, k, m).mT if left else p.get(t, b, m, k)
        y = p.get(t, b, n, k, at=1.0).mT if right else p.get(t, b, k, n, at=1.0)
        return lambda: torch.bmm(x, y)
    return make


def make_scaled_mm(fast):
    def make(p, t, m, n, k):
        a, b = p.get(t, m, k), p.get(t, n, k, at=1.0).t()
        return lambda: torch._scaled_mm(a, b, scale_a=p.one, scale_b=p.one, out_dtype=torch.bfloat16,
                                        use_fast_accum=fast)
    return make


def make_int_mm(right):
    def make(p, t, m, n, k):
        a, b = p.get(t, m, k), matrix(p, t, k, n, right, at=1.0)
        return lambda: torch._int_mm(a, b)
    return make


CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def side_of(r, dims):
    if dims == 1:
        return zoo_ops.size(r, 32, 1 << 16)
    sides = [7, 14, 28, 32, 56, 64, 112, 224] if dims == 2 else [4, 7, 8, 14, 16, 28, 32, 56]
    return r.choice(sides)


def channels(r, low, high):
    """Libraries have other kernels where channels can be read eight at a time."""
    return zoo_ops.size(r, low, high, r.choice([1, 8, 8, 16]))


def draw_conv(dims=2, kind=""):
    def draw(r, t):
        n, groups = zoo_ops.size(r, 1, 128), 1
        c, o = channels(r, 3, 512), channels(r, 8, 512)
        if kind == "depthwise":
            c = o = groups = channels(r, 8, 1024)
        if kind == "groups":
            groups = r.choice([2, 4, 8, 32])
            c, o = groups * zoo_ops.size(r, 4, 32, 4), groups * zoo_ops.size(r, 4, 32, 4)
        side, k, stride = side_of(r, dims), r.choice([1, 3, 3, 5, 7]), r.choice([1, 1, 2])
        if kind == "depthwise" and k == 1:
            k = 3
        out = side * stride if kind == "transpose" else (side + 2 * (k // 2) - k) // stride + 1
        if n * max(c * side ** dims, o * out ** dims) > MOST:
            return None
        sizes = dict(n=n, c=c, o=o, side=side, k=k, stride=stride, groups=groups)
        elements = n * c * side ** dims + o * c // groups * k ** dims + n * o * out ** dims
        places = side if kind == "transpose" else out  # where the kernel is laid on
        flops = 2.0 * n * o * places ** dims * (c // groups) * k ** dims
        return sizes, flops, elements * ELEMENT_BYTES[t]
    return draw


def image(p, t, last, n, c, *sides, at=0.0):
    """Channels first, or last in memory."""
    return p.get(t, n, *sides, c, at=at).movedim(-1, 1) if last else p.get(t, n, c, *sides, at=at)


def make_conv(dims=2, last=False):
    def make(p, t, n, c, o, side, k, stride, groups):
        x = image(p, t, last, n, c, *[side] * dims)
        w = image(p, t, last, o, c // groups, *[k] * dims, at=1.0)
        return lambda: CONV[dims](x, w, stride=stride, padding=k // 2, groups=groups)
    return make


def make_conv_transpose(last):
    def make(p, t, n, c, o, side, k, stride, groups):
        x, w = image(p, t, last, n, c, side, side), image(p, t, last, c, o, k, k, at=1.0)
        return lambda: F.conv_transpose2d(x, w, stride=stride, padding=k // 2, output_padding=stride - 1)
    return make


def make_conv_backward(last, mask):
    """The gradient of the input or of the weights: as many FLOPs as the convolution, as many bytes."""
    def make(p, t, n, c, o, side, k, stride, groups):
        out = (side + 2 * (k // 2) - k) // stride + 1
        x, w = image(p, t, last, n, c, side, side), image(p, t, last, o, c, k, k, at=1.0)
        g = image(p, t, last, n, o, out, out, at=0.5)
        return lambda: torch.ops.aten.convolution_backward(
            g, x, w, None, [stride] * 2, [k // 2] * 2, [1, 1], False, [0, 0], groups, mask)
    return make


def draw_attention(r, t):
    b, h = zoo_ops.size(r, 1, 64), r.choice([4, 8, 12, 16, 32])
    d, how = r.choice([32, 64, 64, 96, 128, 128, 192, 256]), r.random()
    q = kv = zoo_ops.size(r, 16, 8192)
    if how < 0.2:
        q = 1
    elif how < 0.3:
        q = zoo_ops.size(r, 16, 4096)
    causal = int(q == kv and how > 0.6)
    if b * h * d * max(q, kv) * ELEMENT_BYTES[t] >= 1 << 31:
        return None
    pairs = q * (q + 1) / 2 if causal else q * kv  # causal: no query sees what comes after it
    sizes = dict(b=b, h=h, d=d, q=q, kv=kv, causal=causal)
    return sizes, 4.0 * b * h * pairs * d, b * h * d * (2 * q + 2 * kv) * ELEMENT_BYTES[t]


def make_attention(backend=None):
    def make(p, t, b, h, d, q, kv, causal):
        x, k = p.get(t, b, h, q, d), p.get(t, b, h, kv, d, at=0.5)
        v = p.get(t, b, h, kv, d, at=1.0)

        def call():
            return F.scaled_dot_product_attention(x, k, v, is_causal=bool(causal))

        def through():
            with sdpa_kernel(backend):
                return call()
        return call if backend is None else through
    return make


OPS = {
    "mm": Op(SHAPES, ["fp64"] + PRODUCT, draw_mm(), make_mm()),
    "mm_nt": Op(SHAPES, PRODUCT, draw_mm(), make_mm(right=True)),
    "mm_tn": Op(SHAPES, ["fp64"] + PRODUCT, draw_mm(), make_mm(left=True)),
    "mm_tt": Op(SHAPES, PRODUCT, draw_mm(), make_mm(left=True, right=True)),
    "addmm": Op(SHAPES, PRODUCT, draw_mm(), make_addmm),
    "linear": Op(SHAPES, PRODUCT, draw_mm(), make_linear),
    "linear_bias": Op(SHAPES, PRODUCT, draw_mm(multiple=8), make_linear_bias),
    "linear_few": Op(SHAPES, PRODUCT, draw_mm(low=256, rows=(1, 32)), make_linear),
    "bmm": Op(SHAPES, ["fp64"] + PRODUCT, draw_bmm((1, 512), 8, 2048), make_bmm()),
    "bmm_nt": Op(SHAPES, PRODUCT, draw_bmm((1, 512), 8, 2048), make_bmm(right=True)),
    "bmm_tn": Op(SHAPES, PRODUCT, draw_bmm((1, 512), 8, 2048), make_bmm(left=True)),
    "bmm_small": Op(SHAPES, PRODUCT, draw_bmm((16, 16384), 4, 128), make_bmm()),
    "scaled_mm": Op(SHAPES, ["fp8"], draw_mm(16, 16, out_bytes=2), make_scaled_mm(False)),
    "scaled_mm_fast": Op(SHAPES, ["fp8"], draw_mm(16, 16, out_bytes=2), make_scaled_mm(True)),
    "int_mm": Op(SHAPES, ["int8"], draw_mm(32, 16, out_bytes=4), make_int_mm(False)),
    "int_mm_nt": Op(SHAPES, ["int8"], draw_mm(32, 16, out_bytes=4), make_int_mm(True)),

    "conv1d": Op(SHAPES, PRODUCT, draw_conv(1), make_conv(1)),
    "conv2d": Op(SHAPES, PRODUCT, draw_conv(), make_conv()),
    "conv2d_nhwc": Op(2 * SHAPES, PRODUCT, draw_conv(), make_conv(last=True)),
    "conv2d_groups": Op(FEW, PRODUCT, draw_conv(kind="groups"), make_conv()),
    "conv2d_groups_nhwc": Op(FEW, PRODUCT, draw_conv(kind="groups"), make_conv(last=True)),
    "conv2d_depthwise": Op(SHAPES, ["fp32", "fp16", "bf16"], draw_conv(kind="depthwise"), make_conv()),
    "conv2d_depthwise_nhwc": Op(FEW, ["fp32", "fp16", "bf16"], draw_conv(kind="depthwise"),
                                make_conv(last=True)),
    "conv3d": Op(SHAPES, PRODUCT, draw_conv(3), make_conv(3)),
    "conv3d_ndhwc": Op(SHAPES, TENSOR, draw_conv(3), make_conv(3, last=True)),
    "conv_transpose2d": Op(FEW, PRODUCT, draw_conv(kind="transpose"), make_conv_transpose(False)),
    "conv_transpose2d_nhwc": Op(SHAPES, PRODUCT, draw_conv(kind="transpose"), make_conv_transpose(True)),
    "conv2d_dgrad_nhwc": Op(SHAPES, PRODUCT, draw_conv(), make_conv_backward(True, [True, False, False])),
    "conv2d_wgrad_nhwc": Op(SHAPES, PRODUCT, draw_conv(), make_conv_backward(True, [False, True, False])),

    "attention": Op(FEW, PRODUCT, draw_attention, make_attention()),
    "attention_flash": Op(2 * SHAPES, ["fp16", "bf16"], draw_attention,
                          make_attention(SDPBackend.FLASH_ATTENTION)),
    "attention_efficient": Op(2 * SHAPES, PRODUCT, draw_attention,
                              make_attention(SDPBackend.EFFICIENT_ATTENTION)),
    # each new shape is a plan to be made, a tenth of a second
    "attention_cudnn": Op(SHAPES, ["fp16", "bf16"], draw_attention,
                          make_attention(SDPBackend.CUDNN_ATTENTION)),
}
