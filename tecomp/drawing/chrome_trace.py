"""Chrome trace (Perfetto) output."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from tecomp.drawing.drawable import Pictured, call_drawing_function


class ChromeTrace(str, Pictured):
    """JSON text of a trace for Perfetto and chrome://tracing; notebooks show it as a figure.

    The figure has one lane per thread or resource, with one bar per activity.

    >>> from tecomp import te
    >>> import tecomp
    >>> A = te.placeholder((64,), name="A")
    >>> B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    >>> trace = tecomp.build(B, [A, B]).timeline()
    >>> type(trace).__name__, trace.startswith('{"traceEvents": [')
    ('ChromeTrace', True)
    """

    __slots__ = ()

    _drawn_by = "trace:draw_trace"

    def __repr__(self) -> str:
        return f"<Trace of {len(self):_} characters>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to `x.json`, its figure to `x.svg` or a page with the figure to `x.html`.

        Args:
            path: Path of the file; an existing file is replaced.

        Raises:
            CallError: If the path has another suffix or cannot be written.

        >>> import tempfile
        >>> from pathlib import Path
        >>> from tecomp import te
        >>> import tecomp
        >>> A = te.placeholder((64,), name="A")
        >>> B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tecomp.build(B, [A, B]).timeline().save(f"{folder}/sums.json")
        ...     print([path.name for path in Path(folder).iterdir()])
        ['sums.json']
        """
        call_drawing_function("trace:save_trace", self, path)


def trace_of(events: Iterable[Mapping[str, Any]]) -> ChromeTrace:
    """Build a trace from events, in display order."""
    return ChromeTrace(json.dumps({"traceEvents": list(events), "displayTimeUnit": "ns"}))


def process_named(process: int, name: str) -> dict[str, Any]:
    """Build the metadata event that names a process.

    >>> process_named(0, "core 0")
    {'ph': 'M', 'name': 'process_name', 'pid': 0, 'tid': 0, 'args': {'name': 'core 0'}}
    """
    return _name_event("process_name", process, 0, name)


def lane_named(process: int, lane: int, name: str) -> dict[str, Any]:
    """Build the metadata event that names a lane of a process."""
    return _name_event("thread_name", process, lane, name)


def bar(
    name: str, kind: str, start: float, duration: float, *, process: int = 0, lane: int = 0,
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Build a complete event: one activity with start and duration, in microseconds.

    Args:
        name: Label of the bar.
        kind: Category, by which viewers filter.
        start: Start time in microseconds.
        duration: Duration in microseconds.
        process: Process number.
        lane: Lane number within the process.
        details: Further values that viewers show in the details of the event. Default: none.
    """
    event = {"ph": "X", "name": name, "cat": kind, "pid": process, "tid": lane, "ts": start,
             "dur": duration}
    return event if details is None else {**event, "args": dict(details)}


def level(name: str, time: float, unit: str, value: float) -> dict[str, Any]:
    """Build a counter event: a quantity, such as bytes, from a time in microseconds on."""
    return {"ph": "C", "name": name, "pid": 0, "ts": time, "args": {unit: value}}


def _name_event(kind: str, process: int, lane: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": lane, "args": {"name": name}}
