"""Reads recordings: what `weir report --json` says, and each call, GPU activity and range.

    import weir
    t = weir.open("app.weir")
    for k in t.kernels:                     # a row a kernel
        print(k.count, k.device_total_ns, k.name)
    t.activities.duration_ns                # a column: a NumPy array where there is NumPy
    t.activities.frame()                    # a pandas frame where there is pandas

The files are read by the program `weir`; nothing but the standard library is needed.  Times are
whole nanoseconds, sizes bytes, as the ends of names say (_ns, _bytes).  In a row None is what is not
known; in a column of numbers that is -1.  docs/reference/python.md says what the columns are.
"""
from __future__ import annotations

import array
import collections
import json
import keyword
import os
import subprocess
import sys
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import weir

try:
    import numpy
except ImportError:  # columns are then memoryviews and lists
    numpy = None

REPORTED = ("kernels", "calls", "operators", "failures", "memcpys", "devices", "device_activities", "memops", "spans",
            "streams", "processes", "threads", "hints", "idle_gaps", "breakdown", "critical_path")
EVENTS = ("activities", "ranges", "launches", "allocations")
MEMORY_KINDS = ("device", "managed", "vmm", "host")
ROWS_AT_ONCE = 65536
TYPES = {"i32": ("i", "<i4"), "i64": ("q", "<i8"), "text": ("i", "<i4")}


class Error(Exception):
    """A recording can't be read; the text says why."""


def program() -> str:
    """weir.program(), or Error."""
    found = weir.program()
    if not found:
        raise Error("the program weir is neither beside this package nor in PATH")
    return found


def _attribute(key: str) -> str:
    """A name that Python takes: class is class_."""
    return key + "_" if keyword.iskeyword(key) else key


class _Text:
    """A column of texts: which of the texts each is; -1: none."""

    def __init__(self, codes: Any, texts: Sequence[Optional[str]]):
        self.codes, self.texts = codes, texts
        self._all = [*texts, None]  # -1 is the last

    def __len__(self) -> int:
        return len(self.codes)

    def whole(self) -> Any:
        if numpy is not None:
            return numpy.array(self._all, dtype=object)[self.codes]
        return self.cells(0, len(self))

    def cells(self, at: int, end: int) -> List[Optional[str]]:
        return [self._all[code] for code in self.codes[at:end].tolist()]


class _Numbers:
    """A column of whole numbers, -1 for what is not known."""

    def __init__(self, values: Any):
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def whole(self) -> Any:
        return self.values

    def cells(self, at: int, end: int) -> List[Optional[int]]:
        return [None if value == -1 else value for value in self.values[at:end].tolist()]


class _Values:
    """A column of whatever a report has there."""

    def __init__(self, values: List[Any]):
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def whole(self) -> Any:
        known = {type(value) for value in self.values if value is not None}
        if known == {int} and all(abs(value or 0) < 1 << 63 for value in self.values):
            return self._numbers("q", "<i8", -1)
        if known and known <= {int, float}:
            return self._numbers("d", "<f8", float("nan"))
        return self.values if numpy is None else self._objects()

    def _numbers(self, code: str, dtype: str, unknown: Any) -> Any:
        values = [unknown if value is None else value for value in self.values]
        return array.array(code, values) if numpy is None else numpy.array(values, dtype=dtype)

    def _objects(self) -> Any:
        values = numpy.empty(len(self.values), dtype=object)
        values[:] = self.values
        return values

    def cells(self, at: int, end: int) -> List[Any]:
        return self.values[at:end]


