"""Weir's own CUDA kernels: softmax, log-softmax, layer norm, RMS norm, and products and convolutions with what follows
them.

    import torch, weir.kernels
    y = weir.kernels.softmax(x)                       # over the last dimension, on the current stream
    y = weir.kernels.layer_norm(x, weight, bias, residual=r)
    y = weir.kernels.linear(x, weight, bias, "gelu")  # weight as in torch.nn.Linear
    y = weir.kernels.conv2d(x, weight, bias, padding=1, activation="relu")  # both in channels_last

Tensors are any that speak DLPack: PyTorch's, CuPy's and NumPy's.  Results are of the same kind, in new memory or in
`out`.  NumPy's arrays are copied to the first GPU and back.  choice=1 is the kernel that is predicted to be the
next fastest, and so on: for measuring them.  weir.kernels_torch has the same as PyTorch operators.
"""
from __future__ import annotations

import ctypes as C
import glob
import os
import sys
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple

_OPERATIONS = {"softmax": 1, "log_softmax": 2, "layer_norm": 3, "rms_norm": 4}
_TYPES = {(2, 32): 1, (2, 16): 2, (4, 16): 3, (0, 8): 4, (10, 8): 5}  # DLPack's code and bits
_TF32 = {True: 6, 3: 7}
_CPU, _CUDA = 1, 2  # DLPack's kinds of devices


class Error(Exception):
    """The library's sentence about what was wrong."""


class _Options(C.Structure):
    _fields_ = [("size", C.c_size_t), ("cache", C.c_char_p), ("nvrtc", C.c_char_p)]


class _Rows(C.Structure):
    _fields_ = [("size", C.c_size_t), ("operation", C.c_uint32), ("type", C.c_uint32), ("rows", C.c_int64),
                ("width", C.c_int64), ("x_row", C.c_int64), ("x_column", C.c_int64), ("y_row", C.c_int64),
                ("y_column", C.c_int64), ("epsilon", C.c_float), ("has_residual", C.c_uint32),
                ("residual_row", C.c_int64), ("residual_column", C.c_int64), ("has_sum", C.c_uint32),
                ("has_weight", C.c_uint32), ("has_bias", C.c_uint32), ("choice", C.c_uint32), ("aligned", C.c_uint32)]


class _RowsArgs(C.Structure):
    _fields_ = [("size", C.c_size_t), ("x", C.c_void_p), ("y", C.c_void_p), ("residual", C.c_void_p),
                ("sum", C.c_void_p), ("weight", C.c_void_p), ("bias", C.c_void_p)]


class _Gemm(C.Structure):
    _fields_ = [("size", C.c_size_t), ("type", C.c_uint32), ("epilogue", C.c_uint32), ("m", C.c_int64),
                ("n", C.c_int64), ("k", C.c_int64), ("a_transposed", C.c_uint32), ("b_transposed", C.c_uint32),
                ("a_pitch", C.c_int64), ("b_pitch", C.c_int64), ("d_pitch", C.c_int64), ("residual_pitch", C.c_int64),
                ("choice", C.c_uint32), ("d_type", C.c_uint32), ("batch", C.c_int64), ("a_batch", C.c_int64),
                ("b_batch", C.c_int64), ("d_batch", C.c_int64), ("residual_batch", C.c_int64), ("aligned", C.c_uint32),
                ("b_stays", C.c_uint32)]


class _Conv(C.Structure):
    _fields_ = [("size", C.c_size_t), ("type", C.c_uint32), ("epilogue", C.c_uint32), ("pass_", C.c_uint32),
                ("choice", C.c_uint32)] + [(name, C.c_int64) for name in (
                    "n", "h", "w", "c", "k", "r", "s", "stride_h", "stride_w", "pad_h", "pad_w", "dilation_h",
                    "dilation_w", "groups")] + [("aligned", C.c_uint32), ("d_type", C.c_uint32)]


class _GemmArgs(C.Structure):
    _fields_ = [("size", C.c_size_t), ("a", C.c_void_p), ("b", C.c_void_p), ("d", C.c_void_p), ("bias", C.c_void_p),
                ("residual", C.c_void_p), ("workspace", C.c_void_p), ("a_scale", C.c_void_p), ("b_scale", C.c_void_p)]


