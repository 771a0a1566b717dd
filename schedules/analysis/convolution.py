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
    """2-D convolution with the roles of its axes.

    Attributes:
        total: Sum with the axes (n, y, x, k), or (n, k, y, x).
        output: `total`, or the result of its element-wise epilogue.
        between: Stages between `total` and `output`.
        image: Image with the axes (n, y, x, c), or (n, c, y, x).
        weights: Filters with the axes r, s, c and k in any order in which k is first or last.
        first: Whether channels precede pixels (NCHW).
        order: Axes of the weights that are r, s, c and k.
        taps: Reduction axes of the sum that are the tap row, the tap column and the channel.
        steps: Pixels between adjacent windows, down and across.
        dilations: Pixels between adjacent taps, down and across.
        groups: Number of channel groups; each output channel reads one group.
        is_swapped: Whether the image is the right factor.
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
    dilations: _Ints
    groups: int
    is_swapped: bool

    @property
    def depthwise(self) -> bool:
        """Whether each output channel reads one channel of several."""
        _, _, channel = self.taps_of(self.total)
        return self.groups > 1 and isinstance(channel.extent, int) and channel.extent == 1

    def axes_of(self, x: te.Tensor) -> tuple[te.IterVar, ...]:
        """Return the axes n, y, x, k of a stage with the axes of the sum."""
        return tuple(x.op.axis[dim] for dim in _dims(self.first))

    def taps_of(self, x: te.Tensor) -> tuple[te.IterVar, ...]:
        """Return the axes r, s, c of a stage with the reduction axes of `total`."""
        return tuple(x.op.reduce_axis[k] for k in self.taps)


def convolution_of(
    output: te.Tensor, chain: Sequence[te.Tensor] | None = None
) -> Convolution | None:
    """Recognize `output` as a convolution with an optional epilogue; None if it is not one.

    Args:
        output: Tensor.
        chain: Stages from `output` back to the reduction, if they are known. Default: None.

    >>> X, W = te.placeholder((1, 9, 9, 4), name="X"), te.placeholder((3, 3, 4, 8), name="W")
    >>> r, s, c = (te.reduce_axis((0, n), name=name) for n, name in ((3, "r"), (3, "s"), (4, "c")))
    >>> Y = te.compute((1, 4, 7, 8), lambda n, y, x, k: te.sum(
    ...     W[r, s, c, k] * X[n, 2 * y + r, x + s, c], axis=[c, s, r]), name="Y")
    >>> found = convolution_of(Y)
    >>> found.steps, found.dilations, found.groups, found.taps
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
            result = _roles(steps, found, first, is_swapped)
            if result is not None:
                return result
    return None