class Table:
    """Rows with attributes, kept as columns.

    Iterating gives rows; table[i] is one, table["name"] and table.name are columns.  `columns` are
    the names, in order.
    """

    def __init__(self, name: str, columns: Dict[str, Any]):
        self._name, self._columns = name, {_attribute(key): column for key, column in columns.items()}
        self.columns: Tuple[str, ...] = tuple(self._columns)
        self._row = collections.namedtuple("Row", self.columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))) if self.columns else 0

    def column(self, name: str) -> Any:
        """All values of a column.  Numbers are a NumPy array, without NumPy a memoryview or an array; what
        is not known is -1, or NaN among fractions.  Texts are an array of objects, or a list, with None.
        """
        return self._columns[_attribute(name)].whole()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._columns:
            return self.column(name)
        raise AttributeError("%s has no column %s; there are %s" % (self._name, name, ", ".join(self.columns)))

    def __getitem__(self, at: Union[int, str]) -> Any:
        if isinstance(at, str):
            return self.column(at)
        size = len(self)
        if not -size <= at < size:
            raise IndexError("%s has %d rows" % (self._name, size))
        return self._row._make(column.cells(at % size, at % size + 1)[0] for column in self._columns.values())

    def __iter__(self) -> Iterator[Any]:
        for at in range(0, len(self), ROWS_AT_ONCE):
            yield from map(self._row._make, zip(*(column.cells(at, at + ROWS_AT_ONCE)
                                                  for column in self._columns.values())))

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self.columns]

    def __repr__(self) -> str:
        return "<%s: %d rows of %s>" % (self._name, len(self), ", ".join(self.columns))

    def arrays(self) -> Dict[str, Any]:
        """All columns, by name."""
        return {name: self.column(name) for name in self.columns}

    def frame(self) -> Any:
        """A pandas.DataFrame; texts of events are categories.  Needs pandas."""
        import pandas

        return pandas.DataFrame({name: pandas.Categorical.from_codes(column.codes, categories=column.texts)
                                 if isinstance(column, _Text) else column.whole()
                                 for name, column in self._columns.items()})


class _Stream:
    """Columns as they come, block by block."""

    def __init__(self) -> None:
        self.texts: List[str] = []
        self.types: Dict[str, List[Tuple[str, str]]] = {}
        self.bytes: Dict[str, List[bytearray]] = {}

    def read(self, file: Any) -> bool:
        """False when it ends before its end."""
        for line in iter(file.readline, b""):
            block = json.loads(line)
            if "end" in block:
                return True
            if "texts" in block:
                texts = file.read(block["bytes"])
                self.texts += texts.decode("utf-8", "backslashreplace").split("\0")[:-1]
            else:
                self._take(block, file)
        return False

    def _take(self, block: Dict[str, Any], file: Any) -> None:
        name = block["table"]
        self.types.setdefault(name, [tuple(column) for column in block["columns"]])
        columns = self.bytes.setdefault(name, [bytearray() for _ in block["columns"]])
        for data, (_, kind) in zip(columns, block["columns"]):
            data += file.read(block["rows"] * (8 if kind == "i64" else 4))

    def table(self, name: str) -> Table:
        columns = {key: self._column(kind, data)
                   for (key, kind), data in zip(self.types[name], self.bytes[name])}
        return Table(name, columns)

    def _column(self, kind: str, data: bytearray) -> Any:
        code, dtype = TYPES[kind]
        if numpy is not None:
            column = numpy.frombuffer(data, dtype=dtype)
        elif sys.byteorder == "little":
            column = memoryview(data).cast(code)
        else:
            swapped = array.array(code, bytes(data))
            swapped.byteswap()
            column = memoryview(swapped)
        return _Text(column, self.texts) if kind == "text" else _Numbers(column)


