"""Cotangents of the reads of an expression: reverse-mode differentiation of one element."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tecomp.compute.expression_algebra import ExpressionAlgebra
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import DefinitionError
from tecomp.ir.nodes.expr import Binary, BinOp, Call, Cast, Expr, Select, cast, const, select
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import children, post_order
from tecomp.operations.elementwise import ELEMENTWISE, elementwise_in

Guards = tuple[tuple[Expr, bool], ...]
"""Conditions of `if_then_else` around a value, and the branch that contains the value."""

_OPERATORS = {
    BinOp.ADD: "add", BinOp.SUB: "subtract", BinOp.MUL: "multiply", BinOp.DIV: "divide",
    BinOp.MIN: "minimum", BinOp.MAX: "maximum", BinOp.FLOORDIV: "floor_divide",
    BinOp.MOD: "remainder",
}
_ROWS: dict[Any, Any] = {row.call: row for row in ELEMENTWISE if row.call} | {
    op: elementwise_in("array")[name] for op, name in _OPERATORS.items()
}


def cotangents(
    value: Expr, cotangent: Expr, tensors: Collection[Tensor], where: str
) -> list[tuple[TensorLoad, Guards, Expr]]:
    """Return the reads of tensors with their cotangents.

    Args:
        value: Expression.
        cotangent: Cotangent of the expression.
        tensors: Tensors to differentiate by.
        where: Beginning of error messages.

    Returns:
        Reads, the conditions under which they are evaluated, and the products of the cotangent with
        the partial derivatives.

    Raises:
        DefinitionError: If a function has no derivative.
    """
    order = [*post_order(value)]
    active: set[int] = set()
    for node in order:
        if isinstance(node, TensorLoad):
            is_active = node.tensor in tensors  # indices have no derivatives
        else:
            is_active = any(id(child) in active for child in children(node))
        if is_active:
            active.add(id(node))
    collected: dict[int, dict[Guards, Expr]] = {id(value): {(): cotangent}}
    found: list[tuple[TensorLoad, Guards, Expr]] = []
    for node in reversed(order):
        for guards, g in collected.pop(id(node), {}).items():
            if isinstance(node, TensorLoad):
                _add_read(found, node, guards, g)
                continue
            for operand, conditions, part in _operands(node, guards, g, active, where):
                if id(operand) in active and operand.dtype.is_float:
                    known = collected.setdefault(id(operand), {})
                    other = known.get(conditions)
                    known[conditions] = part if other is None else other + part
    return found


def _add_read(
    found: list[tuple[TensorLoad, Guards, Expr]], read: TensorLoad, guards: Guards, g: Expr
) -> None:
    """Add a read, or its cotangent to that of an equal read."""
    for k, (other, conditions, known) in enumerate(found):
        if other.tensor == read.tensor and conditions == guards and all(
            map(structural_equal, other.indices, read.indices)
        ):
            found[k] = other, guards, known + g
            return
    found.append((read, guards, g))


def _operands(
    node: Any, guards: Guards, g: Expr, active: set[int], where: str
) -> list[tuple[Expr, Guards, Expr]]:
    """Return the operands of a node, with the conditions around them and their cotangents."""
    if isinstance(node, Cast):
        return [(node.value, guards, cast(node.value.dtype, g))] if node.dtype.is_float else []
    if isinstance(node, Select):
        none = const(0, g.dtype)
        return [(node.a, guards, select(node.condition, g, none)),
                (node.b, guards, select(node.condition, none, g))]
    if isinstance(node, Call) and node.name == "if_then_else":
        condition, a, b = node.args
        return [(a, (*guards, (condition, True)), g), (b, (*guards, (condition, False)), g)]
    row, operands = None, tuple[Expr, ...]()
    if isinstance(node, Binary):
        row, operands = _ROWS.get(node.op), (node.a, node.b)
    elif isinstance(node, Call):
        row, operands = _ROWS.get(node.name), node.args
    if row is None or row.derivative is None:
        raise DefinitionError(
            "{where}: {value} has no derivative; differentiate by other tensors",
            kind="not-differentiable", where=where, value=node,
        )
    parts = row.derivative(ExpressionAlgebra(), g, node, *operands)
    parts = parts if isinstance(parts, tuple) else (parts,)
    return [(operand, guards, part) for operand, part in zip(operands, parts, strict=True)]
