"""Kernels around one anchor operation (reduction, scan, contraction) with prologue and epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.graph.pending import PendingGraph, Step
from tecomp.array.kernels.kernel import MANY, KernelRecipe, short_row
from tecomp.array.kernels.strided_operands import (
    KernelOperand,
    Strides,
    argument,
    dense,
    dtypes_of,
    elements_of,
    memory,
    merge_axes,
    operand_of,
    read,
    strides_of,
)
from tecomp.ptensor.formulas.tables import is_elementwise
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.reduction import AxisReduction, Cumulative, FindIndex
from tecomp.ptensor.te_definitions import define
from tecomp.ptensor.types import COMPLEX, PTensorType, Shape, axes_of, numpy_dtype
from tecomp.schedules.common import wide_type


@dataclass(frozen=True)
class ContractionCore(PTensorOp):
    """Sum of products of two arrays of one shape along axes, accumulated as in matrix products.

    Attributes:
        axis: Axes of the sum.

    >>> x = PTensorType((4, 5, 6), "float32")
    >>> print(ContractionCore((1,)).infer(x, x))
    ptensor<4x6xfloat32>
    """

    dialect = "kernel"
    name = "sum_of_products"
    takes = (2, 2)
    axis: tuple[int, ...]

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the operand type without the axes of the sum."""
        shape = operands[0].shape
        return operands[0].like(tuple([n for k, n in enumerate(shape) if k not in self.axis]))


CORES = (AxisReduction, Cumulative, ContractionCore)
"""Anchor operations that have kernels."""


def is_slow(op: PTensorOp) -> bool:
    """Return whether the size-polymorphic kernel is built only for a second set of sizes.

    Kernels of cumulative operations take longer to build and to run than kernels for fixed sizes.
    """
    return isinstance(op, Cumulative)


def is_known(op: PTensorOp, n_along: int) -> bool:
    """Return whether an operation has a kernel for a number of reduction loops.

    Reductions of terms, such as variances, have none: they are decomposed into the center and a
    sum, which are shared with other operations.
    """
    if isinstance(op, Cumulative):
        return n_along < 2 and not op.include_initial
    if isinstance(op, AxisReduction) and op.row.term is not None:
        return False
    return isinstance(op, CORES) and (n_along < 2 or not isinstance(op, FindIndex))


def axes_along(op: Any, rank: int) -> tuple[int, ...]:
    """Return the operand axes along which an operation reduces or scans."""
    return axes_of(op.axis, rank, op.where)


