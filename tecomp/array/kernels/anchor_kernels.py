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

    Reductions around a center, such as variances, have none: they are decomposed into the center
    and a sum, which are shared with other operations.
    """
    if isinstance(op, Cumulative):
        return n_along < 2 and not op.include_initial
    if isinstance(op, AxisReduction) and op.row.center:
        return False
    return isinstance(op, CORES) and (n_along < 2 or not isinstance(op, FindIndex))


def axes_along(op: Any, rank: int) -> tuple[int, ...]:
    """Return the operand axes along which an operation reduces or scans."""
    return axes_of(op.axis, rank, op.where)


def result_loops(op: PTensorOp, along: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the loops over the operands that are also loops over the result."""
    return tuple([k for k in range(rank) if k not in along or isinstance(op, Cumulative)])


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
    op: Any, along: tuple[int, ...], x: te.Tensor, given: PTensorType, result: PTensorType
) -> te.Tensor:
    """Define an anchor operation along loops as tensors of `te`.

    Args:
        op: Operation, normalized to a single axis.
        along: Reduction loops; empty if the axis has size 1.
        x: Operand.
        given: Type of the operand.
        result: Type of the result.
    """
    if not isinstance(op, FindIndex | Cumulative):
        op = replace(op, axis=along)
    elif along:
        op = replace(op, axis=along[0])
    else:
        return _define_standalone(op, x, result)
    made: Any = define(op, [x], [given], result)
    return made  # type: ignore[no-any-return]


def _define_standalone(op: PTensorOp, x: te.Tensor, result: PTensorType) -> te.Tensor:
    def element(*index: te.Expr) -> te.Expr:
        if isinstance(op, FindIndex):
            return te.const(0, result.dtype)
        return te.cast(x(*index), result.dtype)

    made: te.Tensor = te.compute(result.shape, element, name="alone")
    return made


