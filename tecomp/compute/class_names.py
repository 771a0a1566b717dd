"""TVM's names of expressions, classes there, which its programs call."""

from __future__ import annotations

from collections.abc import Callable

from tecomp.compute.arithmetic import Value, value_of
from tecomp.compute.division import div, floordiv, floormod, truncmod
from tecomp.compute.intrinsics import cast
from tecomp.compute.logic import all, any, logical_not
from tecomp.compute.operators import add, multiply, subtract
from tecomp.compute.reduce import max, min
from tecomp.ir.language.expr import Expr
from tecomp.ir.language.nodes import compare
from tecomp.ir.language.operators import CmpOp


def _comparison(op: CmpOp) -> Callable[[Value, Value], Expr]:
    def made(a: Value, b: Value) -> Expr:
        """The condition that compares `a` and `b`."""
        return compare(op, value_of(a), value_of(b))

    return made


def _conversion(dtype: str, value: Value) -> Expr:
    """`value` converted to `dtype`, as `value.astype(dtype)`."""
    return cast(value, dtype)


And, Or, Not = all, any, logical_not
EQ, NE = _comparison(CmpOp.EQ), _comparison(CmpOp.NE)
LT, LE = _comparison(CmpOp.LT), _comparison(CmpOp.LE)
GT, GE = _comparison(CmpOp.GT), _comparison(CmpOp.GE)
Add, Sub, Mul, Div, Mod = add, subtract, multiply, div, truncmod
FloorDiv, FloorMod, Min, Max = floordiv, floormod, min, max
Cast = _conversion
