"""Thread axes: names that `bind` gives to loops."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class ThreadAxis:
    """A thread axis such as `blockIdx.x`; `extent` is how many threads it has, if known."""

    tag: str
    extent: int | None = None


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