class _DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device", C.c_int32), ("number", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("offset", C.c_uint64)]


class _Tensor:
    """A tensor's place and shape; it keeps the tensor."""

    def __init__(self, of: Any) -> None:
        if not hasattr(of, "__dlpack__"):
            raise TypeError(f"{type(of).__name__} has no __dlpack__: give a tensor of PyTorch, CuPy or NumPy")
        self.of = of
        self.module = sys.modules[type(of).__module__.split(".")[0]]
        detached = of.detach() if hasattr(of, "detach") else of
        kind = of.__dlpack_device__()[0]
        self.capsule = detached.__dlpack__(stream=-1) if kind == _CUDA else detached.__dlpack__()
        get = C.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
        t = C.cast(get(self.capsule, b"dltensor"), C.POINTER(_DLTensor)).contents
        if t.device not in (_CPU, _CUDA):
            raise TypeError("the tensor is neither on a CUDA device nor in host memory")
        if (t.code, t.bits) not in _TYPES or t.lanes != 1:
            raise TypeError("the type is none of float32, float16, bfloat16, int8 and float8_e4m3fn")
        self.host = t.device == _CPU
        self.type, self.item = _TYPES[t.code, t.bits], t.bits // 8
        self.at = (t.data or 0) + t.offset
        self.shape = tuple(t.shape[: t.ndim])
        if t.strides:
            self.strides = tuple(t.strides[: t.ndim])
        else:
            steps, step = [], 1
            for n in reversed(self.shape):
                steps.append(step)
                step *= n
            self.strides = tuple(reversed(steps))


def _rows(shape: Sequence[int], all_strides: List[Sequence[int]]) -> Tuple[int, int]:
    """For the dimensions before the last: how many at the end can be counted with one stride, by
    all strides of such tensors, and the product of these."""
    taken, rows = 0, 1
    for d in range(len(shape) - 2, -1, -1):
        if any(taken and strides[d] != strides[d + 1] * shape[d + 1] for strides in all_strides):
            break
        taken, rows = taken + 1, rows * shape[d]
    return taken, rows


def _find_library() -> str:
    here = os.path.dirname(os.path.abspath(__file__))
    near = os.path.join(here, "..", "..", "..", "libweirkernels.so.1")
    return near if os.path.exists(near) else "libweirkernels.so.1"


def _find_nvrtc() -> Optional[bytes]:
    """That of PyTorch's wheels, which is on no search path."""
    for folder in sys.path:
        for found in sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnvrtc.so.1[2-9]"))):
            return found.encode()
    return None


