"""Which line of the program's own files runs, as ranges `file:line`.

A line's range lasts until its function comes to another line, or is left; what it calls is inside.
Own files are those outside the installation and its packages.  Costs a few hundred nanoseconds a
line; with Python 3.12 and later other files' lines cost nothing.
"""
import os
import sys
import sysconfig
import threading

from weir import ranges

_here = threading.local()
_scope = 0
_codes = {}  # id of a code object: (it, {line: number of its range}), or None: not the program's


def _foreign():
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = {os.path.realpath(p) for p in map(sysconfig.get_paths().get, names) if p}
    paths.add(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    return tuple(p + os.sep for p in paths)


_FOREIGN = _foreign()


def is_own(filename):
    if filename.startswith("<") or (os.sep + "site-packages" + os.sep) in filename:
        return False
    path = os.path.realpath(filename)
    return not path.startswith(_FOREIGN) and (os.sep + "dist-packages" + os.sep) not in path


def _lines_of(code):
    key = id(code)
    if key not in _codes:
        _codes[key] = (code, {} if is_own(code.co_filename) else None)
    return _codes[key][1]


def _frames():
    """A flag for each function of ours that runs on this thread: whether it is in a line."""
    try:
        return _here.frames
    except AttributeError:
        _here.frames = []
        return _here.frames


def _line(code, line):
    lines = _lines_of(code)
    if lines is None:
        return
    number = lines.get(line)
    if number is None:
        number = lines[line] = ranges.define(
            ranges.PYTHON, _scope, "%s:%d" % (code.co_filename, line))
    frames = _frames()
    if not frames:
        frames.append(False)  # it ran before we came
    if frames[-1]:
        ranges.pop(_scope)
    frames[-1] = True
    ranges.push(number)


def _enter():
    _frames().append(False)


def _leave():
    frames = _frames()
    if frames and frames.pop():
        ranges.pop(_scope)


def _monitor():
    monitoring = sys.monitoring
    events, tool = monitoring.events, monitoring.PROFILER_ID
    for tool in (monitoring.PROFILER_ID, 3, 4):  # the first that nobody has
        if monitoring.get_tool(tool) is None:
            break
    monitoring.use_tool_id(tool, "weir")
    inside = events.LINE | events.PY_RETURN | events.PY_YIELD | events.PY_RESUME

    def start(code, offset):
        if _lines_of(code) is None:
            return monitoring.DISABLE
        _enter()
        monitoring.set_local_events(tool, code, inside)

    def resume(code, offset):
        _enter()

    def leave(code, offset, value):
        _leave()

    def unwind(code, offset, exception):
        if _lines_of(code) is not None:
            _leave()

    def throw(code, offset, exception):
        if _lines_of(code) is not None:
            _enter()

    for event, callback in ((events.PY_START, start), (events.PY_RESUME, resume),
                            (events.PY_RETURN, leave), (events.PY_YIELD, leave),
                            (events.PY_UNWIND, unwind), (events.PY_THROW, throw),
                            (events.LINE, _line)):
        monitoring.register_callback(tool, event, callback)
    monitoring.set_events(tool, events.PY_START | events.PY_UNWIND | events.PY_THROW)


def _trace(frame, event, argument):
    if _lines_of(frame.f_code) is None:
        return None
    _enter()
    return _trace_inside


def _trace_inside(frame, event, argument):
    if event == "line":
        _line(frame.f_code, frame.f_lineno)
    elif event == "return":  # also when an exception leaves the function
        _leave()
    return _trace_inside


def _reset():
    global _scope
    _codes.clear()
    _here.__dict__.clear()
    _scope = ranges.string("python lines")


def start():
    _reset()
    os.register_at_fork(after_in_child=_reset)
    if hasattr(sys, "monitoring"):
        _monitor()
    else:
        threading.settrace(_trace)
        sys.settrace(_trace)