class Trace:
    """A recording.  A table is read when it is asked for first, and kept.

    Rows by name, with the keys of `weir report --json`: kernels, calls, operators and so on, and memory
    (a row a kind of memory).  Rows one by one, in the order of the file: activities (what ran on GPUs),
    ranges (operators, NVTX), launches, allocations, each_call.
    """

    kernels: Table
    calls: Table
    operators: Table
    failures: Table
    memcpys: Table
    devices: Table
    device_activities: Table
    memops: Table
    spans: Table
    streams: Table
    processes: Table
    threads: Table
    hints: Table
    idle_gaps: Table
    breakdown: Table
    critical_path: Table
    activities: Table
    ranges: Table
    launches: Table
    allocations: Table

    def __init__(self, path: Union[str, "os.PathLike[str]"], *more: Union[str, "os.PathLike[str]"], **part: Any):
        self.path = os.fspath(path)
        self._paths = [self.path, *map(os.fspath, more)]
        self._part = [word for name, value in part.items() if value is not None and value is not False
                      for word in (["--" + name] if value is True else ["--" + name, str(value)])]
        self._kept: Dict[Any, Any] = {}
        for path in self._paths:
            os.stat(path)  # says at once that there is none

    def _run(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen([program(), *arguments, *self._part, "--", *self._paths], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment())

    def _json(self, *arguments: str) -> Dict[str, Any]:
        process = self._run("report", "--json", *arguments)
        out, err = process.communicate()
        if process.returncode:
            raise Error(_words(err))
        return json.loads(out)

    @property
    def report(self) -> Dict[str, Any]:
        """All that `weir report --json` says: docs/reference/json-report.md has the keys."""
        if "report" not in self._kept:
            self._kept["report"] = self._json()
        return self._kept["report"]

    def only(self, name: str) -> Table:
        """A list of `weir report --only`, also of those that are made only when they are asked for: api_trace,
        range_kernels, kernel_families, busy_over_time ...
        """
        key = ("only", name)
        if key not in self._kept:
            self._kept[key] = _table(name, self._json("--only", name)[name] or [])
        return self._kept[key]

    @property
    def totals(self) -> Any:
        """Sums of the whole recording, with attributes: wall_ns, calls, launches, errors, lost ..."""
        totals = {_attribute(key): value for key, value in self.report["totals"].items()}
        return collections.namedtuple("Totals", totals)(**totals)

    @property
    def memory(self) -> Table:
        """A row a kind of memory: how much was allocated, at most at one time, and never freed (bytes)."""
        kinds = self.report["memory"]
        return _table("memory", [{"kind": kind, **kinds[kind]} for kind in MEMORY_KINDS])

    @property
    def each_call(self) -> Table:
        """Every call of the driver and the runtime: start_ns, duration_ns, pid, tid, name, result ..."""
        return self._events("calls")

    def __getattr__(self, name: str) -> Table:
        if name in REPORTED:
            return self._reported(name)
        if name in EVENTS:
            return self._events(name)
        raise AttributeError("a recording has no %s" % name)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *REPORTED, *EVENTS]

    def __repr__(self) -> str:
        return "<recording %s>" % self.path

    def _reported(self, name: str) -> Table:
        key = ("report", name)
        if key not in self._kept:
            self._kept[key] = _table(name, self.report.get(name) or [])
        return self._kept[key]

    def _events(self, name: str) -> Table:
        key = ("events", name)
        if key not in self._kept:
            self._kept[key] = self._stream(name).table(name)
        return self._kept[key]

    def _stream(self, name: str) -> _Stream:
        stream = _Stream()
        process = self._run("export", "-f", "columns", "--only", name)
        with process.stdout:
            whole = stream.read(process.stdout)
        err = process.stderr.read()
        process.stderr.close()
        if process.wait() or not whole:
            raise Error(_words(err) or "%s could not be read to its end" % self.path)
        return stream


def _table(name: str, rows: List[Dict[str, Any]]) -> Table:
    """A table of rows of JSON.  A column is every key that any row has."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return Table(name, {key: _Values([row.get(key) for row in rows]) for key in keys})


def _words(err: bytes) -> str:
    text = err.decode("utf-8", "replace").strip()
    return text.split(": ", 1)[1] if text.startswith("weir ") and ": " in text else text


def _environment() -> Dict[str, str]:
    """Without what records programs: weir is none of theirs."""
    return {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "LD_AUDIT", "WEIR")}


def open(path: Union[str, "os.PathLike[str]"], *more: Union[str, "os.PathLike[str]"], after: Optional[str] = None, before: Optional[str] = None,
         range: Optional[str] = None, steps: Optional[str] = None, steady: bool = False) -> Trace:
    """A recording of Weir, or what `weir import` made of another tool's.  Error, once something is asked for,
    if it is none.

    If there are several, those of the ranks of one program say, one that has them all.

    A part of it: what began after and before a time ("2.5s"), while a range of that name was open, in the
    steps "N-M", in steps that are no warm-up; as the options of `weir report` say.
    """
    return Trace(path, *more, after=after, before=before, range=range, steps=steps, steady=steady)
