"""Exports a PyTorch model into a repository of `weir serve`: compiled by AOTInductor, with config.pbtxt.

    python3 -m weir export-torch REPOSITORY MODULE:FUNCTION [--name NAME] [--max-batch N]
    python3 -m weir export-torch REPOSITORY transformers:NAME [--length N] [--type float16]

FUNCTION gives a module, or a module and its example inputs: tensors with a first dimension of rows,
in a tuple or, by name, in a dict.  Without examples, --input NAME=TYPE:DIM,DIM says each.  The
command compares the compiled model with the module and prints the latency of each batch size.
"""
from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import inspect
import os
import statistics
import sys
import time

# PyTorch's name of a type, and that of config.pbtxt.
TYPES = {"bool": "TYPE_BOOL", "uint8": "TYPE_UINT8", "uint16": "TYPE_UINT16", "uint32": "TYPE_UINT32",
         "uint64": "TYPE_UINT64", "int8": "TYPE_INT8", "int16": "TYPE_INT16", "int32": "TYPE_INT32",
         "int64": "TYPE_INT64", "float16": "TYPE_FP16", "float32": "TYPE_FP32", "float64": "TYPE_FP64",
         "bfloat16": "TYPE_BF16"}
RUNS = 30


class Error(Exception):
    """The model can't be exported; the text says why."""


def config_text(name, max_batch, inputs, outputs):
    """config.pbtxt. inputs, outputs: (name, PyTorch's type, dimensions without that of rows)."""
    text = 'name: "%s"\nplatform: "torch_aoti"\nmax_batch_size: %d\n' % (name, max_batch)
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for tensor, dtype, dims in tensors:
            if dtype not in TYPES:
                raise Error("%s has the type %s, which no request can hold" % (tensor, dtype))
            # A tensor of rows alone has one element a row, which is the shape [].
            shape = "dims: [%s]" % ", ".join(map(str, dims)) if dims else "dims: [1] reshape { shape: [] }"
            text += '%s { name: "%s" data_type: %s %s }\n' % (kind, tensor, TYPES[dtype], shape)
    return text + 'instance_group { kind: KIND_GPU }\n'


def batch_sizes(max_batch):
    """1, 2, 4 and so on up to max_batch: those that the server runs."""
    sizes = [1]
    while sizes[-1] * 2 < max_batch:
        sizes.append(sizes[-1] * 2)
    return sizes + [max_batch] * (max_batch > 1)


def input_of(text):
    """NAME=TYPE:DIM,DIM as (name, type, dimensions)."""
    name, equals, rest = text.partition("=")
    dtype, _, dims = rest.partition(":")
    if not name or not equals or dtype not in TYPES or not all(d.isdigit() for d in dims.split(",") if d):
        raise argparse.ArgumentTypeError("'%s' is not NAME=TYPE:DIM,DIM, such as x=float16:3,224,224" % text)
    return name, dtype, [int(d) for d in dims.split(",") if d]


def _example(torch, rows, dtype, dims):
    shape = [rows] + dims
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randn(shape, device="cuda").to(kind)
    return torch.randint(0, 2, shape, device="cuda").to(kind)


