"""Weir's kernels on a GPU: whether they are right, and how long they take beside PyTorch's.

    python3 bench/kernels/h200.py RESULT.json [SECONDS [PART...]]

Writes one JSON file, twice a second.  `failures` has each wrong result, exception and hang, and `took` the seconds of each
part.  Times are medians of 25 rounds in random order.  A round replays a graph of launches over rotating buffers of 200 MB
or more.  After SECONDS (440) nothing new begins, and `left_out` counts what was not done.  Without a PART all of STAGES
run.  build/lib/weir/python must be on PYTHONPATH.

Each part is a process of its own.  One that hangs, or whose GPU context a kernel broke, is started again behind the step
at which it was.  Parts that check run beside each other, and parts that measure run alone.
"""
import ctypes as C
import functools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

import torch

from weir import kernels

ROUNDS, BYTES = 25, 200 << 20
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "tf32x3": torch.float32}
UNIT = {"f32": 2e-5, "f16": 2e-3, "bf16": 1.6e-2, "tf32": 2e-3, "tf32x3": 2e-5}
TF32 = {"tf32": True, "tf32x3": 3}  # as weir.kernels is asked for it
result = {"checks": 0, "failures": [], "rows": [], "products": [], "few": [], "fused": [], "convolutions": [], "scaled": [], "first_use": {},
          "examples": {}, "left_out": 0}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Part:
    """The file it writes, its end of time, and its position."""
    path, end, skip, steps = "", 0.0, 0, 0


def save():
    with open(Part.path + ".new", "w") as f:
        json.dump(result, f)
    os.rename(Part.path + ".new", Part.path)


def step(what):
    """Whether this is to be done.  Says where the part is before a kernel may hang."""
    Part.steps += 1
    if Part.steps <= Part.skip:
        return False
    if time.monotonic() > Part.end:
        result["left_out"] += 1
        return False
    if Part.steps % 50 == 0:
        save()
    with open(Part.path + ".at", "w") as f:
        f.write(f"{Part.steps} {what}")
    return True


def fail(what, why):
    if len(result["failures"]) < 200:
        result["failures"].append({"what": what, "why": str(why)[:600]})


def one(f):
    """A step.  Its failure is no other's, unless the GPU takes no work any more."""
    @functools.wraps(f)
    def run(*of, **more):
        what = f"{f.__name__} {of} {more or ''}"[:300]
        if not step(what):
            return
        try:
            f(*of, **more)
        except Exception:
            fail(what, traceback.format_exc()[-600:])
            save()
            torch.cuda.synchronize()
    return run


def expect(what, ok, why=""):
    result["checks"] += 1
    if not ok:
        fail(what, why)


def run_part(name, path, end, skip):
    Part.path, Part.end, Part.skip = path, float(end), int(skip)
    torch.manual_seed(1)
    random.seed(1)
    result["device"], result["torch"] = torch.cuda.get_device_name(), torch.__version__
    ok = False
    try:
        globals()[name]()
        ok = True
    except Exception:
        fail(name, traceback.format_exc()[-600:])
    save()
    os._exit(not ok)  # what is left of a broken context may hang


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
    for width in (16384, 50304, 65536, 131072):
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
    for choice in range(18):
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
             (4, 256, 14, 14, 200, 3, 3, 1, 1, 1, 1), (1, 8, 3, 3, 8, 3, 3, 1, 2, 1, 1))
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
    for shape in ((2, 64, 9, 7, 80, 3, 3, 1, 1), (3, 80, 13, 20, 144, 3, 2, 2, 1), (4, 272, 14, 14, 208, 3, 3, 1, 1),
                  (1, 16, 3, 3, 16, 1, 1, 1, 0), (2, 12, 9, 6, 10, 3, 3, 2, 1)):
        for result_type in (torch.int8, torch.bfloat16, torch.float16):
            for choice in range(4):
                check_scaled_convolution(shape, result_type, choice, (None, "bias", "relu")[choice % 3])


def scaled_are_right():
    for name, result_type in (("s8", torch.int8), ("s8", torch.bfloat16), ("e4m3", torch.float16)):
        for m, n, k in ((300, 528, 208), (129, 144, 80), (1000, 1024, 1008), (77, 50, 30), (1, 16, 16)):
            for choice in range(16 if m == 300 else 1):
                for epilogue in (None, "bias", "relu"):
                    check_scaled(name, result_type, m, n, k, choice, epilogue)


