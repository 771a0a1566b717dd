"""How long a call takes: repeated after a warm-up, with nothing else between the clock's ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from statistics import median
from time import perf_counter_ns
from typing import Any

from tecomp.errors import CallError

_WARM_UP_SHARE = 20
_LEAST_SPAN = 20_000
"""Nanoseconds: shorter calls are measured several at a time, so that the clock does not count."""
_LEAST_SPANS = 5


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds that a call took.

    Attributes:
        min: the shortest, which the machine's other work disturbed least.
        median: half of the measurements were shorter.
        runs: how many calls were measured.
    """

    min: float
    median: float
    runs: int


def time_call(call: Callable[..., object], arguments: Sequence[Any], seconds: float) -> Timing:
    """Call again and again for about `seconds`; at least five times, after at least two.

    Calls that take less than 20 microseconds are measured several at a time, and count as their
    average.

    Raises:
        CallError: `seconds` is no positive number.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e9:
        raise CallError(
            f"timeit: seconds is {seconds!r}; pass the positive number of seconds to measure"
        )
    budget = int(seconds * 1e9)
    start = perf_counter_ns()
    call(*arguments)
    warm = _span(call, arguments, 1)
    while perf_counter_ns() < start + budget // _WARM_UP_SHARE:
        warm = min(warm, _span(call, arguments, 1))
    together = max(_LEAST_SPAN // max(warm, 1), 1)
    start = perf_counter_ns()
    spans: list[int] = []
    while len(spans) < _LEAST_SPANS or perf_counter_ns() < start + budget:
        spans.append(_span(call, arguments, together))
    scale = 1e9 * together
    return Timing(min(spans) / scale, median(spans) / scale, together * len(spans))


def _span(call: Callable[..., object], arguments: Sequence[Any], count: int) -> int:
    """Nanoseconds that so many calls take."""
    start = perf_counter_ns()
    for _ in repeat(None, count):
        call(*arguments)
    return perf_counter_ns() - start
