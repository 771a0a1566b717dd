"""Kernels around one anchor operation (reduction, contraction, sort) with prologue and epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.graph.pending import Pending, Step
from tecomp.array.kernels.kernel import Recipe, short_row
from tecomp.array.kernels.strided_operands import (
    Operand,
    Strides,
    argument,
    dense,
    dtypes_of,
    elements_of,
    memory,
    merged,
    operand_of,
    read,
    strides_of,
)
from tecomp.ptensor.formulas.tables import is_elementwise
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.reduction import (
    CountNonzero,
    Cumulative,
    FindIndex,
    Reduce,
    TruthTest,
)
from tecomp.ptensor.te_definitions import define
from tecomp.ptensor.types import COMPLEX, PTensorType, Shape, axes_of, numpy_dtype
from tecomp.schedules.common import wide_type


@dataclass(frozen=True)
class SumOfProducts(Operation):
    """Products of two arrays of one shape, added up along axes as those of matrices are.

    Attributes:
        axis: the axes.

    >>> x = PTensorType((4, 5, 6), "float32")
    >>> print(SumOfProducts((1,)).infer(x, x))
    ptensor<4x6xfloat32>
    """

    dialect = "kernel"
    name = "sum_of_products"
    takes = (2, 2)
    axis: tuple[int, ...]

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shape without these axes."""
        shape = operands[0].shape
        return operands[0].like(tuple([n for k, n in enumerate(shape) if k not in self.axis]))


CORES = (CountNonzero, Cumulative, FindIndex, Reduce, SumOfProducts, TruthTest)
"""The operations for which there are kernels."""


def is_slow(op: Operation) -> bool:
    """Return whether a kernel for all sizes is built only when there is a second size.

    Those of running sums take longer to build and to run than kernels for one size.
    """
    return isinstance(op, Cumulative)


def is_known(op: Operation, n_along: int) -> bool:
    """Whether there is a kernel for an operation along so many loops.

    Moments are means and sums, of which others make use too.
    """
    if isinstance(op, Cumulative):
        return n_along < 2 and not op.include_initial
    if isinstance(op, Reduce) and op.kind in ("var", "std"):
        return False
    return isinstance(op, CORES) and (n_along < 2 or not isinstance(op, FindIndex))


def axes_along(op: Any, rank: int) -> tuple[int, ...]:
    """The axes of the operands along which an operation is done."""
    return axes_of(op.axis, rank, op.where)


def result_loops(op: Operation, along: Sequence[int], rank: int) -> tuple[int, ...]:
    """The loops that go along the result, of those that go along the operands."""
    return tuple([k for k in range(rank) if k not in along or isinstance(op, Cumulative)])


def on_a_row(op: Any) -> Operation:
    """The operation along the one axis of a row: what it is, wherever it is done."""
    if isinstance(op, Cumulative):
        return replace(op, axis=0)
    if isinstance(op, FindIndex):
        return replace(op, axis=0, keepdims=False)
    if isinstance(op, SumOfProducts):
        return replace(op, axis=(0,))
    return replace(op, axis=(0,), keepdims=False)  # type: ignore[no-any-return]


def defined_core(
    op: Any, along: tuple[int, ...], x: te.Tensor, given: PTensorType, result: PTensorType
) -> te.Tensor:
    """An operation along loops as tensors of `te`.

    Args:
        op: the operation, of a row.
        along: the loops; none where the axis has one element.
        x: what it is done to.
        given: its extents and type.
        result: the type of the result.
    """
    if not isinstance(op, FindIndex | Cumulative):
        op = replace(op, axis=along)
    elif along:
        op = replace(op, axis=along[0])
    else:
        return _alone(op, x, result)
    made: Any = define(op, [x], [given], result)
    return made  # type: ignore[no-any-return]


def _alone(op: Operation, x: te.Tensor, result: PTensorType) -> te.Tensor:
    def element(*index: te.Expr) -> te.Expr:
        if isinstance(op, FindIndex):
            return te.const(0, result.dtype)
        return te.cast(x(*index), result.dtype)

    made: te.Tensor = te.compute(result.shape, element, name="alone")
    return made


