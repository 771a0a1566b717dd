"""The watchdog: ends all processes when they make different calls, and says which."""

from __future__ import annotations

import atexit
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn, TypeAlias

from tecomp.dist.runtime.calls import Calls
from tecomp.dist.runtime.ending import end_all

_EVERY = 0.25
"""Seconds between two looks; what two looks agree about is told."""

_AGREED = 0.2
"""Seconds in which an error comes up on all processes, if it does."""

Hook: TypeAlias = "Callable[[type[BaseException], BaseException, TracebackType | None], object]"

_WATCHED: dict[int, tuple[Calls, int]] = {}


def watch(team: int, calls: Calls, rank: int) -> None:
    """Look at the calls of a team from now on.

    Args:
        team: its number, for messages.
        calls: what its processes do.
        rank: which of them this one is.
    """
    if not _WATCHED:
        threading.Thread(target=_run, name="tecomp-watchdog", daemon=True).start()
        atexit.register(_ended)
        sys.excepthook = _told_once(sys.excepthook)
    _WATCHED[team] = calls, rank


def _run() -> None:
    before: dict[int, str | None] = {}
    pause = threading.Event()
    while True:
        pause.wait(_EVERY)
        for team, (calls, rank) in list(_WATCHED.items()):
            complaint = calls.complaint()
            if complaint is not None and complaint == before.get(team) and calls.speaker:
                _end(f"team {team}: {complaint}", rank)
            before[team] = complaint


def _end(message: str, rank: int) -> NoReturn:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
    end_all(f"rank {rank} is here:\n{stack}tecomp.TeamError: {message}\n")


def _told_once(tell: Hook) -> Hook:
    """What shows an error that ends this process, unless a rank before this one shows the same."""
    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        said = f"{kind.__name__}: {error}"
        for calls, _ in _WATCHED.values():
            calls.failed_with(said)
        time.sleep(_AGREED)
        if not any(calls.is_told(said) for calls, _ in _WATCHED.values()):
            tell(kind, error, trace)

    return hook


def _ended() -> None:
    by_error = getattr(sys, "last_value", None) is not None
    for calls, _ in _WATCHED.values():
        calls.ended(by_error=by_error)
    if by_error:  # the others would wait for this one
        end_all("")