def need_convolution(op: te.Tensor | Convolution, caller: str) -> Convolution:
    """Return the description of a convolution.

    Raises:
        ScheduleError: If `op` is not a convolution.
    """
    if isinstance(op, Convolution):
        return op
    found = convolution_of(op)
    if found is None:
        raise ScheduleError(
            "{caller}: {op} is neither a convolution nor an elementwise function of one; images "
            "must be (n, y, x, c) or (n, c, y, x), and filters must have axes for rows, columns "
            "and channels, and a first or last axis for output channels",
            kind="pattern-mismatch", caller=caller, op=op.name,
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
    r, s, c = (_contiguous_reduction_axis(index, found.reduce_axis) for index
        in (row, column, channel))
    if r is None or s is None or c is None:
        return None
    order = tuple(_place(weights.axes, axis) for axis in (r, s, c, k))
    y_steps, x_steps = _window(row, y, r), _window(column, x, s)
    groups = _groups(channel, k, c)
    if frame.axis is not n or y_steps is None or x_steps is None or groups is None:
        return None
    if sorted(order) != [0, 1, 2, 3] or order[3] not in (0, 3):
        return None
    reduce_axes = list(found.reduce_axis)
    taps = tuple(next(i for i, run in enumerate(reduce_axes) if run is axis) for axis in (r, s, c))
    return Convolution(
        chain[-1], chain[0], tuple(chain[1:-1]), image.tensor, weights.tensor, first,
        (order[0], order[1], order[2], order[3]),
        (taps[0], taps[1], taps[2]), (y_steps[0], x_steps[0]), (y_steps[1], x_steps[1]), groups,
        is_swapped,
    )


def _contiguous_reduction_axis(index: Affine, runs: Sequence[te.IterVar]) -> te.IterVar | None:
    """Return the only reduction axis that an index depends on, or None."""
    found = [run for run in runs if index.coefficient(run)]
    return found[0] if len(found) == 1 else None


def _place(axes: Sequence[te.IterVar | None], axis: te.IterVar) -> int:
    return next((k for k, candidate in enumerate(axes) if candidate is axis), -1)


def _dims(first: bool) -> tuple[int, int, int, int]:
    """Return the positions of the axes n, y, x, channel."""
    return (0, 2, 3, 1) if first else (0, 1, 2, 3)


def _window(index: Affine, position: te.IterVar, tap: te.IterVar) -> _Ints | None:
    """Return the steps of an index per output position and per tap, if the index is their sum."""
    step, dilation = index.coefficient(position), index.coefficient(tap)
    is_sum = len(index.terms) == 2 and not index.const and step and dilation
    return (step, dilation) if is_sum and step and dilation and min(step, dilation) > 0 else None


def _groups(index: Affine, out: te.IterVar, channel: te.IterVar) -> int | None:
    """Return the number of channel groups; None if the index has no such form."""
    if index.axis is channel:
        return 1
    found = index.quotient(out)
    if found is None or len(index.terms) != 2 or index.const or index.coefficient(channel) != 1:
        return None
    size, depth = found
    is_static = isinstance(channel.extent, int) and isinstance(out.extent, int)
    if not is_static or depth != channel.extent or not isinstance(out.extent, int):
        return None
    return out.extent // size if out.extent % size == 0 else None


Pair: TypeAlias = "int | tuple[int, int]"
"""Values down and across; a single value applies to both."""


def pair(value: Pair) -> tuple[int, int]:
    """Return the values down and across."""
    return value if isinstance(value, tuple) else (value, value)


@dataclass(frozen=True)
class WindowGeometry:
    """Geometry of windows that slide over images.

    Attributes:
        first: Axis of an image that counts rows; the next axis counts columns.
        sizes: Rows and columns of a window.
        steps: Pixels between adjacent windows, down and across.
        pads: Rows and columns of padding on each side of the image.
        dilations: Pixels between adjacent elements of a window, down and across.
    """

    first: int
    sizes: tuple[Size, Size]
    steps: tuple[int, int]
    pads: tuple[int, int]
    dilations: tuple[int, int]

    def shape(self, X: te.Tensor) -> list[Size]:
        """Return the shape of images with window positions instead of rows and columns.

        >>> sliding = WindowGeometry(1, (3, 3), steps=(2, 2), pads=(1, 1), dilations=(1, 1))
        >>> sliding.shape(te.placeholder((1, 56, 56, 64), name="X"))
        [1, 28, 28, 64]
        """
        shape = list(X.shape)
        for k in range(2):
            reach = self.dilations[k] * (self.sizes[k] - 1) + 1
            extent = shape[self.first + k] + (2 * self.pads[k] - reach)
            shape[self.first + k] = extent // self.steps[k] + 1
        return shape

    def element(self, position: Sequence[te.Expr], taps: Sequence[te.Expr]) -> list[te.Expr]:
        """Return the index of a window element in the padded image.

        Args:
            position: Index of the window, including the other axes.
            taps: Index of the element in the window.
        """
        idx = list(position)
        for k in range(2):
            idx[self.first + k] = idx[self.first + k] * self.steps[k] + taps[k] * self.dilations[k]
        return idx

    def padded(self, X: te.Tensor, pad_value: te.Expr) -> te.Tensor:
        """Pad images with the value `pad_value`; return `X` itself without padding."""
        if not any(self.pads):
            return X
        rows, columns = self.first, self.first + 1
        shape = list(X.shape)
        for axis, pad in zip((rows, columns), self.pads, strict=True):
            shape[axis] = shape[axis] + 2 * pad

        def value(*i: te.Expr) -> te.Expr:
            index = list(i)
            index[rows : columns + 1] = i[rows] - self.pads[0], i[columns] - self.pads[1]
            inside = te.all(*(
                condition for axis in (rows, columns)
                for condition in (index[axis] >= 0, index[axis] < X.shape[axis])
            ))
            return te.if_then_else(inside, X(*index), pad_value)

        return te.compute(tuple(shape), value, name=f"{X.name}_padded")


@dataclass(frozen=True)
class WindowReduction:
    """Windowed reduction with the roles of its axes.

    Attributes:
        total: Reduction stage.
        output: `total`, or the result of its element-wise epilogue.
        between: Stages between `total` and `output`.
        image: Tensor that the windows read; vectors run along its last axis and that of the result.
        row: First axis of the result along which windows move.
        factor: Elements of the image per element of the result.
    """

    total: te.Tensor
    output: te.Tensor
    between: tuple[te.Tensor, ...]
    image: te.Tensor
    row: int
    factor: int


def windows_of(
    output: te.Tensor, chain: Sequence[te.Tensor] | None = None
) -> WindowReduction | None:
    """Recognize `output` as a windowed reduction with an optional epilogue; None if it is not one.

    Args:
        output: Tensor.
        chain: Stages from `output` back to the reduction, if they are known. Default: None.

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
    return WindowReduction(total, output, tuple(steps[1:-1]), read.tensor, row, factor)


def need_windows(op: te.Tensor | WindowReduction, caller: str) -> WindowReduction:
    """Return the description of a windowed reduction.

    Raises:
        ScheduleError: If `op` is not a windowed reduction.
    """
    if isinstance(op, WindowReduction):
        return op
    found = windows_of(op)
    if found is None:
        raise ScheduleError(
            "{caller}: {op} is neither a reduction of windows that slide along an axis other than "
            "the last, nor an elementwise function of one",
            kind="pattern-mismatch", caller=caller, op=op.name,
        )
    return found


def _step(read: Access, axis: te.IterVar, runs: tuple[te.IterVar, ...]) -> int:
    """Return the step of the windows along an axis; 0 if they do not move along the axis."""
    for index in read.index:
        if any(index.coefficient(run) for run in runs):
            step = index.coefficient(axis)
            if step:
                return max(step, 1)
    return 0
