"""Progress reporting: logger events and a terminal status line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, TextIO

from tecomp.fork_gate import wait_first

MOMENT = 1.0
"""Seconds after which people begin to wonder."""

_UNDER_WAY: list[tuple[str, float]] = []
"""What the threads of this process do, with the times at which they began, outermost first."""


def listens() -> bool:
    """Whether somebody listens to what is told."""
    # Who listens has imported it; few programs do, and it takes a while.
    logging = sys.modules.get("logging")
    if logging is None:
        return False
    _wait_before_logging()
    return bool(logging.getLogger("tecomp").isEnabledFor(logging.DEBUG))


@cache
def _wait_before_logging() -> None:
    wait_first()


def tell(text: str, *values: Any) -> None:
    """Tell the logger `tecomp`, at debug level; functions among the values are called for it."""
    if listens():
        made = [value() if callable(value) else value for value in values]
        sys.modules["logging"].getLogger("tecomp").debug(text, *made)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say that something is being done, and how long it took."""
    begin = time.monotonic()
    entry = (what, begin)
    _UNDER_WAY.append(entry)
    if (stream := terminal()) is not None:
        _watched(stream)
    try:
        yield
    finally:
        _UNDER_WAY.remove(entry)
        tell("%s: %.1f ms", what, 1e3 * (time.monotonic() - begin))


def timed(what: str, run: Callable[[], Any]) -> Any:
    """The result of something, which is told as by `doing`."""
    with doing(what):
        return run()


def terminal() -> TextIO | None:
    """Where people can be told something; None where errors go elsewhere."""
    return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None


class Line:
    """A line on a terminal that is written over, and gone in the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = 0

    def show(self, text: str) -> None:
        """Write it in place of what was there before."""
        self._stream.write("\r" + text.ljust(self._shown))
        self._stream.flush()
        self._shown = len(text)

    def clear(self) -> None:
        """Leave the line as it was before."""
        if self._shown:
            self.show("")
            self._stream.write("\r")
            self._stream.flush()
            self._shown = 0


SHOWN: list[Any] = []
"""What has the line of the terminal now."""

_WATCHER: dict[int, Any] = {}


def _watched(stream: TextIO) -> None:
    """Let a thread look after what is being done in this process."""
    process = os.getpid()
    watcher = _WATCHER.get(process)
    if watcher is None or not watcher.is_alive():
        # Terminals alone need it.
        _WATCHER[process] = watcher = import_module("threading").Thread(
            target=_watch, args=(stream,), name="tecomp: what takes long", daemon=True
        )
        watcher.start()


def _watch(stream: TextIO) -> None:
    line = Line(stream)
    while _UNDER_WAY:
        time.sleep(MOMENT / 10)
        now = time.monotonic()
        # The innermost of what takes long says most.
        slow = [(what, now - begin) for what, begin in tuple(_UNDER_WAY) if now - begin >= MOMENT]
        if slow and not SHOWN:
            what, seconds = slow[-1]
            line.show(f"tecomp: {what}, {seconds:.0f} s")
        else:
            line.clear()
    line.clear()


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
