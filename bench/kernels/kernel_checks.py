"""Whether Weir's kernels are right: on small integers to the bit, with guards around what they write, or near FP64."""
import random

import torch
from contestants import error_of, graph
from gpu_parts import expect, one, result

from weir import kernels

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "tf32x3": torch.float32}
UNIT = {"f32": 2e-5, "f16": 2e-3, "bf16": 1.6e-2, "tf32": 2e-3, "tf32x3": 2e-5}
TF32 = {"tf32": True, "tf32x3": 3}  # as weir.kernels is asked for it


def guarded(rows, width, dtype, offset=0, pad=16):
    """A view between guards, whose rows are `pad` elements apart; and what to ask when it has been written."""
    pitch = width + pad
    whole = torch.full((rows * pitch + 64 + offset,), 7.0, device="cuda", dtype=dtype)
    view = whole[32 + offset: 32 + offset + rows * pitch].view(rows, pitch)[:, :width]
    view.zero_()

    def intact():
        rest = whole.clone()
        rest[32 + offset: 32 + offset + rows * pitch].view(rows, pitch)[:, :width] = 7
        return bool((rest == 7).all())
    return view, intact


def reference(operation, x, residual, weight, bias):
    x = x.double()
    if residual is not None:
        x = (x + residual.double()).to(residual.dtype).double()
    if operation == "softmax":
        return torch.softmax(x, -1)
    if operation == "log_softmax":
        return torch.log_softmax(x, -1)
    centred = x - x.mean(-1, keepdim=True) if operation == "layer_norm" else x
    y = centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
    y = y if weight is None else y * weight.double()
    return y if bias is None else y + bias.double()


@one
def check_rows(operation, name, rows, width, offset, pad, fused, choice, in_place):
    dtype = TYPES[name]
    x, _ = guarded(rows, width, dtype, offset, pad)
    x.copy_(torch.randn(rows, width, device="cuda") * 3)
    y, intact = (x, lambda: True) if in_place else guarded(rows, width, dtype, offset, pad)
    options, residual, weight, bias = {}, None, None, None
    if operation.endswith("norm"):
        options["epsilon"] = 1e-5
        if fused:
            residual, weight, bias = torch.randn_like(x), torch.randn(width, device="cuda", dtype=dtype), torch.randn(
                width, device="cuda", dtype=dtype)
            options.update(residual=residual, sum_out=torch.empty_like(residual), weight=weight, bias=bias)
    want = reference(operation, x, residual, weight, bias)
    getattr(kernels, operation)(x, out=y, choice=choice, **options)
    error = (y.double() - want).abs() / (want.abs() + (1 if operation != "softmax" else want.abs().max()))
    what = f"{operation} {name} {rows}x{width} offset {offset} pad {pad} fused {fused} choice {choice} in place {in_place}"
    expect(what, bool((error <= UNIT[name]).all()), f"error {float(error.max()):.3g}, nan {int(torch.isnan(y).sum())}")
    expect(what, intact(), "guards are broken")
    if fused and residual is not None:
        expect(what, torch.equal(options["sum_out"], x + residual) or in_place, "the sum differs")


def rows_are_right():
    turn = 0
    for operation in ("softmax", "log_softmax", "layer_norm", "rms_norm"):
        for name in ("f32", "f16", "bf16"):
            for width in (1, 3, 8, 100, 127, 1000, 1024, 2048, 5000, 8192, 12296, 16384, 32768, 50304, 65536, 131072):
                turn += 1
                for offset, pad in ((0, 16), (1, 16), (0, 3)):
                    check_rows(operation, name, 5 if width > 9000 else 37, width, offset, pad, turn % 2 == 1, 0, turn % 3 == 0)
    for width in (128, 1024, 4096, 16384, 65536):
        for choice in (1, 2, 3):
            check_rows("softmax", "bf16", 100, width, 0, 16, False, choice, False)
            check_rows("layer_norm", "f32", 100, width, 0, 16, True, choice, False)
    infinities_are_right()


def wide_rows_are_right():
    """More rows than there are blocks, by each kernel that can hold them."""
    for width in (16384, 50304, 65536, 131072, 256000):
        for name in ("bf16", "f32"):
            for turn, operation in enumerate(("softmax", "layer_norm", "rms_norm")):
                for choice in range(4):
                    check_rows(operation, name, 290 + 7 * choice, width, 0, 16, (turn + choice) % 2 == 0, choice, choice == 1)


