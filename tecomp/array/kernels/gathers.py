"""One kernel for elements at indices that arrays say, of arrays of any sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.graph.node import Node
from tecomp.array.graph.pending import Pending
from tecomp.array.kernels.kernel import Recipe
from tecomp.array.kernels.loops import (
    Operand,
    Strides,
    argument,
    dense,
    memory,
    merged,
    operand_of,
    read,
    strides_of,
)
from tecomp.ptensor.operations.indexing import Take, TakeAlongAxis
from tecomp.ptensor.promotion import COMPLEX
from tecomp.ptensor.types import PTensorType, Shape, broadcast_shapes, numpy_dtype


@dataclass(frozen=True, slots=True)
class _Axis:
    """A loop of the result, or an axis of the elements along which an index says where.

    Attributes:
        extent: of it.
        own: the axis of the elements that goes along it.
        said: the axis of all indices that does.
        by: the index that says where along it, by number; None of a loop.
    """

    extent: int
    own: int | None = None
    said: int | None = None
    by: int | None = None


def gather_recipe(work: Pending) -> Recipe | None:
    """How elements at indices are computed, if nothing else is."""
    op, places = work.steps[0]
    if len(work.steps) > 1 or not isinstance(op, Take | TakeAlongAxis) or max(places) >= 0:
        return None
    (result,), given = work.nodes, [work.leaves[-1 - place] for place in places]
    if any(n.type.dtype in COMPLEX or n.type.device not in (None, "cpu") for n in given):
        return None
    axes = _axes(op, [node.type for node in given])
    own = _strides(given, axes, result.type.shape)
    if own is None:
        return None
    kinds = [("by", axis.by) if axis.by is not None else axis.said is not None for axis in axes]
    groups = merged(tuple([axis.extent for axis in axes]), own, kinds)
    loops = tuple([prod(axes[k].extent for k in group) for group in groups])
    how = tuple([
        operand_of(node, groups, loops, strides)
        for node, strides in zip(given, own, strict=False)
    ])
    by = tuple([axes[group[0]].by for group in groups])
    what = "gather", tuple([node.type.dtype for node in given]), by
    build = partial(_built, what[1], by, how)
    shape = result.type.shape
    kept = tuple([n for n, index in zip(loops, by, strict=True) if index is None])
    key = what, tuple([operand.lies for operand in how]), len(loops)
    order = tuple([(-1 - place, ()) for place in places])
    return Recipe(
        key, build, how, shape, loops, kept, (numpy_dtype(result.type.dtype),), prod(kept),
        order)


def _axes(op: Take | TakeAlongAxis, types: Sequence[PTensorType]) -> list[_Axis]:
    """Loops and indexed axes: in the order of the result, and of the elements."""
    x, *indices = types
    if isinstance(op, TakeAlongAxis):
        shape = broadcast_shapes([
            (*t.shape[: op.axis], 1, *t.shape[op.axis + 1 :]) for t in types], op.name)
        axes = [_Axis(n, own=k, said=k) for k, n in enumerate(shape)]
        along = [_Axis(indices[0].shape[op.axis], said=op.axis),
                 _Axis(x.shape[op.axis], own=op.axis, by=0)]
        return [*axes[: op.axis], *along, *axes[op.axis + 1 :]]
    middle = broadcast_shapes([t.shape for t in indices], op.name)
    inside = [_Axis(n, said=k) for k, n in enumerate(middle)]
    found: list[_Axis] = []
    rest = 0
    for k, n in enumerate(x.shape):
        is_said = k in op.axis
        if rest == op.place and not is_said:
            found += inside
            inside = []
        found.append(_Axis(n, own=k, by=op.axis.index(k) if is_said else None))
        rest += not is_said
    return [*found, *inside]


def _strides(
    given: Sequence[Node], axes: Sequence[_Axis], shape: Shape
) -> list[Strides] | None:
    """Of the elements, of the indices and of the result, along all of these axes."""
    x, *indices = given
    own = strides_of([x], x.type.shape)
    n_said = 1 + max([axis.said for axis in axes if axis.said is not None], default=-1)
    said = [1] * n_said
    for axis in axes:
        if axis.said is not None:
            said[axis.said] = axis.extent
    others = strides_of(indices, tuple(said))
    if own is None or others is None:
        return None
    written = iter(dense(shape))
    return [
        tuple([0 if axis.own is None else own[0][axis.own] for axis in axes]),
        *[tuple([0 if axis.said is None else steps[axis.said] for axis in axes])
          for steps in others],
        tuple([0 if axis.by is not None else next(written) for axis in axes]),
    ]


def _built(
    dtypes: Sequence[str], by: Sequence[int | None], operands: Sequence[Operand],
    sizes: Sequence[Any],
) -> Any:
    inputs = [
        argument([sizes[k] for k in how.axes], dtype, f"x{k}")
        for k, (how, dtype) in enumerate(zip(operands, dtypes, strict=True))
    ]
    loops = [k for k, index in enumerate(by) if index is None]

    def element(*index: te.Expr) -> Any:
        place: dict[int, Any] = dict(zip(loops, index, strict=True))
        said = [
            read(x, how, [place[k] for k in how.axes])
            for x, how in zip(inputs[1:], operands[1:], strict=True)
        ]
        place |= {k: said[number] for k, number in enumerate(by) if number is not None}
        return read(inputs[0], operands[0], [place[k] for k in operands[0].axes])

    result = te.compute([sizes[k] for k in loops], element, name="y")
    binds = {x: memory(x, how) for x, how in zip(inputs, operands, strict=True) if how.strided}
    return tecomp.build([result], [*inputs, result], name="array", binds=binds)
