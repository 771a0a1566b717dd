"""Contender process: prepares cases and times calls on requests of the runner.

Each peer has its own process because OpenBLAS selects its kernels when it is loaded, because thread
pools of several libraries disturb each other, and because a crash must not end the others.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any, TextIO

import numpy as np

from tests.bench.case import Array, Case, NoFormError, numpy_dtype
from tests.bench.catalogue import find

Call = Callable[[], Any]
Bind = Callable[..., Call | tuple[Call, Any]]
"""Function from inputs, which it converts for the peer, to the timed call.

The call returns its result; if the call writes to preallocated memory, this memory is returned with
the call.
"""
ToNumpy = Callable[[Case, Any], Array]
"""Function from the return value of a call to the result in the shape of the case."""
Makers = Mapping[str, Callable[[Case], Bind]]
"""For each kind of case, the function that compiles it once."""

CLOCKS: Mapping[str, Callable[[], int]] = {"wall": perf_counter_ns, "cpu": process_time_ns}

_TOGETHER = 20_000
"""Nanoseconds; shorter calls are timed in groups, so that the clock resolution does not matter."""


class Session:
    """State of a contender, for one case after the other."""

    def __init__(self, makers: Makers, to_numpy: ToNumpy | None) -> None:
        self._makers = makers
        self._to_numpy = to_numpy
        self._calls: list[Call] = []

    def prepare(self, case: Case, folder: Path, copies: int) -> dict[str, Any]:
        """Compile, and compare the first result.

        Args:
            case: Case to compute.
            folder: Folder with the inputs and the expected result.
            copies: Number of input copies that are used in turn, so that no cache holds all of
                them.
        """
        self._calls.clear()
        gc.collect()
        if case.kind not in self._makers:
            raise NoFormError("it has no form of the case here")
        inputs = [np.load(folder / f"{k}.npy") for k in range(len(case.shapes))]
        inputs = [_typed(array, case.dtype) for array in inputs]
        bind = self._makers[case.kind](case)
        bound = [bind(*(array.copy() for array in inputs)) for _ in range(copies)]
        both = [one if isinstance(one, tuple) else (one, None) for one in bound]
        self._calls += [call for call, _ in both]
        if case.is_fresh:
            return {}
        returned = [(call(), written) for call, written in both]
        results = [measured if written is None else written for measured, written in returned]
        if self._to_numpy is None:
            return {}
        expected = np.load(folder / "expected.npy")
        return {"error": max(case.error(self._to_numpy(case, result), expected) for result in results)}

    def time(self, seconds: float, clock: str) -> dict[str, Any]:
        """Return the seconds of each call within a time budget, with at least one call."""
        return {"times": time_calls(self._calls, int(seconds * 1e9), CLOCKS[clock])}


def time_calls(
    calls: list[Call], budget: int, clock: Callable[[], int] = perf_counter_ns
) -> list[float]:
    """Return seconds of calls, in turn, for about `budget` nanoseconds.

    Calls of less than 20 microseconds are timed in groups, and count as the average of the group.
    """
    times: list[float] = []
    together, spent, turn = 1, 0, cycle(calls)
    while spent < budget or not times:
        span = _span(turn, together, clock)
        spent += span
        if span < _TOGETHER and together < 100_000:
            together *= 2
            continue
        times.append(span / together / 1e9)
    return times


def _span(turn: cycle[Call], count: int, clock: Callable[[], int]) -> int:
    """Return the nanoseconds of a number of calls."""
    chosen = [next(turn) for _ in range(count)]
    start = clock()
    for call in chosen:
        call()
    return clock() - start


def _typed(array: Array, dtype: str) -> Array:
    """Return an array with its dtype; NumPy files store only the bits of extension dtypes."""
    return array.view(numpy_dtype(dtype)) if array.dtype.kind == "V" else array


def together(_: Case, result: Any) -> Array:
    """Return a result as an array; several results are stacked."""
    parts = result if isinstance(result, tuple) else (result,)
    arrays = [np.asarray(part) for part in parts]
    return np.stack(arrays) if isinstance(result, tuple) else arrays[0]


def importing(module: str) -> Callable[[Case], Bind]:
    """Measure the import of a module in a new process."""
    command = [sys.executable, "-W", "ignore", "-c", f"import {module}"]
    return lambda _: lambda *_inputs: lambda: subprocess.run(command, check=True)


def serve(
    makers: Makers,
    package: str,
    to_numpy: ToNumpy | None = together,
    detail: str = "",
) -> None:
    """Serve the runner until its pipe closes.

    Args:
        makers: Implementation of each kind of case.
        package: Package whose version is reported.
        to_numpy: Function from the return value of a call to an array; None for calls without a
            value.
        detail: Further description of the contender.
    """
    # Output of libraries must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = Session(makers, to_numpy)
    _say(answers, {"version": version(package), "detail": detail})
    for line in sys.stdin:
        _say(answers, _reply(session, json.loads(line)))


def _reply(session: Session, requested: dict[str, Any]) -> dict[str, Any]:
    try:
        if "case" in requested:
            return session.prepare(find(requested["case"]), Path(requested["folder"]), requested["copies"])
        return session.time(requested["seconds"], requested["clock"])
    except NoFormError as why:
        return {"skipped": str(why)}
    except Exception as error:  # any exception of a peer is reported in place of a time
        first = str(error).partition("\n")[0]
        return {"skipped": f"{type(error).__name__}: {first}"[:200], "failed": True}


def _say(answers: TextIO, reply: dict[str, Any]) -> None:
    answers.write(json.dumps(reply) + "\n")
    answers.flush()
