"""Weir in Python: reading its recordings, and saying to the recorder what a Python program does.

`weir.open("app.weir")` is a recording: its kernels, calls, operators, activities and so on are
attributes, tables of rows and of columns; see weir.reader.

`weir record --python -- python3 script.py` starts this in every Python of the program (through
sitecustomize.py beside this package); `python3 -m weir script.py` does for one.  Without the
recorder nothing here does anything.  Needs nothing but the standard library.
"""
import os
import sys

_started = False


def wanted():
    """The recorded things, as words: see weir-record(1)."""
    return set(os.environ.get("WEIR_PYTHON", "operators").split(","))


def recorded():
    """Whether a recorder is there."""
    from weir import ranges

    return ranges.open()


def start():
    """Begins, once.  PyTorch is looked at when the program has imported it, never before."""
    global _started
    if _started:
        return
    _started = True
    words = wanted()
    if "lines" in words and recorded():
        from weir import lines

        lines.start()
    if "stacks" in words and recorded():
        _read_frames()
    if words == {"stacks"}:
        return
    from weir import imports, itt

    imports.when("torch", lambda torch: _name_torch(torch, words),
                 before=(lambda: None) if "shapes" in words else itt.offer)


def _read_frames():
    from weir import ranges, stacks

    why_not = stacks.start()
    ranges.fact("python-frames", "no: " + why_not if why_not else "yes")


def _name_torch(torch, words):
    if not recorded():
        return
    from weir import modules, operators, ranges, sampling

    ranges.fact("torch", getattr(torch, "__version__", ""))
    ranges.fact("python", sys.version.split()[0])

    observer = operators.start(torch, "shapes" in words)
    sampled = observer and not words & {"names", "shapes"}
    modules.start(torch, sampling.Sampler(torch, observer) if sampled else None)


def open(path, *more, **part):  # noqa: A001: it is what weir.open() has to be called
    """A recording, or a part of it: see weir.reader.open and weir.reader.Trace."""
    from weir import reader

    return reader.open(path, *more, **part)


def __getattr__(name):
    """weir.Error, weir.Trace and weir.Table, without reading them into every program that is recorded."""
    if name in ("Error", "Trace", "Table"):
        from weir import reader

        return getattr(reader, name)
    raise AttributeError("module weir has no attribute " + name)


def program():
    """The program of the installation that this package is in, else the one in PATH, else None."""
    import shutil

    folder = os.path.dirname(os.path.realpath(__file__))
    while folder != "/":
        folder = os.path.dirname(folder)
        if os.path.exists(os.path.join(folder, "lib/weir/libweir.so")):
            return os.path.join(folder, "bin/weir")
    return shutil.which("weir")


def warn(text):
    print("weir: " + text, file=sys.stderr)
