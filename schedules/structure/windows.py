"""Windows as such: reductions whose reads step along axes of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp import Access, ScheduleError, accesses, te
from tecomp.schedules.structure.stages import steps_to_reduction


@dataclass(frozen=True)
class Windows:
    """A reduction of windows, and the roles of its axes.

    Attributes:
        total: the reduction.
        output: the same, or what is made of it element by element.
        between: the stages on the way from one to the other.
        image: what windows are of; vectors run along its last axis, and that of the result.
        row: which axis of the result is the first along which windows step.
        factor: elements of the image to one of the result.
    """

    total: te.Tensor
    output: te.Tensor
    between: tuple[te.Tensor, ...]
    image: te.Tensor
    row: int
    factor: int


def windows_of(
    output: te.Tensor, chain: Sequence[te.Tensor] | None = None
) -> Windows | None:
    """The windows whose reduction `output` is, or is made of; None if it is no such thing.

    Args:
        output: the tensor.
        chain: the stages from it back to the reduction, if that is known.

    >>> X, r = te.placeholder((9, 4), name="X"), te.reduce_axis((0, 3), name="r")
    >>> Y = te.compute((4, 4), lambda i, c: te.max(X[2 * i + r, c], axis=r), name="Y")
    >>> found = windows_of(Y)
    >>> found.row, found.factor
    (0, 2)
    """
    steps = chain or steps_to_reduction(output)
    if not steps or accesses(steps[-1]).has_start:
        return None
    total = steps[-1]
    found = accesses(total)
    if len(found.reads) != 1 or len(found.axis) < 2:
        return None
    (read,) = found.reads
    stepped = [axis for axis in found.axis if _step(read, axis, found.reduce_axis)]
    last = found.axis[-1]
    if not stepped or stepped[0] is last or not read.index[-1].coefficient(last):
        return None
    factor = 1
    for axis in stepped:
        factor *= _step(read, axis, found.reduce_axis)
    row = next(k for k, axis in enumerate(found.axis) if axis is stepped[0])
    return Windows(total, output, tuple(steps[1:-1]), read.tensor, row, factor)


def need_windows(op: te.Tensor | Windows, who: str) -> Windows:
    """The windows whose reduction a tensor is.

    Raises:
        ScheduleError: it is no such reduction.
    """
    if isinstance(op, Windows):
        return op
    found = windows_of(op)
    if found is None:
        raise ScheduleError(
            f"{who}: {op.name} reduces no windows that step along another axis than the last, nor "
            "is it made of such a reduction element by element",
            kind="not-this-form",
        )
    return found


def _step(read: Access, axis: te.IterVar, runs: tuple[te.IterVar, ...]) -> int:
    """How far windows step along an axis; 0 if they do not."""
    for index in read.index:
        if any(index.coefficient(run) for run in runs):
            step = index.coefficient(axis)
            if step:
                return max(step, 1)
    return 0
