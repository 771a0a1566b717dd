"""When this process computed what, for arrays of teams: noted from the first of these on."""

from __future__ import annotations

from collections import deque
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING

from tecomp.array.graph.pending import Pending

if TYPE_CHECKING:
    # Loaded with the first team: most processes have none.
    from tecomp.dist.runtime.waits import Span


class Lane:
    """What was computed.

    Attributes:
        spans: the last computations; None if nobody notes them.
    """

    def __init__(self) -> None:
        self.spans: deque[Span] | None = None
        self._span: type[Span]

    def begin(self) -> None:
        """Note what is computed from now on."""
        if self.spans is None:
            waits = import_module("tecomp.dist.runtime.waits")
            self.spans, self._span = deque(maxlen=waits.KEPT), waits.Span

    def note(self, work: Pending, start: float, what: str = "") -> None:
        """Operations are computed, or a part of them, which began some time ago."""
        if self.spans is not None:
            names = dict.fromkeys([op.where for op, _ in work.steps])
            if what:
                names[f"({what})"] = None
            self.spans.append(self._span(" ".join(names), start, perf_counter()))


lane = Lane()
"""That of this process."""