class _Library:
    def __init__(self) -> None:
        try:
            self.c = C.CDLL(_find_library())
        except OSError as e:
            raise Error(f"libweirkernels.so.1 is not here: {e}") from None
        self.c.weir_kernels_error.restype = C.c_char_p
        self.c.weir_plan_text.restype = C.c_char_p
        self.c.weir_plan_text.argtypes = [C.c_void_p]
        self.c.weir_plan_predicted_ns.restype = C.c_double
        self.c.weir_plan_predicted_ns.argtypes = [C.c_void_p]
        self.c.weir_plan_close.argtypes = [C.c_void_p]
        self.c.weir_rows_plan.argtypes = [C.c_void_p, C.POINTER(_Rows), C.POINTER(C.c_void_p)]
        self.c.weir_gemm_plan.argtypes = [C.c_void_p, C.POINTER(_Gemm), C.POINTER(C.c_void_p)]
        self.c.weir_gemm_run.argtypes = [C.c_void_p, C.POINTER(_GemmArgs), C.c_void_p]
        self.c.weir_plan_workspace.restype = C.c_size_t
        self.c.weir_plan_workspace.argtypes = [C.c_void_p]
        self.c.weir_conv_plan.argtypes = [C.c_void_p, C.POINTER(_Conv), C.POINTER(C.c_void_p)]
        self.c.weir_conv_run.argtypes = [C.c_void_p, C.POINTER(_GemmArgs), C.c_void_p]
        self.c.weir_rows_run.argtypes = [C.c_void_p, C.POINTER(_RowsArgs), C.c_void_p]
        self.cuda = C.CDLL("libcuda.so.1")
        self.lock = threading.Lock()
        self.opened: Dict[int, C.c_void_p] = {}
        self.plans: Dict[Tuple[Any, ...], C.c_void_p] = {}

    def check(self, status: int) -> None:
        if status:
            raise Error(self.c.weir_kernels_error().decode(errors="replace"))

    def context(self) -> int:
        context = C.c_void_p()
        self.cuda.cuCtxGetCurrent(C.byref(context))
        return context.value or 0

    def open(self, context: int) -> C.c_void_p:
        if context not in self.opened:
            kernels = C.c_void_p()
            options = _Options(C.sizeof(_Options), None, _find_nvrtc())
            self.check(self.c.weir_kernels_open(C.byref(options), C.byref(kernels)))
            self.opened[context] = kernels
        return self.opened[context]

    def plan(self, kind: Any, make: Any, what: Tuple[Any, ...]) -> C.c_void_p:
        """what: the members of a structure of that kind behind its size."""
        key = (self.context(), kind) + what
        found = self.plans.get(key)
        if found is None:
            with self.lock:
                found = C.c_void_p()
                whole = kind(C.sizeof(kind), *what)
                self.check(make(self.open(key[0]), C.byref(whole), C.byref(found)))
                self.plans[key] = found
        return found


_library: Optional[_Library] = None


def _get() -> _Library:
    global _library
    if _library is None:
        _library = _Library()
    return _library


def _stream(t: _Tensor, given: Optional[int]) -> int:
    """The stream that is given, or on which the tensor's module works now.  Copies of the host's wait for the default one."""
    name = t.module.__name__
    if t.host or given is not None:
        return 0 if t.host else given or 0
    if name == "torch":
        return t.module.cuda.current_stream(t.of.device).cuda_stream
    if name == "cupy":
        return t.module.cuda.get_current_stream().ptr
    return 0


class _OnDevice:
    """A copy of a tensor of the host on the first GPU, with the same gaps between its elements."""

    def __init__(self, cuda: Any, name: str, t: _Tensor) -> None:
        self.cuda, self.t, self.at = cuda, t, C.c_uint64()
        if any(step < 0 for size, step in zip(t.shape, t.strides) if size > 1):
            raise TypeError(f"{name} has a negative stride: copy it first")
        last = sum((size - 1) * step for size, step in zip(t.shape, t.strides))
        self.bytes = 0 if 0 in t.shape else (last + 1) * t.item
        _driver(cuda, "cuMemAlloc_v2", C.byref(self.at), C.c_size_t(max(self.bytes, 1)))
        _driver(cuda, "cuMemcpyHtoD_v2", self.at, C.c_void_p(t.at), C.c_size_t(self.bytes))

    def back(self) -> None:
        _driver(self.cuda, "cuMemcpyDtoH_v2", C.c_void_p(self.t.at), self.at, C.c_size_t(self.bytes))


def _driver(cuda: Any, name: str, *arguments: Any) -> None:
    status = getattr(cuda, name)(*arguments)
    if status:
        raise Error(f"{name} answers {status}")


class _Places:
    """Holds tensors on the GPU while it is entered.  Tensors of the host have copies there, of
    which the results go back."""

    def __init__(self, library: _Library, t: Dict[str, _Tensor], results: Sequence[str]) -> None:
        self.cuda, self.t, self.results = library.cuda, t, results
        self.copies: Dict[str, _OnDevice] = {}

    def __enter__(self) -> Dict[str, int]:
        if not any(tensor.host for tensor in self.t.values()):
            return {name: tensor.at for name, tensor in self.t.items()}
        context = C.c_void_p()
        _driver(self.cuda, "cuInit", 0)
        _driver(self.cuda, "cuDevicePrimaryCtxRetain", C.byref(context), 0)
        _driver(self.cuda, "cuCtxSetCurrent", context)
        try:
            for name, tensor in self.t.items():
                self.copies[name] = _OnDevice(self.cuda, name, tensor)
        except BaseException:
            self.free()
            raise
        return {name: copy.at.value for name, copy in self.copies.items()}

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            for name in self.results:
                if kind is None and name in self.copies:
                    self.copies[name].back()
        finally:
            self.free()

    def free(self) -> None:
        for copy in self.copies.values():
            self.cuda.cuMemFree_v2(copy.at)


