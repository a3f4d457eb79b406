"""Imported by each Python that starts under `weir record --python`; does nothing under another.

A sitecustomize that would have been imported without Weir is imported here.
"""
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def chain():
    """Runs the next sitecustomize there is, under its own name."""
    others = [p for p in sys.path if os.path.abspath(p or os.curdir) != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def start():
    try:
        import weir

        weir.start()
    except Exception as e:  # the program comes first
        print("weir: Python is not recorded: %s: %s" % (type(e).__name__, e), file=sys.stderr)


try:
    chain()  # first: its lines, as Debian's Python has some, are not the program's
finally:
    if "WEIR_PYTHON" in os.environ:
        start()
