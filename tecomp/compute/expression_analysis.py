"""Analyses of definitions: factors, vector lanes, common terms, topological order."""

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
from tecomp.ir.arith.quasi_affine_conversion import MAX_FACTORS
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import represents_all
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
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import (
    bottom_up,
    children,
    fold,
    replace_children,
    substitute,
    walk,
)


@dataclass(frozen=True, slots=True, eq=False)
class ProductFactor:
    """Factor of a product; with `divides`, the product is divided by `value`."""

    value: Expr
    divides: bool


def explicit_factors(value: Expr) -> list[ProductFactor]:
    """Return the factors of a product in textual order; a value that is no product is one factor.

    A product with more than `MAX_FACTORS` factors also counts as one factor, because the number
    of factors of nested squares doubles at each level.
    """
    if fold(value, _number_of_factors, _multiply) > MAX_FACTORS:
        return [ProductFactor(value, False)]
    found: list[ProductFactor] = []
    stack = [ProductFactor(value, False)]
    while stack:
        factor = stack.pop()
        node = factor.value
        if isinstance(node, Binary) and node.op is BinOp.MUL:
            stack += [ProductFactor(node.b, factor.divides), ProductFactor(node.a, factor.divides)]
        elif isinstance(node, Binary) and node.op is BinOp.DIV:
            stack += [
                ProductFactor(node.b, not factor.divides),
                ProductFactor(node.a, factor.divides),
            ]
        else:
            found.append(factor)
    return found


def _multiply(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Binary) and node.op in (BinOp.MUL, BinOp.DIV):
        return node.a, node.b
    return ()


def _number_of_factors(node: Expr, inside: list[int]) -> int:
    return sum(inside) if inside else 1


def factors_of(value: Expr) -> list[TensorLoad]:
    """Return the loads whose product is `value`; empty if a factor is not a load."""
    factors = explicit_factors(value)
    found = [_without_casts(factor.value) for factor in factors if not factor.divides]
    is_product = len(found) == len(factors) and all(isinstance(x, TensorLoad) for x in found)
    return found if is_product else []


def _without_casts(node: Any) -> Any:
    """Strip lossless casts from a value."""
    while isinstance(node, Cast) and represents_all(node.dtype, node.value.dtype):
        node = node.value
    return node


class NotScalarizableError(Exception):
    """Raised if a vector expression cannot be split into lanes."""


