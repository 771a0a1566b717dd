"""The primitive narrow_reduction: a reduction of integers in a type that just holds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

from tecomp.compute import reduce as reducers
from tecomp.compute.accesses import accesses
from tecomp.compute.axis import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import ScheduleError
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.expr import (
    Binary,
    BinOp,
    Call,
    Cast,
    Const,
    Expr,
    Select,
    Var,
    cast,
    const,
)
from tecomp.ir.language.operators import integer_range
from tecomp.ir.traversal.rewrite import fold, substitute
from tecomp.scheduling.caches import read_as_defined, redefined, whole_reduction
from tecomp.scheduling.state import State, initial_stage

_Range = tuple[int, int]
_REDUCERS: dict[str, Callable[..., Expr]] = {
    "sum": reducers.sum, "min": reducers.min, "max": reducers.max,
}


def narrow_reduction(state: State, tensor: Tensor, dtype: str) -> tuple[State, Tensor]:
    """Reduce integers in a narrower type, which holds all of the results, and widen those.

    See `Schedule.narrow_reduction`.

    Returns:
        The new state; the reduction in that type.
    """
    stage = state.stage(tensor.op)
    where = f"s.narrow_reduction({stage.name}, {dtype!r})"
    reduce = whole_reduction(stage, where, "only such is made narrower")
    kind = accesses(stage.op.output(0)).reducer
    target = const(0, dtype).dtype
    if not target.is_integer or not reduce.dtype.is_integer or kind not in _REDUCERS:
        raise ScheduleError(
            f"{where}: {stage.name} is no sum, least or greatest of integers as {dtype} are; leave "
            "it as it is",
            kind="not-this-form",
        )
    if stage.leaves != stage.compute.loops:
        raise ScheduleError(
            f"{where}: the loops of {stage.name} were changed; make it narrower first",
            kind="too-late")
    found = fold(reduce.source[0], _range_of)
    extents = [axis.extent for axis in reduce.axis]
    known = [n for n in extents if isinstance(n, int) and n > 0]
    if len(known) == len(extents) and kind == "sum":
        found = min(found[0] * prod(known), 0), max(found[1] * prod(known), 0)
    if len(known) < len(extents) or not _holds(target, found):
        raise ScheduleError(
            f"{where}: results of {stage.name} from {found[0]} to {found[1]} are not known to fit; "
            "take a type that holds them",
            kind="not-this-form",
        )
    axes = [make_axis(axis.name, 0, axis.extent, IterKind.DATA) for axis in stage.compute.axis]
    moved: dict[Var, Expr] = dict(zip(stage.compute.axis, axes, strict=True))
    term = substitute(_narrowed(reduce.source[0], target), moved)
    body = _REDUCERS[kind](term, axis=list(reduce.axis))
    location = stage.compute.location
    op = ComputeOp(f"{stage.name}_narrow", tuple(axes), (body,), location=location)
    element = TensorLoad(op.output(0), tuple(stage.compute.axis), location)
    state = state.insert(initial_stage(op, is_output=False), before=stage.key)
    wide = redefined(stage.compute, (cast(reduce.dtype, element),))
    state = state.redefine(replace(stage, leaves=wide.axis), wide)
    return read_as_defined(state, state.stage(stage.key)), op.output(0)


def _holds(dtype: DType, values: _Range) -> bool:
    low, high = integer_range(dtype)
    return low <= values[0] and values[1] <= high


def _range_of(node: Any, parts: list[_Range]) -> _Range:
    """The least and the greatest value of an integer, as far as its formula says."""
    if not isinstance(node, Expr) or not node.dtype.is_integer:
        return 0, int(isinstance(node, Expr) and node.dtype.is_bool)
    found = _known_range(node, parts)
    every = integer_range(node.dtype)
    return found if found is not None and _holds(node.dtype, found) else every


def _known_range(node: Any, parts: list[_Range]) -> _Range | None:
    match node:
        case Const(value):
            return int(value), int(value)
        case IterVar() if isinstance(node.extent, int) and isinstance(node.dom.min, Const):
            low = int(node.dom.min.value)
            return low, low + max(node.extent - 1, 0)
        case Cast() if node.value.dtype.is_integer or node.value.dtype.is_bool:
            return parts[-1]
        case Select() | Call("if_then_else"):
            return min(parts[-2][0], parts[-1][0]), max(parts[-2][1], parts[-1][1])
        case Binary(BinOp.ADD):
            return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]
        case Binary(BinOp.SUB):
            return parts[0][0] - parts[1][1], parts[0][1] - parts[1][0]
        case Binary(BinOp.MUL):
            corners = [a * b for a in parts[0] for b in parts[1]]
            return min(corners), max(corners)
        case Binary(BinOp.MIN):
            return min(parts[0][0], parts[1][0]), min(parts[0][1], parts[1][1])
        case Binary(BinOp.MAX):
            return max(parts[0][0], parts[1][0]), max(parts[0][1], parts[1][1])
    return None


def _narrowed(term: Expr, dtype: DType) -> Expr:
    """A term in a narrower type: what is chosen, and widened, is so at once."""

    def rule(node: Any, parts: list[Expr]) -> Expr:
        match node:
            case Const(value) if node.dtype.is_integer:
                return const(int(value), dtype)
            case Cast() if node.value.dtype.is_integer or node.value.dtype.is_bool:
                return cast(dtype, node.value)
            case Select(condition):
                return Select(condition, parts[0], parts[1])
            case Call("if_then_else", (condition, _, _)):
                return replace(node, args=(condition, parts[0], parts[1]), dtype=dtype)
        return cast(dtype, node)

    def chosen(node: Any) -> tuple[Expr, ...]:
        match node:
            case Select(_, a, b) | Call("if_then_else", (_, a, b)):
                return a, b
        return ()

    return fold(term, rule, chosen)
