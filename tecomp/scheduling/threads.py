"""Thread and block axes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tecomp.errors import ScheduleError
from tecomp.ir.nodes.argument_checks import is_one_of
from tecomp.ir.nodes.dtype import INT32, DType
from tecomp.ir.nodes.expr import Var

BLOCKS = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
THREADS = (
    "threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread", "vthread.x", "vthread.y", "vthread.z",
)
_GRID = re.compile(r"core\.[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThreadAxis(Var):
    """Thread axis such as `blockIdx.x`; used as a variable, it is the index of the thread.

    Attributes:
        name: Name in printed text.
        tag: Tag of the hardware axis, such as `threadIdx.x`.
        extent: Number of threads, or None if unknown.

    >>> from tecomp import te
    >>> thread = te.thread_axis((0, 64), "threadIdx.x", name="tx")
    >>> thread.name, thread.tag, thread.thread_tag, thread.extent, thread.dtype
    ('tx', 'threadIdx.x', 'threadIdx.x', 64, 'int32')
    >>> thread.var is thread
    True
    """

    dtype: DType = INT32
    tag: str = field(kw_only=True)
    extent: int | None = field(kw_only=True, default=None)

    @property
    def var(self) -> ThreadAxis:
        """The axis itself; provided because TVM distinguishes an axis from its variable."""
        return self

    @property
    def thread_tag(self) -> str:
        """Alias of `tag`, under the name that TVM uses."""
        return self.tag

    def __repr__(self) -> str:
        return f"ThreadAxis(tag={self.tag!r}, extent={self.extent})"


def is_grid_axis(tag: object) -> bool:
    """Return whether a tag has the form `core.NAME` of an axis of a target's core grid."""
    return isinstance(tag, str) and _GRID.fullmatch(tag) is not None


def check_tag(tag: object, where: str) -> None:
    """Raise if loops cannot be bound to a tag.

    Raises:
        ScheduleError: If `tag` is neither a thread axis nor a grid axis.
    """
    if not is_one_of(tag, (*BLOCKS, *THREADS)) and not is_grid_axis(tag):
        raise ScheduleError(
            "{where}: unknown thread axis {tag!r}; supported thread axes: {blocks}, and core.NAME "
            "for the axes of a target's grid",
            kind="thread-axis", where=where, tag=tag, blocks=", ".join((*BLOCKS, *THREADS)),
        )


def is_parallel(tag: str) -> bool:
    """Return whether a loop bound to this tag runs in parallel."""
    return tag in BLOCKS or is_grid_axis(tag)


def thread_axis(
    dom: int | tuple[int, int] | str | None = None, tag: str = "", name: str = ""
) -> ThreadAxis:
    """Return the thread axis `tag` with `dom` threads, or with the half-open range `dom`.

    `thread_axis(tag)` gives an axis without an extent, to which a loop of any extent can be bound.
    `name` is the name in printed text; by default it is the tag.

    Raises:
        ScheduleError: If the tag does not exist, `name` is not a string, or the number of threads
            is not a positive integer.

    >>> thread_axis("threadIdx.x")
    ThreadAxis(tag='threadIdx.x', extent=None)
    >>> thread_axis((0, 64), "threadIdx.x")
    ThreadAxis(tag='threadIdx.x', extent=64)
    """
    if isinstance(dom, str):
        return thread_axis(None, dom, name)
    if not isinstance(name, str):
        raise ScheduleError(
            "te.thread_axis: name must be a string, got {name!r}",
            kind="invalid-type", name=name,
        )
    check_tag(tag, "te.thread_axis")
    if dom is None:
        return ThreadAxis(name or tag, tag=tag)
    ends = dom if isinstance(dom, tuple) else (0, dom)
    if len(ends) != 2 or any(isinstance(n, bool) or not isinstance(n, int) for n in ends) or (
        ends[1] <= ends[0]
    ):
        raise ScheduleError(
            "te.thread_axis {tag}: expected a number of threads or (0, end), got {dom!r}",
            kind="thread-axis", tag=tag, dom=dom,
        )
    return ThreadAxis(name or tag, tag=tag, extent=ends[1] - ends[0])
