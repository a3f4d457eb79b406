"""Weir's kernels on a GPU: whether they are right, and how long they take beside PyTorch's.

    python3 bench/kernels/h200.py RESULT.json [SECONDS [PART...]]

Writes one JSON file, twice a second.  `failures` has each wrong result, exception and hang, and `took` the seconds of each
part.  Times are medians of 25 rounds in random order.  A round replays a graph of launches over rotating buffers of 200 MB
or more.  After SECONDS (440) nothing new begins, and `left_out` counts what was not done.  Without a PART all of STAGES
run.  build/lib/weir/python must be on PYTHONPATH.

Parts that check run beside each other, and parts that measure run alone.
"""
import os
import subprocess
import sys
import time

import torch
from gpu_parts import expect, one, result, run_part, run_parts
import kernel_checks as checks
import kernel_races as races

from weir import kernels

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


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
STAGES = (
    (25, first_use),
    (45, checks.few_rows_are_right, checks.packed_are_right, checks.wide_rows_are_right, checks.strided_are_right),
    (70, checks.batches_are_right, operators),
    (45, checks.order_is_right, checks.splits_are_right, checks.gradients_are_right, checks.scaled_convolutions_are_right),
    (70, examples),
    (25, races.few_rows_are_fast), (25, races.wide_rows_are_fast), (45, races.products_are_fast), (30, races.other_products_are_fast),
    (30, races.convolutions_are_fast), (15, races.filters_are_fast), (35, races.gradients_are_fast), (30, races.fused_are_fast),
    (15, races.batches_are_fast), (15, races.splits_are_fast), (50, races.rows_are_fast), (25, races.scaled_are_fast),
    (20, races.scaled_convolutions_are_fast),
    (90, checks.rows_are_right, checks.products_are_right, checks.scaled_are_right, checks.convolutions_are_right))


if __name__ == "__main__":
    if sys.argv[1] == "--part":
        run_part(next(part for _, *parts in STAGES for part in parts if part.__name__ == sys.argv[2]), *sys.argv[3:])
    sys.exit(run_parts(STAGES, sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 440, sys.argv[3:]))