def lanes_of(vector: Expr) -> tuple[Expr, ...]:
    """Split a vector expression into scalar expressions, one per lane.

    Raises:
        NoLanesError: If a subexpression cannot be split into lanes.
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
    raise NotScalarizableError


def _lane(node: Any, parts: list[tuple[Expr, ...]], k: int) -> Expr:
    values: dict[int, Expr] = {}
    for child, part in zip(children(node), parts, strict=True):
        if len(part) not in (1, node.dtype.lanes):
            raise NotScalarizableError
        values[id(child)] = part[k] if len(part) > 1 else part[0]
    copy: Any = replace_children(node, values)
    lane: Expr = replace(copy, dtype=node.dtype.scalar) if isinstance(copy, Cast | Call) else copy
    return lane


def substitute_inputs(
    operations: Sequence[Operation],
    inputs: Mapping[Tensor, Tensor],
    *,
    change: Callable[[Operation], Operation | tuple[Tensor, ...]] = lambda op: op,
) -> dict[Tensor, Tensor]:
    """Rebuild operations with substituted input tensors.

    Args:
        operations: Operations, producers before consumers.
        inputs: Replacements of tensors that the operations read.
        change: Function applied to each rebuilt operation; it must preserve the computed values.
            It returns an operation, or the tensors that replace the outputs.

    Returns:
        Replacement of each tensor: of the inputs, and of the outputs of changed operations.

    >>> from tecomp import te
    >>> A, P = te.placeholder((4,), name="A"), te.placeholder((4,), name="P")
    >>> B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    >>> C = te.compute((4,), lambda i: B[i] * A[i], name="C")
    >>> print(substitute_inputs([C.op], {B: P})[C].op)
    C[i] = P[i] * A[i]
    """
    known = dict(inputs)
    for op in operations:
        changed = change(_rebuild_definition(op, known) if isinstance(op, ComputeOp) else op)
        outputs = changed if isinstance(changed, tuple) else changed.outputs
        known.update(
            (x, new) for x, new in zip(op.outputs, outputs, strict=True) if new is not x
        )
    return known


def _rebuild_definition(op: ComputeOp, known: Mapping[Tensor, Tensor]) -> ComputeOp:
    if not any(x in known for x in op.input_tensors):
        return op
    return op.rewritten(lambda value: _shift_expr(value, known))


def _shift_expr(value: Expr, known: Mapping[Tensor, Tensor]) -> Expr:
    def rule(node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad) or node.tensor not in known:
            return None
        return TensorLoad(known[node.tensor], node.indices, node.location)

    return bottom_up(value, rule)


def is_selection(combiner: CommReducer) -> bool:
    """Return whether a reducer selects one of its two operand tuples by a single condition."""
    parts = [_parts(value) for value in combiner.result]
    if len(parts) < 2 or len({str(part[0]) for part in parts if part}) != 1 or None in parts:
        return False
    chosen = [(part[1], part[2]) for part in parts if part]
    ends = list(zip(combiner.lhs, combiner.rhs, strict=True))
    return chosen in (ends, [(b, a) for a, b in ends])


def in_order(combiner: CommReducer, k: int) -> CommReducer:
    """Return a reducer that first swaps its operands if value `k` of the left one is larger.

    The result then does not depend on the order in which partial results are combined.
    """
    swapped: dict[Var, Expr] = dict(zip(
        (*combiner.lhs, *combiner.rhs), (*combiner.rhs, *combiner.lhs), strict=True
    ))
    is_first = compare(CmpOp.LE, combiner.lhs[k], combiner.rhs[k])
    result = tuple(
        select(is_first, value, substitute(value, swapped)) for value in combiner.result
    )
    return replace(combiner, result=result)


def _parts(value: Expr) -> tuple[Expr, Expr, Expr] | None:
    """Return the condition and both branches of a selection, or None for other expressions."""
    if isinstance(value, Select):
        return value.condition, value.a, value.b
    if isinstance(value, Call) and value.name == "if_then_else":
        condition, a, b = value.args
        return condition, a, b
    return None


def computes_terms(reader: Tensor, tensor: Tensor) -> bool:
    """Return whether an operation contains the term of a reduction as a subexpression.

    `s.cache_terms` then computes the term once for both operations.

    Args:
        reader: Result of the operation that may contain the term, over axes of the same extents.
        tensor: Result of the reduction. The function returns False if `tensor` is not a reduction
            of one value.

    Raises:
        DefinitionError: If an argument is not a tensor.

    Example:
        >>> import tecomp
        >>> from tecomp import te
        >>> A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
        >>> C = te.compute((4,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="C")
        >>> D = te.compute((4, 8), lambda i, j: te.exp(A[i, j]) / C[i], name="D")
        >>> tecomp.computes_terms(D, C)
        True
    """
    for name, argument in (("reader", reader), ("tensor", tensor)):
        check_kind(argument, Tensor, f"computes_terms: the {name}", "pass a tensor from te.compute",
                   DefinitionError)
    if not isinstance(reader.op, ComputeOp) or not isinstance(tensor.op, ComputeOp):
        return False
    reduce = tensor.op.body[0] if len(tensor.op.body) == 1 else None
    return isinstance(reduce, Reduce) and has_term(reader.op, reduce.source[0])


def has_term(op: ComputeOp, term: Expr) -> bool:
    """Return whether an operation contains a term, up to renaming of axes."""
    return any(match_axis_substitution(node, term) is not None for node in walk(*op.body))


def match_axis_substitution(node: object, term: Expr) -> dict[Var, Expr] | None:
    """Return the axis substitution that turns a term into a value, or None if there is none.

    Axes are matched in textual order, which is the same in both expressions.
    """
    if type(node) is not type(term) or not isinstance(node, Expr):
        return None
    term_axes, node_axes = list(axes_of(term)), list(axes_of(node))
    if len(term_axes) != len(node_axes) or not all(map(_has_values_of, node_axes, term_axes)):
        return None
    substitution: dict[Var, Expr] = dict(zip(term_axes, node_axes, strict=True))
    return substitution if structural_equal(substitute(term, substitution), node) else None


def _has_values_of(axis: IterVar, other: IterVar) -> bool:
    """Return whether two axes have the same dtype and domain."""
    return axis.dtype == other.dtype and structural_equal(axis.dom, other.dom)


def post_order(outputs: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return `outputs` and all operations that they depend on, producers before consumers."""
    return tuple(inner_first(*outputs, parts=_producers))


def _producers(op: Operation) -> list[Operation]:
    return [tensor.op for tensor in op.input_tensors]
