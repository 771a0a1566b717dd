"""Stencils: weighted sums over a sliding window of an image.

A separable window, the outer product of a column and a row of weights, is applied in two stages:
along rows, then along columns. The values of the first stage stay in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tecomp import Target, accesses, te
from tecomp.schedules.tiling.register_blocking import core_of, lanes_of

_ROWS = 4
"""Rows of a tile; the first stage is recomputed only for the rows in the halo of a tile."""
_RESERVED_REGISTERS = 3
"""Vector registers reserved for loaded values and for weights."""
_STRIP = 8
"""Vertically adjacent tiles per core; the rows that they share stay in its cache."""


def define(
    A: te.Tensor, weights: Sequence[Sequence[float]], *, name: str = "stencil"
) -> te.Tensor:
    """Define the weighted sum of every window that is completely inside the image.

    Args:
        A: Images; the last two axes are rows and columns.
        weights: Rows of weights.
        name: Name of the result.

    >>> A = te.placeholder((100, 200), name="A")
    >>> define(A, [[0, 1, 0], [1, -4, 1], [0, 1, 0]]).shape
    (98, 198)
    """

    def value(*index: te.Expr) -> te.Expr:
        *outer, y, x = index
        terms = [
            (weight, A(*outer, y + dy, x + dx))
            for dy, row in enumerate(weights) for dx, weight in enumerate(row)
        ]
        return _weighted_sum(terms)

    shape = _shape(A, len(weights), len(weights[0]))
    return te.compute(shape, value, name=name)


def separable(
    A: te.Tensor, column: Sequence[float], row: Sequence[float], *, name: str = "stencil"
) -> te.Tensor:
    """Define a stencil as `define` does, with the weights `column[y] * row[x]`.

    >>> third = [1 / 3] * 3
    >>> separable(te.placeholder((100, 200), name="A"), third, third).shape
    (98, 198)
    """

    def along_row(*index: te.Expr) -> te.Expr:
        *outer, y, x = index
        return _weighted_sum([(weight, A(*outer, y, x + k)) for k, weight in enumerate(row)])

    first = te.compute(_shape(A, 1, len(row)), along_row, name=f"{name}_rows")

    def along_column(*index: te.Expr) -> te.Expr:
        *outer, y, x = index
        return _weighted_sum([(weight, first(*outer, y + k, x)) for k, weight in enumerate(column)])

    shape = _shape(A, len(column), len(row))
    return te.compute(shape, along_column, name=name)


def _shape(A: te.Tensor, height: int, width: int) -> tuple[int | te.Expr, ...]:
    *outer, rows, columns = A.shape
    return (*outer, rows - (height - 1), columns - (width - 1))


def _weighted_sum(terms: Sequence[tuple[float, te.Expr]]) -> te.Expr:
    """Return the sum of products; equal weights are factored out and zero weights are omitted."""
    sums: dict[float, te.Expr] = {}
    for weight, value in terms:
        if weight:
            sums[weight] = sums[weight] + value if weight in sums else value
    if not sums:
        sums = {0.0: terms[0][1]}
    parts = [x if weight == 1 else x * te.const(weight, x.dtype) for weight, x in sums.items()]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def schedule(output: te.Tensor, target: str | Path | Target) -> te.Schedule:
    """Return a schedule for the result of `define` or of `separable`.

    A tile is a few rows of one or two vectors. Strips of tiles are distributed over the cores.
    """
    target = Target.of(target)
    s = te.create_schedule(output)
    (first,) = output.op.input_tensors
    is_separable = bool(first.op.input_tensors)
    stage = s[output]
    *outer, y, x = stage.op.axis
    rows, y = stage.split(y, factor=_ROWS if is_separable else 1)
    strips, rows = stage.split(rows, factor=_STRIP)
    vectors, x = stage.split(x, factor=_width(output, x, target))
    stage.reorder(*outer, strips, rows, vectors, y, x)
    stage.parallel(stage.fuse(*outer, strips))
    stage.unroll(y)
    stage.vectorize(x)
    if is_separable:
        s[first].compute_at(stage, vectors)
        s[first].set_scope("local")
        *_, row, lane = s[first].op.axis
        s[first].unroll(row)
        s[first].vectorize(lane)
    return s


def _width(output: te.Tensor, x: te.IterVar, target: Target) -> int:
    """Return the columns of a tile: two vectors if the first stage fits the registers, else one."""
    lanes: int = lanes_of(output, x, target)
    rows = _ROWS + _height(output) - 1
    is_wide = 2 * rows <= core_of(target).vector_registers - _RESERVED_REGISTERS
    fits = not isinstance(x.extent, int) or 2 * lanes <= x.extent
    return 2 * lanes if is_wide and fits else lanes


def _height(output: te.Tensor) -> int:
    """Return the number of rows of the window."""
    rows = [read.index[-2].const for read in accesses(output).reads]
    return max(rows) - min(rows) + 1