def make_chain(m, stays):
    """Launches that read, overwrite and reuse each other's results, PyTorch's kernels between them; and their buffers."""
    make = lambda *s: torch.randn(s, device="cuda", dtype=torch.bfloat16)
    x, y, z, weight, w, other = make(m, 4096), make(m, 4096), make(m, 4096), make(4096), make(4096, 4096) / 64, make(4096, 4096) / 64
    p, q = (make(4, 14, 14, 256).permute(0, 3, 1, 2) for _ in range(2))
    filters, gradient = (make(256, 3, 3, 256).permute(0, 3, 1, 2) / 48 for _ in range(2))
    steps = [lambda: kernels.rms_norm(x, weight, out=y), lambda: kernels.linear(y, w, out=z, weight_stays=stays),
             lambda: kernels.softmax(z, out=x), lambda: kernels.layer_norm(x, weight, out=x),
             lambda: kernels.linear(x, w, weight, "gelu", out=y), lambda: w.add_(other, alpha=.01),
             lambda: kernels.linear(y, w, out=z, residual=x), lambda: x.copy_(z),
             lambda: kernels.linear(w[:16], other, out=w[16:32]), lambda: kernels.conv2d(p, filters, padding=1, out=q),
             lambda: kernels.conv2d_weight(p, filters.shape, q, padding=1, out=gradient), lambda: filters.add_(gradient, alpha=1e-6),
             lambda: kernels.conv2d_input(p.shape, filters, q, padding=1, out=p),
             lambda: kernels.rms_norm(p.permute(0, 2, 3, 1), weight[:256], out=p.permute(0, 2, 3, 1))]
    return steps, [x, y, z, w, p, q, filters, gradient]


@one
def check_order(m, stays):
    """A launch may begin before the one before it has ended: as if each had been waited for, in streams and graphs."""
    steps, buffers_ = make_chain(m, stays)
    start, side, want = [t.clone() for t in buffers_], [torch.cuda.Stream() for _ in range(2)], None

    def run(mode):
        for i, f in enumerate(steps * 6):
            if mode == "two streams":
                side[i % 2].wait_stream(side[1 - i % 2])
                with torch.cuda.stream(side[i % 2]):
                    f()
            else:
                f()
            if mode == "waits":
                torch.cuda.synchronize()
    run("waits")  # loads the kernels
    for mode in ("waits", "one stream", "graph", "two streams"):
        captured = graph(lambda _: run(mode), 1) if mode == "graph" else None
        for t, first in zip(buffers_, start):
            t.copy_(first)
        torch.cuda.synchronize()
        captured.replay() if captured else run(mode)
        torch.cuda.synchronize()
        found = [t.contiguous().view(torch.int16).clone() for t in buffers_]
        want = want or found
        expect(f"launches in a row, {m} rows, {mode}", all(torch.equal(a, b) for a, b in zip(want, found)))


@one
def check_permutations(m, n, stays):
    """A product by a permutation with signs is exact: 60 in a row, between two buffers."""
    order = [(torch.randperm(n, device="cuda"), torch.randint(0, 2, (n,), device="cuda") * 2 - 1) for _ in range(3)]
    weights = [torch.zeros(n, n, device="cuda", dtype=torch.bfloat16) for _ in order]
    for w, (to, sign) in zip(weights, order):
        w[torch.arange(n, device="cuda"), to] = sign.bfloat16()
    want = torch.randint(-100, 101, (m, n), device="cuda")
    pair = [want.bfloat16(), torch.zeros(m, n, device="cuda", dtype=torch.bfloat16)]
    for i in range(60):
        kernels.linear(pair[i % 2], weights[i % 3], out=pair[1 - i % 2], weight_stays=stays)
        want = want[:, order[i % 3][0]] * order[i % 3][1]
    expect(f"permutations, {m} rows of {n}", torch.equal(pair[0], want.bfloat16()))


def order_is_right():
    for stays in (False, True):
        for m in (16, 300, 2048):
            check_order(m, stays)
        for m, n in ((16, 4096), (100, 2048), (300, 1024), (4096, 4096)):
            check_permutations(m, n, stays)


