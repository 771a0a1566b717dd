"""A function of the elements of tensors, which are broadcast as NumPy broadcasts arrays.

Chains of such functions become one loop: each value is read, changed and written once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tecomp import Target, accesses, te
from tecomp.schedules.structure import is_pointwise, is_same
from tecomp.schedules.tiles import Size, balanced, elements_at_hand, lanes_of, stream_large

_VECTORS = 2
"""Vectors that are computed at a time: what a formula has of constants is loaded once for both."""

_FEW = 4
"""Vectors of a row up to which it is walked through together with the next."""


def define(
    function: Callable[..., te.Expr], *inputs: te.Tensor, name: str = "elementwise"
) -> te.Tensor:
    """`function` of the elements of `inputs`.

    Args:
        function: takes an element of each input.
        inputs: tensors; the last axes belong together. An axis of extent 1, or one that a tensor
            lacks, is repeated. An extent that is only known at the call counts as equal to others.
        name: of the result.

    Raises:
        ValueError: two extents differ.

    >>> A, b = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="b")
    >>> define(lambda x, y: x + y, A, b).shape
    (4, 8)
    """
    shape = broadcast_shape([x.shape for x in inputs])

    def value(*axes: te.Expr) -> te.Expr:
        return function(*(x(*_own(x, axes)) for x in inputs))

    return te.compute(shape, value, name=name)


def broadcast_shape(shapes: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
    """The shape that tensors of several shapes are broadcast to.

    Raises:
        ValueError: two extents differ.

    >>> broadcast_shape([(4, 1, 3), (5, 1), ()])
    (4, 5, 3)
    """
    result: list[Size] = []
    for back in range(1, max((len(shape) for shape in shapes), default=0) + 1):
        extents = [shape[-back] for shape in shapes if len(shape) >= back]
        numbers = {extent for extent in extents if isinstance(extent, int) and extent != 1}
        if len(numbers) > 1:
            listed = ", ".join(str(tuple(shape)) for shape in shapes)
            several = ", ".join(map(str, sorted(numbers)))
            raise ValueError(
                f"shapes {listed} do not broadcast: axis -{back} has extents {several}; make them "
                "equal, or 1"
            )
        symbols = [extent for extent in extents if not isinstance(extent, int)]
        result.append(next(iter([*numbers, *symbols]), 1))
    return tuple(reversed(result))


def _own(x: te.Tensor, axes: Sequence[te.Expr]) -> list[te.Expr]:
    """The index of `x` at `axes` of the result."""
    last = axes[len(axes) - len(x.shape) :]
    return [
        te.const(0) if is_one(extent) else axis for extent, axis in zip(x.shape, last, strict=True)
    ]


def is_one(extent: Size) -> bool:
    """Whether an axis has one element, whatever the arguments."""
    return isinstance(extent, int) and extent == 1


def same_shape(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether two shapes are known to be equal."""
    return len(a) == len(b) and all(
        x == y if isinstance(x, int) and isinstance(y, int) else x is y
        for x, y in zip(a, b, strict=True)
    )


def schedule(output: te.Tensor, target: Target) -> te.Schedule:
    """A schedule for the result of `define`, and for chains of such results."""
    s = te.create_schedule(output)
    inline_chain(s, output)
    if output.shape:
        stream(s, output, target, run_length(output))
        stream_large(s, output, target)
    return s


def inline_chain(s: te.Schedule, output: te.Tensor) -> None:
    """Compute what leads to `output` where it is used, but for stages of another shape.

    The elements of those are needed several times; they are computed once.
    """
    for stage in s.stages:
        if stage.op is not output.op and _is_link(stage.op.output(0), output):
            stage.compute_inline()


def _is_link(x: te.Tensor, output: te.Tensor) -> bool:
    return is_pointwise(x) and same_shape(x.shape, output.shape)


def stream(s: te.Schedule, output: te.Tensor, target: Target, count: int) -> None:
    """Walk through memory in order, a vector at a time, in chunks that are shared among cores.

    A chunk is as long as fits the first cache several times: long enough to be worth its start,
    short enough that there is one for each core.

    Args:
        s: the schedule.
        output: the stage.
        target: for its vectors and cache.
        count: how many of the last axes can be walked through as one.
    """
    stage = s[output]
    *rows, last = stage.op.axis
    along, unit = last, 1
    if count > 1 and not isinstance(last.extent, int):
        # How long a row is, only the call says; one loop through all of them suits any length.
        along = stage.fuse(*stage.op.axis[-count:])
        del rows[len(rows) + 1 - count :]
    elif count > 1 and is_short(last, lanes_of(output, last, target)):
        along, unit = stage.fuse(rows.pop(), last), max(int(str(last.extent)), 1)
    lanes = lanes_of(output, along, target)
    lanes *= 1 if is_short(along, _VECTORS * lanes) else _VECTORS
    most = max(elements_at_hand(output, target), unit * lanes)
    chunk, along = stage.split(along, factor=balanced(along.extent, most, unit * lanes))
    _, lane = stage.split(along, factor=lanes)
    stage.vectorize(lane)
    stage.parallel(stage.fuse(*rows, chunk))


def is_short(axis: te.IterVar, lanes: int, few: int = _FEW) -> bool:
    """Whether an axis is so `few` vectors long that a part of one at its end counts."""
    return isinstance(axis.extent, int) and axis.extent < few * lanes


def run_length(output: te.Tensor) -> int:
    """How many of the last axes can be walked through as one.

    Along those, each place that is read either moves on with the result or stays where it is.
    """
    reads = reads_of_chain(output)
    rank = len(output.shape)

    def moving(back: int) -> list[bool] | None:
        """Whether each read moves on along an axis; None if one moves in another way."""
        found = [_moves(read, rank - back, back) for read in reads]
        return None if None in found else [each is True for each in found]

    length = 1
    while length < rank and (next_ := moving(length + 1)) is not None and next_ == moving(1):
        length += 1
    return length


@dataclass(frozen=True)
class Moved:
    """A read of a chain of formulas, in the axes of its result.

    Attributes:
        tensor: what is read.
        dims: for each of its dimensions the axis of the result that it is; None for another index.
        used: all axes that move it.
    """

    tensor: te.Tensor
    dims: tuple[int | None, ...]
    used: frozenset[int]


def reads_of_chain(output: te.Tensor) -> list[Moved]:
    """What `output` reads, also through stages that are computed where they are used."""
    found: list[Moved] = []
    todo = [output]
    while todo:
        x = todo.pop()
        place = {axis: k for k, axis in enumerate(x.op.axis)}
        for read in accesses(x).reads:
            if _is_link(read.tensor, output) and is_same(read.axes, x.op.axis):
                todo.append(read.tensor)
                continue
            dims = tuple(None if axis is None else place.get(axis) for axis in read.axes)
            used = {place[axis] for index in read.index for axis in index.axes if axis in place}
            found.append(Moved(read.tensor, dims, frozenset(used)))
    return found


def _moves(read: Moved, axis: int, back: int) -> bool | None:
    """Whether a read moves on as an axis of the result does; None if it moves in another way."""
    if axis not in read.used:
        return False
    return True if len(read.dims) >= back and read.dims[-back] == axis else None
