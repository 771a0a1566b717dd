"""Match loop nests against tensor intrinsics.

Bodies are compared modulo commutativity and associativity, axes by their extents. Then
`tecomp.lowering.tensor_ops.tensorize` determines the operands from the accesses.
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
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import children, fold, walk
from tecomp.poly.accesses.tiles import TileDigit

_CHAINS = frozenset((
    BinOp.ADD, BinOp.MUL, BinOp.MIN, BinOp.MAX, BinOp.AND, BinOp.OR, BinOp.BITAND, BinOp.BITOR,
    BinOp.BITXOR,
))  # fmt: skip
_MAX_LEAVES = 7
Key: TypeAlias = "tuple[Any, ...]"
E = TypeVar("E", bound=Expr)


@dataclass(frozen=True, slots=True)
class IntrinsicMatch:
    """Correspondence of the reads and scalars of a stage and an intrinsic.

    Attributes:
        loads: Read of the stage for each input of the intrinsic, in input order.
        scalars: Values of the scalar parameters of the intrinsic.
    """

    loads: tuple[TensorLoad, ...]
    scalars: tuple[Expr, ...]


def intrinsic_loads(intrin: TensorIntrin) -> tuple[TensorLoad, ...]:
    """Return the read of each input in the definition of an intrinsic."""
    loads = _distinct_loads(_values(intrin.op.body[0]))
    return tuple(
        next(load for load in loads if load.tensor == tensor) for tensor in intrin.inputs
    )


def pairings(body: Expr, intrin: TensorIntrin) -> Iterator[IntrinsicMatch]:
    """Yield all matches of the stage body `body` with the body of an intrinsic."""
    intrin_body = intrin.op.body[0]
    if isinstance(body, Reduce) and isinstance(intrin_body, Reduce):
        if not same_reducer(body, intrin_body):
            return
    elif isinstance(body, Reduce) or isinstance(intrin_body, Reduce):
        return
    value, intrin_value = _values(body)[0], _values(intrin_body)[0]
    intrin_loads, scalars = intrinsic_loads(intrin), intrin.scalar_params
    goal = _key(intrin_value, _marks(intrin_value, intrin_loads, scalars))
    loads = _distinct_loads((value,))
    if len(loads) != len(intrin_loads) or len(loads) > _MAX_LEAVES:
        return
    for chosen in _in_order(loads, intrin_loads):
        for numbers in _in_order(_numbers(value) if scalars else (), scalars):
            if _key(value, _marks(value, chosen, numbers)) == goal:
                yield IntrinsicMatch(chosen, numbers)


def _in_order(items: Sequence[E], expected: Sequence[Expr]) -> Iterator[tuple[E, ...]]:
    """Yield ordered selections from `items` whose dtypes match `expected`."""
    for chosen in permutations(items, len(expected)):
        if all(a.dtype == b.dtype for a, b in zip(chosen, expected, strict=True)):
            yield chosen


def _marks(
    root: Expr, loads: Sequence[TensorLoad], scalars: Sequence[Expr]
) -> dict[int, Key]:
    """Return match keys of the operands and scalar parameters in an expression, by node id."""
    found: dict[int, Key] = {id(value): ("scalar", k) for k, value in enumerate(scalars)}
    for node in walk(root):
        for k, load in enumerate(loads):
            if isinstance(node, TensorLoad) and structural_equal(node, load):
                found[id(node)] = ("operand", k)
    return found


def same_reducer(a: Reduce, b: Reduce) -> bool:
    """Return whether two reductions have the same combiner and identity."""
    keys = []
    for reduce in (a, b):
        combiner = reduce.combiner
        marks = {id(var): ("side", side) for side, group in enumerate((combiner.lhs, combiner.rhs))
                 for var in group}  # fmt: skip
        keys.append((
            len(combiner.result), *(_key(e, marks) for e in combiner.result),
            *(_key(e, {}) for e in combiner.identity),
        ))
    return bool(keys[0] == keys[1])


def uses_axes(body: Expr) -> IterVar | None:
    """Return an axis that a body uses outside the indices of its reads, or None."""
    nodes = walk(*_values(body), parts=_outside_of_indices)
    return next((node for node in nodes if isinstance(node, IterVar)), None)


def _values(body: Expr) -> tuple[Expr, ...]:
    return body.source if isinstance(body, Reduce) else (body,)


def _outer_nodes(root: Expr) -> Iterator[Any]:
    """Iterate over the nodes of an expression outside the indices of reads."""
    return walk(root, parts=_outside_of_indices)


def _outside_of_indices(node: Any) -> Sequence[Any]:
    return () if isinstance(node, TensorLoad) else children(node)


def _distinct_loads(values: Sequence[Expr]) -> list[TensorLoad]:
    found: list[TensorLoad] = []
    for value in values:
        for node in _outer_nodes(value):
            if isinstance(node, TensorLoad) and not any(structural_equal(node, other) for other
                    in found):
                found.append(node)
    return found


def _numbers(root: Expr) -> list[Expr]:
    """Return the subexpressions without reads and axes, which are uniform for all elements."""
    is_number: dict[int, bool] = {}

    def combine(node: Any, parts: list[bool]) -> bool:
        found = all(parts) and not isinstance(node, TensorLoad | IterVar)
        is_number[id(node)] = found
        return found

    fold(root, combine, _outside_of_indices)
    return [node for node in _outer_nodes(root) if is_number[id(node)]]


def _key(root: Expr, marks: Mapping[int, Key]) -> Key:
    """Return a key that is equal for expressions equal up to the order of operands."""

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
                return (type(node).__name__, _describe_value(node), str(node.dtype), *parts)
        return ("other", id(node))

    return fold(root, combine, inside)


def _describe_value(node: Any) -> str:
    match node:
        case Binary(op) | Compare(op):
            return str(op.name)
        case Call(name):
            return str(name)
    return ""


@dataclass(frozen=True, slots=True)
class SharedDigit:
    """Digit of an intrinsic axis that corresponds to a digit of a program dimension.

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
    """Yield the correspondences between intrinsic axes and digits of the program.

    An axis can correspond to several digits, and a digit to several axes. Correspondences that
    probably follow the memory order come first: whole axes, and the last axes of the intrinsic
    matched with the last axes of the program.
    """
    start = tuple((axis, 1, length(axis)) for axis in axes if axis.extent != 1)
    visited: set[frozenset[SharedDigit]] = set()
    worklist: list[tuple[Any, tuple[TileDigit, ...], tuple[SharedDigit, ...]]]
    worklist = [(start, tuple(digits), ())]
    while worklist:
        axes_left, digits_left, pieces = worklist.pop()
        if frozenset(pieces) in visited:
            continue
        visited.add(frozenset(pieces))
        if not axes_left and not digits_left:
            yield pieces
            continue
        steps = [
            (-n, axis_rest is not None, -digit.axis, k,
             (_drop(axes_left, n, axis_rest), _drop(digits_left, k, digit_rest), (*pieces, piece)))
            for k, digit in enumerate(digits_left)
            for n, (axis, weight, extent) in enumerate(axes_left)
            if (step := _step(axis, weight, extent, digit)) is not None
            for piece, axis_rest, digit_rest in [step]
        ]
        worklist += [state for *_, state in sorted(steps, key=lambda s: s[:-1], reverse=True)]


def _step(
    axis: IterVar, weight: int, extent: int, digit: TileDigit
) -> tuple[SharedDigit, Any, TileDigit | None] | None:
    """Match the fastest-varying parts of an axis and a digit; return the match and both rests."""
    count = min(extent, digit.extent)
    if extent % count or digit.extent % count:
        return None
    piece = SharedDigit(axis, weight, count, digit.axis, digit.stride)
    axis_rest = (axis, weight * count, extent // count) if extent > count else None
    digit_rest = None
    if digit.extent > count:
        digit_rest = TileDigit(digit.axis, digit.stride * count, digit.extent // count)
    return piece, axis_rest, digit_rest


def _drop(items: tuple[Any, ...], position: int, instead: Any) -> tuple[Any, ...]:
    inserted = () if instead is None else (instead,)
    return (*items[:position], *inserted, *items[position + 1 :])
