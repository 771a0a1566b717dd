"""Match loop nests against tensor intrinsics.

Bodies are compared up to the order of what commutes and associates, axes by how many values they
take. What an operand is then decides `tecomp.lowering.tensor_ops.tensorize`, from what is read and
written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, TypeAlias, TypeVar

from tecomp.compute.iter_var import IterVar
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_intrin import TensorIntrin, length
from tecomp.ir.nodes.expr import Binary, BinOp, Call, Cast, Compare, Const, Expr, Not, Select
from tecomp.ir.nodes.structural_equality import same
from tecomp.ir.traversal.rewrite import children, fold, walk
from tecomp.poly.accesses.tiles import TileDigit

_CHAINS = frozenset((
    BinOp.ADD, BinOp.MUL, BinOp.MIN, BinOp.MAX, BinOp.AND, BinOp.OR, BinOp.BITAND, BinOp.BITOR,
    BinOp.BITXOR,
))  # fmt: skip
_MOST_LEAVES = 7
Key: TypeAlias = "tuple[Any, ...]"
E = TypeVar("E", bound=Expr)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which read of a stage is which read of an intrinsic, and what its numbers are.

    Attributes:
        loads: a read of the stage for each read of the intrinsic, in the order of its inputs.
        scalars: values of the intrinsic's scalar parameters.
    """

    loads: tuple[TensorLoad, ...]
    scalars: tuple[Expr, ...]


def own_loads(intrin: TensorIntrin) -> tuple[TensorLoad, ...]:
    """The read of each input in the definition of an intrinsic."""
    loads = _distinct_loads(_values(intrin.op.body[0]))
    return tuple(
        next(load for load in loads if load.tensor == tensor) for tensor in intrin.inputs
    )


def pairings(body: Expr, intrin: TensorIntrin) -> Iterator[Pairing]:
    """The ways to read `body`, what a stage computes, as what an intrinsic computes."""
    theirs = intrin.op.body[0]
    if isinstance(body, Reduce) and isinstance(theirs, Reduce):
        if not same_reducer(body, theirs):
            return
    elif isinstance(body, Reduce) or isinstance(theirs, Reduce):
        return
    value, wanted = _values(body)[0], _values(theirs)[0]
    wanted_loads, scalars = own_loads(intrin), intrin.scalar_params
    goal = _key(wanted, _marks(wanted, wanted_loads, scalars))
    loads = _distinct_loads((value,))
    if len(loads) != len(wanted_loads) or len(loads) > _MOST_LEAVES:
        return
    for chosen in _in_order(loads, wanted_loads):
        for numbers in _in_order(_numbers(value) if scalars else (), scalars):
            if _key(value, _marks(value, chosen, numbers)) == goal:
                yield Pairing(chosen, numbers)


def _in_order(given: Sequence[E], wanted: Sequence[Expr]) -> Iterator[tuple[E, ...]]:
    """Choices from `given` that have the types of `wanted`."""
    for chosen in permutations(given, len(wanted)):
        if all(a.dtype == b.dtype for a, b in zip(chosen, wanted, strict=True)):
            yield chosen


def _marks(
    root: Expr, loads: Sequence[TensorLoad], scalars: Sequence[Expr]
) -> dict[int, Key]:
    """What stands for operands and scalar parameters in an expression."""
    found: dict[int, Key] = {id(value): ("scalar", k) for k, value in enumerate(scalars)}
    for node in walk(root):
        for k, load in enumerate(loads):
            if isinstance(node, TensorLoad) and same(node, load):
                found[id(node)] = ("operand", k)
    return found


def same_reducer(a: Reduce, b: Reduce) -> bool:
    """Whether two reductions combine values in the same way, from the same start."""
    keys = []
    for reduce in (a, b):
        combiner = reduce.combiner
        marks = {id(var): ("side", side) for side, many in enumerate((combiner.lhs, combiner.rhs))
                 for var in many}  # fmt: skip
        keys.append((
            len(combiner.result), *(_key(e, marks) for e in combiner.result),
            *(_key(e, {}) for e in combiner.identity),
        ))
    return bool(keys[0] == keys[1])


def uses_axes(body: Expr) -> IterVar | None:
    """An axis that a body computes with, outside of the indices of its reads."""
    nodes = walk(*_values(body), parts=_outside_of_indices)
    return next((node for node in nodes if isinstance(node, IterVar)), None)


def _values(body: Expr) -> tuple[Expr, ...]:
    return body.source if isinstance(body, Reduce) else (body,)


