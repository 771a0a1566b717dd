"""When recorded operations are computed though nobody asked: before there are too many of them."""

from __future__ import annotations

import sys
from types import CodeType, FrameType

from tecomp.array.graph.evaluate import evaluate
from tecomp.array.graph.node import Node, tracing

MOST = 128
"""Operations that are recorded before they are computed."""

FEWEST = MOST // 2
"""Operations that make a kernel worth its call, where a place to stop is known."""

_places: set[tuple[CodeType, int]] = set()


def cut(node: Node) -> None:
    """Compute a node if it is the result of many operations.

    A loop passes the same places again. Where it was stopped once is where it is stopped again, so
    that what is computed between two stops is the same each time, and compiled once.
    """
    if tracing.depth:
        return
    if node.pending < MOST and _place() not in _places:
        return
    _places.add(_place())
    evaluate((node,))


def _place() -> tuple[CodeType, int]:
    """The place in the user's code that runs."""
    frame: FrameType = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tecomp."):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti
