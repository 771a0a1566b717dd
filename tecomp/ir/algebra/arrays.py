"""Arrays that calls take, once memory is flat: where they begin, and their strides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tecomp.errors import InternalError
from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.expr import BinOp, Const, Expr, Var, binary, index_value
from tecomp.ir.language.outside_call import ArrayArgument
from tecomp.ir.traversal.rewrite import substitute


def start_and_strides(array: ArrayArgument) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The index of the first element, and for each axis how much further the next one is.

    Raises:
        InternalError: the elements have no strides.
    """
    *rows, last = array.place.indices or (Const(0),)
    zero = dict.fromkeys(array.variables, index_value(0))
    start = _at(last, zero)
    strides: list[Expr] = []
    expected = start
    for var in array.variables:
        one = _at(last, {**zero, var: index_value(1)})
        stride = simplify(binary(BinOp.SUB, one, start))
        strides.append(stride)
        expected = binary(BinOp.ADD, expected, binary(BinOp.MUL, var, stride))
    ranges: Mapping[Var, Any] = {
        var: (0, binary(BinOp.SUB, extent, index_value(1)))
        for var, extent in zip(array.variables, array.shape, strict=True)
    }
    rest = simplify(binary(BinOp.SUB, last, expected), ranges)
    moving = [var for row in rows for var in array.variables if row is not _at(row, {var: ZERO})]
    if not (isinstance(rest, Const) and rest.value == 0) or moving:
        raise InternalError(f"`{array}` is no array: its elements have no strides")
    return (*rows, start), tuple(strides)


ZERO = index_value(0)


def _at(index: Expr, values: Mapping[Var, Expr]) -> Expr:
    return simplify(substitute(index, values)) if values else index