def _repeated(torch, example, rows):
    """As many rows, made of those of the example."""
    return torch.cat([example] * -(-rows // len(example)))[:rows].contiguous()


def _named_inputs(torch, module, examples, described):
    """[(name, example)]; with names, the module takes its inputs by them."""
    if described:
        return [(name, _example(torch, 2, dtype, dims)) for name, dtype, dims in described]
    if isinstance(examples, dict):
        return list(examples.items())
    examples = (examples,) if isinstance(examples, torch.Tensor) else tuple(examples or ())
    if not examples:
        raise Error("the function gave a module without example inputs; --input NAME=TYPE:DIM,DIM says them")
    names = [p for p in inspect.signature(module.forward).parameters if p not in ("args", "kwargs")]
    return [(names[i] if i < len(names) else "input_%d" % i, e) for i, e in enumerate(examples)]


def _tensors(torch, answer, prefix=""):
    """[(name, tensor)] of what a module gives: a tensor, a list, a dict, or a dict with attributes."""
    if isinstance(answer, torch.Tensor):
        return [(prefix or "output", answer)]
    items = answer.items() if hasattr(answer, "items") else enumerate(answer) if isinstance(answer, (list, tuple)) else ()
    found = []
    for key, value in items:
        name = str(key) if isinstance(key, str) else "output_%d" % key
        found += _tensors(torch, value, prefix + "_" + name if prefix else name)
    return found


def _flat(torch, module, names, by_name):
    """The module with its inputs in a row and its outputs in a tuple, each row-major without gaps."""
    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, *inputs):
            answer = self.module(**dict(zip(names, inputs))) if by_name else self.module(*inputs)
            return tuple(t.contiguous() for _, t in _tensors(torch, answer))
    return Flat().eval()


def _settings(torch, alone):
    """For AOTInductor. alone: all operators as kernels of Triton, so that no libtorch is needed."""
    if not alone:
        return {}
    settings = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON", "max_autotune_conv_backends": "TRITON"}
    if hasattr(torch._inductor.config.aot_inductor, "link_libtorch"):
        settings["aot_inductor.link_libtorch"] = False
    return settings


def _relative_error(got, want):
    worst = 0.0
    for a, b in zip(got, want):
        a, b = a.double(), b.double()
        worst = max(worst, float((a - b).abs().max() / b.abs().max().clamp(min=1e-12)))
    return worst


def _latency(torch, run, inputs):
    """Median in ms, the host's part included."""
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        run(*inputs)
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


class Exported:
    """A compiled model in the repository."""

    def __init__(self, path, flat, samples, max_batch):
        self.path, self.flat, self.samples, self.max_batch = path, flat, samples, max_batch

    def measure(self, say=print):
        """Compares it with the module, and prints and returns a row for each batch size."""
        import torch
        # A library that was linked without libtorch finds it in the process.
        libraries = os.path.join(os.path.dirname(torch.__file__), "lib")
        for part in ("libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"):
            ctypes.CDLL(os.path.join(libraries, part), mode=ctypes.RTLD_GLOBAL)
        run = torch._inductor.aoti_load_package(self.path)
        rows = []
        say("rows  compiled ms  eager ms  relative error")
        for size in batch_sizes(self.max_batch):
            given = tuple(_repeated(torch, t, size) for t in self.samples)
            with torch.no_grad():
                error = _relative_error(run(*given), self.flat(*given))
                rows.append({"rows": size, "compiled_ms": _latency(torch, run, given),
                             "eager_ms": _latency(torch, self.flat, given), "relative_error": error})
            say("%4d %12.3f %9.3f  %.2g" % tuple(rows[-1].values()))
        return rows


def export(module, examples, repository, name, max_batch=8, alone=True, described=(), say=print):
    """Compiles the module, puts it into the repository with its config.pbtxt, and returns an Exported."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    if not torch.cuda.is_available():
        raise Error("PyTorch finds no GPU, and AOTInductor compiles for the one that is there")
    inputs = _named_inputs(torch, module, examples, described)
    names = [n for n, _ in inputs]
    module = module.cuda().eval()
    by_name = isinstance(examples, dict) or (
        bool(described) and set(names) <= set(inspect.signature(module.forward).parameters))
    flat = _flat(torch, module, names, by_name)
    rows = max(2, min(4, max_batch)) if max_batch > 1 else 1
    samples = tuple(_repeated(torch, t.cuda(), rows) for _, t in inputs)
    path = os.path.join(repository, name, "1", "model.pt2")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shapes = None
    if max_batch > 1:
        batch = torch.export.Dim("batch", min=1, max=max_batch)
        shapes = {"inputs": tuple({0: batch} for _ in samples)}
    torch.backends.mha.set_fastpath_enabled(False)  # one operator that only libtorch has
    began = time.perf_counter()
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH) if alone else contextlib.nullcontext():
        outputs = _tensors(torch, module(**dict(zip(names, samples))) if by_name else module(*samples))
        exported = torch.export.export(flat, samples, dynamic_shapes=shapes)
        torch._inductor.aoti_compile_and_package(exported, package_path=path,
                                                 inductor_configs=_settings(torch, alone))
    shapes_of = lambda tensors: [(n, str(t.dtype).rpartition(".")[2], list(t.shape[1:])) for n, t in tensors]
    with open(os.path.join(repository, name, "config.pbtxt"), "w") as f:
        f.write(config_text(name, max_batch, shapes_of(zip(names, samples)), shapes_of(outputs)))
    say("%s: compiled in %.0f s" % (path, time.perf_counter() - began))
    return Exported(path, flat, samples, max_batch)


def _of_function(where):
    module, _, function = where.partition(":")
    sys.path.insert(0, os.getcwd())
    made = getattr(importlib.import_module(module), function)()
    return made if isinstance(made, tuple) else (made, None)


def _of_transformers(name, length, dtype):
    """An encoder or classifier, and token numbers of this length."""
    import torch
    import transformers
    config = transformers.AutoConfig.from_pretrained(name)
    kind = getattr(transformers, (config.architectures or ["AutoModel"])[0], transformers.AutoModel)
    model = kind.from_pretrained(name).to(getattr(torch, dtype))
    model.config.return_dict = True
    model.config.use_cache = False
    tokens = torch.randint(0, config.vocab_size, (2, length))
    return model, {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


def main(words):
    parser = argparse.ArgumentParser(prog="python3 -m weir export-torch", description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("repository", help="the folder that weir serve serves")
    parser.add_argument("model", help="MODULE:FUNCTION, or transformers:NAME")
    parser.add_argument("--name", help="of the model in the repository; when absent, made of the model's")
    parser.add_argument("--max-batch", type=int, default=8, help="the most rows of a batch (8)")
    parser.add_argument("--input", action="append", type=input_of, default=[], metavar="NAME=TYPE:DIM,DIM",
                        help="an input of a module without examples, in the order that it takes them")
    parser.add_argument("--length", type=int, default=128, help="of transformers: tokens of a row (128)")
    parser.add_argument("--type", default="float16", choices=("float16", "bfloat16", "float32"),
                        help="of transformers: of the weights (float16)")
    parser.add_argument("--libtorch", action="store_true",
                        help="call cuBLAS and cuDNN. The server needs libtorch then")
    asked = parser.parse_args(words)
    if asked.max_batch < 1 or asked.length < 1:
        parser.error("--max-batch and --length are at least 1")
    kind, colon, rest = asked.model.partition(":")
    if not colon:
        parser.error("a model is MODULE:FUNCTION, or transformers:NAME")
    name = asked.name or "".join(c if c.isalnum() or c in "._-" else "_" for c in rest)
    try:
        module, examples = (_of_transformers(rest, asked.length, asked.type) if kind == "transformers"
                            else _of_function(asked.model))
        export(module, examples, asked.repository, name, asked.max_batch, not asked.libtorch,
               asked.input).measure()
    except (Error, ImportError, AttributeError) as e:
        sys.stderr.write("%s: %s\n" % (parser.prog, e))
        return 1
    return 0
