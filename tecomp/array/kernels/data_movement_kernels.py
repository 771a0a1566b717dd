"""Strided copy, concatenation and gather kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

import tecomp
from tecomp import te
from tecomp.array.graph.node import Buffer, Node, materialized_node
from tecomp.array.graph.pending import PendingGraph, compiling
from tecomp.array.graph.views import view_of
from tecomp.array.kernels.kernel import (
    MANY,
    KernelRecipe,
    build_dynamic_kernel,
    specialization_threshold,
    static_extents,
)
from tecomp.array.kernels.strided_operands import (
    KernelOperand,
    Strides,
    argument,
    dense,
    memory,
    merge_axes,
    operand_of,
    read,
    strides_of,
)
from tecomp.array.kernels.view_normalization import memory_order
from tecomp.array.statistics import counters
from tecomp.caches import LRUCache
from tecomp.ptensor.operations.manipulation import (
    Combine,
    ExtractSlice,
    InsertSlice,
    Take,
    TakeAlongAxis,
)
from tecomp.ptensor.types import (
    COMPLEX,
    PART,
    PTensorType,
    Shape,
    axis_of,
    broadcast_shapes,
    numpy_dtype,
)

_copies: LRUCache[Any, _StridedCopy] = LRUCache("array.copies")


@dataclass(slots=True)
class _StridedCopy:
    """Copy kernel for arrays of given strides.

    Attributes:
        kernel: Kernel that copies the elements.
        source: Operand description of the source.
        target: Operand description of the target.
        order: Axis order in memory.
        extents: Extents of the kernel's loops.
        build: Function that builds a kernel for given extents.
        most_calls: Number of calls after which the kernel is specialized on its extents; 0 for
            never.
        calls: Number of calls so far.
    """

    kernel: Any
    source: KernelOperand
    target: KernelOperand
    order: tuple[int, ...]
    extents: Shape
    build: Callable[[Sequence[Any]], Any]
    most_calls: int
    calls: int = 0

    def count(self) -> None:
        """Count a call, and specialize the kernel on its extents when this pays off."""
        self.calls += 1
        if self.calls == self.most_calls:
            with compiling:
                self.kernel = self.build(self.extents)
                counters.compiled += 1


def copy(source: Buffer, target: Buffer) -> None:
    """Copy elements to an array of the same dtype and shape, for any strides."""
    if not target.size:
        return
    key = source.dtype, source.shape, source.strides, target.strides
    found = _copies.get(key, None)
    if found is None:
        found = _copies.keep(key, _copy_of(source, target))
    counters.called += 1
    found.count()
    source, target = source.transpose(found.order), target.transpose(found.order)
    found.kernel(found.source.view(source), found.target.view(target))


def _copy_of(source: Buffer, target: Buffer) -> _StridedCopy:
    order = order_of((source, target), source.shape)
    source, target = source.transpose(order), target.transpose(order)
    shape: Shape = source.shape
    nodes = _leaves((source, target))
    strides = strides_of(nodes, shape)
    assert strides is not None
    groups = merge_axes(shape, strides, [None] * len(shape))
    loops = tuple([prod(shape[axis] for axis in group) for group in groups])
    read, written = [
        operand_of(node, groups, loops, steps) for node, steps in zip(nodes, strides, strict=True)
    ]
    dtype = source.dtype.name
    key = "copy", dtype, read.lies, written.lies, len(loops)
    build = partial(_build_copy, dtype, read, written)
    kernel = build_dynamic_kernel(key, build, static_extents(loops, source.size))
    is_worth_it = len(loops) > 1 and source.size >= MANY
    most_calls = specialization_threshold(1, source.size) if is_worth_it else 0
    return _StridedCopy(kernel, read, written, order, loops, build, most_calls)


def order_of(arrays: Sequence[Buffer], shape: Shape) -> tuple[int, ...]:
    """Return the common axis order of arrays in memory, or the identity if there is none.

    >>> import numpy as np
    >>> x, y = np.zeros((3, 4)), np.zeros((5, 4))
    >>> order_of([x.T, y.T], (4, 8)), order_of([x, y], (8, 4))
    ((1, 0), (0, 1))
    """
    return memory_order(strides_of(_leaves(arrays), shape) or [], shape)


def _leaves(arrays: Sequence[Buffer]) -> list[Node]:
    return [materialized_node(data, PTensorType(data.shape, data.dtype.name)) for data in arrays]


def _build_copy(
    dtype: str, read: KernelOperand, written: KernelOperand, sizes: Sequence[Any]
) -> Any:
    x = argument([sizes[k] for k in read.axes], dtype, "x")
    shape = [*sizes, 2] if dtype in PART else sizes
    part = [len(sizes)] if dtype in PART else []
    y = te.compute(shape, lambda *i: x(*[i[k] for k in (*read.axes, *part)]), name="y")
    binds = {t: memory(t, spec) for t, spec in ((x, read), (y, written)) if spec.strided}
    return tecomp.build([y], [x, y], name="copy", binds=binds)


@dataclass(frozen=True, slots=True)
class _GatherAxis:
    """Loop over the result, or indexed axis of the source.

    Attributes:
        extent: Extent.
        source_axis: Axis of the source.
        index_axis: Axis of the broadcast index arrays.
        index_number: Number of the index array that indexes the axis; None for a loop.
    """

    extent: int
    source_axis: int | None = None
    index_axis: int | None = None
    index_number: int | None = None


def gather_recipe(work: PendingGraph) -> KernelRecipe | None:
    """Return the recipe for a single gather operation, or None."""
    op, positions = work.steps[0]
    if len(work.steps) > 1 or not isinstance(op, Take | TakeAlongAxis) or max(positions) >= 0:
        return None
    (result,), inputs = work.nodes, [work.leaves[-1 - position] for position in positions]
    if any(n.type.dtype in COMPLEX or n.type.device not in (None, "cpu") for n in inputs):
        return None
    axes = _axes(op, [node.type for node in inputs])
    all_strides = _strides(inputs, axes, result.type.shape)
    if all_strides is None:
        return None
    kinds = [
        ("by", axis.index_number) if axis.index_number is not None else axis.index_axis is not None
        for axis in axes
    ]
    groups = merge_axes(tuple([axis.extent for axis in axes]), all_strides, kinds)
    loops = tuple([prod(axes[k].extent for k in group) for group in groups])
    passed = tuple([
        operand_of(node, groups, loops, strides)
        for node, strides in zip(inputs, all_strides, strict=False)
    ])
    numbers = tuple([axes[group[0]].index_number for group in groups])
    static_key = "gather", tuple([node.type.dtype for node in inputs]), numbers
    build = partial(_build_gather, static_key[1], numbers, passed)
    shape = result.type.shape
    extents = tuple([n for n, index in zip(loops, numbers, strict=True) if index is None])
    key = static_key, tuple([operand.lies for operand in passed]), len(loops)
    order = tuple([(-1 - position, ()) for position in positions])
    return KernelRecipe(
        key, build, passed, shape, loops, extents, (numpy_dtype(result.type.dtype),), prod(extents),
        order)


def _axes(op: Take | TakeAlongAxis, types: Sequence[PTensorType]) -> list[_GatherAxis]:
    """Return loops and indexed axes, in the order of the result and of the source."""
    x, *indices = types
    if isinstance(op, TakeAlongAxis):
        shape = broadcast_shapes([
            (*t.shape[: op.axis], 1, *t.shape[op.axis + 1 :]) for t in types], op.name)
        axes = [_GatherAxis(n, source_axis=k, index_axis=k) for k, n in enumerate(shape)]
        gather_axes = [_GatherAxis(indices[0].shape[op.axis], index_axis=op.axis),
                 _GatherAxis(x.shape[op.axis], source_axis=op.axis, index_number=0)]
        return [*axes[: op.axis], *gather_axes, *axes[op.axis + 1 :]]
    index_shape = broadcast_shapes([t.shape for t in indices], op.name)
    index_axes = [_GatherAxis(n, index_axis=k) for k, n in enumerate(index_shape)]
    found: list[_GatherAxis] = []
    position = 0
    for k, n in enumerate(x.shape):
        is_indexed = k in op.axis
        if position == op.place and not is_indexed:
            found += index_axes
            index_axes = []
        found.append(
            _GatherAxis(n, source_axis=k, index_number=op.axis.index(k) if is_indexed else None)
        )
        position += not is_indexed
    return [*found, *index_axes]


def _strides(
    nodes: Sequence[Node], axes: Sequence[_GatherAxis], shape: Shape
) -> list[Strides] | None:
    """Return the strides of the source, the index arrays and the result along all axes."""
    x, *indices = nodes
    x_strides = strides_of([x], x.type.shape)
    n_index = 1 + max([axis.index_axis for axis in axes if axis.index_axis is not None], default=-1)
    index_extents = [1] * n_index
    for axis in axes:
        if axis.index_axis is not None:
            index_extents[axis.index_axis] = axis.extent
    others = strides_of(indices, tuple(index_extents))
    if x_strides is None or others is None:
        return None
    result_steps = iter(dense(shape))
    return [
        tuple([0 if axis.source_axis is None else x_strides[0][axis.source_axis] for axis in axes]),
        *[tuple([0 if axis.index_axis is None else steps[axis.index_axis] for axis in axes])
          for steps in others],
        tuple([0 if axis.index_number is not None else next(result_steps) for axis in axes]),
    ]


def _build_gather(
    dtypes: Sequence[str], numbers: Sequence[int | None], operands: Sequence[KernelOperand],
    sizes: Sequence[Any],
) -> Any:
    inputs = [
        argument([sizes[k] for k in spec.axes], dtype, f"x{k}")
        for k, (spec, dtype) in enumerate(zip(operands, dtypes, strict=True))
    ]
    loops = [k for k, index in enumerate(numbers) if index is None]

    def element(*index: te.Expr) -> Any:
        coords: dict[int, Any] = dict(zip(loops, index, strict=True))
        gathered = [
            read(x, spec, [coords[k] for k in spec.axes])
            for x, spec in zip(inputs[1:], operands[1:], strict=True)
        ]
        coords |= {k: gathered[number] for k, number in enumerate(numbers) if number is not None}
        return read(inputs[0], operands[0], [coords[k] for k in operands[0].axes])

    result = te.compute([sizes[k] for k in loops], element, name="y")
    binds = {x: memory(x, spec) for x, spec in zip(inputs, operands, strict=True) if spec.strided}
    return tecomp.build([result], [*inputs, result], name="array", binds=binds)


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Copies of several arrays into one result; later copies overwrite earlier ones.

    Attributes:
        shape: Shape of the result.
        dtype: dtype of the result.
        sources: Number of each source array, with its slice of the result.
        order: Axis order of the result in memory.
        inverse_permutation: Inverse permutation of `order`.
    """

    shape: Shape
    dtype: np.dtype[Any]
    sources: tuple[tuple[int, ExtractSlice | None], ...]
    order: tuple[int, ...]
    inverse_permutation: tuple[int, ...]

    def __call__(self, leaves: Sequence[Buffer]) -> Sequence[Buffer]:
        """Return the result for the elements of the leaves."""
        lying = np.empty([self.shape[k] for k in self.order], self.dtype)
        result = lying.transpose(self.inverse_permutation)
        for number, key in self.sources:
            target = result if key is None else view_of(key, result)
            assert target is not None
            copy(leaves[number], target)
        return (result,)