def _run(operation: str, x: Any, out: Any = None, epsilon: float = 0.0, residual: Any = None, sum_out: Any = None,
         weight: Any = None, bias: Any = None, stream: Optional[int] = None, choice: int = 0) -> Any:
    given = _Tensor(x)
    if out is None:
        out = given.module.empty_like(x)
    t = {"x": given, "y": _Tensor(out)}
    for name, tensor in (("residual", residual), ("sum", sum_out), ("weight", weight), ("bias", bias)):
        if tensor is not None:
            t[name] = _Tensor(tensor)
    if not given.shape:
        raise TypeError("a tensor needs a dimension")
    for name, other in t.items():
        shape = given.shape[-1:] if name in ("weight", "bias") else given.shape
        if other.shape != shape or other.type != given.type or other.host != given.host:
            raise TypeError(f"{name} has shape {other.shape}: it must have {shape}, and the type and place of x")
        if name in ("weight", "bias") and other.strides[0] != 1 and shape[0] > 1:
            raise TypeError(f"{name} must be contiguous")
    if "sum" in t and t["sum"].strides != t["residual"].strides:
        raise TypeError("sum_out must have the strides of residual")
    library = _get()
    with _Places(library, t, ("y", "sum")) as at:
        _launch(library, operation, t, at, epsilon, _stream(given, stream), choice)
    return out


def _launch(library: _Library, operation: str, t: Dict[str, _Tensor], at: Dict[str, int], epsilon: float,
            stream: int, choice: int) -> None:
    x, shape = t["x"], t["x"].shape
    full = [t[name].strides for name in ("x", "y", "residual", "sum") if name in t]
    taken, rows = _rows(shape, full)
    row = len(shape) - 2  # the dimension whose stride is that of a row

    def strides(name: str) -> Tuple[int, int]:
        s = t[name].strides if name in t else (1,) * len(shape)
        return (s[row] if taken else max(shape[-1], 1), s[-1] if shape[-1] > 1 else 1)

    outer = shape[: len(shape) - 1 - taken]
    steps = [tensor.strides[d] * tensor.item for tensor in t.values() for d in range(len(outer)) if len(tensor.shape) > 1]
    aligned = _is_aligned(at) and not any(step % 16 for step in steps)
    plan = library.plan(_Rows, library.c.weir_rows_plan, (_OPERATIONS[operation], x.type, rows, shape[-1], *strides("x"), *strides("y"), epsilon,
                         "residual" in t, *strides("residual"), "sum" in t, "weight" in t, "bias" in t, choice, aligned))
    index = [0] * len(outer)
    while 0 not in shape:
        args = _RowsArgs(C.sizeof(_RowsArgs))
        for name, tensor in t.items():
            step = 0 if name in ("weight", "bias") else sum(i * s for i, s in zip(index, tensor.strides))
            setattr(args, name, at[name] + step * tensor.item)
        library.check(library.c.weir_rows_run(plan, C.byref(args), C.c_void_p(stream)))
        for d in range(len(outer) - 1, -1, -1):
            index[d] += 1
            if index[d] < outer[d]:
                break
            index[d] = 0
        else:
            return


def softmax(x: Any, out: Any = None, stream: Optional[int] = None, choice: int = 0) -> Any:
    """exp(x) / sum(exp(x)) over the last dimension."""
    return _run("softmax", x, out, stream=stream, choice=choice)


def log_softmax(x: Any, out: Any = None, stream: Optional[int] = None, choice: int = 0) -> Any:
    """log(softmax(x))."""
    return _run("log_softmax", x, out, stream=stream, choice=choice)


