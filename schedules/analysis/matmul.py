"""Recognize matrix products and the roles of their axes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tecomp import Access, ScheduleError, accesses, te
from tecomp.schedules.analysis.convolution import Convolution
from tecomp.schedules.analysis.stages import (
    is_private_formula,
    match_copy,
    steps_to_reduction,
    strip_cast,
)
from tecomp.schedules.common import Size, ceil_div, is_one, product


@dataclass(frozen=True)
class MatmulOperand:
    """Factor of a product.

    Attributes:
        tensor: Tensor that is read.
        axes: Axis of the product for each dimension of the tensor.
    """

    tensor: te.Tensor
    axes: tuple[te.IterVar, ...]

    def has(self, axis: te.IterVar) -> bool:
        """Return whether the factor depends on an axis."""
        return any(candidate is axis for candidate in self.axes)

    def ends_in(self, axis: te.IterVar) -> bool:
        """Return whether the factor is contiguous along an axis."""
        return self.axes[-1] is axis

    def stride(self, axis: te.IterVar) -> Size:
        """Return the stride of the factor along an axis, in elements."""
        dim = next(k for k, candidate in enumerate(self.axes) if candidate is axis)
        return product(self.tensor.shape[dim + 1 :])


def source_before_copy(factor: MatmulOperand) -> MatmulOperand:
    """Return the factor before its conversion to a wider dtype or a permutation of its axes.

    >>> A = te.placeholder((4, 9), "int8", name="A")
    >>> B = te.compute((9, 4), lambda i, j: te.cast(A[j, i], "int32"), name="B")
    >>> found = source_before_copy(MatmulOperand(B, tuple(B.op.axis)))
    >>> found.tensor.name, [axis.name for axis in found.axes]
    ('A', ['j', 'i'])
    """
    source = match_copy(factor.tensor)
    if source is None:
        return factor
    axes = dict(zip(factor.tensor.op.axis, factor.axes, strict=True))
    return MatmulOperand(source.tensor, tuple(axes[axis] for axis in source.axes if axis in axes))


@dataclass(frozen=True)
class Product:
    """Sum of products of two factors, with the roles of its axes.

        total[batch, row, across, column] = sum(rows[batch, row, depth]
                                                * columns[batch, depth, across, column])

    The axes of each tensor may be in any order, except for `column`, which is the last axis of the
    result.

    Attributes:
        total: Sum.
        output: `total`, or the result of its element-wise epilogue.
        between: Stages between `total` and `output`.
        rows: Factor that has the rows.
        columns: Factor that has the columns.
        row: Axis of the result on which only `rows` depends.
        column: Axis of the result on which only `columns` depends.
        batch: Other axes of the result, except `column_batch_axes`.
        column_batch_axes: Other axes on which only `columns` depends.
        depth: Reduction axes, innermost last.
        is_swapped: Whether `columns` is the left factor.
        is_sum: Whether the stage is a sum of products; if False, another reduction of another
            binary expression.
    """

    total: te.Tensor
    output: te.Tensor
    between: tuple[te.Tensor, ...]
    rows: MatmulOperand
    columns: MatmulOperand
    row: te.IterVar
    column: te.IterVar
    batch: tuple[te.IterVar, ...]
    column_batch_axes: tuple[te.IterVar, ...]
    depth: tuple[te.IterVar, ...]
    is_swapped: bool = False
    is_sum: bool = True

    @property
    def m(self) -> Size:
        """Number of rows."""
        return self.row.extent

    @property
    def n(self) -> Size:
        """Number of columns."""
        return self.column.extent

    @property
    def terms(self) -> Size:
        """Number of terms of each sum."""
        return product(axis.extent for axis in self.depth)

    @property
    def outer(self) -> tuple[te.IterVar, ...]:
        """Axes of the result that are neither rows nor columns of a tile."""
        return (*self.batch, *self.column_batch_axes)

    @property
    def dots_rows(self) -> bool:
        """Whether the factor of the columns is contiguous along the depth."""
        return self.columns.ends_in(self.depth[-1])

    def axes_of(
        self, x: te.Tensor
    ) -> tuple[list[te.IterVar], te.IterVar, list[te.IterVar], te.IterVar]:
        """Return the axes batch, row, across, column of a stage that ends in the result axes."""
        names = self.total.op.axis
        axis_map = dict(zip(names, x.op.axis[len(x.op.axis) - len(names) :], strict=True))
        leading = list(x.op.axis[: len(x.op.axis) - len(names)])
        return (
            [*leading, *(axis_map[axis] for axis in self.batch)], axis_map[self.row],
            [axis_map[axis] for axis in self.column_batch_axes], axis_map[self.column],
        )

    def depth_of(self, x: te.Tensor) -> list[te.IterVar]:
        """Return the depth axes of a stage with the reduction axes of `total`."""
        order = list(self.total.op.reduce_axis)
        return [x.op.reduce_axis[_place(order, axis)] for axis in self.depth]

    def with_factors(self, total: te.Tensor, first: te.Tensor, second: te.Tensor) -> Product:
        """Return the description with another sum and its factors in textual order."""
        axis_map = dict(zip(
            (*self.total.op.axis, *self.total.op.reduce_axis),
            (*total.op.axis, *total.op.reduce_axis), strict=True,
        ))

        def moved(axes: tuple[te.IterVar, ...]) -> tuple[te.IterVar, ...]:
            return tuple(axis_map[axis] for axis in axes)

        rows, columns = (second, first) if self.is_swapped else (first, second)
        return replace(
            self,
            total=total,
            rows=MatmulOperand(rows, moved(self.rows.axes)),
            columns=MatmulOperand(columns, moved(self.columns.axes)),
            row=axis_map[self.row],
            column=axis_map[self.column],
            batch=moved(self.batch),
            column_batch_axes=moved(self.column_batch_axes),
            depth=moved(self.depth),
        )


def product_of(
    output: te.Tensor, chain: Sequence[te.Tensor] | None = None, *, any_terms: bool = False
) -> Product | None:
    """Recognize `output` as a matrix product with an optional epilogue; None if it is not one.

    Args:
        output: Tensor.
        chain: Stages from `output` back to the reduction, if they are known. Default: None.
        any_terms: Whether other reductions of binary expressions count as products, such as
            distances of rows, because they use the same loop nest.

    >>> A, B = te.placeholder((8, 16), name="A"), te.placeholder((4, 16), name="B")
    >>> k = te.reduce_axis((0, 16), name="k")
    >>> C = te.compute((8, 4), lambda i, j: te.sum(B[j, k] * A[i, k], axis=k), name="C")
    >>> found = product_of(C)
    >>> found.rows.tensor.name, found.row.name, found.column.name, found.dots_rows
    ('A', 'i', 'j', True)
    """
    steps = chain or steps_to_reduction(output)
    return _roles(steps, any_terms=any_terms) if steps else None


def need_product(op: te.Tensor | Product, caller: str) -> Product:
    """Return the description of a matrix product.

    Raises:
        ScheduleError: If `op` is not a matrix product.
    """
    if isinstance(op, Product):
        return op
    found = product_of(op)
    if found is None:
        raise ScheduleError(
            "{caller}: {op} is neither a sum of products of two matrices nor an elementwise "
            "function of one; each index of a factor must be an axis of the result or a reduction "
            "axis, and the last axis of the result must index exactly one factor",
            kind="pattern-mismatch", caller=caller, op=op.name,
        )
    return found


def operand(s: te.Schedule, x: te.Tensor, *readers: te.Tensor) -> te.Tensor:
    """Return a tensor that may be packed for some stages: `x` if only they read it, else a copy."""
    return x if is_private_formula(s, x, *readers) else s.cache_read(x, "global", list(readers))


def _roles(steps: Sequence[te.Tensor], *, any_terms: bool) -> Product | None:
    output, total = steps[0], steps[-1]
    found = accesses(total)
    is_sum = found.reducer == "sum" and len(found.factors) == 2
    reads = found.factors if is_sum else found.reads
    if not (is_sum or any_terms) or not found.is_plain or len(reads) != 2:
        return None
    if total.op.num_outputs > 1 or not found.reduce_axis:
        return None
    first, second = map(_factor, reads)
    if first is None or second is None:
        return None
    if not all(first.has(axis) and second.has(axis) for axis in found.reduce_axis):
        return None
    single_axes = [axis for axis in found.axis if first.has(axis) != second.has(axis)]
    column = _last(found.axis, single_axes)
    if column is None:
        return None
    is_swapped = first.has(column)
    rows, columns = (second, first) if is_swapped else (first, second)
    row_axes = [axis for axis in single_axes if rows.has(axis)]
    if not row_axes:
        return None
    row = max(row_axes, key=_size)
    column_batch = tuple([axis for axis in single_axes if columns.has(axis) and axis is not column])
    batch = tuple([
        axis for axis in found.axis
        if not any(axis is other for other in (row, column, *column_batch))
    ])
    depth = _inner_last(found.reduce_axis, rows, columns)
    middle = tuple(steps[1:-1])
    return Product(
        total, output, middle, rows, columns, row, column, batch, column_batch, depth, is_swapped,
        is_sum,
    )


def _factor(read: Access) -> MatmulOperand | None:
    """Return a read as a factor if each dimension is indexed by a distinct axis, else None."""
    axes = [axis for axis in read.axes if axis is not None and _is_zero(axis.low)]
    if not axes or len(axes) < len(read.axes) or len(set(axes)) < len(axes):
        return None
    return MatmulOperand(read.tensor, tuple(axes))


def _is_zero(low: Size) -> bool:
    return isinstance(low, int) and low == 0


def _last(
    axes: Sequence[te.IterVar], single_axes: Sequence[te.IterVar]
) -> te.IterVar | None:
    """Return the axis of a single factor along which the result is contiguous, or None."""
    for axis in reversed(axes):
        if any(axis is other for other in single_axes):
            return axis
        if not is_one(axis.extent):
            return None
    return None


def _size(axis: te.IterVar) -> float:
    return axis.extent if isinstance(axis.extent, int) else float("inf")


def _inner_last(
    depth: Sequence[te.IterVar], rows: MatmulOperand, columns: MatmulOperand
) -> tuple[te.IterVar, ...]:
    """Return the depth axes with the one along which a factor is contiguous last, if any."""
    inner = [axis for axis in depth if columns.ends_in(axis) or rows.ends_in(axis)]
    last = inner[-1] if inner else depth[-1]
    return (*(axis for axis in depth if axis is not last), last)


def _place(axes: Sequence[te.IterVar], axis: te.IterVar) -> int:
    return next(k for k, candidate in enumerate(axes) if candidate is axis)


Sizes = Mapping[te.IterVar, int]
"""Extents of blocks of axes."""


@dataclass(frozen=True)
class Contraction:
    """Sum of products with the roles of its axes for a matrix unit.

    Attributes:
        total: Sum.
        reads: Factors as the sum reads them.
        factors: Factors before conversion: tensors of the caller, or zero-padded copies of them.
        rows: Axis of the result that is the rows of a tile.
        columns: Axis of the result that is the columns of a tile.
        depth: Reduction axis inside a tile.
        roles: Dimensions that are `m`, `n`, `k`, for each of the factors and the result.
        read: Function from extents of blocks of the axes to extents of the blocks of the factors
            that are read.
        is_product: Whether a tile is a single matrix product; with channel groups it is several.
        padded: Zero-padded factors that are computed at their use; other factors are in memory.
        is_partial: Whether the first axis of the result is the part of a depth that cores share.
    """

    total: te.Tensor
    reads: tuple[te.Tensor, te.Tensor]
    factors: tuple[te.Tensor, te.Tensor]
    rows: te.IterVar
    columns: te.IterVar
    depth: te.IterVar
    roles: tuple[Mapping[int, str], Mapping[int, str], Mapping[int, str]]
    read: Callable[[Sizes], tuple[tuple[int, ...], tuple[int, ...]]]
    is_product: bool = True
    padded: Collection[te.Tensor] = ()
    is_partial: bool = False

    @property
    def axes(self) -> tuple[te.IterVar, ...]:
        """Axes of the result."""
        return tuple(self.total.op.axis)

    @property
    def taps(self) -> list[te.IterVar]:
        """Reduction axes without the depth."""
        return [axis for axis in self.total.op.reduce_axis if axis is not self.depth]


def of_matrices(d: Product) -> Contraction:
    """Return the roles of the axes of a product for a unit that multiplies tiles."""
    letters = {d.row: "m", d.column: "n", d.depth[-1]: "k"}
    factors = (d.rows, d.columns)

    def read(sizes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
        first, second = (tuple(sizes[axis] for axis in factor.axes) for factor in factors)
        return first, second

    def roles(axes: Sequence[te.IterVar]) -> dict[int, str]:
        return {dim: letters[axis] for dim, axis in enumerate(axes) if axis in letters}

    return Contraction(
        d.total, (d.rows.tensor, d.columns.tensor),
        (strip_cast(d.rows.tensor), strip_cast(d.columns.tensor)), d.row, d.column,
        d.depth[-1], (roles(d.rows.axes), roles(d.columns.axes), roles(d.total.op.axis)), read,
    )


def of_images(d: Convolution, padded: Collection[te.Tensor] = ()) -> Contraction:
    """Return the roles of the axes of a convolution: pixels of a row times channels, per tap.

    Args:
        d: Description of the convolution.
        padded: Factors that are computed at their use. Default: none.
    """
    b, y, x, k = d.axes_of(d.total)
    r, s, channel = d.taps_of(d.total)
    per_group: int = max(k.extent // d.groups, 1) if isinstance(k.extent, int) else 1

    def seen(count: int, taps: int, spatial: int) -> int:
        return int((count - 1) * d.steps[spatial] + (taps - 1) * d.dilations[spatial] + 1)

    def read(sizes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
        rows, columns = seen(sizes[y], sizes[r], 0), seen(sizes[x], sizes[s], 1)
        depth, out = sizes[channel], sizes[k]
        # Adjacent outputs may begin in the middle of a group.
        source = depth if d.groups == 1 else depth * min(ceil_div(out, per_group) + 1, d.groups)
        size_of = dict(zip(d.order, (sizes[r], sizes[s], depth, out), strict=True))
        weights = tuple(size_of[dim] for dim in range(4))
        if d.first:
            return (sizes[b], source, rows, columns), weights
        return (sizes[b], rows, columns, source), weights

    filters = {d.order[2]: "k", d.order[3]: "n"}
    roles = (
        ({3: "m", 1: "k"}, filters, {3: "m", 1: "n"})
        if d.first
        else ({2: "m", 3: "k"}, filters, {2: "m", 3: "n"})
    )
    factors = d.image, d.weights
    return Contraction(d.total, factors, factors, x, k, channel, roles, read, d.groups == 1, padded)
