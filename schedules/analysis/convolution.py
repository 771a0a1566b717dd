"""Recognize convolutions and sliding windows; window geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tecomp import Access, Accesses, Affine, ScheduleError, accesses, te
from tecomp.schedules.analysis.stages import steps_to_reduction
from tecomp.schedules.common import Size

_Ints = tuple[int, int]


@dataclass(frozen=True)
class Convolution:
    """A convolution of images, and the roles of its axes.

    Attributes:
        total: the sum; its axes are (n, y, x, k), or (n, k, y, x).
        output: the same, or what is made of it element by element.
        between: the stages on the way from one to the other.
        image: (n, y, x, c), or (n, c, y, x).
        weights: r, s, c and k in any order that begins or ends with k.
        first: whether channels are before pixels.
        order: which axes of the weights are r, s, c and k.
        taps: which axes of the sum are the row of a tap, its column, and the channel.
        steps: pixels from one window to the next, down and across.
        apart: pixels from one tap to the next.
        groups: parts of the channels; an output sees one part.
        is_swapped: whether the image is the factor on the right.
    """

    total: te.Tensor
    output: te.Tensor
    between: tuple[te.Tensor, ...]
    image: te.Tensor
    weights: te.Tensor
    first: bool
    order: tuple[int, int, int, int]
    taps: tuple[int, int, int]
    steps: _Ints
    apart: _Ints
    groups: int
    is_swapped: bool

    @property
    def depthwise(self) -> bool:
        """Whether each output sees one channel of several."""
        _, _, channel = self.taps_of(self.total)
        return self.groups > 1 and isinstance(channel.extent, int) and channel.extent == 1

    def axes_of(self, x: te.Tensor) -> tuple[te.IterVar, ...]:
        """The axes n, y, x, k of a stage that has those of the sum."""
        return tuple(x.op.axis[dim] for dim in _dims(self.first))

    def taps_of(self, x: te.Tensor) -> tuple[te.IterVar, ...]:
        """The axes r, s, c of a stage that sums as `total` does."""
        return tuple(x.op.reduce_axis[k] for k in self.taps)


def convolution_of(
    output: te.Tensor, chain: Sequence[te.Tensor] | None = None
) -> Convolution | None:
    """The convolution that `output` is, or is made of element by element; None if it is none.

    Args:
        output: the tensor.
        chain: the stages from it back to the reduction, if that is known.

    >>> X, W = te.placeholder((1, 9, 9, 4), name="X"), te.placeholder((3, 3, 4, 8), name="W")
    >>> r, s, c = (te.reduce_axis((0, n), name=name) for n, name in ((3, "r"), (3, "s"), (4, "c")))
    >>> Y = te.compute((1, 4, 7, 8), lambda n, y, x, k: te.sum(
    ...     W[r, s, c, k] * X[n, 2 * y + r, x + s, c], axis=[c, s, r]), name="Y")
    >>> found = convolution_of(Y)
    >>> found.steps, found.apart, found.groups, found.taps
    ((2, 1), (1, 1), 1, (2, 1, 0))
    """
    steps = chain or steps_to_reduction(output)
    if not steps:
        return None
    found = accesses(steps[-1])
    is_sum = found.reducer == "sum" and found.is_plain and len(found.factors) == 2
    if not is_sum or len(found.axis) != 4 or len(found.reduce_axis) != 3:
        return None
    for first in (False, True):
        for is_swapped in (False, True):
            made = _roles(steps, found, first, is_swapped)
            if made is not None:
                return made
    return None


def need_convolution(op: te.Tensor | Convolution, who: str) -> Convolution:
    """The convolution that a tensor is.

    Raises:
        ScheduleError: it is none.
    """
    if isinstance(op, Convolution):
        return op
    found = convolution_of(op)
    if found is None:
        raise ScheduleError(
            f"{who}: {op.name} is no convolution of images (n, y, x, c) or (n, c, y, x) with "
            "filters that have an axis for rows, for columns, for channels, and first or last one "
            "for outputs, nor made of one element by element",
            kind="not-this-form",
        )
    return found


def _roles(
    chain: Sequence[te.Tensor], found: Accesses, first: bool, is_swapped: bool
) -> Convolution | None:
    n, y, x, k = (found.axis[dim] for dim in _dims(first))
    image, weights = reversed(found.factors) if is_swapped else found.factors
    if len(image.index) != 4 or len(weights.index) != 4:
        return None
    frame, row, column, channel = (image.index[dim] for dim in _dims(first))
    r, s, c = (_run(index, found.reduce_axis) for index in (row, column, channel))
    if r is None or s is None or c is None:
        return None
    order = tuple(_place(weights.axes, axis) for axis in (r, s, c, k))
    down, across = _window(row, y, r), _window(column, x, s)
    groups = _groups(channel, k, c)
    if frame.axis is not n or down is None or across is None or groups is None:
        return None
    if sorted(order) != [0, 1, 2, 3] or order[3] not in (0, 3):
        return None
    places = list(found.reduce_axis)
    taps = tuple(next(i for i, run in enumerate(places) if run is axis) for axis in (r, s, c))
    return Convolution(
        chain[-1], chain[0], tuple(chain[1:-1]), image.tensor, weights.tensor, first,
        (order[0], order[1], order[2], order[3]),
        (taps[0], taps[1], taps[2]), (down[0], across[0]), (down[1], across[1]), groups,
        is_swapped,
    )


def _run(index: Affine, runs: Sequence[te.IterVar]) -> te.IterVar | None:
    """The one axis of the sum that moves an index."""
    found = [run for run in runs if index.coefficient(run)]
    return found[0] if len(found) == 1 else None


def _place(axes: Sequence[te.IterVar | None], axis: te.IterVar) -> int:
    return next((k for k, own in enumerate(axes) if own is axis), -1)


def _dims(first: bool) -> tuple[int, int, int, int]:
    """Where images, rows, columns and channels are."""
    return (0, 2, 3, 1) if first else (0, 1, 2, 3)


def _window(index: Affine, place: te.IterVar, tap: te.IterVar) -> _Ints | None:
    """How far an index moves with a place and with a tap, if it is the sum of both."""
    step, apart = index.coefficient(place), index.coefficient(tap)
    is_sum = len(index.terms) == 2 and not index.const and step and apart
    return (step, apart) if is_sum and step and apart and min(step, apart) > 0 else None


def _groups(index: Affine, out: te.IterVar, channel: te.IterVar) -> int | None:
    """Parts of the channels, each for some outputs; None if an index is nothing like that."""
    if index.axis is channel:
        return 1
    found = index.quotient(out)
    if found is None or len(index.terms) != 2 or index.const or index.coefficient(channel) != 1:
        return None
    size, depth = found
    fits = isinstance(channel.extent, int) and isinstance(out.extent, int)
    if not fits or depth != channel.extent or not isinstance(out.extent, int):
        return None
    return out.extent // size if out.extent % size == 0 else None


Pair: TypeAlias = "int | tuple[int, int]"
"""Numbers down and across; one number stands for both."""


def pair(value: Pair) -> tuple[int, int]:
    """Numbers down and across."""
    return value if isinstance(value, tuple) else (value, value)


@dataclass(frozen=True)
class Sliding:
    """How windows move over images.

    Attributes:
        first: the axis of an image that counts rows; the next one counts columns.
        sizes: rows and columns of a window.
        steps: from one window to the next.
        pads: rows and columns around the image, on each side.
        apart: from one element of a window to the next.
    """

    first: int
    sizes: tuple[Size, Size]
    steps: tuple[int, int]
    pads: tuple[int, int]
    apart: tuple[int, int]

    def shape(self, X: te.Tensor) -> list[Size]:
        """The shape of images with places of windows in place of rows and columns.

        >>> sliding = Sliding(1, (3, 3), steps=(2, 2), pads=(1, 1), apart=(1, 1))
        >>> sliding.shape(te.placeholder((1, 56, 56, 64), name="X"))
        [1, 28, 28, 64]
        """
        shape = list(X.shape)
        for k in range(2):
            reach = self.apart[k] * (self.sizes[k] - 1) + 1
            extent = shape[self.first + k] + (2 * self.pads[k] - reach)
            shape[self.first + k] = extent // self.steps[k] + 1
        return shape

    def element(self, place: Sequence[te.Expr], taps: Sequence[te.Expr]) -> list[te.Expr]:
        """The index of an element of a window in an image with its padding.

        Args:
            place: the index of the window, with those of other axes.
            taps: the index of the element in the window.
        """
        at = list(place)
        for k in range(2):
            at[self.first + k] = at[self.first + k] * self.steps[k] + taps[k] * self.apart[k]
        return at

    def padded(self, X: te.Tensor, around: te.Expr) -> te.Tensor:
        """Images with a value around them; the images themselves where nothing is around."""
        if not any(self.pads):
            return X
        rows, columns = self.first, self.first + 1
        shape = list(X.shape)
        for axis, pad in zip((rows, columns), self.pads, strict=True):
            shape[axis] = shape[axis] + 2 * pad

        def value(*i: te.Expr) -> te.Expr:
            at = list(i)
            at[rows : columns + 1] = i[rows] - self.pads[0], i[columns] - self.pads[1]
            inside = te.all(*(
                condition for axis in (rows, columns)
                for condition in (at[axis] >= 0, at[axis] < X.shape[axis])
            ))
            return te.if_then_else(inside, X(*at), around)

        return te.compute(tuple(shape), value, name=f"{X.name}_padded")


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
