"""How far a long compilation is, on terminals only: a line that is gone afterwards."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

_CELLS = 24
_MOMENT = 0.5
"""Seconds after which people begin to wonder."""


@dataclass(slots=True)
class Progress:
    """Steps that are done of some.

    Attributes:
        what: is being done.
        total: how many steps there are.
        stream: the terminal; None where there is none.
    """

    what: str
    total: int
    stream: TextIO | None
    done: int = 0
    _shown: int = 0
    _start: float = field(default_factory=time.monotonic)

    def step(self) -> None:
        """One more step is done."""
        self.done += 1
        if self.stream is not None and time.monotonic() - self._start >= _MOMENT:
            self._show(self.stream, str(self))

    def clear(self) -> None:
        """Leave the line as it was before."""
        if self.stream is not None and self._shown:
            self._show(self.stream, "")
            self.stream.write("\r")
            self.stream.flush()

    def _show(self, stream: TextIO, text: str) -> None:
        stream.write("\r" + text.ljust(self._shown))
        stream.flush()
        self._shown = len(text)

    def __str__(self) -> str:
        full = _CELLS * self.done // max(self.total, 1)
        return f"{self.what} [{'#' * full}{' ' * (_CELLS - full)}] {self.done} of {self.total}"


@contextmanager
def progress(what: str, total: int) -> Iterator[Progress]:
    """A line on the terminal while steps are done; nothing where errors go elsewhere."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    shown = Progress(what, total, sys.stderr if is_terminal else None)
    try:
        yield shown
    finally:
        shown.clear()