def concatenate_by(work: PendingGraph, in_order: bool) -> Concatenation | None:
    """Return an operation as copies; None if it does not combine arrays.

    Args:
        work: Pending operations, with a single operation.
        in_order: If True, the result must be row-major; otherwise it takes the axis order of the
            sources.
    """
    ((op, positions),) = work.steps
    (result,) = work.nodes
    types = [work.leaves[-1 - position].type for position in positions]
    if any(ptype.dtype != result.type.dtype for ptype in types):
        return None
    if isinstance(op, InsertSlice):
        keys = [None, ExtractSlice(op.slice)]
    elif isinstance(op, Combine) and op.kind == "concat":
        keys = [*_one_after_the_other(op, [ptype.shape for ptype in types])]
    else:
        return None
    pieces = tuple([(-1 - position, key) for position, key in zip(positions, keys, strict=True)])
    arrays = [node.data for node in work.leaves if node.data is not None]
    shape = result.type.shape
    identity = tuple(range(len(shape)))
    order = identity if in_order else order_of(arrays, shape)
    inverse = tuple([order.index(k) for k in identity])
    return Concatenation(shape, arrays[0].dtype, pieces, order, inverse)


def _one_after_the_other(op: Combine, shapes: Sequence[Shape]) -> Sequence[ExtractSlice]:
    axis = axis_of(op.axis, len(shapes[0]), op.where)
    found, first = [], 0
    for shape in shapes:
        found.append(ExtractSlice(tuple([
            (first if k == axis else 0, 1, n) for k, n in enumerate(shape)])))
        first += shape[axis]
    return found
