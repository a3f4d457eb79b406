"""Frames of Python in recorded call stacks.

Since 3.11 they are not on the stack of C: libweir.so reads them from the interpreter's own
structures, in the thread that calls CUDA.  Each version has some members at another place.  So it
is proved before it is used: a chain of frames is made here, the library is asked to read it, and
unless the answer is exactly that chain, code objects, instructions and names included, nothing is
read, and the recording says why.
"""
import ctypes
import sys

FRAMES = 128
TEXT = 65536

# In the order of src/hook/stack/frames.c; -1 where a version has no such field.
FIELDS = ("state_cframe", "cframe_frame", "frame_code", "frame_before", "frame_at", "frame_entry",
          "frame_owner", "code_first", "code_line", "code_file", "code_name", "code_table",
          "bytes_size", "bytes_data", "text_length", "text_state", "text_ascii", "text_other")

KNOWN = {
    (3, 11): (56, 8, 32, 48, 56, 68, -1, 184, 72, 112, 128, 136, 16, 32, 16, 32, 48, 72),
    (3, 12): (56, 0, 0, 8, 56, -1, 70, 192, 68, 112, 128, 136, 16, 32, 16, 32, 40, 56),
}

# Words of _Py_DebugOffsets behind its cookie, which 3.13 has at the beginning of _PyRuntime.
DEBUG = {
    "state_cframe": 22, "frame_before": 28, "frame_code": 29, "frame_at": 30, "frame_owner": 32,
    "code_file": 34, "code_name": 36, "code_table": 37, "code_line": 38, "code_first": 42,
    "bytes_size": 64, "bytes_data": 65, "text_state": 67, "text_length": 68, "text_ascii": 69,
}
DEBUG_WORDS = 70


class Unproved(Exception):
    pass


def start(library=None):
    """Switches the reading on; the answer is why not, or None."""
    try:
        library = library or ctypes.PyDLL(None)
        prove(library, layout())
    except Unproved as e:
        return str(e)
    except (AttributeError, OSError, ValueError) as e:
        return "%s: %s" % (type(e).__name__, e)
    library.weir_frames_switch(1)
    return None


def layout():
    version = sys.version_info[:2]
    if sys.implementation.name != "cpython":
        raise Unproved("this Python is no CPython")
    if version in KNOWN:
        return dict(zip(FIELDS, KNOWN[version]))
    if version == (3, 13):
        return debug_offsets()
    raise Unproved("the frames of Python %d.%d are not known; those of 3.11 to 3.13 are" % version)


def debug_offsets():
    at = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    if ctypes.string_at(at, 8) != b"xdebugpy":
        raise Unproved("this Python does not say where its frames are")
    words = (ctypes.c_uint64 * DEBUG_WORDS).from_address(at + 8)
    found = {name: words[i] for name, i in DEBUG.items()}
    found.update(cframe_frame=-1, frame_entry=-1, text_other=found["text_ascii"] + 16)
    return found


def prove(library, offsets):
    values = (ctypes.c_int32 * len(FIELDS))(*(offsets[name] for name in FIELDS))
    state = ctypes.cast(ctypes.pythonapi.PyGILState_GetThisThreadState, ctypes.c_void_p)
    if not library.weir_frames_layout(values, ctypes.c_uint32(len(FIELDS)), state):
        raise Unproved("the layout of its frames is not one that can be")
    read, seen = known_chain(library)
    # The innermost frame has gone on since it was read.
    if [code for code, _ in read] != [id(code) for code, _ in seen]:
        raise Unproved("the frames that were read are not those that are there")
    if [at for _, at in read[1:]] != [at for _, at in seen[1:]]:
        raise Unproved("the instructions that were read are not those that are there")
    for _, (code, _) in zip(range(FRAMES), seen):
        prove_code(library, code)


def known_chain(library):
    """A chain of a function, a generator, a lambda, and a function called by C."""
    def read_frames():
        codes, at = (ctypes.c_uint64 * FRAMES)(), (ctypes.c_uint64 * FRAMES)()
        n = library.weir_frames_chain(codes, at, ctypes.c_uint32(FRAMES))
        frame, seen = sys._getframe(), []
        while frame and len(seen) < FRAMES:
            seen.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        return list(zip(codes[:n], at[:n])), seen

    def générateur():
        yield (lambda: read_frames())()

    def called_by_c(_):
        return next(générateur())

    return max([0], key=called_by_c) or called_by_c(0)


def prove_code(library, code):
    words, text = (ctypes.c_uint64 * 2)(), ctypes.create_string_buffer(TEXT)
    n = library.weir_frames_code(ctypes.c_uint64(id(code)), words, text, ctypes.c_uint32(TEXT))
    file, name = words[1] & 0xffffffff, words[1] >> 32
    raw = text.raw
    read = (words[0] & 0xffffff, decode(raw[:file], words[0] >> 32 & 255),
            decode(raw[file:file + name], words[0] >> 40 & 255), raw[file + name:n])
    qualname = code.co_qualname
    if read != (code.co_firstlineno, code.co_filename, qualname, code.co_linetable):
        raise Unproved("the name or the lines of %s are read wrongly" % qualname)


def decode(raw, width):
    return raw.decode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}.get(width, "ascii"))
