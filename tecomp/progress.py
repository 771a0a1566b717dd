"""Progress reporting: logger events and a terminal status line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TextIO

from tecomp.fork_gate import wait_first

MOMENT = 1.0
"""Seconds after which the status line shows an activity."""

_ACTIVE: list[tuple[str, float]] = []
"""Activities of all threads of this process with their start times, outermost first."""


def is_enabled() -> bool:
    """Return whether the logger `tecomp` records debug messages."""
    # A program that configures `logging` has imported it; importing it here would cost time.
    logging = sys.modules.get("logging")
    if logging is None:
        return False
    _wait_before_logging()
    return bool(logging.getLogger("tecomp").isEnabledFor(logging.DEBUG))


@cache
def _wait_before_logging() -> None:
    wait_first()


def log_debug(text: str, *values: Any) -> None:
    """Log a debug message to the logger `tecomp`; callable values are called only if logged."""
    if is_enabled():
        evaluated = [value() if callable(value) else value for value in values]
        sys.modules["logging"].getLogger("tecomp").debug(text, *evaluated)


@contextmanager
def log_duration(task: str) -> Iterator[None]:
    """Report an activity on the status line while it runs, and log its duration."""
    begin = time.monotonic()
    entry = (task, begin)
    _ACTIVE.append(entry)
    if (stream := terminal()) is not None:
        _watched(stream)
    try:
        yield
    finally:
        _ACTIVE.remove(entry)
        if is_enabled():
            log_debug("%s: %.1f ms", task, 1e3 * (time.monotonic() - begin))


def run_timed(task: str, run: Callable[[], Any]) -> Any:
    """Return `run()`, reported as the activity `task` by `log_duration`."""
    with log_duration(task):
        return run()


def terminal() -> TextIO | None:
    """Return standard error if it is a terminal, otherwise None."""
    return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None


class Line:
    """Status line of a terminal, which is overwritten in place and cleared at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = 0

    def show(self, text: str) -> None:
        """Replace the text of the line."""
        self._stream.write("\r" + text.ljust(self._shown))
        self._stream.flush()
        self._shown = len(text)

    def clear(self) -> None:
        """Erase the text of the line."""
        if self._shown:
            self.show("")
            self._stream.write("\r")
            self._stream.flush()
            self._shown = 0


SHOWN: list[Any] = []
"""Active progress bars; they take precedence over the status line of activities."""

_WATCHER: dict[int, Any] = {}


def _watched(stream: TextIO) -> None:
    """Start the thread that updates the status line of this process, unless it runs already."""
    process = os.getpid()
    watcher = _WATCHER.get(process)
    if watcher is None or not watcher.is_alive():
        # Import `threading` lazily: only processes with a terminal start the thread.
        from threading import Thread

        _WATCHER[process] = watcher = Thread(
            target=_watch, args=(stream,), name="tecomp: progress line", daemon=True
        )
        watcher.start()


def _watch(stream: TextIO) -> None:
    line = Line(stream)
    while _ACTIVE:
        time.sleep(MOMENT / 10)
        now = time.monotonic()
        # Show the innermost slow activity: it is the most specific.
        slow = [(task, now - begin) for task, begin in tuple(_ACTIVE) if now - begin >= MOMENT]
        if slow and not SHOWN:
            task, seconds = slow[-1]
            line.show(f"tecomp: {task}, {seconds:.0f} s")
        else:
            line.clear()
    line.clear()


_CELLS = 24
_BAR_DELAY_SECONDS = 0.5
"""Seconds after which a progress bar is shown."""


@dataclass(slots=True)
class Progress:
    """Progress bar of a task with a known number of steps.

    Attributes:
        what: Description of the task.
        total: Number of steps.
        line: Status line of the terminal; None without a terminal.
        completed: Number of completed steps.
    """

    what: str
    total: int
    line: Line | None
    completed: int = 0
    _start: float = field(default_factory=time.monotonic)

    def step(self) -> None:
        """Count one more completed step and update the line."""
        self.completed += 1
        if self.line is not None and time.monotonic() - self._start >= _BAR_DELAY_SECONDS:
            self.line.show(str(self))

    def __str__(self) -> str:
        full = _CELLS * self.completed // max(self.total, 1)
        return f"{self.what} [{'#' * full}{' ' * (_CELLS - full)}] {self.completed} of {self.total}"


@contextmanager
def progress(task: str, total: int) -> Iterator[Progress]:
    """Show a progress bar during a task; show nothing if standard error is not a terminal.

    Args:
        task: Description of the task.
        total: Number of steps.

    Yields:
        Progress bar; call its `step` after each step.
    """
    stream = terminal()
    bar = Progress(task, total, None if stream is None else Line(stream))
    SHOWN.append(bar)
    try:
        yield bar
    finally:
        SHOWN.remove(bar)
        if bar.line is not None:
            bar.line.clear()
