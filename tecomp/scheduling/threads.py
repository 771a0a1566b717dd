"""Thread axes: names that `bind` gives to loops."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tecomp.errors import ScheduleError

BLOCKS = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
THREADS = (
    "threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread", "vthread.x", "vthread.y", "vthread.z",
)
_GRID = re.compile(r"core\.[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class ThreadAxis:
    """A thread axis such as `blockIdx.x`; `extent` is how many threads it has, if known."""

    tag: str
    extent: int | None = None


def is_grid_axis(tag: object) -> bool:
    """Whether a tag is of the form that axes of the grid of a target have: `core.x`."""
    return isinstance(tag, str) and _GRID.fullmatch(tag) is not None


def is_parallel(tag: str) -> bool:
    """Whether the iterations of a loop with this tag run side by side."""
    return tag in BLOCKS or is_grid_axis(tag)


def thread_axis(dom: int | tuple[int, int] | str | None = None, tag: str = "") -> ThreadAxis:
    """The thread axis called `tag`, of `dom` threads or of those from `dom[0]` to before `dom[1]`.

    The one-argument form takes the tag alone; then any loop can be bound to it.

    Raises:
        ScheduleError: the tag is no text, or the number of threads no integer from 1 on.

    >>> thread_axis("threadIdx.x")
    ThreadAxis(tag='threadIdx.x', extent=None)
    >>> thread_axis((0, 64), "threadIdx.x")
    ThreadAxis(tag='threadIdx.x', extent=64)
    """
    if isinstance(dom, str):
        return ThreadAxis(dom)
    if not isinstance(tag, str) or not tag:
        raise ScheduleError(
            f"te.thread_axis: the tag is {tag!r}; write a name such as 'threadIdx.x'"
        )
    if dom is None:
        return ThreadAxis(tag)
    ends = dom if isinstance(dom, tuple) else (0, dom)
    if len(ends) != 2 or any(isinstance(n, bool) or not isinstance(n, int) for n in ends) or (
        ends[1] <= ends[0]
    ):
        raise ScheduleError(
            f"te.thread_axis {tag}: the threads are {dom!r}; write how many there are, or (0, end)"
        )
    return ThreadAxis(tag, ends[1] - ends[0])