@one
def measure_scaled(name, size):
    """Beside PyTorch's products: torch._int_mm has no scales, and torch._scaled_mm has them."""
    xs, ws = (torch.ones(size, device="cuda") for _ in range(2))
    pool = buffers(lambda: (bytes_of(size, size, name, 0), bytes_of(size, size, name, 0),
                            torch.empty(size, size, device="cuda", dtype=torch.bfloat16)), 4 * size * size)
    get = lambda i: pool[i % len(pool)]
    theirs = {"s8": lambda i: torch._int_mm(get(i)[0], get(i)[1].t()),
              "e4m3": lambda i: torch._scaled_mm(get(i)[0], get(i)[1].t(), scale_a=xs[:, None], scale_b=ws[None],
                                                 out_dtype=torch.bfloat16)}
    before = set(kernels._get().plans)
    us = race({**{f"weir {c}": (lambda i, c=c: kernels.linear(get(i)[0], get(i)[1], out=get(i)[2], choice=c, x_scale=xs,
                                                             weight_scale=ws)) for c in range(8)},
               "torch": theirs[name]}, max(2, len(pool)))
    result["scaled"].append({"type": name, "size": size, "us": us, "plans": predicted(before),
                             "times_torch": round(us["torch"] / us["weir 0"], 4)})