def infinities_are_right():
    x = torch.full((3, 4096), float("-inf"), device="cuda")
    x[1, ::2] = 0
    y = kernels.softmax(x)
    expect("softmax of infinities", bool(torch.isnan(y[0]).all()) and bool((y[1, 1::2] == 0).all()), y[:2, :4].tolist())
    x = torch.randn(512, 8192, device="cuda", dtype=torch.bfloat16)
    first = kernels.softmax(x)
    expect("softmax repeats", all(torch.equal(kernels.softmax(x), first) for _ in range(100)))


def integers(rows, columns, name, transposed=False):
    shape = (columns, rows) if transposed else (rows, columns)
    pitch = (shape[1] + 7) // 8 * 8 + 8
    t = torch.randint(-1, 2, (shape[0], pitch), device="cuda").to(TYPES[name])[:, :shape[1]]
    return t.t() if transposed else t


def after(product, epilogue, bias, residual):
    if epilogue == "swiglu":
        return torch.nn.functional.silu(product[:, ::2]) * product[:, 1::2]
    if residual is not None:
        return product + residual.double()
    product = product if bias is None else product + bias.double()
    f = torch.nn.functional
    return {None: lambda p: p, "bias": lambda p: p, "relu": f.relu, "silu": f.silu,
            "gelu": lambda p: f.gelu(p, approximate="tanh")}[epilogue](product)


