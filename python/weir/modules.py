"""Which torch.nn.Module runs: `encoder.layers.0.self_attn (MultiheadAttention)`.

Global hooks see every module, and leave each module's own hooks alone: PyTorch has fast paths that
look at those.  What torch.compile traces is left as it is.  Names come from the outermost module
that is called, the first time that a module below it is seen.
"""
import os
import weakref

from weir import ranges

_known = {}  # id of a module: (its range, a weak reference, its count when it is an outermost one)
_defined = {}  # name and args: the range
_scope = 0
_sampler = None


def _reset():
    global _scope
    _known.clear()
    _defined.clear()
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


def _args(module):
    parameter = next(module.parameters(), None)
    if parameter is None:
        return None
    try:
        convolution = _convolution(module)
    except (AttributeError, TypeError):  # one that has changed what it is made of
        convolution = ""
    return '{"dtype":"%s"%s}' % (str(parameter.dtype).replace("torch.", ""), convolution)


def _remember(module, path):
    key = id(module)
    kind = type(module).__name__
    name = "%s (%s)" % (path, kind) if path else kind
    text = (name, _args(module))
    number = _defined.get(text)
    if number is None:
        number = _defined[text] = ranges.define(ranges.ANNOTATION, _scope, *text)
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
    _sampler = sampler

    def enter(module, args):
        if compiling():
            return
        entry = known.get(id(module)) or _learn(module)
        if entry[2]:
            sampler.begin(id(module), _scope, entry[2])
        push(entry[0])

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
