"""Which torch.nn.Module runs: `encoder.layers.0.self_attn (MultiheadAttention)`.

Global hooks see every module, and leave each module's own hooks alone: PyTorch has fast paths that
look at those.  Functions that torch.compile traces are left as they are.  Names come from the
outermost module that is called, the first time that a module below it is seen.
"""
import os
import weakref

from weir import ranges

_known = {}  # id of a module: (its range, a weak reference, its count when it is an outermost one)
_defined = {}  # name and args: the range
_texts = {}  # a range: its name and args
_under = {}  # a range, and the type of autocast: the range that says both
_scope = 0
_sampler = None


def _reset():
    global _scope
    _known.clear()
    _defined.clear()
    _texts.clear()
    _under.clear()
    if _sampler:
        _sampler.reset()
    _scope = ranges.string("torch.nn")


def _list(numbers):
    return "[%s]" % ",".join("%d" % n for n in numbers)


def _convolution(module):
    """How torch's own convolution goes, which the shapes of its inputs do not tell; or nothing."""
    if getattr(type(module).forward, "__module__", None) != "torch.nn.modules.conv":
        return ""
    padding = module.padding
    if padding == "valid" or module.padding_mode != "zeros":  # padded before, by an operator
        padding = [0]
    return ',"conv":{"stride":%s,"padding":%s,"dilation":%s,"output_padding":%s,"groups":%d,' \
        '"transposed":%s}' % (_list(module.stride),
                              '"same"' if padding == "same" else _list(padding),
                              _list(module.dilation), _list(module.output_padding),
                              module.groups, "true" if module.transposed else "false")


_HEAD = '{"dtype":"'


def _word(dtype):
    return str(dtype).replace("torch.", "")


def _args(module):
    parameter = next(module.parameters(), None)
    if parameter is None:
        return None
    try:
        convolution = _convolution(module)
    except (AttributeError, TypeError):  # one that has changed what it is made of
        convolution = ""
    return '%s%s"%s}' % (_HEAD, _word(parameter.dtype), convolution)


def _define(name, args):
    number = _defined.get((name, args))
    if number is None:
        number = _defined[name, args] = ranges.define(ranges.ANNOTATION, _scope, name, args)
        _texts[number] = name, args
    return number


def _with_autocast(number, dtype):
    """The range that says that products in it are of another type than the module."""
    under = _under.get((number, dtype))
    if under is None:
        name, args = _texts[number]
        if args:
            own, _, rest = args[len(_HEAD):].partition('"')
            args = '%s%s","autocast":"%s"%s' % (_HEAD, own, _word(dtype), rest)
        under = _under[number, dtype] = _define(name, args)
    return under


def _autocast_of(torch):
    """Two functions: whether autocast is on, and its type, on the GPU in this thread."""
    dtype = getattr(torch, "get_autocast_dtype", None)  # since PyTorch 2.4
    older = getattr(torch, "get_autocast_gpu_dtype", None)
    is_on = getattr(torch, "is_autocast_enabled", None)
    if not is_on or not (dtype or older):
        return lambda: False, None
    return is_on, (lambda: dtype("cuda")) if dtype else older


def _remember(module, path):
    key = id(module)
    kind = type(module).__name__
    name = "%s (%s)" % (path, kind) if path else kind
    number = _define(name, _args(module))
    before = _known.get(key)
    count = before[2] if before else None
    if count is None and _sampler and not path and not _is_replica(module):
        count = _sampler.count(number)
    _known[key] = entry = (number, weakref.ref(module, lambda _: _known.pop(key, None)), count)
    return entry


def _is_replica(module):
    """Made for one call, by DataParallel."""
    return getattr(module, "_is_replica", False)


def _learn(module):
    """Names a module and everything below it."""
    if not _is_replica(module):
        for path, inner in module.named_modules():
            if path:
                _remember(inner, path)
    return _remember(module, "")


def start(torch, sampler=None):
    global _sampler
    from torch.nn.modules import module as nn

    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    compiling = compiling or (lambda: False)

    push, pop, known = ranges.push, ranges.pop, _known
    is_autocast, autocast_dtype = _autocast_of(torch)
    _sampler = sampler

    def enter(module, args):
        if compiling():
            return
        entry = known.get(id(module)) or _learn(module)
        if entry[2]:
            sampler.begin(id(module), _scope, entry[2])
        number = entry[0]
        if (not sampler or sampler.telling) and is_autocast():  # types matter beside shapes alone
            number = _with_autocast(number, autocast_dtype())
        push(number)

    def leave(module, args, output):
        if compiling():
            return
        pop(_scope)
        if sampler and sampler.ending:
            sampler.end(id(module), _scope)

    _reset()
    os.register_at_fork(after_in_child=_reset)
    nn.register_module_forward_pre_hook(enter)
    try:
        nn.register_module_forward_hook(leave, always_call=True)
    except TypeError:  # before PyTorch 2.0: a call that raises leaves its range open
        nn.register_module_forward_hook(leave)