def result_loops(op: PTensorOp, reduced: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the loops over the operands that are also loops over the result."""
    return tuple([k for k in range(rank) if k not in reduced or isinstance(op, Cumulative)])


def on_a_row(op: Any) -> PTensorOp:
    """Return the operation normalized to a single axis, independent of its position."""
    if isinstance(op, Cumulative):
        return replace(op, axis=0)
    if isinstance(op, FindIndex):
        return replace(op, axis=0, keepdims=False)
    if isinstance(op, ContractionCore):
        return replace(op, axis=(0,))
    return replace(op, axis=(0,), keepdims=False)  # type: ignore[no-any-return]


def define_anchor(
    op: Any, reduced: tuple[int, ...], x: te.Tensor, x_type: PTensorType, result: PTensorType
) -> te.Tensor:
    """Define an anchor operation along loops as tensors of `te`.

    Args:
        op: Operation, normalized to a single axis.
        reduced: Reduction loops; empty if the axis has size 1.
        x: Operand.
        x_type: Type of the operand.
        result: Type of the result.
    """
    if not isinstance(op, FindIndex | Cumulative):
        op = replace(op, axis=reduced)
    elif reduced:
        op = replace(op, axis=reduced[0])
    else:
        return _define_standalone(op, x, result)
    tensor: Any = define(op, [x], [x_type], result)
    return tensor  # type: ignore[no-any-return]


def _define_standalone(op: PTensorOp, x: te.Tensor, result: PTensorType) -> te.Tensor:
    def element(*index: te.Expr) -> te.Expr:
        if isinstance(op, FindIndex):
            return te.const(0, result.dtype)
        return te.cast(x(*index), result.dtype)

    tensor: te.Tensor = te.compute(result.shape, element, name="alone")
    return tensor


def sum_of_products(
    factors: Any, sizes: Sequence[Any], reduced: Sequence[int], dtype: str
) -> te.Tensor:
    """Define a sum of products in the accumulation dtype of matrix products.

    Args:
        factors: Function that returns the two factors at a loop index.
        sizes: Extents of the loops.
        reduced: Reduction loops.
        dtype: Result dtype.
    """
    runs = {k: te.reduce_axis((0, sizes[k]), name=f"k{k}") for k in reduced}
    acc_dtype = wide_type(dtype)

    def total(*index: te.Expr) -> te.Expr:
        free_index = iter(index)
        x, y = factors([runs[k] if k in runs else next(free_index) for k in range(len(sizes))])
        terms = te.cast(x, acc_dtype) * te.cast(y, acc_dtype)
        sum_expr: te.Expr = te.sum(terms, axis=list(runs.values())) if runs else terms
        return sum_expr

    shape = [n for k, n in enumerate(sizes) if k not in runs]
    found: te.Tensor = te.compute(shape, total, name="product")
    if acc_dtype == dtype:
        return found
    narrowed: te.Tensor = te.compute(shape, lambda *i: te.cast(found(*i), dtype), name="narrow")
    return narrowed


@dataclass(frozen=True, slots=True)
class _Parts:
    """Pending operations around one anchor operation.

    Attributes:
        anchor_position: Position of the anchor.
        shape: Shape of its operand.
        axes: Axes along which it reduces or scans.
        kept_axes: Axes of the operand that its result has.
        prologue_leaves: Leaves of the prologue, in ascending order.
        epilogue_leaves: Leaves of the epilogue, in ascending order.
    """

    anchor_position: int
    shape: Shape
    axes: tuple[int, ...]
    kept_axes: tuple[int, ...]
    prologue_leaves: tuple[int, ...]
    epilogue_leaves: tuple[int, ...]


def reduction_recipe(work: PendingGraph) -> KernelRecipe | None:
    """Return the recipe for one anchor with element-wise prologue and epilogue, or None."""
    parts = _parts(work)
    if parts is None:
        return None
    small = tuple([parts.shape[k] for k in parts.kept_axes])
    before = strides_of([work.leaves[k] for k in parts.prologue_leaves], parts.shape)
    after = _kept_strides(work, parts, small)
    if before is None or after is None:
        return None
    kinds = [k in parts.axes for k in range(len(parts.shape))]
    full_strides = [_expand_strides(s, parts.kept_axes, len(kinds)) for s in (*after, dense(small))]
    groups = merge_axes(parts.shape, [*before, *full_strides], kinds)
    op, sources = work.steps[parts.anchor_position]
    is_product = isinstance(op, ContractionCore)
    if is_product and _is_down_columns(groups, kinds, before):
        # `x.T @ v` adds up rows of x; the order of the results does not change.
        *outer, column, row = groups
        groups = (*outer, row, column)
    loops = tuple([prod(parts.shape[axis] for axis in group) for group in groups])
    operands: dict[int, KernelOperand] = {}
    for k, strides in zip(parts.prologue_leaves, before, strict=True):
        # Schedules of products choose loops by the axis along which each factor is contiguous.
        operands[k] = operand_of(
            work.leaves[k], groups, loops, strides, in_memory_order=is_product
        )
    for k, strides in zip(parts.epilogue_leaves, full_strides, strict=False):
        operands[k] = operand_of(work.leaves[k], groups, loops, strides)
    passed = tuple([operands[k] for k in range(len(work.leaves))])
    reduced = tuple([k for k, group in enumerate(groups) if kinds[group[0]]])
    result = result_loops(op, reduced, len(loops))
    if not is_known(op, len(reduced)):
        return None
    if any(k not in result and all(k not in operand.axes for operand in passed) for k in reduced):
        return None  # no operand determines the extent of this loop
    steps = list(work.steps)
    steps[parts.anchor_position] = (on_a_row(op), sources)
    static_key = (
        tuple(steps),
        parts.anchor_position,
        reduced,
        work.outputs,
        tuple([n.type.dtype for n in work.leaves]),
    )
    short = _short_row(work, parts.anchor_position)
    row_bound = _short_row_bound(op, loops, short) if len(loops) - 1 in reduced else None
    build = partial(_build, *static_key, passed, row_bound)
    key = static_key, tuple([operand.lies for operand in passed]), len(loops), row_bound
    types = [work.nodes[position].type for position in work.outputs]
    dtypes = tuple([numpy_dtype(ptype.dtype) for ptype in types])
    return KernelRecipe(
        key,
        build,
        passed,
        types[0].shape,
        loops,
        tuple([loops[k] for k in result]),
        dtypes,
        prod(loops),
        is_slow=is_slow(op),
        is_product=is_product,
        short=short,
    )


def _is_down_columns(
    groups: Sequence[Sequence[int]], kinds: Sequence[bool], strides: Sequence[Strides]
) -> bool:
    """Return whether the last two loops are a kept one and a sum against the order of memory.

    Args:
        groups: Axes of each loop.
        kinds: For each axis, whether it is reduced.
        strides: Strides of each operand along all axes.
    """
    if len(groups) < 2:
        return False
    outer, inner = groups[-2][-1], groups[-1][-1]
    if kinds[outer] or not kinds[inner]:
        return False
    # An operand with one of the loops only is read in order either way.
    stride_pairs = [(abs(s[outer]), abs(s[inner])) for s in strides if s[outer] and s[inner]]
    return len(stride_pairs) == 1 and all(a < b for a, b in stride_pairs)


def _short_row(work: PendingGraph, anchor: int) -> int:
    """Return the row length up to which the loop extent is compiled in."""
    op, (source, *_) = work.steps[anchor]
    source_type = (work.nodes[source] if source >= 0 else work.leaves[-1 - source]).type
    ptype = source_type if isinstance(op, FindIndex) else work.nodes[anchor].type
    return short_row(ptype.dtype)


def _short_row_bound(op: PTensorOp, loops: Shape, short: int) -> int | None:
    """Return the bound that selects the kernel for short rows of symbolic length, or None.

    Args:
        op: Operation along the rows.
        loops: Extents of loops, of which the last is the row.
        short: Row length up to which the length is built in, which is four vectors.
    """
    if prod(loops) < MANY or isinstance(op, ContractionCore):
        return None
    factors = (2, 8) if isinstance(op, FindIndex) else (4,)
    return next((short * k for k in factors if loops[-1] <= short * k), None)


def _expand_strides(strides: Strides, kept_axes: Sequence[int], rank: int) -> Strides:
    """Expand strides along the kept axes to strides along all axes, with 0 elsewhere."""
    result = [0] * rank
    for axis, stride in zip(kept_axes, strides, strict=True):
        result[axis] = stride
    return tuple(result)


def _parts(work: PendingGraph) -> _Parts | None:
    """Return the anchor operation and the leaves of its prologue and epilogue, or None."""
    anchors = [k for k, (op, _) in enumerate(work.steps) if not is_elementwise(op)]
    if len(anchors) != 1 or not _is_plain(work, anchors[0]):
        return None
    (anchor,) = anchors
    op, (source, *_) = work.steps[anchor]
    shape = (work.nodes[source] if source >= 0 else work.leaves[-1 - source]).type.shape
    result = work.nodes[anchor].type.shape
    before = _leaves(work.steps[: anchor + 1])
    after = _leaves(work.steps[anchor + 1 :])
    if (
        before & after or not all(shape)
        or any(node.type.shape != shape for node in work.nodes[:anchor])
        or any(node.type.shape != result for node in work.nodes[anchor:])
    ):
        return None
    axes = axes_along(op, len(shape))
    kept_axes = result_loops(op, axes, len(shape))
    return _Parts(anchor, shape, axes, kept_axes, tuple(sorted(before)), tuple(sorted(after)))


def _is_plain(work: PendingGraph, anchor: int) -> bool:
    """Return whether an anchor has a kernel, and its prologue is read by nothing else."""
    op, sources = work.steps[anchor]
    nodes = [*work.nodes, *work.leaves]
    return (
        isinstance(op, CORES)
        and (len(sources) == 1 or max(sources) < 0)
        and all(position >= anchor for position in work.outputs)
        and all(k < 0 or k >= anchor for _, operands in work.steps[anchor + 1 :] for k in operands)
        and not any(n.type.dtype in COMPLEX or n.type.device not in (None, "cpu") for n in nodes)
    )


def _leaves(steps: Sequence[Step]) -> set[int]:
    return {-1 - k for _, operands in steps for k in operands if k < 0}


def _kept_strides(work: PendingGraph, parts: _Parts, small: Shape) -> list[Strides] | None:
    """Return the strides of the epilogue leaves along the kept axes."""
    result = work.nodes[parts.anchor_position].type.shape
    found = strides_of([work.leaves[k] for k in parts.epilogue_leaves], result)
    if found is None or len(result) == len(small):
        return found
    return [tuple([strides[k] for k in parts.kept_axes]) for strides in found]


def _build(
    steps: Sequence[Step], anchor: int, reduce_loops: tuple[int, ...], outputs: Sequence[int],
    dtypes: Sequence[str], operands: Sequence[KernelOperand], row_bound: int | None,
    sizes: Sequence[Any],
) -> Any:
    rank = len(sizes)
    inputs = [
        argument([sizes[k] for k in spec.axes], dtype, f"x{k}")
        for k, (spec, dtype) in enumerate(zip(operands, dtypes, strict=True))
    ]
    op: Any
    op, sources = steps[anchor]
    loops = result_loops(op, reduce_loops, rank)
    types = dtypes_of(steps[: anchor + 1], dtypes)
    (source, *_) = sources
    x_type = PTensorType(tuple(sizes), types[source] if source >= 0 else dtypes[-1 - source])

    def leaves(index: Sequence[te.Expr], numbers: Sequence[int]) -> list[Any]:
        coords = dict(zip(numbers, index, strict=True))
        return [
            read(x, spec, [coords[k] for k in spec.axes]) if coords.keys() >= {*spec.axes} else None
            for x, spec in zip(inputs, operands, strict=True)
        ]

    def before(*index: te.Expr) -> Any:
        found = leaves(index, range(rank))
        return found[-1 - source] if source < 0 else elements_of(steps[:anchor], found, dtypes)[-1]

    def factors(index: Sequence[te.Expr]) -> list[Any]:
        found = leaves(index, range(rank))
        return [found[-1 - k] for k in sources]

    result = PTensorType(tuple([sizes[k] for k in loops]), types[anchor])
    if isinstance(op, ContractionCore):
        reduced = sum_of_products(factors, sizes, reduce_loops, types[anchor])
    else:
        x = te.compute(sizes, before, name="x")
        reduced = define_anchor(op, reduce_loops, x, x_type, result)
    # The epilogue reads the anchor result as an additional leaf.
    epilogue = tuple([(op, tuple([_behind(k, anchor, len(inputs)) for k in positions]))
                    for op, positions in steps[anchor + 1 :]])
    required = [_behind(k, anchor, len(inputs)) for k in outputs]

    def after(*index: te.Expr) -> Any:
        found = [*leaves(index, loops), reduced(*index)]
        values = elements_of(epilogue, found, [*dtypes, types[anchor]])
        return tuple([values[k] if k >= 0 else found[-1 - k] for k in required])

    final = reduced if required == [-1 - len(inputs)] else te.compute(result.shape, after, name="y")
    results = final if isinstance(final, tuple) else (final,)
    binds = {x: memory(x, spec) for x, spec in zip(inputs, operands, strict=True) if spec.strided}
    bounds = None if row_bound is None or isinstance(sizes[-1], int) else {sizes[-1]: row_bound}
    return tecomp.build(results, [*inputs, *results], name="array", binds=binds, bounds=bounds)


def _behind(position: int, anchor: int, leaves: int) -> int:
    """Renumber a position for the epilogue, where the anchor result is the last leaf."""
    if position < 0:
        return position
    return position - anchor - 1 if position > anchor else -1 - leaves