def layer_norm(x: Any, weight: Any = None, bias: Any = None, epsilon: float = 1e-5, residual: Any = None,
               sum_out: Any = None, out: Any = None, stream: Optional[int] = None, choice: int = 0) -> Any:
    """Layer norm of x, or of x + residual, over the last dimension.  sum_out, which may be residual, gets the sum."""
    return _run("layer_norm", x, out, epsilon, residual, sum_out, weight, bias, stream, choice)


def rms_norm(x: Any, weight: Any = None, bias: Any = None, epsilon: float = 1e-6, residual: Any = None,
             sum_out: Any = None, out: Any = None, stream: Optional[int] = None, choice: int = 0) -> Any:
    """The same for RMS norm."""
    return _run("rms_norm", x, out, epsilon, residual, sum_out, weight, bias, stream, choice)


_EPILOGUES = {None: 0, "relu": 2, "gelu": 3, "silu": 4, "residual": 5, "swiglu": 6}


def linear(x: Any, weight: Any, bias: Any = None, activation: Optional[str] = None, residual: Any = None,
           out: Any = None, stream: Optional[int] = None, choice: int = 0, x_scale: Any = None,
           weight_scale: Any = None, tf32: int = False, weight_stays: bool = False) -> Any:
    """x @ weight.T, and what follows: a bias and then relu, gelu (by its tanh) or silu; or a residual that is added; or
    "swiglu", for which rows 2i and 2i + 1 of the weight are those of gate and up and the result has half as many
    columns.

    With weight_stays nothing in the stream may still be writing the weight: a product of up to 128 rows begins while what
    is before it in the stream still works.

    x and weight may be transposed views.  With tf32 the tensor cores multiply float32, of which they read 10 bits of
    mantissa.  With tf32=3 they multiply three times, for 21 bits.

    x and weight may be int8 or float8_e4m3fn.  x_scale has a float32 for each row of x then, weight_scale for each row of
    weight, and each sum is multiplied by both.  The bias is float32, and out is bfloat16, float16, or int8 for int8."""
    a, b = _Tensor(x), _Tensor(weight)
    if len(a.shape) < 2 or len(b.shape) != 2 or a.shape[-1] != b.shape[1]:
        raise TypeError(f"x has shape {a.shape} and weight {b.shape}: the last dimensions must be alike")
    if residual is not None and (bias is not None or activation):
        raise TypeError("a residual comes with neither bias nor activation")
    if activation not in (None, "relu", "gelu", "silu", "swiglu"):
        raise TypeError("activation is None, relu, gelu, silu or swiglu")
    if activation and (activation == "swiglu") != (bias is None):
        raise TypeError("relu, gelu and silu come with a bias, and swiglu without one")
    epilogue = 5 if residual is not None else _EPILOGUES[activation] or (1 if bias is not None else 0)
    n, k = b.shape
    shape = a.shape[:-1] + (n // 2 if activation == "swiglu" else n,)
    scaled = a.item == 1
    if tf32 and (a.type != _TYPES[2, 32] or tf32 not in _TF32):
        raise TypeError("tf32 is True or 3, and for float32")
    if scaled and (out is None or x_scale is None or weight_scale is None):
        raise TypeError("x of 8 bits needs x_scale, weight_scale and out")
    if out is None:
        out = x.new_empty(shape) if hasattr(x, "new_empty") else a.module.empty(shape, x.dtype)
    t = {"a": a, "b": b, "d": _Tensor(out)}
    m = 1
    for size in a.shape[:-1]:
        m *= size
    for name, tensor, want in (("bias", bias, (n,)), ("residual", residual, shape), ("x_scale", x_scale, (m,)),
                               ("weight_scale", weight_scale, (n,))):
        if tensor is not None:
            t[name] = _Tensor(tensor)
            if t[name].shape != want:
                raise TypeError(f"{name} has shape {t[name].shape}: it must have {want}")
    types = dict.fromkeys(t, a.type)
    types.update({name: 1 for name in ("x_scale", "weight_scale") + (("bias",) if scaled else ()) if name in t})
    if scaled:
        types["d"] = t["d"].type
    if any(t[name].type != types[name] or t[name].host != a.host for name in t) or t["d"].shape != shape:
        raise TypeError("all tensors must have one type, scales and the bias of 8-bit operands float32, and one place, "
                        "and out the shape of the result")
    layout = {name: _matrix(t[name], name) for name in ("a", "b", "d", "residual") if name in t}
    vectors = [t[name] for name in ("bias", "x_scale", "weight_scale") if name in t]
    if layout["d"][1] or layout.get("residual", (0, 0))[1] or any(v.strides[0] != 1 and v.shape[0] > 1 for v in vectors):
        raise TypeError("out, bias, residual and scales must have adjacent elements")
    what = (_TF32[tf32] if tf32 else a.type, epilogue, m, n, k, layout["a"][1], layout["b"][1], layout["a"][0], layout["b"][0],
            layout["d"][0], layout.get("residual", (0, 0))[0], choice, t["d"].type if scaled else 0, 1, 0, 0, 0, 0)
    _multiply(what, t, _stream(a, stream), weight_stays)
    return out


def _is_aligned(at: Dict[str, int]) -> bool:
    """For the copy engine and for vectors."""
    return not any((address or 0) % 16 for address in at.values())


def _multiply(what: Tuple[Any, ...], t: Dict[str, _Tensor], stream: int, stays: bool = False) -> None:
    library = _get()
    with _Places(library, t, ("d",)) as at:
        plan = library.plan(_Gemm, library.c.weir_gemm_plan, what + (_is_aligned(at), stays))
        with _workspace(library, plan, t["a"]) as also:
            args = _GemmArgs(C.sizeof(_GemmArgs), *({**at, **also}.get(name) for name in (
                "a", "b", "d", "bias", "residual", "workspace", "x_scale", "weight_scale")))
            library.check(library.c.weir_gemm_run(plan, C.byref(args), C.c_void_p(stream)))


def _workspace(library: _Library, plan: Any, like: _Tensor) -> _Places:
    """New memory of that kind, for as long as a run begins."""
    elements = (-(-library.c.weir_plan_workspace(plan) // like.item),)
    if not elements[0]:
        return _Places(library, {}, ())
    of = like.of
    made = of.new_empty(elements) if hasattr(of, "new_empty") else like.module.empty(elements, of.dtype)
    return _Places(library, {"workspace": _Tensor(made)}, ())


def bmm(x: Any, y: Any, residual: Any = None, out: Any = None, stream: Optional[int] = None, choice: int = 0,
        tf32: int = False) -> Any:
    """torch.bmm(x, y): x has the shape (B, M, K) and y (B, K, N).  With a residual it is added, as torch.baddbmm() does.

    Each may be a transposed view, and x, y and the residual one matrix that all products share (by expand()).  tf32 is
    that of linear()."""
    a, b = _Tensor(x), _Tensor(y)
    if len(a.shape) != 3 or len(b.shape) != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise TypeError(f"x has shape {a.shape} and y {b.shape}: they must be (B, M, K) and (B, K, N)")
    if a.item == 1 or (tf32 and (a.type != _TYPES[2, 32] or tf32 not in _TF32)):
        raise TypeError("bmm takes float32, float16 and bfloat16, and tf32 is True or 3, and for float32")
    batch, m, k = a.shape
    n = b.shape[2]
    if out is None:
        out = x.new_empty((batch, m, n)) if hasattr(x, "new_empty") else a.module.empty((batch, m, n), x.dtype)
    t = {"a": a, "b": b, "d": _Tensor(out)}
    if residual is not None:
        t["residual"] = _Tensor(residual)
    if any(o.type != a.type or o.host != a.host for o in t.values()) or any(
            t[name].shape != (batch, m, n) for name in ("d", "residual") if name in t):
        raise TypeError("all tensors must have one type and one place, and out and residual the shape of the result")
    layout = {name: _matrix(tensor, name, slice(1, 3)) for name, tensor in t.items()}
    if layout["d"][1] or layout.get("residual", (0, 0))[1] or (batch > 1 and not t["d"].strides[0]):
        raise TypeError("out and residual must have adjacent elements in rows, and out a matrix for each product")
    apart = {name: tensor.strides[0] if batch > 1 else 0 for name, tensor in t.items()}
    if 0 in (batch, m, n):
        return out
    what = (_TF32[tf32] if tf32 else a.type, _EPILOGUES["residual"] if residual is not None else 0, m, n, k, layout["a"][1],
            1 - layout["b"][1], layout["a"][0], layout["b"][0], layout["d"][0], layout.get("residual", (0, 0))[0], choice, 0,
            batch, apart["a"], apart["b"], apart["d"], apart.get("residual", 0))
    _multiply(what, t, _stream(a, stream))
    return out


def _matrix(t: _Tensor, name: str, part: slice = slice(None)) -> Tuple[int, int]:
    """The pitch of a part of a tensor's dimensions, of which the leading ones are rows, and whether it is stored by columns."""
    shape, strides = t.shape[part], t.strides[part]
    taken, rows = _rows(shape, [strides])
    if taken < len(shape) - 1:
        raise TypeError(f"{name} has rows that no single stride counts: make it contiguous")
    row, column = strides[-2], strides[-1]
    if column == 1 or shape[-1] == 1:
        if rows <= 1 or row >= shape[-1]:
            return (row if rows > 1 else shape[-1]), 0
    if (row == 1 or rows == 1) and len(shape) == 2:
        return column, 1
    raise TypeError(f"{name} has adjacent elements neither in rows nor in columns: make it contiguous")


def _pair(number: Any) -> Tuple[int, int]:
    return (number, number) if isinstance(number, int) else (int(number[0]), int(number[1]))


def _empty_nhwc(like: Any, module: Any, shape: Sequence[int]) -> Any:
    """New memory in channels_last, of a shape that has the channels second."""
    n, c, h, w = shape
    made = like.new_empty((n, h, w, c)) if hasattr(like, "new_empty") else module.empty((n, h, w, c), like.dtype)
    return made.permute(0, 3, 1, 2) if hasattr(made, "permute") else made.transpose(0, 3, 1, 2)


def _is_nhwc(t: _Tensor) -> bool:
    n, c, h, w = t.shape
    return all(size <= 1 or step == want for size, step, want in zip(t.shape, t.strides, (h * w * c, 1, w * c, c)))


def _convolve(pass_: int, x: Sequence[int], weight: Sequence[int], a: Any, b: Any, out: Any, bias: Any,
              activation: Optional[str], residual: Any, stride: Any, padding: Any, dilation: Any, groups: int,
              stream: Optional[int], choice: int, scale: Any = None) -> Any:
    """x and weight are the shapes of the input and of the filters, a and b the operands of the pass."""
    if len(x) != 4 or len(weight) != 4 or groups < 1 or x[1] != weight[1] * groups:
        raise TypeError(f"x has shape {tuple(x)} and weight {tuple(weight)}: they need four dimensions, and x as many channels "
                        "as weight in all groups")
    if residual is not None and (bias is not None or activation):
        raise TypeError("a residual comes with neither bias nor activation")
    if activation not in (None, "relu", "gelu", "silu"):
        raise TypeError("activation is None, relu, gelu or silu")
    if activation and bias is None:
        raise TypeError("relu, gelu and silu come with a bias")
    epilogue = 5 if residual is not None else _EPILOGUES[activation] or (1 if bias is not None else 0)
    steps, pads, dilations = _pair(stride), _pair(padding), _pair(dilation)
    if min(steps + dilations) < 1 or min(pads) < 0:
        raise TypeError("stride and dilation are from 1 on, and padding from 0 on")
    size = [(x[2 + i] + 2 * pads[i] - dilations[i] * (weight[2 + i] - 1) - 1) // steps[i] + 1 for i in (0, 1)]
    shapes = [tuple(x), tuple(weight), (x[0], weight[0], *size)]
    order = {_FORWARD: (0, 1, 2), _INPUT: (2, 1, 0), _FILTERS: (2, 0, 1)}[pass_]  # a, b and the result
    t = {"a": _Tensor(a), "b": _Tensor(b)}
    shape = shapes[order[2]]
    scaled = t["a"].item == 1
    if scaled and (out is None or scale is None):
        raise TypeError("x of int8 needs weight_scale and out")
    if out is None:
        out = _empty_nhwc(a, t["a"].module, shape)
    t["d"] = _Tensor(out)
    wanted = {"a": shapes[order[0]], "b": shapes[order[1]], "d": shape, "residual": shape, "bias": (shape[1],),
              "weight_scale": (shape[1],)}
    for name, tensor in (("bias", bias), ("residual", residual), ("weight_scale", scale)):
        if tensor is not None:
            t[name] = _Tensor(tensor)
    for name, tensor in t.items():
        if tensor.shape != wanted[name]:
            raise TypeError(f"{name} has shape {tensor.shape}: it must have {wanted[name]}")
        vector, free = name in ("bias", "weight_scale"), scaled and name == "d"
        wanted_type = _TYPES[2, 32] if name == "weight_scale" or (scaled and vector) else t["a"].type
        if (tensor.type != wanted_type and not free) or tensor.host != t["a"].host:
            raise TypeError("all tensors must have one type, the scale and bias of int8 float32, and one place")
        if vector and tensor.strides[0] != 1 and tensor.shape[0] > 1:
            raise TypeError(f"{name} must be contiguous")
        if not vector and not _is_nhwc(tensor):
            raise TypeError(f"{name} is not in channels_last: .contiguous(memory_format=torch.channels_last) makes it so")
    library = _get()
    with _Places(library, t, ("d",)) as at:
        plan = library.plan(_Conv, library.c.weir_conv_plan,
                            (t["a"].type, epilogue, pass_, choice, x[0], x[2], x[3], x[1], weight[0], weight[2], weight[3],
                             *steps, *pads, *dilations, groups, _is_aligned(at), t["d"].type if scaled else 0))
        with _workspace(library, plan, t["a"]) as also:
            args = _GemmArgs(C.sizeof(_GemmArgs), *({**at, **also}.get(name) for name in (
                "a", "b", "d", "bias", "residual", "workspace", "x_scale", "weight_scale")))
            library.check(library.c.weir_conv_run(plan, C.byref(args), C.c_void_p(_stream(t["a"], stream))))
    return out


_FORWARD, _INPUT, _FILTERS = 0, 1, 2


def conv2d(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
           activation: Optional[str] = None, residual: Any = None, out: Any = None, stream: Optional[int] = None,
           choice: int = 0, weight_scale: Any = None) -> Any:
    """torch.nn.functional.conv2d(), and what follows: a bias and then relu, gelu (by its tanh) or silu; or a residual that
    is added.

    All tensors are in channels_last.  x and weight may be int8.  weight_scale has a float32 for each filter then, with the
    scale of x in it, by which the sums are multiplied.  The bias is float32, and out is bfloat16, float16 or int8."""
    return _convolve(_FORWARD, tuple(x.shape), tuple(weight.shape), x, weight, out, bias, activation, residual, stride, padding,
                     dilation, groups, stream, choice, weight_scale)


def conv2d_input(input_size: Sequence[int], weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, out: Any = None, stream: Optional[int] = None, choice: int = 0) -> Any:
    """The gradient of conv2d()'s input, as torch.nn.grad.conv2d_input()."""
    return _convolve(_INPUT, tuple(input_size), tuple(weight.shape), grad_output, weight, out, None, None, None, stride,
                     padding, dilation, groups, stream, choice)


def conv2d_weight(x: Any, weight_size: Sequence[int], grad_output: Any, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1, out: Any = None, stream: Optional[int] = None, choice: int = 0) -> Any:
    """The gradient of conv2d()'s weight, as torch.nn.grad.conv2d_weight()."""
    return _convolve(_FILTERS, tuple(x.shape), tuple(weight_size), grad_output, x, out, None, None, None, stride, padding,
                     dilation, groups, stream, choice)


def plans() -> List[str]:
    """A line for each plan of this process: the kernel, its geometry, and how long it is predicted to take."""
    library = _get()
    return [library.c.weir_plan_text(p).decode() for p in library.plans.values()]
