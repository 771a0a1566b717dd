"""Queries on definitions: factors, shared terms, topological order, substitution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tecomp.compute.affine_index import axes_of
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import CommReducer, Reduce
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import DefinitionError
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import holds_every
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    Call,
    Cast,
    CmpOp,
    Compare,
    Expr,
    Not,
    Ramp,
    Select,
    Var,
    compare,
    select,
)
from tecomp.ir.nodes.graph_utils import post_order as inner_first
from tecomp.ir.nodes.structural_equality import same
from tecomp.ir.traversal.rewrite import bottom_up, children, fold, rebuild, substitute, walk

_MOST_FACTORS = 64
"""Longer products are values of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A value that another one is multiplied with, or divided by."""

    value: Expr
    divides: bool


def written_factors(value: Expr) -> list[Factor]:
    """What is multiplied to give `value`, as it is written: itself if it is no product.

    So is one of very many factors: a square of squares has twice as many at each level.
    """
    if fold(value, _number_of_factors, _multiplied) > _MOST_FACTORS:
        return [Factor(value, False)]
    found: list[Factor] = []
    todo = [Factor(value, False)]
    while todo:
        factor = todo.pop()
        node = factor.value
        if isinstance(node, Binary) and node.op is BinOp.MUL:
            todo += [Factor(node.b, factor.divides), Factor(node.a, factor.divides)]
        elif isinstance(node, Binary) and node.op is BinOp.DIV:
            todo += [Factor(node.b, not factor.divides), Factor(node.a, factor.divides)]
        else:
            found.append(factor)
    return found


def _multiplied(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Binary) and node.op in (BinOp.MUL, BinOp.DIV):
        return node.a, node.b
    return ()


def _number_of_factors(node: Expr, inside: list[int]) -> int:
    return sum(inside) if inside else 1


def factors_of(value: Expr) -> list[TensorLoad]:
    """The elements whose product `value` is; none if it is no such product."""
    every = written_factors(value)
    found = [_without_casts(factor.value) for factor in every if not factor.divides]
    is_product = len(found) == len(every) and all(isinstance(x, TensorLoad) for x in found)
    return found if is_product else []


def _without_casts(node: Any) -> Any:
    """What a value is before it is converted to wider types."""
    while isinstance(node, Cast) and holds_every(node.dtype, node.value.dtype):
        node = node.value
    return node


class NoLanesError(Exception):
    """A part of a vector is not made lane by lane."""


def lanes_of(vector: Expr) -> tuple[Expr, ...]:
    """The lanes of a vector of elements that were put side by side and computed with.

    Raises:
        NoLanesError: it has a part whose lanes are no values of their own.
    """
    return fold(vector, _lanes, _vectors)


def _vectors(node: Any) -> Sequence[Any]:
    return children(node) if node.dtype.lanes > 1 else ()


def _lanes(node: Any, parts: list[tuple[Expr, ...]]) -> tuple[Expr, ...]:
    count = node.dtype.lanes
    if count == 1:
        return (node,)
    match node:
        case Broadcast():
            return parts[0] * node.lanes
        case Ramp(base, stride):
            return tuple(base + stride * k for k in range(count))
        case Call("join"):
            return parts[0] + parts[1]
        case Binary() | Compare() | Not() | Select() | Cast() | Call():
            return tuple(_lane(node, parts, k) for k in range(count))
    raise NoLanesError


def _lane(node: Any, parts: list[tuple[Expr, ...]], k: int) -> Expr:
    values: dict[int, Expr] = {}
    for child, part in zip(children(node), parts, strict=True):
        if len(part) not in (1, node.dtype.lanes):
            raise NoLanesError
        values[id(child)] = part[k] if len(part) > 1 else part[0]
    made: Any = rebuild(node, lambda child: values[id(child)])
    lane: Expr = replace(made, dtype=node.dtype.scalar) if isinstance(made, Cast | Call) else made
    return lane


def rebuilt(
    operations: Sequence[Operation],
    inputs: Mapping[Tensor, Tensor],
    *,
    change: Callable[[Operation], Operation] = lambda op: op,
) -> dict[Tensor, Tensor]:
    """Operations with other tensors in the place of what they read.

    Args:
        operations: producers before consumers.
        inputs: for tensors that they read, what they read instead.
        change: what is done to each of them then; what it computes stays the same.

    Returns:
        What takes the place of each tensor: of the inputs, and of the outputs of the operations.

    >>> from tecomp import te
    >>> A, P = te.placeholder((4,), name="A"), te.placeholder((4,), name="P")
    >>> B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    >>> C = te.compute((4,), lambda i: B[i] * A[i], name="C")
    >>> print(rebuilt([C.op], {B: P})[C].op)
    C[i] = P[i] * A[i]
    """
    known = dict(inputs)
    for op in operations:
        changed = change(_rebuilt(op, known) if isinstance(op, ComputeOp) else op)
        if changed is op:
            continue
        known.update(zip(op.outputs, changed.outputs, strict=True))
    return known


def _rebuilt(op: ComputeOp, known: Mapping[Tensor, Tensor]) -> ComputeOp:
    if not any(x in known for x in op.input_tensors):
        return op
    return op.rewritten(lambda value: _moved(value, known))


def _moved(value: Expr, known: Mapping[Tensor, Tensor]) -> Expr:
    def rule(node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad) or node.tensor not in known:
            return None
        return TensorLoad(known[node.tensor], node.indices, node.location)

    return bottom_up(value, rule)


def is_selection(combiner: CommReducer) -> bool:
    """Whether the result is one of both tuples, by one condition for all of their values."""
    parts = [_parts(value) for value in combiner.result]
    if len(parts) < 2 or len({str(part[0]) for part in parts if part}) != 1 or None in parts:
        return False
    chosen = [(part[1], part[2]) for part in parts if part]
    ends = list(zip(combiner.lhs, combiner.rhs, strict=True))
    return chosen in (ends, [(b, a) for a, b in ends])


def in_order(combiner: CommReducer, k: int) -> CommReducer:
    """The same of partial results in any order: the one with the lesser value `k` comes first."""
    swapped: dict[Var, Expr] = dict(zip(
        (*combiner.lhs, *combiner.rhs), (*combiner.rhs, *combiner.lhs), strict=True
    ))
    is_first = compare(CmpOp.LE, combiner.lhs[k], combiner.rhs[k])
    result = tuple(
        select(is_first, value, substitute(value, swapped)) for value in combiner.result
    )
    return replace(combiner, result=result)


def _parts(value: Expr) -> tuple[Expr, Expr, Expr] | None:
    """A condition, and what it chooses; None if it is no such value."""
    if isinstance(value, Select):
        return value.condition, value.a, value.b
    if isinstance(value, Call) and value.name == "if_then_else":
        condition, a, b = value.args
        return condition, a, b
    return None


def computes_terms(reader: Tensor, tensor: Tensor) -> bool:
    """Whether an operation computes what another one reduces, maybe as a part of something else.

    Then `s.cache_terms` computes that once for both.

    Args:
        reader: of the one operation, for axes of the same extents.
        tensor: of the other; one that is no reduction of one value has no terms.

    Raises:
        DefinitionError: one is no tensor.

    Example:
        >>> import tecomp
        >>> from tecomp import te
        >>> A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
        >>> C = te.compute((4,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="C")
        >>> D = te.compute((4, 8), lambda i, j: te.exp(A[i, j]) / C[i], name="D")
        >>> tecomp.computes_terms(D, C)
        True
    """
    for name, given in (("reader", reader), ("tensor", tensor)):
        check_kind(given, Tensor, f"computes_terms: the {name}", "give what te.compute makes",
                   DefinitionError)
    if not isinstance(reader.op, ComputeOp) or not isinstance(tensor.op, ComputeOp):
        return False
    reduce = tensor.op.body[0] if len(tensor.op.body) == 1 else None
    return isinstance(reduce, Reduce) and has_term(reader.op, reduce.source[0])


def has_term(op: ComputeOp, term: Expr) -> bool:
    """Whether an operation computes a term, for axes of its own."""
    return any(axes_instead(node, term) is not None for node in walk(*op.body))


def axes_instead(node: object, term: Expr) -> dict[Var, Expr] | None:
    """The axes of a value for those of a term, if the two are the same but for their axes.

    Axes come in the order of the text, which is the same for both.
    """
    if type(node) is not type(term) or not isinstance(node, Expr):
        return None
    own, others = list(axes_of(term)), list(axes_of(node))
    if len(own) != len(others) or not all(map(_has_values_of, others, own)):
        return None
    instead: dict[Var, Expr] = dict(zip(own, others, strict=True))
    return instead if same(substitute(term, instead), node) else None


def _has_values_of(axis: IterVar, other: IterVar) -> bool:
    """Whether an axis has the values that another one has."""
    return axis.dtype == other.dtype and same(axis.dom, other.dom)


def post_order(outputs: Sequence[Operation]) -> tuple[Operation, ...]:
    """`outputs` and all that they read, each once, producers before consumers."""
    return tuple(inner_first(*outputs, parts=_producers))


def _producers(op: Operation) -> list[Operation]:
    return [tensor.op for tensor in op.input_tensors]
