"""How long Weir's kernels take beside PyTorch's."""
import torch
from contestants import ROUNDS, Cudnn, buffers, candidates, error_of, library_of, predicted, race, times_best
from gpu_parts import one, result
from kernel_checks import EIGHT, TF32, TYPES, bytes_of

from weir import kernels


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
# More gradients of the input: the rest of ResNet-50's at a stride of 2, and transposed convolutions that double an image's sides.
STRIDED = ((28, 512, 1024, 1, 2), (14, 1024, 2048, 1, 2), (64, 128, 256, 4, 2), (64, 128, 256, 2, 2))


@one
def measure_layer(what, layer, epilogue=None, n=64):
    """Beside PyTorch with cuDNN's benchmark mode.  Weir's candidates: the first eight choices on the
    tensor cores, or the plain one."""
    f = torch.nn.functional
    h, c, k, r, stride = layer
    pad = (r - 1) // 2
    out = (h + 2 * pad - r) // stride + 1
    make = lambda *s: torch.randn(s, device="cuda", dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
    pool = buffers(lambda: (make(n, c, h, h), make(k, c, r, r), make(n, k, out, out)), 2 * n * (c * h * h + k * out * out))
    bias = torch.randn(k, device="cuda", dtype=torch.bfloat16)
    geometry = {"stride": stride, "padding": pad}
    get = lambda i: pool[i % len(pool)]

    def backward(i, mask):
        """All three in channels_last: torch.nn.grad gives PyTorch an input or filters of another layout."""
        x, filters, gradient = get(i)
        return torch.ops.aten.convolution_backward(gradient, x, filters, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1,
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
    for layer in LAYERS + STRIDED:
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