def _outer_nodes(root: Expr) -> Iterator[Any]:
    """The nodes of an expression that are in no index of a read."""
    return walk(root, parts=_outside_of_indices)


def _outside_of_indices(node: Any) -> Sequence[Any]:
    return () if isinstance(node, TensorLoad) else children(node)


def _distinct_loads(values: Sequence[Expr]) -> list[TensorLoad]:
    found: list[TensorLoad] = []
    for value in values:
        for node in _outer_nodes(value):
            if isinstance(node, TensorLoad) and not any(same(node, other) for other in found):
                found.append(node)
    return found


def _numbers(root: Expr) -> list[Expr]:
    """The parts of an expression that have one value for all elements."""
    is_number: dict[int, bool] = {}

    def combine(node: Any, parts: list[bool]) -> bool:
        found = all(parts) and not isinstance(node, TensorLoad | IterVar)
        is_number[id(node)] = found
        return found

    fold(root, combine, _outside_of_indices)
    return [node for node in _outer_nodes(root) if is_number[id(node)]]


def _key(root: Expr, marks: Mapping[int, Key]) -> Key:
    """What two expressions have in common that are the same up to the order of operands."""

    def inside(node: Any) -> Sequence[Any]:
        return () if id(node) in marks or isinstance(node, TensorLoad) else children(node)

    def combine(node: Any, parts: list[Key]) -> Key:
        if id(node) in marks:
            return marks[id(node)]
        match node:
            case Const(value, dtype):
                return ("const", repr(value), str(dtype))
            case Binary(op) if op in _CHAINS:
                head = ("chain", op.name, str(node.dtype))
                flat = [p for part in parts for p in (part[3:] if part[:3] == head else (part,))]
                return (*head, *sorted(flat, key=repr))
            case Call("dot"):
                return ("dot", *sorted(parts, key=repr))
            case Binary() | Compare() | Call() | Cast() | Select() | Not():
                return (type(node).__name__, _what(node), str(node.dtype), *parts)
        return ("other", id(node))

    return fold(root, combine, inside)


def _what(node: Any) -> str:
    match node:
        case Binary(op) | Compare(op):
            return str(op.name)
        case Call(name):
            return str(name)
    return ""


@dataclass(frozen=True, slots=True)
class SharedDigit:
    """A part of axis `var` of an operation that is a part of a dimension of the program.

    `(var // weight) % extent` counts steps of `stride` along dimension `axis`.
    """

    var: IterVar
    weight: int
    extent: int
    axis: int
    stride: int


def correspondences(
    axes: Sequence[IterVar], digits: Sequence[TileDigit]
) -> Iterator[tuple[SharedDigit, ...]]:
    """The ways in which axes of an operation and digits of the program take the same values.

    An axis can be several digits, and a digit several axes. What is likely to follow the order of
    memory comes first: whole axes, and last axes of the operation on last axes of the program.
    """
    start = tuple((axis, 1, length(axis)) for axis in axes if axis.extent != 1)
    seen: set[frozenset[SharedDigit]] = set()
    todo: list[tuple[Any, tuple[TileDigit, ...], tuple[SharedDigit, ...]]]
    todo = [(start, tuple(digits), ())]
    while todo:
        left, rest, pieces = todo.pop()
        if frozenset(pieces) in seen:
            continue
        seen.add(frozenset(pieces))
        if not left and not rest:
            yield pieces
            continue
        steps = [
            (-n, more is not None, -digit.axis, k,
             (_without(left, n, more), _without(rest, k, again), (*pieces, piece)))
            for k, digit in enumerate(rest)
            for n, (axis, weight, extent) in enumerate(left)
            if (step := _step(axis, weight, extent, digit)) is not None
            for piece, more, again in [step]
        ]
        todo += [state for *_, state in sorted(steps, key=lambda each: each[:-1], reverse=True)]


def _step(
    axis: IterVar, weight: int, extent: int, digit: TileDigit
) -> tuple[SharedDigit, Any, TileDigit | None] | None:
    """Take the fastest parts of an axis and of a digit together; what is left of both."""
    count = min(extent, digit.extent)
    if extent % count or digit.extent % count:
        return None
    piece = SharedDigit(axis, weight, count, digit.axis, digit.stride)
    more = (axis, weight * count, extent // count) if extent > count else None
    again = None
    if digit.extent > count:
        again = TileDigit(digit.axis, digit.stride * count, digit.extent // count)
    return piece, more, again


def _without(items: tuple[Any, ...], position: int, instead: Any) -> tuple[Any, ...]:
    kept = () if instead is None else (instead,)
    return (*items[:position], *kept, *items[position + 1 :])
