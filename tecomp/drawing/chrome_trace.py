"""Chrome trace (Perfetto) output."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from tecomp.drawing.drawable import Pictured, drawn_by


class Trace(str, Pictured):
    """The JSON of a trace, which Perfetto and chrome://tracing open; a notebook shows its picture.

    The picture has a lane for each thread or resource, with a bar for each thing that was done.

    >>> from tecomp import te
    >>> import tecomp
    >>> A = te.placeholder((64,), name="A")
    >>> B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    >>> trace = tecomp.build(B, [A, B]).timeline()
    >>> type(trace).__name__, trace.startswith('{"traceEvents": [')
    ('Trace', True)
    """

    __slots__ = ()

    _drawn_by = "trace:draw_trace"

    def __repr__(self) -> str:
        return f"<Trace of {len(self):_} characters>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to `x.json`, its picture to `x.svg`, or a page with it to `x.html`.

        Args:
            path: of the file; one that is there is written anew.

        Raises:
            CallError: the path ends otherwise, or nothing can be written there.

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
        drawn_by("trace:save_trace", self, path)


def trace_of(events: Iterable[Mapping[str, Any]]) -> Trace:
    """The trace of events, in the order in which they are shown."""
    return Trace(json.dumps({"traceEvents": list(events), "displayTimeUnit": "ns"}))


def process_named(process: int, name: str) -> dict[str, Any]:
    """What a process of a trace is called.

    >>> process_named(0, "core 0")
    {'ph': 'M', 'name': 'process_name', 'pid': 0, 'tid': 0, 'args': {'name': 'core 0'}}
    """
    return _named("process_name", process, 0, name)


def lane_named(process: int, lane: int, name: str) -> dict[str, Any]:
    """What a lane of a process is called."""
    return _named("thread_name", process, lane, name)


def bar(
    name: str, kind: str, start: float, duration: float, *, process: int = 0, lane: int = 0,
    said: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Something that was done, and when, in microseconds.

    Args:
        name: what is written on it.
        kind: its category, by which viewers choose.
        start: when it began.
        duration: for how long.
        process: that did it.
        lane: of the process.
        said: what else a viewer shows of it.
    """
    event = {"ph": "X", "name": name, "cat": kind, "pid": process, "tid": lane, "ts": start,
             "dur": duration}
    return event if said is None else {**event, "args": dict(said)}


def level(name: str, time: float, unit: str, value: float) -> dict[str, Any]:
    """How much there is of something from a time on, such as bytes."""
    return {"ph": "C", "name": name, "pid": 0, "ts": time, "args": {unit: value}}


def _named(what: str, process: int, lane: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": lane, "args": {"name": name}}