@one
def measure_scaled_layer(layer, n=64):
    """INT8 to INT8, beside cuDNN's INT8 and PyTorch's BF16."""
    h, c, k, r, stride = layer
    out = (h + 2 * (r // 2) - r) // stride + 1
    half = lambda *s: torch.randn(s, device="cuda", dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
    small = lambda *s: torch.randint(-9, 9, s, device="cuda", dtype=torch.int8).contiguous(memory_format=torch.channels_last)
    pool = buffers(lambda: (small(n, c, h, h), small(k, c, r, r), small(n, k, out, out), half(n, c, h, h), half(k, c, r, r)),
                   n * (c * h * h + k * out * out))
    scale, get = torch.full((k,), .01, device="cuda"), lambda i: pool[i % len(pool)]
    found, plans = candidates(lambda i, choice: kernels.conv2d(get(i)[0], get(i)[1], None, stride, r // 2, out=get(i)[2], choice=choice,
                                                               weight_scale=scale), 4)
    theirs = lambda i: torch.nn.functional.conv2d(get(i)[3], get(i)[4], None, stride, r // 2)
    theirs(0)  # loads cuDNN
    us = race({**found, "cudnn": Cudnn().convolution(layer, n, get), "torch": theirs}, max(2, len(pool)))
    result["scaled"].append({"type": "s8", "convolution": layer, "us": us, "plans": plans,
                             "times_cudnn": round(us["cudnn"] / us["weir 0"], 4), "times_torch_bf16": round(us["torch"] / us["weir 0"], 4)})


def scaled_convolutions_are_fast():
    torch.backends.cudnn.benchmark = True
    for layer in LAYERS:
        measure_scaled_layer(layer)


def scaled_are_fast():
    for name in EIGHT:
        for size in (2048, 4096, 8192):
            measure_scaled(name, size)


def graph(f, n):
    """n launches, the i-th by f(i)."""
    f(0)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for i in range(n):
            f(i)
    g.replay()
    torch.cuda.synchronize()
    return g


def race(contestants, n, rounds=ROUNDS):
    """Microseconds of a launch: medians."""
    graphs = {name: graph(f, n) for name, f in contestants.items()}
    us = {name: [] for name in graphs}
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for g in graphs.values():
        g.replay()
    for _ in range(rounds):
        order = list(graphs)
        random.shuffle(order)
        for name in order:
            begin.record()
            graphs[name].replay()
            end.record()
            end.synchronize()
            us[name].append(begin.elapsed_time(end) * 1e3 / n)
    return {name: round(statistics.median(v), 3) for name, v in us.items()}


def buffers(make, each):
    return [make() for _ in range(max(2, min(64, -(-BYTES // each))))]


def predicted(before):
    """The choice of the newest plan."""
    library = kernels._get()
    made = [p for key, p in library.plans.items() if key not in before]
    return [{"text": library.c.weir_plan_text(p).decode(), "us": library.c.weir_plan_predicted_ns(p) / 1e3} for p in made]


class Library:
    """One that PyTorch has loaded."""

    def __init__(self, file, prefix):
        path = next(line.split()[-1] for line in open("/proc/self/maps") if file in line)
        self.c, self.handle = C.CDLL(path), C.c_void_p()
        self.do(prefix + "Create", C.byref(self.handle))

    def do(self, name, *of):
        status = getattr(self.c, name)(*of)
        if status:
            raise RuntimeError(f"{name}: {status}")

    def made(self, name, *of):
        made = C.c_void_p()
        self.do(name, C.byref(made), *of)
        return made


class CublasLt(Library):
    """The library that PyTorch's products run on, by all of its choices: the first 16 of its list."""

    def __init__(self):
        super().__init__("libcublasLt.so", "cublasLt")
        self.workspace = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")

    def set(self, what, of, attribute, value):
        self.do(f"cublasLt{what}SetAttribute", of, attribute, C.byref(value), C.sizeof(value))

    def products(self, m, n, k, get, epilogue=1, bias=None, residual=None):
        """f(i) for each choice of D = A B', whose BF16 operands get(i) gives.  The library counts by columns: D' = B A'."""
        desc, layout = self.made("cublasLtMatmulDescCreate", 68, 0), {}
        self.set("MatmulDesc", desc, 3, C.c_int32(1))
        self.set("MatmulDesc", desc, 7, C.c_int32(epilogue))
        if bias is not None:
            self.set("MatmulDesc", desc, 8, C.c_void_p(bias.data_ptr()))
        for name, rows, columns in (("b", k, n), ("a", k, m), ("d", n, m)):
            layout[name] = self.made("cublasLtMatrixLayoutCreate", 14, C.c_uint64(rows), C.c_uint64(columns), C.c_int64(rows))
        preference = self.made("cublasLtMatmulPreferenceCreate")
        self.set("MatmulPreference", preference, 1, C.c_uint64(self.workspace.numel()))
        results, found = (C.c_uint64 * 12 * 16)(), C.c_int()
        self.do("cublasLtMatmulAlgoGetHeuristic", self.handle, desc, layout["b"], layout["a"], layout["d"], layout["d"], preference,
                16, results, C.byref(found))
        one, beta = C.c_float(1), C.c_float(residual is not None)

        def run(i, algorithm):
            a, b, d = (C.c_void_p(t.data_ptr()) for t in get(i)[:3])
            c = d if residual is None else C.c_void_p(residual.data_ptr())
            self.do("cublasLtMatmul", self.handle, desc, C.byref(one), b, layout["b"], a, layout["a"], C.byref(beta), c, layout["d"],
                    d, layout["d"], C.byref(results[algorithm]), C.c_void_p(self.workspace.data_ptr()),
                    C.c_size_t(self.workspace.numel()), C.c_void_p(torch.cuda.current_stream().cuda_stream))
        return {f"library {i}": functools.partial(run, algorithm=i) for i in range(found.value)}


class Cudnn(Library):
    """Its convolutions of INT8 to INT8, by the older functions."""

    def __init__(self):
        super().__init__("libcudnn.so", "cudnn")
        self.workspace = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def convolution(self, layer, n, get):
        """f(i) by algorithm 1, the implicit product: the only fast one for channels that are contiguous."""
        h, c, k, r, stride = layer
        out = (h + 2 * (r // 2) - r) // stride + 1
        x, y, w, conv = (self.made(f"cudnnCreate{kind}Descriptor") for kind in ("Tensor", "Tensor", "Filter", "Convolution"))
        self.do("cudnnSetTensor4dDescriptor", x, 1, 3, n, c, h, h)
        self.do("cudnnSetTensor4dDescriptor", y, 1, 3, n, k, out, out)
        self.do("cudnnSetFilter4dDescriptor", w, 3, 1, k, c, r, r)
        self.do("cudnnSetConvolution2dDescriptor", conv, r // 2, r // 2, stride, stride, 1, 1, 1, 4)
        self.do("cudnnSetConvolutionMathType", conv, 1)
        alpha, beta = C.c_float(.01), C.c_float(0)

        def run(i):
            images, filters, result_ = (C.c_void_p(t.data_ptr()) for t in get(i)[:3])
            self.do("cudnnSetStream", self.handle, C.c_void_p(torch.cuda.current_stream().cuda_stream))
            self.do("cudnnConvolutionForward", self.handle, C.byref(alpha), x, images, w, filters, conv, 1,
                    C.c_void_p(self.workspace.data_ptr()), C.c_size_t(self.workspace.numel()), C.byref(beta), y, result_)
        return run


def library_of(*of):
    """Its choices, if it takes such a product."""
    try:
        found = CublasLt().products(*of)
        for run in found.values():
            run(0)
        torch.cuda.synchronize()
        return found
    except Exception:
        fail("cublasLt", traceback.format_exc()[-600:])
        return {}


def fastest(us, who):
    return min([v for name, v in us.items() if name.startswith(who)], default=None)


def times_best(us):
    best = fastest(us, "library") or us["torch"]
    return {"times_torch": round(us["torch"] / us["weir 0"], 4), "times_library": round(best / us["weir 0"], 4),
            "times_torch_best": round(us["torch"] / fastest(us, "weir"), 4)}


def candidates(run, most, layouts=("nn", "nt", "tt")):
    """run(i, choice) by the first choices on the tensor cores, or by the first of all, and their plans."""
    found, plans = {}, []
    for choice in range(most):
        before = set(kernels._get().plans)
        run(0, choice)
        made = predicted(before)
        if choice and not (made and any(f"_{layout}_" in made[0]["text"] for layout in layouts)):
            break
        plans += made
        found[f"weir {choice}"] = functools.partial(run, choice=choice)
    return found, plans


@one
def measure_rows(operation, name, width, megabytes=64, choices=4):
    f = torch.nn.functional
    dtype, item = TYPES[name], 4 if name == "f32" else 2
    rows = (megabytes << 20) // (item * width)
    pool = buffers(lambda: (torch.randn(rows, width, device="cuda", dtype=dtype), torch.empty(rows, width, device="cuda", dtype=dtype)),
                   2 * rows * width * item)
    weight = torch.randn(width, device="cuda", dtype=dtype)
    theirs = {"softmax": lambda x: torch.softmax(x, -1), "log_softmax": lambda x: torch.log_softmax(x, -1),
              "layer_norm": lambda x: f.layer_norm(x, (width,), weight), "rms_norm": lambda x: f.rms_norm(x, (width,), weight, 1e-5)}
    options = {"weight": weight} if operation.endswith("norm") else {}
    before = set(kernels._get().plans)
    ours = {f"weir {c}": (lambda i, c=c: getattr(kernels, operation)(pool[i % len(pool)][0], out=pool[i % len(pool)][1], choice=c, **options))
            for c in range(choices)}
    us = race({**ours, "torch": lambda i: theirs[operation](pool[i % len(pool)][0]),
               "copy": lambda i: pool[i % len(pool)][1].copy_(pool[i % len(pool)][0])}, max(4, len(pool)))
    result["rows"].append({"operation": operation, "type": name, "rows": rows, "width": width, "us": us, "plans": predicted(before),
                           "gb_per_s": round(2 * rows * width * item / us["weir 0"] / 1e3, 1),
                           "share_of_copy": round(us["copy"] / us["weir 0"], 4),
                           "times_torch": round(us["torch"] / us["weir 0"], 3)})


def rows_are_fast():
    todo = [(o, n, w) for o in ("softmax", "rms_norm", "layer_norm", "log_softmax") for n in ("bf16", "f32")
            for w in (128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)]
    for t in todo:
        if t[0] in ("softmax", "rms_norm") or t[2] in (1024, 8192, 65536):
            measure_rows(*t, choices=4 if t[2] > 8192 else 2)


def wide_rows_are_fast():
    """As often with four times as many rows, which shows what the first and the last rows cost."""
    for megabytes in (64, 256):
        for operation in ("softmax", "rms_norm", "layer_norm"):
            for name in ("bf16", "f32"):
                measure_rows(operation, name, 65536, megabytes, 4)


SHAPES = ((8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (4096, 4096, 14336), (4096, 14336, 4096), (4096, 5120, 5120),
          (4096, 6144, 4096), (8192, 4096, 14336), (8192, 14336, 4096), (8192, 5120, 5120), (8192, 6144, 4096), (4000, 4000, 4000),
          (1024, 1024, 1024))


def operands(m, n, k, name="bf16"):
    make = lambda f, *s: f(s, device="cuda", dtype=TYPES[name])
    return buffers(lambda: (make(torch.randn, m, k), make(torch.randn, n, k), make(torch.empty, m, n)),
                   torch.finfo(TYPES[name]).bits // 8 * (m * k + n * k + m * n))


def error_of(got, a, b):
    """For a few rows of a product: the largest error, as a share of the sum of the products'
    sizes."""
    a, b = a[:256].double(), b.double()
    return float(((got[:256].double() - a @ b.t()).abs() / (a.abs() @ b.abs().t())).max())


# Which no rule of choice has seen, and others of theirs: models' layers, squares, few and odd rows.
OTHERS = ((2048, 4096, 4096), (1024, 4096, 4096), (512, 4096, 4096), (256, 8192, 8192), (3072, 3072, 3072), (6144, 6144, 6144),
          (1536, 1536, 6144), (4096, 11008, 4096), (4096, 4096, 11008), (2048, 11008, 4096), (16384, 1024, 4096), (1000, 1024, 1000),
          (3000, 3000, 3000), (5000, 5000, 5000), (2000, 3000, 1000), (640, 2560, 2560), (8192, 1280, 8192), (8192, 768, 3072),
          (8192, 3072, 768), (1024, 16384, 8192), (4096, 4096, 1024), (12288, 4096, 4096))


@one
def measure_product(m, n, k, name, rounds=ROUNDS, most=8):
    """PyTorch may take TF32 where Weir does."""
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    pool = operands(m, n, k, name)
    get = lambda i: pool[i % len(pool)]

    def ours(i, choice):
        kernels.linear(get(i)[0], get(i)[1], out=get(i)[2], choice=choice, tf32=TF32.get(name, False))
    found, plans = candidates(ours, most, ("nn", "mma"))
    library = library_of(m, n, k, get) if name == "bf16" and most == 8 else {}
    us = race({**found, **library, "torch": lambda i: torch.mm(get(i)[0], get(i)[1].t(), out=get(i)[2])}, max(2, len(pool)), rounds)
    a, b, d = pool[0]
    ours(0, 0)
    result["products"].append({"type": name, "m": m, "n": n, "k": k, "us": us, "plans": plans,
                               "error": error_of(d, a, b), "error_of_torch": error_of(torch.mm(a, b.t()), a, b),
                               **times_best(us)})


@one
def measure_batch(batch, m, n, k):
    make = lambda f, *s: f(s, device="cuda", dtype=torch.bfloat16)
    pool = buffers(lambda: (make(torch.randn, batch, m, k), make(torch.randn, batch, n, k).transpose(1, 2),
                            make(torch.empty, batch, m, n)), 2 * batch * (m * k + n * k + m * n))
    get = lambda i: pool[i % len(pool)]
    before = set(kernels._get().plans)
    us = race({**{f"weir {c}": (lambda i, c=c: kernels.bmm(get(i)[0], get(i)[1], out=get(i)[2], choice=c)) for c in range(4)},
               "torch": lambda i: torch.bmm(get(i)[0], get(i)[1], out=get(i)[2])}, max(2, len(pool)))
    result["products"].append({"type": "bf16", "batch": batch, "m": m, "n": n, "k": k, "us": us, "plans": predicted(before),
                               "times_torch": round(us["torch"] / us["weir 0"], 4)})


@one
def measure_few(m, n, k):
    """PyTorch's product has no launch ahead: those columns are for weights that stay."""
    pool = operands(m, n, k)
    get = lambda i: pool[i % len(pool)]
    before = set(kernels._get().plans)
    us = race({**{f"weir {c}": (lambda i, c=c: kernels.linear(get(i)[0], get(i)[1], out=get(i)[2], choice=c)) for c in range(4)},
               **{f"ahead {c}": (lambda i, c=c: kernels.linear(get(i)[0], get(i)[1], out=get(i)[2], choice=c, weight_stays=True))
                  for c in range(2)},
               "torch": lambda i: torch.mm(get(i)[0], get(i)[1].t(), out=get(i)[2])}, max(2, len(pool)))
    result["few"].append({"m": m, "n": n, "k": k, "us": us, "plans": predicted(before),
                          "gb_per_s": round(2 * n * k / us["weir 0"] / 1e3, 1),
                          "times_torch": round(us["torch"] / us["weir 0"], 4),
                          "times_torch_ahead": round(us["torch"] / us["ahead 0"], 4)})


def few_rows_are_fast():
    for m in (16, 64, 128):
        for n, k in ((4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192)):
            measure_few(m, n, k)


def batches_are_fast():
    for shape in ((64, 1024, 1024, 64), (64, 1024, 64, 1024), (16, 2048, 2048, 128), (8, 4096, 4096, 4096)):
        measure_batch(*shape)
    for size in (2048, 4096, 8192):
        measure_product(size, size, size, "tf32")


def splits_are_fast():
    """Beside PyTorch's FP32."""
    for size in (2048, 4096, 8192):
        measure_product(size, size, size, "tf32x3")


def products_are_fast():
    for shape in SHAPES:
        measure_product(*shape, "bf16")


def other_products_are_fast():
    for shape in OTHERS:
        measure_product(*shape, "bf16", 9, 24)


@one
def measure_fused(m, n, k, epilogue):
    f = torch.nn.functional
    pool = operands(m, n, k)
    half = [torch.empty(m, n // 2, device="cuda", dtype=torch.bfloat16) for _ in pool]
    residual = torch.randn(m, n, device="cuda", dtype=torch.bfloat16)
    bias = torch.randn(n, device="cuda", dtype=torch.bfloat16)
    get = lambda i: pool[i % len(pool)]
    theirs = {"bias": lambda i: f.linear(get(i)[0], get(i)[1], bias),
              "gelu": lambda i: f.gelu(f.linear(get(i)[0], get(i)[1], bias), approximate="tanh"),
              "silu": lambda i: f.silu(f.linear(get(i)[0], get(i)[1], bias)),
              "residual": lambda i: f.linear(get(i)[0], get(i)[1]) + residual,
              "swiglu": lambda i: (lambda p: f.silu(p[:, : n // 2]) * p[:, n // 2:])(f.linear(get(i)[0], get(i)[1]))}[epilogue]

    def ours(i, choice):
        kernels.linear(get(i)[0], get(i)[1], bias if epilogue in ("bias", "gelu", "silu") else None,
                       epilogue if epilogue in ("gelu", "silu", "swiglu") else None, residual if epilogue == "residual" else None,
                       out=half[i % len(pool)] if epilogue == "swiglu" else get(i)[2], choice=choice)
    found, plans = candidates(ours, 4)
    library = library_of(m, n, k, get, {"bias": 4, "gelu": 36, "silu": 4}.get(epilogue, 1),
                         bias if epilogue in ("bias", "gelu", "silu") else None, residual if epilogue == "residual" else None)
    after = {"silu": lambda i: f.silu(get(i)[2]),
             "swiglu": lambda i: f.silu(get(i)[2][:, : n // 2]) * get(i)[2][:, n // 2:]}.get(epilogue, lambda i: None)
    library = {name: lambda i, run=run: (run(i), after(i)) for name, run in library.items()}
    us = race({**found, **library, "torch": theirs}, max(2, len(pool)))
    result["fused"].append({"m": m, "n": n, "k": k, "epilogue": epilogue, "us": us, "plans": plans, **times_best(us)})


def fused_are_fast():
    for shape in ((4096, 14336, 4096), (8192, 8192, 2048)):
        for epilogue in ("bias", "gelu", "silu", "residual", "swiglu"):
            measure_fused(*shape, epilogue)


# Layers of ResNet-50: pixels across, channels, filters, their width, stride.  The first layer is
# one more.
LAYERS = ((56, 64, 64, 3, 1), (56, 64, 256, 1, 1), (56, 256, 64, 1, 1), (56, 128, 128, 3, 2), (56, 256, 512, 1, 2),
          (28, 128, 128, 3, 1), (28, 128, 512, 1, 1), (28, 512, 128, 1, 1), (28, 256, 256, 3, 2), (14, 256, 256, 3, 1),
          (14, 256, 1024, 1, 1), (14, 1024, 256, 1, 1), (14, 512, 512, 3, 2), (7, 512, 512, 3, 1), (7, 512, 2048, 1, 1))
FIRST = (224, 3, 64, 7, 2)


@one
def measure_layer(what, layer, epilogue=None, n=64):
    """Beside PyTorch with cuDNN's benchmark mode.  Weir's candidates: the first eight choices on the
    tensor cores, or the plain one."""
    f = torch.nn.functional
    h, c, k, r, stride = layer
    out = (h + 2 * (r // 2) - r) // stride + 1
    make = lambda *s: torch.randn(s, device="cuda", dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
    pool = buffers(lambda: (make(n, c, h, h), make(k, c, r, r), make(n, k, out, out)), 2 * n * (c * h * h + k * out * out))
    bias = torch.randn(k, device="cuda", dtype=torch.bfloat16)
    geometry = {"stride": stride, "padding": r // 2}
    get = lambda i: pool[i % len(pool)]

    def backward(i, mask):
        """All three in channels_last: torch.nn.grad gives PyTorch an input or filters of another layout."""
        x, filters, gradient = get(i)
        return torch.ops.aten.convolution_backward(gradient, x, filters, None, [stride] * 2, [r // 2] * 2, [1, 1], False, [0, 0], 1,
                                                   mask)
    ours = {"forward": lambda i, choice: kernels.conv2d(get(i)[0], get(i)[1], bias if epilogue else None, activation=epilogue,
                                                   out=get(i)[2], choice=choice, **geometry),
            "input": lambda i, choice: kernels.conv2d_input(get(i)[0].shape, get(i)[1], get(i)[2], out=get(i)[0], choice=choice, **geometry),
            "filters": lambda i, choice: kernels.conv2d_weight(get(i)[0], get(i)[1].shape, get(i)[2], out=get(i)[1], choice=choice,
                                                          **geometry)}[what]
    theirs = {"forward": lambda i: f.relu(f.conv2d(get(i)[0], get(i)[1], bias, **geometry)) if epilogue
              else f.conv2d(get(i)[0], get(i)[1], **geometry),
              "input": lambda i: backward(i, [True, False, False]), "filters": lambda i: backward(i, [False, True, False])}[what]
    found, plans = candidates(ours, 8 if what == "filters" else 4)
    us = race({**found, "torch": theirs}, max(2, len(pool)))
    best = min(v for name, v in us.items() if name != "torch")
    result["convolutions"].append({
        "pass": what, "epilogue": epilogue, "n": n, "pixels": h, "channels": c, "filters": k, "width": r, "stride": stride, "us": us,
        "plans": plans, "tflops": round(2 * n * out * out * c * k * r * r / us["weir 0"] / 1e6, 1),
        "times_torch": round(us["torch"] / us["weir 0"], 4), "times_torch_best": round(us["torch"] / best, 4)})


def gradients_are_fast():
    torch.backends.cudnn.benchmark = True
    for layer in LAYERS:
        if layer[4] == 1:
            measure_layer("input", layer)


def convolutions_are_fast():
    torch.backends.cudnn.benchmark = True
    for what in [("forward", layer) for layer in LAYERS + (FIRST,)] + [("forward", layer, "relu") for layer in LAYERS if layer[3] == 3]:
        measure_layer(*what)


def filters_are_fast():
    torch.backends.cudnn.benchmark = True
    for layer in LAYERS:
        measure_layer("filters", layer)


@one
def first_use():
    """Milliseconds of the first plan: compiled, and from the cache by a library that was just opened."""
    x = torch.randn(64, 768, device="cuda", dtype=torch.bfloat16)
    a, b = torch.randn(256, 512, device="cuda", dtype=torch.float16), torch.randn(384, 512, device="cuda", dtype=torch.float16)
    for how in ("compiled", "cached"):
        kernels._library = None
        kernels._get().open(kernels._get().context())
        for name, f in (("softmax", lambda: kernels.softmax(x)), ("product", lambda: kernels.linear(a, b))):
            began = time.perf_counter()
            f()
            torch.cuda.synchronize()
            result["first_use"][f"{name} {how} ms"] = round((time.perf_counter() - began) * 1e3, 2)


@one
def check_operator(name, f, x):
    expect(f"{name}, eager and compiled", torch.equal(f(x), torch.compile(f, fullgraph=True)(x)))


@one
def check_registration(name, *of):
    """As PyTorch's own check of custom operators does it: schema, fake tensors, dynamic shapes."""
    torch.library.opcheck(getattr(torch.ops.weir, name).default, of)
    result["checks"] += 1


@one
def check_numpy():
    import numpy
    x, w = (numpy.random.default_rng(1).integers(-2, 3, s).astype("float32") for s in ((40, 24), (24, 16)))
    expect("a product of NumPy's arrays", bool((kernels.linear(x, w.T) == x @ w).all()))
    expect("a batch of NumPy's arrays", bool((kernels.bmm(x[None], w[None])[0] == x @ w).all()))
    expect("a softmax of NumPy's arrays", bool(numpy.allclose(kernels.softmax(x), torch.softmax(torch.tensor(x), -1), atol=1e-6)))


def operators():
    from weir import kernels_torch  # noqa: F401: it registers them

    check_numpy()

    x = torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(1024, device="cuda", dtype=torch.bfloat16)
    big = torch.randn(512, 1024, device="cuda", dtype=torch.bfloat16)
    images, filters = (torch.randn(s, device="cuda", dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
                       for s in ((2, 64, 9, 9), (32, 64, 3, 3)))
    y = torch.randn(3, 1024, 64, device="cuda", dtype=torch.bfloat16)
    for of in (("softmax", x), ("log_softmax", x), ("layer_norm", x, w, w, 1e-5), ("rms_norm", x, w, 1e-6),
               ("linear", x, big, None, None), ("bmm", x.expand(3, 64, 1024), y, None),
               ("conv2d", images, filters, None, [1, 1], [1, 1], [1, 1], 1, None)):
        check_registration(*of)
    check_operator("a product of a norm", lambda x: torch.ops.weir.linear(torch.ops.weir.rms_norm(x, w, 1e-6), big, None, None), x)
    check_operator("a convolution", lambda x: torch.ops.weir.conv2d(x, filters, None, [1, 1], [1, 1], [1, 1], 1, None), images)


@one
def run_program(name, *command):
    """The printed lines."""
    ran = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=60)
    result["examples"][name] = ran.stdout.strip()[-2000:]
    expect(name, ran.returncode == 0, ran.stderr[-600:])


def examples():
    """The tutorial's program, and a planted problem with its twin."""
    run_program("tutorial", os.path.join(ROOT, "examples", "llama_mlp.py"))
    product = os.path.join(ROOT, "examples", "problems", "product.py")
    run_program("product", product)
    run_program("product, fixed", product, "--fixed")


# Seconds, and parts that run beside each other.  First comes what changed last.
STAGES = ((25, first_use), (45, few_rows_are_right, packed_are_right, wide_rows_are_right), (70, batches_are_right, operators),
          (45, order_is_right, splits_are_right, gradients_are_right, scaled_convolutions_are_right), (70, examples),
          (25, few_rows_are_fast), (25, wide_rows_are_fast),
          (45, products_are_fast), (30, other_products_are_fast), (30, convolutions_are_fast), (15, filters_are_fast),
          (25, gradients_are_fast), (30, fused_are_fast), (15, batches_are_fast), (15, splits_are_fast), (50, rows_are_fast),
          (25, scaled_are_fast), (20, scaled_convolutions_are_fast), (90, rows_are_right, products_are_right, scaled_are_right, convolutions_are_right))
HANG, CHECK_HANG = 65, 25  # seconds at one step: a measurement compiles up to eight kernels


class Child:
    """A part that runs, and what it has written."""

    def __init__(self, name, folder, end, skip=0):
        self.name, self.folder, self.end, self.skip = name, folder, end, skip
        self.path = os.path.join(folder, f"{name}.{skip}.json")
        self.moved, self.at, self.done = time.monotonic(), "0", False
        cache = tempfile.mkdtemp(dir=folder) if name == "first_use" else os.path.join(folder, "cache")
        self.process = subprocess.Popen([sys.executable, __file__, "--part", name, self.path, str(end), str(skip)],
                                        env={**os.environ, "XDG_CACHE_HOME": cache})

    def read(self):
        """The child's results, and whether it needs no other look."""
        at = open(self.path + ".at").read() if os.path.exists(self.path + ".at") else "0"
        if at and at != self.at:
            self.moved, self.at = time.monotonic(), at
        status = self.process.poll()
        limit = CHECK_HANG if self.name.endswith("_are_right") and self.at != "0" else HANG
        hangs = time.monotonic() - self.moved > limit
        if status is None and hangs:
            self.process.kill()
            status = self.process.wait()
        wrote = json.load(open(self.path)) if os.path.exists(self.path) else {}
        if status:
            why = f"hangs for {limit} s" if hangs else f"ends with status {status}"
            wrote.setdefault("failures", []).append({"what": f"{self.name}: {self.at}", "why": why})
        self.done = status is not None
        return wrote

    def again(self):
        """The same part behind the step at which this one ended, or None."""
        at = int(self.at.split()[0])
        failed = self.process.returncode != 0 and at > self.skip and time.monotonic() < self.end
        return Child(self.name, self.folder, self.end, at) if failed else None


def merge(all_wrote):
    whole = {"failures": [], "checks": 0, "left_out": 0}
    for wrote in all_wrote:
        for key, value in wrote.items():
            if isinstance(value, (list, int)) and key in whole:
                whole[key] = whole[key] + value
            elif isinstance(value, dict) and key in whole:
                whole[key].update(value)
            else:
                whole[key] = value
    return whole


def run_stage(parts, folder, end, took, keep):
    """keep() is called with what all have written, again and again."""
    began = time.monotonic()
    running, wrote = [Child(name, folder, end) for name in parts], {}
    while running:
        time.sleep(.5)
        for child in list(running):
            wrote[child.path] = child.read()
            if child.done:
                running.remove(child)
                next_one = child.again()
                running += [next_one] if next_one else []
                took[child.name] = round(time.monotonic() - began, 1)
                print(f"{child.name}: {took[child.name]} s, {len(wrote[child.path].get('failures', []))} failures", flush=True)
        keep(list(wrote.values()))
    return list(wrote.values())


def run_parts(path, seconds, names):
    began = time.monotonic()
    before, took, whole = [], {}, {}

    def keep(wrote):
        whole.clear()
        whole.update(merge(before + wrote), took=took, seconds=round(time.monotonic() - began, 1))
        with open(path + ".new", "w") as f:
            json.dump(whole, f, indent=1)
        os.rename(path + ".new", path)

    with tempfile.TemporaryDirectory() as folder:
        for limit, *parts in STAGES:
            chosen = [part.__name__ for part in parts if part.__name__ in names or not names]
            if chosen and time.monotonic() < began + seconds:
                before += run_stage(chosen, folder, min(time.monotonic() + limit, began + seconds), took, keep)
            elif chosen:
                before.append({"failures": [], "left_out": len(chosen)})
        keep([])
    print(json.dumps({k: whole.get(k) for k in ("checks", "left_out", "seconds", "first_use", "examples")}),
          len(whole["failures"]), "failures")
    for failure in whole["failures"][:20]:
        print(failure["what"], "|", (failure["why"].strip().splitlines() or [""])[-1])
    return bool(whole["failures"])


if __name__ == "__main__":
    if sys.argv[1] == "--part":
        run_part(*sys.argv[2:])
    sys.exit(run_parts(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 440, sys.argv[3:]))
