"""A race of launches, and who runs beside Weir: cuBLASLt's choices and cuDNN's convolution of INT8."""
import ctypes as C
import functools
import random
import statistics
import traceback

import torch
from gpu_parts import fail

from weir import kernels

ROUNDS, BYTES = 25, 200 << 20


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


def error_of(got, a, b):
    """For a few rows of a product: the largest error, as a share of the sum of the products'
    sizes."""
    a, b = a[:256].double(), b.double()
    return float(((got[:256].double() - a @ b.t()).abs() / (a.abs() @ b.abs().t())).max())
