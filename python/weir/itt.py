"""ITT, through which PyTorch says operators' names as they are.

For NVTX it makes a text of each operator.  ITT's part in PyTorch asks the environment for a library
once, when PyTorch is imported or when the first task begins, according to its version.
"""
import os

from weir import ranges

LIBRARY = "INTEL_LIBITTNOTIFY64"
_offered = False


def offer():
    """Names the recorder's library, unless another is named: before PyTorch is imported."""
    global _offered
    here = os.path.realpath(__file__)
    library = os.path.join(os.path.dirname(here), os.pardir, os.pardir, "libweir.so")
    if LIBRARY in os.environ or not ranges.open() or not os.path.exists(library):
        return
    os.environ[LIBRARY] = library
    _offered = True


def comes(torch):
    """Whether what PyTorch says to ITT comes to the recorder: begins a task to see.

    The offer ends here: other programs, and libraries that come later, may have ITT too.
    """
    global _offered
    if not _offered:
        return False
    _offered = False
    itt = getattr(torch._C, "_itt", None)
    if itt is not None and itt.is_available():
        itt.rangePush("weir")
        itt.rangePop()
    os.environ.pop(LIBRARY, None)
    return bool(ranges.itt())
