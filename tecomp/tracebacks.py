"""Which frames of a stack are the user's, and tracebacks that end there."""

from __future__ import annotations

import os
import sys
from functools import cache
from types import FrameType, TracebackType

DEBUG = "TECOMP_DEBUG"
"""The environment variable that asks for whole tracebacks, if it is set and not 0."""


def users_frame() -> FrameType | None:
    """The innermost frame on the call stack that is the user's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_between(frame):
        frame = frame.f_back
    return frame


def _top(frame: FrameType) -> str:
    # By module name: a dataclass's generated methods have no file.
    return str(frame.f_globals.get("__name__", "")).split(".")[0]


def _is_between(frame: FrameType) -> bool:
    # The standard library is between two of our frames where a cached property is computed.
    top = _top(frame)
    return top == "tecomp" or top in sys.stdlib_module_names


def end_at_user(error: BaseException) -> None:
    """Take our frames out of the tracebacks of an error and of those that it came from."""
    if os.environ.get(DEBUG, "0") != "0":
        return
    known: set[int] = set()
    each: BaseException | None = error
    while each is not None and getattr(each, "ends_at_user", True) and id(each) not in known:
        known.add(id(each))
        each.__traceback__ = _users_part(each.__traceback__)
        origin = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
        if origin is not None and not _has_users_code(origin.__traceback__):
            # It was raised and caught by us, and the message says what it means.
            each.__cause__ = origin = None
        each = origin


def _users_part(traceback: TracebackType | None) -> TracebackType | None:
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    while frames and _is_between(frames[-1].tb_frame):
        frames.pop()
    rest: TracebackType | None = None
    for entry in reversed(frames):
        if _top(entry.tb_frame) != "tecomp":
            rest = TracebackType(rest, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return rest


def _has_users_code(traceback: TracebackType | None) -> bool:
    return _users_part(traceback) is not None


@cache
def watch() -> None:
    """From now on tracebacks of errors of ours that nobody catches end at the user's line."""
    shown_by = sys.excepthook

    def shortened(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if getattr(error, "ends_at_user", False):
            end_at_user(error)
            traceback = error.__traceback__
        shown_by(kind, error, traceback)

    sys.excepthook = shortened
