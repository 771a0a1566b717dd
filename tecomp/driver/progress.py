"""How far a long compilation is, on terminals only: a line that is gone afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tecomp.work import SHOWN, Line, terminal

_CELLS = 24
_MOMENT = 0.5
"""Seconds after which people begin to wonder."""


@dataclass(slots=True)
class Progress:
    """Steps that are done of some.

    Attributes:
        what: is being done.
        total: how many steps there are.
        line: of the terminal; None where there is none.
    """

    what: str
    total: int
    line: Line | None
    done: int = 0
    _start: float = field(default_factory=time.monotonic)

    def step(self) -> None:
        """One more step is done."""
        self.done += 1
        if self.line is not None and time.monotonic() - self._start >= _MOMENT:
            self.line.show(str(self))

    def __str__(self) -> str:
        full = _CELLS * self.done // max(self.total, 1)
        return f"{self.what} [{'#' * full}{' ' * (_CELLS - full)}] {self.done} of {self.total}"


@contextmanager
def progress(what: str, total: int) -> Iterator[Progress]:
    """A line on the terminal while steps are done; nothing where errors go elsewhere."""
    stream = terminal()
    shown = Progress(what, total, None if stream is None else Line(stream))
    SHOWN.append(shown)
    try:
        yield shown
    finally:
        SHOWN.remove(shown)
        if shown.line is not None:
            shown.line.clear()
