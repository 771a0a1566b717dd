"""When this process computed what, for arrays of teams: noted from the first of these on."""

from __future__ import annotations

from collections import deque
from time import perf_counter

from tecomp.array.graph.pending import Pending
from tecomp.dist.runtime.waits import KEPT, Span


class Lane:
    """What was computed.

    Attributes:
        spans: the last computations; None if nobody notes them.
    """

    def __init__(self) -> None:
        self.spans: deque[Span] | None = None

    def begin(self) -> None:
        """Note what is computed from now on."""
        if self.spans is None:
            self.spans = deque(maxlen=KEPT)

    def note(self, work: Pending, start: float) -> None:
        """Operations are computed, which began some time ago."""
        if self.spans is not None:
            names = dict.fromkeys([op.where for op, _ in work.steps])
            self.spans.append(Span(" ".join(names), start, perf_counter()))


lane = Lane()
"""That of this process."""
