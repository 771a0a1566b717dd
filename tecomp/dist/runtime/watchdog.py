"""The watchdog: ends all processes when they make different calls, and says which."""

from __future__ import annotations

import atexit
import sys
import threading
import traceback
from typing import Any

from tecomp.dist.runtime.calls import Calls

_EVERY = 0.25
"""Seconds between two looks; what two looks agree about is told."""

_WATCHED: dict[int, tuple[Calls, Any]] = {}


def watch(team: int, calls: Calls, comm: Any) -> None:
    """Look at the calls of a team from now on.

    Args:
        team: its number, for messages.
        calls: what its processes do.
        comm: what ends them all.
    """
    if not _WATCHED:
        threading.Thread(target=_run, name="tecomp-watchdog", daemon=True).start()
        atexit.register(_ended)
    _WATCHED[team] = calls, comm


def _run() -> None:
    before: dict[int, str | None] = {}
    pause = threading.Event()
    while True:
        pause.wait(_EVERY)
        for team, (calls, comm) in list(_WATCHED.items()):
            complaint = calls.complaint()
            if complaint is not None and complaint == before.get(team) and calls.speaker:
                _end(f"team {team}: {complaint}", comm)
            before[team] = complaint


def _end(message: str, comm: Any) -> None:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
    sys.stderr.write(f"rank {comm.rank} is here:\n{stack}tecomp.TeamError: {message}\n")
    sys.stderr.flush()
    comm.Abort(1)


def _ended() -> None:
    for calls, _ in _WATCHED.values():
        calls.ended(by_error=getattr(sys, "last_value", None) is not None)
