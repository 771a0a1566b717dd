"""Kernels around one anchor operation (reduction, scan, contraction) with prologue and epilogue."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
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
    memory,
    merge_axes,
    operand_of,
    read,
    strides_of,
)
from tecomp.ptensor.formulas.tables import element, is_elementwise
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
    """Pending operations around anchor operations along the same axes of operands of one shape.

    Attributes:
        anchors: Positions of the anchors.
        levels: For each operation, whether its value has the shape of the operands of anchors.
        shape: Shape of the operands of anchors.
        axes: Axes along which anchors reduce or scan.
        kept_axes: Axes of the operands that results of anchors have.
        leaves: Leaves that are read along all axes, in ascending order.
        kept_leaves: Leaves that are read along the kept axes only, in ascending order.
    """

    anchors: tuple[int, ...]
    levels: tuple[bool, ...]
    shape: Shape
    axes: tuple[int, ...]
    kept_axes: tuple[int, ...]
    leaves: tuple[int, ...]
    kept_leaves: tuple[int, ...]


def reduction_recipe(work: PendingGraph) -> KernelRecipe | None:
    """Return the recipe for anchors with element-wise operations around them, or None.

    A kernel has one anchor with prologue and epilogue, or the operations on the rows of an array,
    as in a softmax.
    """
    parts = _parts(work)
    if parts is None:
        return None
    first = parts.anchors[0]
    small = tuple([parts.shape[k] for k in parts.kept_axes])
    before = strides_of([work.leaves[k] for k in parts.leaves], parts.shape)
    after = _kept_strides(work, parts, small)
    if before is None or after is None:
        return None
    kinds = [k in parts.axes for k in range(len(parts.shape))]
    full_strides = [_expand_strides(s, parts.kept_axes, len(kinds)) for s in (*after, dense(small))]
    groups = merge_axes(parts.shape, [*before, *full_strides], kinds)
    op = work.steps[first][0]
    is_product = isinstance(op, ContractionCore)
    if is_product and _is_down_columns(groups, kinds, before):
        # `x.T @ v` adds up rows of x; the order of the results does not change.
        *outer, column, row = groups
        groups = (*outer, row, column)
    loops = tuple([prod(parts.shape[axis] for axis in group) for group in groups])
    operands: dict[int, KernelOperand] = {}
    for k, strides in zip(parts.leaves, before, strict=True):
        # Schedules of products choose loops by the axis along which each factor is contiguous.
        operands[k] = operand_of(
            work.leaves[k], groups, loops, strides, in_memory_order=is_product
        )
    for k, strides in zip(parts.kept_leaves, full_strides, strict=False):
        operands[k] = operand_of(work.leaves[k], groups, loops, strides)
    passed = tuple([operands[k] for k in range(len(work.leaves))])
    reduced = tuple([k for k, group in enumerate(groups) if kinds[group[0]]])
    result_axes = result_loops(op, reduced, len(loops))
    if not all(is_known(work.steps[k][0], len(reduced)) for k in parts.anchors):
        return None
    is_full = parts.levels[work.outputs[0]]
    if not is_full and any(all(k not in operand.axes for operand in passed) for k in reduced):
        return None  # no operand determines the extent of this loop
    if not _are_on_kept_loops(work, parts, passed, result_axes):
        return None
    steps = tuple([
        (on_a_row(op) if k in parts.anchors else op, sources)
        for k, (op, sources) in enumerate(work.steps)
    ])
    static_key = (
        steps, parts.anchors, parts.levels, reduced, work.outputs,
        tuple([n.type.dtype for n in work.leaves]),
    )
    short = _short_row(work, first)
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
        loops if is_full else tuple([loops[k] for k in result_axes]),
        dtypes,
        prod(loops),
        is_slow=is_slow(op),
        is_product=is_product,
        short=short,
    )


def _are_on_kept_loops(
    work: PendingGraph, parts: _Parts, passed: Sequence[KernelOperand], kept_loops: Sequence[int]
) -> bool:
    """Return whether operations on results of anchors read leaves along the kept loops only."""
    read = [
        passed[-1 - p] for k, (_, operands) in enumerate(work.steps)
        if not parts.levels[k] and k not in parts.anchors for p in operands if p < 0
    ]
    return all({*kept_loops}.issuperset(operand.axes) for operand in read)


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
    """Return the anchor operations and the leaves of the operations around them, or None."""
    anchors = tuple([k for k, (op, _) in enumerate(work.steps) if not is_elementwise(op)])
    if not anchors or not _are_plain(work, anchors):
        return None
    op, (source, *_) = work.steps[anchors[0]]
    shape = (work.nodes[source] if source >= 0 else work.leaves[-1 - source]).type.shape
    result = work.nodes[anchors[0]].type.shape
    if not all(shape):
        return None
    axes = axes_along(op, len(shape))
    levels = levels_of(work, anchors, shape, result)
    full = {k for k, level in enumerate(levels) if level}
    shapes = [shape if level else result for level in levels]
    if [node.type.shape for node in work.nodes] != shapes:
        return None
    kept_axes = result_loops(op, axes, len(shape))
    trailing = tuple(range(len(shape) - len(result), len(shape)))
    if len(result) < len(shape) and kept_axes != trailing:
        # A vector that is broadcast to square matrices has the shape of a result along other axes.
        small = {k for k, level in enumerate(levels) if not level} - {*anchors}
        if any(small.intersection(work.steps[k][1]) for k in {*full, *anchors}):
            return None
    is_single = len(anchors) == 1 and not any(k > anchors[0] for k in full)
    if isinstance(op, Cumulative):
        is_single, full = True, {*range(anchors[0] + 1)}
    read = _leaves([work.steps[k] for k in {*full, *anchors}])
    others = _leaves([step for k, step in enumerate(work.steps) if k not in {*full, *anchors}])
    if is_single:
        if read & others or not _is_around(work, anchors[0]):
            return None
    elif not _is_row(work, anchors, shape, axes):
        return None
    leaves = tuple(sorted(read)), tuple(sorted(others - read))
    return _Parts(anchors, levels, shape, axes, kept_axes, *leaves)


def levels_of(
    work: PendingGraph, anchors: Container[int], shape: Shape, result: Shape
) -> tuple[bool, ...]:
    """Return for each operation whether its value has the shape of the operands of anchors.

    Args:
        work: Pending operations.
        anchors: Positions of the anchors.
        shape: Shape of the operands of anchors.
        result: Shape of the results of anchors.
    """
    levels: list[bool] = []
    is_after = False
    for k, (op, operands) in enumerate(work.steps):
        computed = [levels[p] for p in operands if p >= 0]
        is_full = any(computed) if computed else not is_after
        if shape != result:
            is_full = work.nodes[k].type.shape == shape
        levels.append(isinstance(op, Cumulative) if k in anchors else is_full)
        is_after |= k in anchors
    return tuple(levels)


def _are_plain(work: PendingGraph, anchors: Sequence[int]) -> bool:
    """Return whether anchors have kernels, for elements of the dtypes of the operands."""
    nodes = [*work.nodes, *work.leaves]
    return all(
        isinstance(op, CORES) and (len(sources) == 1 or max(sources) < 0)
        for op, sources in [work.steps[k] for k in anchors]
    ) and not any(n.type.dtype in COMPLEX or n.type.device not in (None, "cpu") for n in nodes)


def _is_around(work: PendingGraph, anchor: int) -> bool:
    """Return whether only an anchor reads its prologue."""
    return all(position >= anchor for position in work.outputs) and all(
        k < 0 or k >= anchor for _, operands in work.steps[anchor + 1 :] for k in operands
    )


def _is_row(
    work: PendingGraph, anchors: Sequence[int], shape: Shape, axes: tuple[int, ...]
) -> bool:
    """Return whether operations are computed row by row, with reductions of whole rows."""
    rank = len(shape)
    return len(work.outputs) == 1 and axes == tuple(range(rank - len(axes), rank)) and all(
        reduces_rows(op) and axes_along(op, rank) == axes
        and (work.nodes[source] if source >= 0 else work.leaves[-1 - source]).type.shape == shape
        for op, (source, *_) in [work.steps[k] for k in anchors]
    )


def reduces_rows(op: PTensorOp) -> bool:
    """Return whether an operation reduces rows to values that may be read along the rows."""
    return (
        isinstance(op, AxisReduction) and not isinstance(op, FindIndex) and op.keepdims
        and is_known(op, 1)
    )


def _leaves(steps: Sequence[Step]) -> set[int]:
    return {-1 - k for _, operands in steps for k in operands if k < 0}


def _kept_strides(work: PendingGraph, parts: _Parts, small: Shape) -> list[Strides] | None:
    """Return the strides of leaves that are read along the kept axes only."""
    result = work.nodes[parts.anchors[0]].type.shape
    found = strides_of([work.leaves[k] for k in parts.kept_leaves], result)
    if found is None or len(result) == len(small):
        return found
    return [tuple([strides[k] for k in parts.kept_axes]) for strides in found]


@dataclass(slots=True)
class _Definition:
    """Tensors of `te` that define the operations of a kernel.

    Attributes:
        steps: Operations, with anchors normalized to a single axis.
        levels: For each operation, whether its value has all loops.
        kept_loops: Loops of the results of anchors.
        sizes: Extents of the loops.
        operands: How each leaf is passed.
        inputs: Arguments, one for each leaf.
        dtypes: dtypes of the leaves.
        types: dtypes of the values.
        tensors: Values that are tensors; other values are expressions in the tensors that read
            them.
    """

    steps: Sequence[Step]
    levels: Sequence[bool]
    kept_loops: Sequence[int]
    sizes: Sequence[Any]
    operands: Sequence[KernelOperand]
    inputs: Sequence[te.Tensor]
    dtypes: Sequence[str]
    types: Sequence[str]
    tensors: dict[int, te.Tensor] = field(default_factory=dict)

    def loops(self, position: int) -> Sequence[int]:
        """Return the loops of a value."""
        return range(len(self.sizes)) if self.levels[position] else self.kept_loops

    def dtype(self, position: int) -> str:
        """Return the dtype of a value or a leaf."""
        return self.types[position] if position >= 0 else self.dtypes[-1 - position]

    def values(self, loops: Sequence[int], required: Sequence[int], *index: te.Expr) -> list[Any]:
        """Return the elements of several values at an index of loops."""
        return _Elements(self, dict(zip(loops, index, strict=True))).of(required)

    def tensor(self, position: int, name: str, loops: Sequence[int]) -> te.Tensor:
        """Return the tensor of a value, defined on first use."""
        if position in self.tensors:
            return self.tensors[position]
        shape = [self.sizes[k] for k in loops]
        found: te.Tensor = te.compute(
            shape, lambda *i: self.values(loops, [position], *i)[0], name=name)
        return found

    def anchor(self, position: int, reduced: tuple[int, ...]) -> te.Tensor:
        """Return the result of an anchor."""
        op, sources = self.steps[position]
        loops = range(len(self.sizes))
        if isinstance(op, ContractionCore):
            factors = partial(self.values, loops, sources)
            return sum_of_products(
                lambda index: factors(*index), self.sizes, reduced, self.types[position])
        (source,) = sources
        x_type = PTensorType(tuple(self.sizes), self.dtype(source))
        shape = tuple([self.sizes[k] for k in self.loops(position)])
        return define_anchor(
            op, reduced, self.tensor(source, "x", loops), x_type,
            PTensorType(shape, self.types[position]))


@dataclass(slots=True)
class _Elements:
    """Elements of the values of a definition at one index, given by loop."""

    definition: _Definition
    index: dict[int, te.Expr]
    known: dict[int, Any] = field(default_factory=dict)

    def of(self, positions: Sequence[int]) -> list[Any]:
        """Return the elements of values or leaves."""
        for position in positions:
            if position not in self.known:
                self.known[position] = self._element(position)
        return [self.known[position] for position in positions]

    def _element(self, position: int) -> Any:
        d = self.definition
        if position < 0:
            spec = d.operands[-1 - position]
            return read(d.inputs[-1 - position], spec, [self.index[k] for k in spec.axes])
        if position in d.tensors:
            return d.tensors[position](*[self.index[k] for k in d.loops(position)])
        op, sources = d.steps[position]
        return element(op, self.of(sources), [d.dtype(k) for k in sources])


def _build(
    steps: Sequence[Step], anchors: Sequence[int], levels: Sequence[bool],
    reduce_loops: tuple[int, ...], outputs: Sequence[int], dtypes: Sequence[str],
    operands: Sequence[KernelOperand], row_bound: int | None, sizes: Sequence[Any],
) -> Any:
    inputs = [
        argument([sizes[k] for k in spec.axes], dtype, f"x{k}")
        for k, (spec, dtype) in enumerate(zip(operands, dtypes, strict=True))
    ]
    kept_loops = result_loops(steps[anchors[0]][0], reduce_loops, len(sizes))
    types = dtypes_of(steps, dtypes)
    d = _Definition(steps, levels, kept_loops, sizes, operands, inputs, dtypes, types)
    shared = _shared_steps(steps, anchors, outputs)
    for k in range(len(steps)):
        if k in anchors:
            d.tensors[k] = d.anchor(k, reduce_loops)
        elif k in shared:
            d.tensors[k] = d.tensor(k, f"t{k}", d.loops(k))
    final: Any = d.tensors.get(outputs[0])
    if len(outputs) > 1 or final is None:
        loops = d.loops(outputs[0])
        final = te.compute(
            [sizes[k] for k in loops], lambda *i: tuple(d.values(loops, outputs, *i)), name="y")
    results = final if isinstance(final, tuple) else (final,)
    binds = {x: memory(x, spec) for x, spec in zip(inputs, operands, strict=True) if spec.strided}
    bounds = None if row_bound is None or isinstance(sizes[-1], int) else {sizes[-1]: row_bound}
    return tecomp.build(results, [*inputs, *results], name="array", binds=binds, bounds=bounds)


def _shared_steps(
    steps: Sequence[Step], anchors: Container[int], outputs: Sequence[int]
) -> set[int]:
    """Return the element-wise operations that several anchors or results depend on."""
    homes: list[set[int]] = [set() for _ in steps]
    shared: set[int] = set()
    for position in outputs:
        homes[position].add(len(steps))
    for k in reversed(range(len(steps))):
        if k in anchors:
            homes[k] = {k}
        elif len(homes[k]) > 1:
            shared.add(k)
            homes[k] = {k}
        for position in steps[k][1]:
            if position >= 0:
                homes[position] |= homes[k]
    return shared