@one
def check_product(m, n, k, name, epilogue, ta, tb, choice, offset=0, stays=False):
    a, b = integers(m, k, name, ta), integers(n, k, name, tb)
    bias = torch.randint(-1, 2, (n,), device="cuda").to(TYPES[name]) if epilogue in ("bias", "relu", "gelu", "silu") else None
    residual = integers(m, n, name) if epilogue == "residual" else None
    out, intact = guarded(m, n // 2 if epilogue == "swiglu" else n, TYPES[name], offset, (-n) % 8 + 16)
    activation = epilogue if epilogue in ("relu", "gelu", "silu", "swiglu") else None
    kernels.linear(a, b, bias, activation, residual, out=out, choice=choice, tf32=TF32.get(name, False), weight_stays=stays)
    want = after(a.double() @ b.double().t(), epilogue, bias, residual)
    exact = epilogue in (None, "bias", "residual", "relu")
    wrong = (out != want.to(TYPES[name])) if exact else ((out.double() - want).abs() > UNIT[name] * want.abs() + 2e-3)
    what = f"product {m}x{n}x{k} {name} {epilogue} layouts {ta:d}{tb:d} choice {choice} offset {offset}"
    expect(what, not bool(wrong.any()), f"{int(wrong.sum())} wrong of {wrong.numel()}, first {wrong.nonzero()[:3].tolist()}; "
           + kernels.plans()[-1])
    expect(what, intact(), "guards are broken")


SMALL = ((300, 520, 200), (129, 136, 72), (1000, 1024, 1000), (1, 8, 8))
EPILOGUES = (None, "bias", "relu", "gelu", "silu", "residual", "swiglu")


@one
def check_ahead(m, n, k):
    """Launches that begin early read what the one before them wrote."""
    first, second = (integers(n, k, "bf16") for _ in range(2))
    x = integers(m, k, "bf16")
    y, z = (torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    wrong = 0
    for i in range(50):
        x.copy_(integers(m, k, "bf16"))
        kernels.linear(x, first, out=y, choice=i % 4, weight_stays=True)
        kernels.linear(y[:, :k], second, out=z, choice=i % 6, weight_stays=True)
        now = (x.double() @ first.double().t()).bfloat16()
        wrong += int((y != now).sum()) + int((z != (now[:, :k].double() @ second.double().t()).bfloat16()).sum())
    expect(f"few rows ahead {m}x{n}x{k}", wrong == 0, f"{wrong} wrong")


def few_rows_are_right():
    for m in (1, 16, 33, 64, 100, 128):
        for choice in range(6):
            check_product(m, 520, 1096, "bf16", "bias" if choice % 2 else None, False, False, choice, stays=choice % 3 == 0)
            check_product(m, 4096, 512, "f16", None, False, False, choice, stays=choice % 2 == 0)
        for epilogue in EPILOGUES:
            check_product(m, 1040, 576, "bf16", epilogue, False, False, 0, stays=m % 2 == 0)
        check_ahead(m, 512, 512)
    x, w = (torch.randn(m, 4096, device="cuda", dtype=torch.bfloat16) for m in (16, 4096))
    first = kernels.linear(x, w)
    expect("few rows repeat", all(torch.equal(kernels.linear(x, w), first) for _ in range(100)))


@one
def check_batch(batch, m, n, k, name, residual, ta, tb, shared, choice, offset=0):
    """shared: all products have one B."""
    make = lambda rows, columns, t: torch.stack([integers(rows, columns, name, t).contiguous() for _ in range(batch)])
    a = make(k, m, False).transpose(1, 2) if ta else make(m, k, False)
    b = make(k, n, False) if tb else make(n, k, False).transpose(1, 2)
    b = b[:1].expand(batch, k, n) if shared else b
    r = make(m, n, False) if residual else None
    whole = torch.full((batch, m + 2, n + (-n) % 8 + 16), 7.0, device="cuda", dtype=TYPES[name])
    out = whole[:, 1:-1, 8:8 + n] if not offset else whole[:, 1:-1, 9:9 + n]
    kernels.bmm(a, b, r, out=out, choice=choice, tf32=TF32.get(name, False))
    want = a.double() @ b.double() + (r.double() if residual else 0)
    what = f"batch {batch}x{m}x{n}x{k} {name} layouts {ta:d}{tb:d} shared {shared} choice {choice} offset {offset}"
    expect(what, torch.equal(out, want.to(TYPES[name])), f"{int((out != want).sum())} wrong; {kernels.plans()[-1]}")
    out.fill_(7)
    expect(what, bool((whole == 7).all()), "guards are broken")


def batches_are_right():
    """Batches, TF32, and mma.sync for columns that the copy engine cannot write."""
    for choice in range(18):
        check_batch(3, 300, 520, 200, "bf16", choice % 2, False, False, choice % 3 == 0, choice)
        check_batch(2, 129, 136, 72, "tf32", choice % 2, False, False, choice % 3 == 0, choice)
    for name in ("bf16", "f16", "tf32"):
        for epilogue in (None, "bias", "gelu", "residual"):
            for m, n, k in ((77, 51, 32), (300, 521, 200), (1000, 1025, 1000), (1, 1, 8)):
                check_product(m, n, k, name, epilogue, False, False, 0)
        check_batch(3, 150, 131, 72, name, True, False, False, True, 0)
    for ta, tb in ((False, True), (True, False), (True, True)):
        for name in ("f32", "f16", "bf16"):
            for offset in (0, 1):
                check_batch(5, 77, 56, 40, name, False, ta, tb, False, 0, offset)
    for m, n, k in SMALL:
        for choice in range(18):
            check_product(m, n, k, "tf32", "residual" if choice % 2 else None, False, False, choice)
        for epilogue in EPILOGUES:
            check_product(m, n, k, "tf32", epilogue, False, False, 0)
            check_product(m, n, k, "tf32", epilogue, False, False, 0, offset=1)


def splits_are_right():
    """TF32 of every layout and pitch, and in two parts."""
    for name in ("tf32", "tf32x3"):
        for ta, tb in ((False, False), (False, True), (True, False), (True, True)):
            for m, n, k in ((300, 520, 200), (129, 136, 71), (1000, 1024, 1001), (1, 8, 9), (77, 50, 30)):
                for epilogue in (None, "bias", "residual", "swiglu"):
                    check_product(m, n, k, name, epilogue, ta, tb, 0)
            check_batch(3, 300, 520, 203, name, ta, ta, tb, False, 0)
        for choice in range(20):
            check_product(300, 520, 200, name, None, True, True, choice)
    check_accuracy(512, 512, 4096)


@one
def check_accuracy(m, n, k):
    """Three products of TF32 err much less than one, on numbers of all sizes."""
    a, b = (torch.randn(r, k, device="cuda") * torch.exp(3 * torch.randn(r, k, device="cuda")) for r in (m, n))
    torch.backends.cuda.matmul.allow_tf32 = False
    of_torch, of_weir = error_of(a @ b.t(), a, b), error_of(kernels.linear(a, b, tf32=3), a, b)
    result["accuracy"] = {"fp32 by PyTorch": of_torch, "tf32x3": of_weir, "tf32": error_of(kernels.linear(a, b, tf32=True), a, b),
                          "fp32": error_of(kernels.linear(a, b), a, b)}
    expect("accuracy", of_weir < result["accuracy"]["tf32"] / 16, result["accuracy"])


def products_are_right():
    for choice in range(24):
        for m, n, k in SMALL:
            check_product(m, n, k, "bf16", None, False, False, choice)
    for epilogue in EPILOGUES:
        for name in ("f32", "f16", "bf16"):
            for m, n, k in SMALL[:3]:
                check_product(m, n, k, name, epilogue, False, False, 0)
                check_product(m, n, k, name, epilogue, False, False, 0, offset=1)
            check_product(77, 50, 30, name, epilogue, False, False, 0)
    for ta, tb in ((False, True), (True, False), (True, True)):
        for choice in (0, 1, 2):
            for m, n, k in SMALL[:3]:
                check_product(m, n, k, "f16", "bias" if choice else None, ta, tb, choice)
    a, b = (torch.randn(1000, 2048, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    first = kernels.linear(a, b)
    expect("product repeats", all(torch.equal(kernels.linear(a, b), first) for _ in range(100)))


def images(n, c, h, w, name):
    return torch.randint(-1, 2, (n, h, w, c), device="cuda").to(TYPES[name]).permute(0, 3, 1, 2)


def guarded_images(shape, dtype, offset):
    n, c, h, w = shape
    whole = torch.full((n * c * h * w + 64 + offset,), 7.0, device="cuda", dtype=dtype)
    view = whole[32 + offset: -32].view(n, h, w, c).permute(0, 3, 1, 2)

    def intact():
        return bool((whole[:32 + offset] == 7).all() and (whole[-32:] == 7).all())
    return view, intact


@one
def check_convolution(what, shape, name, epilogue=None, choice=0, offset=0):
    """what: forward, input or filters.  Integers, so that all but GELU and SiLU are exact."""
    n, c, h, w, k, r, s, stride, padding, dilation, groups = shape
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, filters = images(n, c, h, w, name), images(k, c // groups, r, s, name)
    y = torch.nn.functional.conv2d(x.double(), filters.double(), **geometry).round()
    gradient = images(*y.shape, name)
    bias = residual = None
    if what == "forward":
        bias = torch.randint(-1, 2, (k,), device="cuda").to(TYPES[name]) if epilogue not in (None, "residual") else None
        residual = images(*y.shape, name) if epilogue == "residual" else None
        last = lambda t: t if t is None else t.permute(0, 2, 3, 1)
        want = after(last(y), epilogue, bias, last(residual)).permute(0, 3, 1, 2)
    elif what == "input":
        want = torch.nn.grad.conv2d_input(x.shape, filters.double(), gradient.double(), **geometry).round()
    else:
        want = torch.nn.grad.conv2d_weight(x.double(), filters.shape, gradient.double(), **geometry).round()
    out, intact = guarded_images(want.shape, TYPES[name], offset)
    options = {**geometry, "out": out, "choice": choice}
    if what == "forward":
        kernels.conv2d(x, filters, bias, activation=epilogue if epilogue in ("relu", "gelu", "silu") else None, residual=residual,
                       **options)
    elif what == "input":
        kernels.conv2d_input(x.shape, filters, gradient, **options)
    else:
        kernels.conv2d_weight(x, filters.shape, gradient, **options)
    exact = epilogue not in ("gelu", "silu")
    wrong = (out != want.to(TYPES[name])) if exact else ((out.double() - want).abs() > UNIT[name] * want.abs() + 2e-3)
    text = f"convolution {what} {shape} {name} {epilogue} choice {choice} offset {offset}"
    expect(text, not bool(wrong.any()), f"{int(wrong.sum())} wrong of {wrong.numel()}, first {wrong.nonzero()[:3].tolist()}; "
           + kernels.plans()[-1])
    expect(text, intact(), "guards are broken")


def convolutions_are_right():
    tiled = ((2, 64, 9, 7, 72, 3, 3, 1, 1, 1, 1), (3, 72, 13, 20, 136, 3, 2, (2, 3), (1, 2), (1, 2), 1),
             (1, 136, 17, 11, 16, 1, 1, 2, 0, 1, 1), (2, 24, 30, 31, 24, 5, 3, 1, (4, 0), (2, 1), 1),
             (4, 256, 14, 14, 200, 3, 3, 1, 1, 1, 1), (1, 8, 3, 3, 8, 3, 3, 1, 2, 1, 1), (2, 64, 30, 31, 64, 3, 3, 1, 1, 1, 1),
             (4, 256, 28, 28, 72, 1, 1, 1, 0, 1, 1))
    plain = ((2, 3, 30, 31, 64, 7, 7, 2, 3, 1, 1), (2, 5, 17, 19, 72, 3, 8, (2, 1), (1, 3), (2, 1), 1), (2, 12, 9, 6, 8, 3, 3, 2, 1, 1, 4), (2, 48, 12, 11, 48, 3, 3, 1, 1, 1, 48),
             (2, 20, 11, 8, 70, 3, 2, (2, 3), (1, 0), (1, 2), 1), (1, 66, 6, 6, 2, 1, 1, (3, 2), (0, 1), 1, 2))
    for what in ("forward", "input", "filters"):
        for shape in tiled + plain:
            for name in ("f32", "f16", "bf16"):
                check_convolution(what, shape, name)
            check_convolution(what, shape, "bf16", offset=1)
        for shape in tiled:
            for choice in range(1, 19):
                check_convolution(what, shape, "bf16", choice=choice)
    for epilogue in ("bias", "relu", "gelu", "silu", "residual"):
        for name in ("f32", "f16", "bf16"):
            for shape in tiled[:3] + plain[:3]:
                check_convolution("forward", shape, name, epilogue)
    x, y = images(8, 256, 14, 14, "bf16") * 1.1, images(8, 256, 14, 14, "bf16") * .9
    first = kernels.conv2d_weight(x, (256, 256, 3, 3), y, padding=1)
    expect("the gradient of filters repeats",
           all(torch.equal(kernels.conv2d_weight(x, (256, 256, 3, 3), y, padding=1), first) for _ in range(100)))


def gradients_are_right():
    """The gradient of filters by every tile, of pixels that are no multiple of a line or of an image."""
    for shape in ((2, 64, 9, 7, 72, 3, 3, 1, 1, 1, 1), (3, 72, 13, 20, 136, 3, 2, (2, 3), (1, 2), (1, 2), 1),
                  (4, 256, 14, 14, 200, 3, 3, 1, 1, 1, 1), (64, 64, 7, 7, 192, 1, 1, 1, 0, 1, 1), (5, 8, 3, 3, 8, 3, 3, 1, 2, 1, 1),
                  (2, 64, 100, 90, 64, 3, 3, 1, 1, 1, 1)):
        for choice in range(10):
            check_convolution("filters", shape, "bf16", choice=choice)


def draw_shape():
    """A convolution at a stride above 1: the gradient of its input has up to four phases."""
    pick = random.choice
    r, s = pick((1, 2, 3, 3, 4, 5, 7)), pick((1, 2, 3, 3, 4, 5, 7))
    stride = pick(((2, 2), (2, 2), (2, 2), (2, 1), (1, 2), (4, 1), (1, 3)))
    padding, dilation = (pick((0, 1, 2, 3)), pick((0, 1, 2, 3))), (pick((1, 1, 1, 2, 3)), pick((1, 1, 1, 2, 3)))
    h, w = (max(1, dilation[i] * ((r, s)[i] - 1) + 1 - 2 * padding[i]) + random.randint(0, 40) for i in (0, 1))
    return pick((1, 2, 3, 7)), pick((8, 24, 64, 72, 136, 256)), h, w, pick((8, 16, 64, 72, 200, 256)), r, s, stride, padding, dilation, 1


def strided_are_right():
    """The gradient of the input at strides above 1."""
    for i in range(100):
        check_convolution("input", draw_shape(), "f16" if i % 4 == 3 else "bf16", choice=i % 10)
    for layer in ((56, 128, 128, 3, 2), (28, 512, 1024, 1, 2), (14, 512, 512, 3, 2), (64, 128, 256, 4, 2), (64, 128, 256, 2, 2)):
        h, c, k, r, stride = layer
        for choice in range(10):
            check_convolution("input", (4, c, h, h, k, r, r, stride, (r - 1) // 2, 1, 1), "bf16", choice=choice)


def packed_are_right():
    """Images of fewer than 8 channels, packed for the tensor cores."""
    for shape in ((2, 3, 30, 31, 64, 7, 7, 2, 3, 1, 1), (2, 5, 17, 19, 72, 3, 8, (2, 1), (1, 3), (2, 1), 1),
                  (3, 1, 28, 28, 32, 5, 5, 1, 2, 1, 1), (2, 4, 64, 48, 96, 4, 4, 4, 0, 1, 1), (4, 3, 224, 224, 64, 7, 7, 2, 3, 1, 1),
                  (1, 7, 9, 200, 8, 1, 3, 1, 1, 1, 1)):
        for choice in range(20):
            check_convolution("forward", shape, "bf16" if choice % 2 else "f16", choice=choice)
        for epilogue in ("bias", "relu", "gelu", "silu", "residual"):
            check_convolution("forward", shape, "bf16", epilogue)


def bytes_of(rows, columns, name, pad=16):
    t = torch.randint(-2, 3, (rows, (columns + 15) // 16 * 16 + pad), device="cuda")
    return t.to(torch.int8 if name == "s8" else torch.float32).to(EIGHT[name])[:, :columns]


EIGHT = {"s8": torch.int8, "e4m3": torch.float8_e4m3fn}


@one
def check_scaled(name, result_type, m, n, k, choice, epilogue):
    x, w = bytes_of(m, k, name), bytes_of(n, k, name)
    xs = torch.tensor([.25, 1, .5], device="cuda")[torch.arange(m, device="cuda") % 3]
    ws = torch.tensor([2., -.5], device="cuda")[torch.arange(n, device="cuda") % 2]
    bias = torch.randint(-2, 3, (n,), device="cuda").float() if epilogue else None
    out, intact = guarded(m, n, result_type, 0, (-n) % 16 + 16)
    kernels.linear(x, w, bias, "relu" if epilogue == "relu" else None, out=out, choice=choice, x_scale=xs, weight_scale=ws)
    want = (x.double() @ w.double().t()) * xs.double()[:, None] * ws.double()
    want = want if bias is None else want + bias.double()
    want = want.clamp(min=0) if epilogue == "relu" else want
    if result_type == torch.int8:
        want = want.round().clamp(-128, 127)
    what = f"product {m}x{n}x{k} {name} to {result_type} {epilogue} choice {choice}"
    wrong = out != want.to(result_type)
    expect(what, not bool(wrong.any()), f"{int(wrong.sum())} wrong; {kernels.plans()[-1]}")
    expect(what, intact(), "guards are broken")


@one
def check_scaled_convolution(shape, result_type, choice, epilogue):
    n, c, h, w, k, r, s, stride, padding = shape
    small = lambda *size: torch.randint(-2, 3, size, device="cuda", dtype=torch.int8).permute(0, 3, 1, 2)
    x, filters = small(n, h, w, c), small(k, r, s, c)
    scale = torch.tensor([.5, -.25, 1], device="cuda")[torch.arange(k, device="cuda") % 3]
    bias = torch.randint(-2, 3, (k,), device="cuda").float() if epilogue else None
    want = torch.nn.functional.conv2d(x.double(), filters.double(), None, stride, padding).round() * scale.double()[:, None, None]
    want = want if bias is None else want + bias.double()[:, None, None]
    want = want.clamp(min=0) if epilogue == "relu" else want
    if result_type == torch.int8:
        want = want.round().clamp(-128, 127)
    out, intact = guarded_images(want.shape, result_type, 0)
    kernels.conv2d(x, filters, bias, stride, padding, activation="relu" if epilogue == "relu" else None, out=out, choice=choice,
                   weight_scale=scale)
    wrong = out != want.to(result_type)
    what = f"convolution {shape} of int8 to {result_type} {epilogue} choice {choice}"
    expect(what, not bool(wrong.any()), f"{int(wrong.sum())} wrong; {kernels.plans()[-1]}")
    expect(what, intact(), "guards are broken")


def scaled_convolutions_are_right():
    for shape in ((2, 64, 9, 7, 80, 3, 3, 1, 1), (2, 64, 30, 31, 64, 3, 3, 1, 1), (4, 48, 28, 28, 272, 1, 1, 1, 0), (3, 80, 13, 20, 144, 3, 2, 2, 1), (4, 272, 14, 14, 208, 3, 3, 1, 1),
                  (1, 16, 3, 3, 16, 1, 1, 1, 0), (2, 12, 9, 6, 10, 3, 3, 2, 1)):
        for result_type in (torch.int8, torch.bfloat16, torch.float16):
            for choice in range(8):
                check_scaled_convolution(shape, result_type, choice, (None, "bias", "relu")[choice % 3])


def scaled_are_right():
    for name, result_type in (("s8", torch.int8), ("s8", torch.bfloat16), ("e4m3", torch.float16)):
        for m, n, k in ((300, 528, 208), (129, 144, 80), (1000, 1024, 1008), (77, 50, 30), (1, 16, 16)):
            for choice in range(16 if m == 300 else 1):
                for epilogue in (None, "bias", "relu"):
                    check_scaled(name, result_type, m, n, k, choice, epilogue)
