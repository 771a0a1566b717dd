"""Fused element-wise kernels, complex results, and generator kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np

import tecomp
from tecomp import te
from tecomp.array.graph.node import Buffer, type_of
from tecomp.array.graph.pending import PendingGraph, Step
from tecomp.array.kernels.kernel import KernelRecipe, memoized, short_row
from tecomp.array.kernels.strided_operands import (
    KernelOperand,
    argument,
    dense,
    elements_of,
    memory,
    merge_axes,
    operand_of,
    read,
    strides_of,
)
from tecomp.array.statistics import counters
from tecomp.caches import LRUCache
from tecomp.ir.nodes.dtype import DType
from tecomp.ptensor.formulas.tables import NARROW, is_elementwise
from tecomp.ptensor.operations.creation import Creation
from tecomp.ptensor.operations.elementwise import Elementwise
from tecomp.ptensor.te_definitions.creation import element_of, numbers_of
from tecomp.ptensor.types import PART, Shape, numpy_dtype
from tecomp.ptensor.values import Complex, Element

Elements: TypeAlias = Callable[..., list[Element]]
"""Function that returns the elements of all results at an index."""

Program: TypeAlias = tuple[Any, Sequence[te.Tensor]]
"""Schedule or tensors to build, and the results."""

_BLOCK = 256
"""Elements per block of separate parts, which stay in the cache until they are joined."""
_LANES = 8
"""float64 lanes of the widest processor vectors, in which functions are computed."""


def in_pairs(sizes: Sequence[Any], elements: Elements) -> Program:
    """Define complex results with interleaved real and imaginary parts."""

    def parts(*index: te.Expr) -> Any:
        *i, part = index
        return tuple([te.select(part == 0, z.re, z.im) for z in _complex(elements(*i))])

    results = _tuple(te.compute([*sizes, 2], parts, name="y"))
    return results, results


def in_blocks(sizes: Sequence[Any], elements: Elements) -> Program:
    """Define complex results by blocks: separate vectors of parts, which are then interleaved."""
    if not sizes:
        return in_pairs(sizes, elements)

    def parts(*i: te.Expr) -> Any:
        return tuple([part for z in _complex(elements(*i)) for part in (z.re, z.im)])

    separated = te.compute(sizes, parts, name="parts")

    def joined(*index: te.Expr) -> Any:
        *i, part = index
        pairs = zip(separated[::2], separated[1::2], strict=True)
        return tuple([te.select(part == 0, re(*i), im(*i)) for re, im in pairs])

    results = _tuple(te.compute([*sizes, 2], joined, name="y"))
    return _schedule(separated, results), results


def _schedule(separated: Sequence[te.Tensor], results: Sequence[te.Tensor]) -> te.Schedule:
    s = te.create_schedule(results[0].op)
    stage, block = s[results[0]], s[separated[0]]
    *_, last, pair = stage.op.axis
    outer, inner = stage.split(last, _BLOCK)
    _, vector = stage.split(inner, _LANES * 4 // DType(results[0].dtype).bytes)
    stage.vectorize(stage.fuse(vector, pair))
    block.compute_at(stage, outer)
    block.vectorize(block.split(block.op.axis[-1], _LANES)[1])
    stage.parallel(stage.op.axis[0] if len(stage.op.axis) > 2 else outer)
    return s


def _complex(values: Sequence[Element]) -> list[Complex]:
    return [value for value in values if isinstance(value, Complex)]


def _tuple(value: Any) -> tuple[te.Tensor, ...]:
    return value if isinstance(value, tuple) else (value,)


_kernels: LRUCache[Any, Any] = LRUCache("array.pointwise_kernels")


def fill(op: Creation, dtype: str, first: tuple[int, ...], result: Buffer) -> None:
    """Write the result of a creation operation.

    Args:
        op: Creation operation.
        dtype: dtype of its elements.
        first: Index along each axis where the written part begins; empty for 0 along all axes.
        result: Memory to write; complex numbers are pairs.
    """
    numbers = [np.array(number) for number in numbers_of(op)]
    numbers += [np.array(index, np.int64) for index in first]
    counters.called += 1
    _kernel(op, dtype, numbers, len(first))(*numbers, result)


def _kernel(op: Creation, dtype: str, numbers: list[Any], n_first: int) -> Any:
    kinds = tuple([number.dtype.name for number in numbers])
    key = op.name, dtype, kinds, n_first
    return memoized(_kernels, key, _build_generator, op, dtype, kinds, n_first)


def _build_generator(op: Creation, dtype: str, kinds: tuple[str, ...], n_first: int) -> Any:
    sizes: list[Any] = [te.size_var(f"n{k}") for k in range(type_of(op).rank)]
    inputs = [te.placeholder((), kind, name=f"x{k}") for k, kind in enumerate(kinds)]

    n_numbers = len(inputs) - n_first
    numbers, first = inputs[:n_numbers], inputs[n_numbers:]

    def element(*index: te.Expr) -> Any:
        if first:
            index = tuple([
                te.cast(i, "int64") + start() for i, start in zip(index, first, strict=True)
            ])
        return element_of(op, [x() for x in numbers], index)

    def part(*index: te.Expr) -> te.Expr:
        value = element(*index[:-1])
        assert isinstance(value, Complex)
        return te.select(index[-1] == 0, value.re, value.im)

    is_complex = dtype in PART
    shape = [*sizes, 2] if is_complex else sizes
    result = te.compute(shape, part if is_complex else element, name=op.name)
    return tecomp.build([result], [*inputs, result], name=op.name)


_MIN_BLOCKED_ELEMENTS = 2**15
"""Minimum number of elements for which blocks are worth compiling."""
_MAX_FREE_STEPS = 3
"""Arithmetic steps on pairs that take no longer than the memory traffic of the pairs."""


def pointwise_recipe(work: PendingGraph) -> KernelRecipe | None:
    """Return the recipe for element-wise operations, or None."""
    shape = work.nodes[work.outputs[0]].type.shape
    if not _is_taken(work, shape):
        return None
    strides = strides_of(work.leaves, shape)
    if strides is None:
        return None
    groups = merge_axes(shape, [*strides, dense(shape)], [None] * len(shape))
    loops = tuple([prod(shape[axis] for axis in group) for group in groups])
    operands = tuple([
        operand_of(node, groups, loops, steps)
        for node, steps in zip(work.leaves, strides, strict=True)
    ])
    types = [node.type.dtype for node in work.leaves]
    static_key = work.steps, work.outputs, tuple(types), _storage_kind(work, prod(shape))
    lies = tuple([spec.lies for spec in operands])
    build = partial(_build_pointwise, *static_key, operands)
    key = static_key, lies, len(loops)
    dtypes = tuple([numpy_dtype(work.nodes[position].type.dtype) for position in work.outputs])
    return KernelRecipe(
        key,
        build,
        operands,
        shape,
        loops,
        loops,
        dtypes,
        prod(loops),
        short=short_row(work.nodes[work.outputs[0]].type.dtype),
    )


def _storage_kind(work: PendingGraph, size: int) -> str:
    """Return how results are stored: `whole` numbers, or parts in `pairs` or in `blocks` of pairs.

    LLVM vectorizes pairs if there is only arithmetic in few steps. Blocks take three times as long
    to compile.
    """
    if work.nodes[work.outputs[0]].type.dtype not in PART:
        return "whole"
    kinds = {op.kind for op, _ in work.steps if isinstance(op, Elementwise)}
    is_long = len(work.steps) > _MAX_FREE_STEPS or bool(kinds - NARROW)
    return "blocks" if is_long and size >= _MIN_BLOCKED_ELEMENTS else "pairs"


def _is_taken(work: PendingGraph, shape: Shape) -> bool:
    """Return whether all results have one shape and all operations are element-wise.

    Complex and real results cannot be mixed, because they differ in shape in the kernel.
    """
    kinds = {work.nodes[position].type.dtype in PART for position in work.outputs}
    return (
        len(kinds) == 1
        and all(is_elementwise(op) for op, _ in work.steps)
        and all(node.type.shape == shape for node in work.nodes)
        and all(node.type.device in (None, "cpu") for node in (*work.nodes, *work.leaves))
    )


def _build_pointwise(
    steps: Sequence[Step], outputs: Sequence[int], dtypes: Sequence[str], stored: str,
    operands: Sequence[KernelOperand], sizes: Sequence[Any],
) -> Any:
    inputs = [
        argument([sizes[k] for k in spec.axes], dtype, f"x{k}")
        for k, (spec, dtype) in enumerate(zip(operands, dtypes, strict=True))
    ]

    def elements(*index: te.Expr) -> list[Element]:
        leaves = [
            read(x, spec, [index[k] for k in spec.axes])
            for x, spec in zip(inputs, operands, strict=True)
        ]
        values = elements_of(steps, leaves, dtypes)
        return [values[position] for position in outputs]

    binds = {
        x: memory(x, spec) for x, spec in zip(inputs, operands, strict=True) if spec.strided
    }
    program, results = _STAGES[stored](sizes, elements)
    return tecomp.build(program, [*inputs, *results], name="array", binds=binds)


def _full_region(sizes: Sequence[Any], elements: Elements) -> Program:
    tensors = te.compute(sizes, lambda *i: tuple(elements(*i)), name="y")
    results = tensors if isinstance(tensors, tuple) else (tensors,)
    return results, results


_STAGES: Mapping[str, Callable[[Sequence[Any], Elements], Program]] = {
    "whole": _full_region, "pairs": in_pairs, "blocks": in_blocks,
}
