"""One kernel for elementwise operations on all arrays that lie alike, of any sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.graph.pending import Pending, Step
from tecomp.array.kernels.interleaved import Elements, Program, in_blocks, in_pairs
from tecomp.array.kernels.kernel import Recipe
from tecomp.array.kernels.loops import (
    Operand,
    argument,
    dense,
    elements_of,
    memory,
    merged,
    operand_of,
    read,
    strides_of,
)
from tecomp.ptensor.elements import is_elementwise
from tecomp.ptensor.formulas.complex import NARROW
from tecomp.ptensor.operations.elementwise import Elementwise
from tecomp.ptensor.promotion import PART
from tecomp.ptensor.types import Shape, numpy_dtype
from tecomp.ptensor.values import Element

_LARGE = 2**15
"""Elements from which on blocks are worth compiling."""
_FEW = 3
"""Steps of arithmetic on pairs that take no longer than to read and write these."""


def pointwise_recipe(work: Pending) -> Recipe | None:
    """How pending operations are computed, if all are elementwise."""
    shape = work.nodes[work.outputs[0]].type.shape
    if not _is_taken(work, shape):
        return None
    strides = strides_of(work.leaves, shape)
    if strides is None:
        return None
    groups = merged(shape, [*strides, dense(shape)], [None] * len(shape))
    loops = tuple([prod(shape[axis] for axis in group) for group in groups])
    operands = tuple([
        operand_of(node, groups, loops, steps)
        for node, steps in zip(work.leaves, strides, strict=True)
    ])
    types = [node.type.dtype for node in work.leaves]
    what = work.steps, work.outputs, tuple(types), _stored(work, prod(shape))
    lies = tuple([how.lies for how in operands])
    build = partial(_built, *what, operands)
    key = what, lies, len(loops)
    dtypes = tuple([numpy_dtype(work.nodes[place].type.dtype) for place in work.outputs])
    return Recipe(key, build, operands, shape, loops, loops, dtypes, prod(loops))


def _stored(work: Pending, size: int) -> str:
    """How results are stored: `whole` numbers, or parts in `pairs` or `blocks` of these.

    LLVM makes vectors of pairs where there is arithmetic alone, but not of many steps; blocks take
    three times as long to compile.
    """
    if work.nodes[work.outputs[0]].type.dtype not in PART:
        return "whole"
    kinds = {op.kind for op, _ in work.steps if isinstance(op, Elementwise)}
    is_long = len(work.steps) > _FEW or bool(kinds - NARROW)
    return "blocks" if is_long and size >= _LARGE else "pairs"


def _is_taken(work: Pending, shape: Shape) -> bool:
    """Whether all results have one shape, and are made of the elements at one place.

    Complex results have another shape for the kernel than real ones.
    """
    kinds = {work.nodes[place].type.dtype in PART for place in work.outputs}
    return (
        len(kinds) == 1
        and all(is_elementwise(op) for op, _ in work.steps)
        and all(node.type.shape == shape for node in work.nodes)
        and all(node.type.device in (None, "cpu") for node in (*work.nodes, *work.leaves))
    )


def _built(
    steps: Sequence[Step], outputs: Sequence[int], dtypes: Sequence[str], stored: str,
    operands: Sequence[Operand], sizes: Sequence[Any],
) -> Any:
    inputs = [
        argument([sizes[k] for k in how.axes], dtype, f"x{k}")
        for k, (how, dtype) in enumerate(zip(operands, dtypes, strict=True))
    ]

    def elements(*index: te.Expr) -> list[Element]:
        leaves = [
            read(x, how, [index[k] for k in how.axes])
            for x, how in zip(inputs, operands, strict=True)
        ]
        made = elements_of(steps, leaves, dtypes)
        return [made[place] for place in outputs]

    binds = {
        x: memory(x, how) for x, how in zip(inputs, operands, strict=True) if how.strided
    }
    program, results = _STAGES[stored](sizes, elements)
    return tecomp.build(program, [*inputs, *results], name="array", binds=binds)


def _whole(sizes: Sequence[Any], elements: Elements) -> Program:
    made = te.compute(sizes, lambda *i: tuple(elements(*i)), name="y")
    results = made if isinstance(made, tuple) else (made,)
    return results, results


_STAGES: Mapping[str, Callable[[Sequence[Any], Elements], Program]] = {
    "whole": _whole, "pairs": in_pairs, "blocks": in_blocks,
}