def sum_of_products(
    factors: Any, sizes: Sequence[Any], along: Sequence[int], dtype: str
) -> te.Tensor:
    """Products added up in the type that those of matrices are added up in.

    Args:
        factors: the two factors at an index of the loops.
        sizes: of the loops.
        along: those that are added up.
        dtype: of the result.
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
    """Pending operations around one that goes along axes.

    Attributes:
        at: the place of that one.
        shape: of what it is done to.
        axes: along which it is.
        kept: the axes that go along its result.
        before: the leaves of the operations before it, in the order of the leaves.
        after: the leaves of those behind it.
    """

    at: int
    shape: Shape
    axes: tuple[int, ...]
    kept: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def reduction_recipe(work: Pending) -> Recipe | None:
    """How pending operations are computed, if one goes along axes, and others are elementwise."""
    parts = _parts(work)
    if parts is None:
        return None
    small = tuple([parts.shape[k] for k in parts.kept])
    before = strides_of([work.leaves[k] for k in parts.before], parts.shape)
    after = _kept_strides(work, parts, small)
    if before is None or after is None:
        return None
    kinds = [k in parts.axes for k in range(len(parts.shape))]
    whole = [_spread(s, parts.kept, len(kinds)) for s in (*after, dense(small))]
    groups = merged(parts.shape, [*before, *whole], kinds)
    loops = tuple([prod(parts.shape[axis] for axis in group) for group in groups])
    operands: dict[int, Operand] = {}
    for k, strides in zip(parts.before, before, strict=True):
        operands[k] = operand_of(work.leaves[k], groups, loops, strides)
    for k, strides in zip(parts.after, whole, strict=False):
        operands[k] = operand_of(work.leaves[k], groups, loops, strides)
    how = tuple([operands[k] for k in range(len(work.leaves))])
    along = tuple([k for k, group in enumerate(groups) if kinds[group[0]]])
    op, sources = work.steps[parts.at]
    result = result_loops(op, along, len(loops))
    if not is_known(op, len(along)):
        return None
    if any(k not in result and all(k not in operand.axes for operand in how) for k in along):
        return None  # nothing that is passed would say how often the same is added
    steps = list(work.steps)
    steps[parts.at] = (on_a_row(op), sources)
    what = tuple(steps), parts.at, along, work.outputs, tuple([n.type.dtype for n in work.leaves])
    build = partial(_built, *what, how)
    key = what, tuple([operand.lies for operand in how]), len(loops)
    types = [work.nodes[place].type for place in work.outputs]
    dtypes = tuple([numpy_dtype(type.dtype) for type in types])
    return Recipe(key, build, how, types[0].shape, loops, tuple([loops[k] for k in result]), dtypes,
        prod(loops), is_slow=is_slow(op), is_product=isinstance(op, SumOfProducts),
        short=_short_row(work, parts.at))


def _short_row(work: Pending, at: int) -> int:
    """Return the elements of a row up to which the length of its loop is built in."""
    op, (source, *_) = work.steps[at]
    taken = (work.nodes[source] if source >= 0 else work.leaves[-1 - source]).type
    type = taken if isinstance(op, FindIndex) else work.nodes[at].type
    return short_row(type.dtype)


def _spread(strides: Strides, kept: Sequence[int], rank: int) -> Strides:
    """The strides along the axes that are kept, as strides along all axes."""
    result = [0] * rank
    for axis, stride in zip(kept, strides, strict=True):
        result[axis] = stride
    return tuple(result)


def _parts(work: Pending) -> _Parts | None:
    """The reduction, and which leaves are needed before and behind it."""
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


def _is_plain(work: Pending, at: int) -> bool:
    """Whether there is a kernel for an operation, and nothing else reads what it is done to."""
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


def _kept_strides(work: Pending, parts: _Parts, small: Shape) -> list[Strides] | None:
    """The strides of what is read behind the reduction, along the axes that are kept."""
    result = work.nodes[parts.at].type.shape
    found = strides_of([work.leaves[k] for k in parts.after], result)
    if found is None or len(result) == len(small):
        return found
    return [tuple([strides[k] for k in parts.kept]) for strides in found]


def _built(
    steps: Sequence[Step], at: int, along: tuple[int, ...], outputs: Sequence[int],
    dtypes: Sequence[str], operands: Sequence[Operand], sizes: Sequence[Any],
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
    if isinstance(op, SumOfProducts):
        reduced = sum_of_products(factors, sizes, along, types[at])
    else:
        x = te.compute(sizes, before, name="x")
        reduced = defined_core(op, along, x, given, result)
    # Behind the reduction its result is one more leaf.
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
    return tecomp.build(results, [*inputs, *results], name="array", binds=binds)


def _behind(place: int, at: int, leaves: int) -> int:
    """A place among the operations behind a reduction, whose result is the last leaf there."""
    if place < 0:
        return place
    return place - at - 1 if place > at else -1 - leaves