def sum_of_products(
    factors: Any, sizes: Sequence[Any], along: Sequence[int], dtype: str
) -> te.Tensor:
    """Define a sum of products in the accumulation dtype of matrix products.

    Args:
        factors: Function that returns the two factors at a loop index.
        sizes: Extents of the loops.
        along: Reduction loops.
        dtype: Result dtype.
    """
    runs = {k: te.reduce_axis((0, sizes[k]), name=f"k{k}") for k in along}
    wide = wide_type(dtype)

    def total(*index: te.Expr) -> te.Expr:
        own = iter(index)
        x, y = factors([runs[k] if k in runs else next(own) for k in range(len(sizes))])
        terms = te.cast(x, wide) * te.cast(y, wide)
        made: te.Expr = te.sum(terms, axis=list(runs.values())) if runs else terms
        return made

    kept = [n for k, n in enumerate(sizes) if k not in runs]
    found: te.Tensor = te.compute(kept, total, name="product")
    if wide == dtype:
        return found
    narrow: te.Tensor = te.compute(kept, lambda *i: te.cast(found(*i), dtype), name="narrow")
    return narrow


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
    whole = [_expand_strides(s, parts.kept_axes, len(kinds)) for s in (*after, dense(small))]
    groups = merge_axes(parts.shape, [*before, *whole], kinds)
    op, sources = work.steps[parts.anchor_position]
    if isinstance(op, ContractionCore) and _is_down_columns(groups, kinds, before):
        # `x.T @ v` adds up rows of x; the order of the results does not change.
        *outer, column, row = groups
        groups = (*outer, row, column)
    loops = tuple([prod(parts.shape[axis] for axis in group) for group in groups])
    operands: dict[int, KernelOperand] = {}
    for k, strides in zip(parts.prologue_leaves, before, strict=True):
        operands[k] = operand_of(work.leaves[k], groups, loops, strides)
    for k, strides in zip(parts.epilogue_leaves, whole, strict=False):
        operands[k] = operand_of(work.leaves[k], groups, loops, strides)
    how = tuple([operands[k] for k in range(len(work.leaves))])
    along = tuple([k for k, group in enumerate(groups) if kinds[group[0]]])
    result = result_loops(op, along, len(loops))
    if not is_known(op, len(along)):
        return None
    if any(k not in result and all(k not in operand.axes for operand in how) for k in along):
        return None  # no operand determines the extent of this loop
    steps = list(work.steps)
    steps[parts.anchor_position] = (on_a_row(op), sources)
    what = (
        tuple(steps),
        parts.anchor_position,
        along,
        work.outputs,
        tuple([n.type.dtype for n in work.leaves]),
    )
    short = _short_row(work, parts.anchor_position)
    most = _short_row_bound(op, loops, short) if len(loops) - 1 in along else None
    build = partial(_build, *what, how, most)
    key = what, tuple([operand.lies for operand in how]), len(loops), most
    types = [work.nodes[place].type for place in work.outputs]
    dtypes = tuple([numpy_dtype(type.dtype) for type in types])
    return KernelRecipe(
        key,
        build,
        how,
        types[0].shape,
        loops,
        tuple([loops[k] for k in result]),
        dtypes,
        prod(loops),
        is_slow=is_slow(op),
        is_product=isinstance(op, ContractionCore),
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
    kept, run = groups[-2][-1], groups[-1][-1]
    if kinds[kept] or not kinds[run]:
        return False
    # An operand with one of the loops only is read in order either way.
    both = [(abs(own[kept]), abs(own[run])) for own in strides if own[kept] and own[run]]
    return len(both) == 1 and all(a < b for a, b in both)


def _short_row(work: PendingGraph, at: int) -> int:
    """Return the row length up to which the loop extent is compiled in."""
    op, (source, *_) = work.steps[at]
    taken = (work.nodes[source] if source >= 0 else work.leaves[-1 - source]).type
    type = taken if isinstance(op, FindIndex) else work.nodes[at].type
    return short_row(type.dtype)


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


def _expand_strides(strides: Strides, kept: Sequence[int], rank: int) -> Strides:
    """Expand strides along the kept axes to strides along all axes, with 0 elsewhere."""
    result = [0] * rank
    for axis, stride in zip(kept, strides, strict=True):
        result[axis] = stride
    return tuple(result)


def _parts(work: PendingGraph) -> _Parts | None:
    """Return the anchor operation and the leaves of its prologue and epilogue, or None."""
    places = [k for k, (op, _) in enumerate(work.steps) if not is_elementwise(op)]
    if len(places) != 1 or not _is_plain(work, places[0]):
        return None
    (at,) = places
    op, (source, *_) = work.steps[at]
    shape = (work.nodes[source] if source >= 0 else work.leaves[-1 - source]).type.shape
    result = work.nodes[at].type.shape
    before = _leaves(work.steps[: at + 1])
    after = _leaves(work.steps[at + 1 :])
    if (
        before & after or not all(shape)
        or any(node.type.shape != shape for node in work.nodes[:at])
        or any(node.type.shape != result for node in work.nodes[at:])
    ):
        return None
    axes = axes_along(op, len(shape))
    kept = result_loops(op, axes, len(shape))
    return _Parts(at, shape, axes, kept, tuple(sorted(before)), tuple(sorted(after)))


def _is_plain(work: PendingGraph, at: int) -> bool:
    """Return whether an anchor has a kernel, and its prologue is read by nothing else."""
    op, sources = work.steps[at]
    nodes = [*work.nodes, *work.leaves]
    return (
        isinstance(op, CORES)
        and (len(sources) == 1 or max(sources) < 0)
        and all(place >= at for place in work.outputs)
        and all(k < 0 or k >= at for _, places in work.steps[at + 1 :] for k in places)
        and not any(n.type.dtype in COMPLEX or n.type.device not in (None, "cpu") for n in nodes)
    )


def _leaves(steps: Sequence[Step]) -> set[int]:
    return {-1 - k for _, places in steps for k in places if k < 0}


def _kept_strides(work: PendingGraph, parts: _Parts, small: Shape) -> list[Strides] | None:
    """Return the strides of the epilogue leaves along the kept axes."""
    result = work.nodes[parts.anchor_position].type.shape
    found = strides_of([work.leaves[k] for k in parts.epilogue_leaves], result)
    if found is None or len(result) == len(small):
        return found
    return [tuple([strides[k] for k in parts.kept_axes]) for strides in found]


def _build(
    steps: Sequence[Step], at: int, along: tuple[int, ...], outputs: Sequence[int],
    dtypes: Sequence[str], operands: Sequence[KernelOperand], most: int | None,
    sizes: Sequence[Any],
) -> Any:
    rank = len(sizes)
    inputs = [
        argument([sizes[k] for k in how.axes], dtype, f"x{k}")
        for k, (how, dtype) in enumerate(zip(operands, dtypes, strict=True))
    ]
    op: Any
    op, sources = steps[at]
    loops = result_loops(op, along, rank)
    types = dtypes_of(steps[: at + 1], dtypes)
    (source, *_) = sources
    given = PTensorType(tuple(sizes), types[source] if source >= 0 else dtypes[-1 - source])

    def leaves(index: Sequence[te.Expr], numbers: Sequence[int]) -> list[Any]:
        place = dict(zip(numbers, index, strict=True))
        return [
            read(x, how, [place[k] for k in how.axes]) if place.keys() >= {*how.axes} else None
            for x, how in zip(inputs, operands, strict=True)
        ]

    def before(*index: te.Expr) -> Any:
        found = leaves(index, range(rank))
        return found[-1 - source] if source < 0 else elements_of(steps[:at], found, dtypes)[-1]

    def factors(index: Sequence[te.Expr]) -> list[Any]:
        found = leaves(index, range(rank))
        return [found[-1 - k] for k in sources]

    result = PTensorType(tuple([sizes[k] for k in loops]), types[at])
    if isinstance(op, ContractionCore):
        reduced = sum_of_products(factors, sizes, along, types[at])
    else:
        x = te.compute(sizes, before, name="x")
        reduced = define_anchor(op, along, x, given, result)
    # The epilogue reads the anchor result as an additional leaf.
    behind = tuple([(op, tuple([_behind(k, at, len(inputs)) for k in places]))
                    for op, places in steps[at + 1 :]])
    wanted = [_behind(k, at, len(inputs)) for k in outputs]

    def after(*index: te.Expr) -> Any:
        found = [*leaves(index, loops), reduced(*index)]
        made = elements_of(behind, found, [*dtypes, types[at]])
        return tuple([made[k] if k >= 0 else found[-1 - k] for k in wanted])

    made = reduced if wanted == [-1 - len(inputs)] else te.compute(result.shape, after, name="y")
    results = made if isinstance(made, tuple) else (made,)
    binds = {x: memory(x, how) for x, how in zip(inputs, operands, strict=True) if how.strided}
    bounds = None if most is None or isinstance(sizes[-1], int) else {sizes[-1]: most}
    return tecomp.build(results, [*inputs, *results], name="array", binds=binds, bounds=bounds)


def _behind(place: int, at: int, leaves: int) -> int:
    """Renumber a position for the epilogue, where the anchor result is the last leaf."""
    if place < 0:
        return place
    return place - at - 1 if place > at else -1 - leaves
