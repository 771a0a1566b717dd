"""Thread axes: names that `bind` gives to loops."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThreadAxis:
    """A thread axis such as `blockIdx.x`; `extent` is how many threads it has, if known."""

    tag: str
    extent: int | None = None


def thread_axis(dom: int | tuple[int, int] | str | None = None, tag: str = "") -> ThreadAxis:
    """The thread axis called `tag`.

    The one-argument form takes the tag alone.

    >>> thread_axis("threadIdx.x")
    ThreadAxis(tag='threadIdx.x', extent=None)
    """
    if isinstance(dom, str):
        return ThreadAxis(dom)
    extent = dom[1] - dom[0] if isinstance(dom, tuple) else dom
    return ThreadAxis(tag, extent)
