"""The recorder's side: functions of libweir.so, which the program has been preloaded with.

push() and pop() keep the lock of the interpreter, to give it up and take it again costs more than
they do, and have one small number each: arguments are what a call from Python costs.
"""
import ctypes
import os

OPERATOR, ANNOTATION, PYTHON = 1, 2, 3

push = None  # (a number of define())
pop = None  # (scope: a number of string())
inside = None  # (scope): whether an operator or a range of this scope is open in this thread
itt = None  # (): whether what this process says to ITT comes to the recorder
_string = _define = None
_known = {}


def open():
    """False when no recorder is there."""
    global push, pop, inside, itt, _string, _define
    if push:
        return True
    try:
        library = ctypes.PyDLL(None)
        _string = library.weir_range_string
    except (AttributeError, OSError):
        return False
    if not _string(None):
        return False
    _define = library.weir_range_define
    push, pop = library.weir_range_push, library.weir_range_pop
    push.restype = pop.restype = None
    inside, itt = library.weir_range_inside, library.weir_range_itt
    os.register_at_fork(after_in_child=_known.clear)
    return True


def fact(key, value):
    """Something that the recording was made with, for its reports."""
    library = ctypes.PyDLL(None)
    if hasattr(library, "weir_fact"):
        library.weir_fact(key.encode(), str(value).encode("utf-8", "replace"))


def collect():
    """Device times of what has ended are in the recording when this returns."""
    library = ctypes.PyDLL(None)
    if hasattr(library, "weir_collect"):
        library.weir_collect()


def string(text):
    """The number of a text in the recording; 0 when there is none."""
    number = _known.get(text)
    if number is None:
        number = _known[text] = _string(text.encode("utf-8", "replace"))
    return number


def define(kind, scope, name, args=None):
    """A range that can be pushed: the number for it."""
    return _define(kind, scope, string(name), string(args) if args else 0)
