"""Factors: what is multiplied to give a value, as it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tecomp.compute.tensor import TensorLoad
from tecomp.ir.language.dtype import holds_every
from tecomp.ir.language.expr import Binary, BinOp, Cast, Expr
from tecomp.ir.traversal.rewrite import fold

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
