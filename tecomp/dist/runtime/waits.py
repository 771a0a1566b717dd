"""How long this process was in calls that all of a team make, when, and what for."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

KEPT = 10_000
"""Spans that are kept; older ones are counted and forgotten."""


class Span(NamedTuple):
    """What took how long.

    Attributes:
        name: what it was.
        start: when it began, in seconds of `time.perf_counter`.
        end: when it was over.
    """

    name: str
    start: float
    end: float


@dataclass(slots=True)
class Waits:
    """What is known of that.

    Attributes:
        why: what the next calls are for; if empty, that is the call itself.
        seconds: spent in calls, by what for.
        spans: the last of them.
    """

    why: str = ""
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    spans: deque[Span] = field(default_factory=lambda: deque(maxlen=KEPT))

    def note(self, name: str, start: float) -> None:
        """A call is over that began some time ago."""
        span = Span(self.why or name, start, perf_counter())
        self.seconds[span.name] += span.end - start
        self.spans.append(span)

    def clear(self) -> None:
        """Forget what was."""
        self.seconds.clear()
        self.spans.clear()


waits = Waits()
"""Those of this process."""
