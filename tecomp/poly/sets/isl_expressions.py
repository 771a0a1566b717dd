"""Piecewise functions and conditions on a space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, cast

import islpy as isl
from islpy import Aff, PwAff, Set, dim_type

from tecomp.ir.arith.quasi_affine import Digit, QuasiAffine
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    Select,
    Var,
    integer_range,
)
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import fold


def python_int(value: isl.Val) -> int:
    """Convert an isl integer to a Python integer.

    Raises:
        isl.Error: If isl has no operations left to print the number; islpy then raises TypeError.
    """
    try:
        return int(value.to_python())
    except TypeError:
        raise isl.Error("maximal number of operations exceeded") from None


# An Aff is used for functions with a single piece, because it is ten times as fast as a PwAff.
Function: TypeAlias = "Aff | PwAff"
_Meaning: TypeAlias = "QuasiAffine | Set"

AND = (BinOp.AND, BinOp.BITAND, BinOp.MIN)
OR = (BinOp.OR, BinOp.BITOR, BinOp.MAX)
MAX_DIVISIONS = 24
"""Maximum number of divisions in a dividend. The time of isl doubles with each further division,
and isl does not count this work as operations."""
_DIVIDING = (BinOp.FLOORDIV, BinOp.MOD, BinOp.SHR, BinOp.BITAND)


class NotAffine(Exception):  # noqa: N818  (an answer, which the callers turn into their own error)
    """Exception for an `expr` that is not quasi-affine in the variables of a space."""

    def __init__(self, expr: Expr) -> None:
        super().__init__(expr)
        self.expr = expr


class SpaceProtocol(Protocol):
    """Interface of `tecomp.poly.sets.to_isl.Space` that the conversion of expressions needs."""

    def var(self, var: Var) -> Aff:
        """Return the coordinate or parameter `var` as a function on the space."""

    def const(self, value: int) -> Aff:
        """Return the constant function `value`."""

    def sum(self, const: int, factors: Mapping[Var, int]) -> Aff:
        """Return the function `const + factor * variable + ...`."""

    def universe_set(self) -> Set:
        """Return the set of all points."""

    def empty_set(self) -> Set:
        """Return the empty set."""


def number(expr: Extent, space: SpaceProtocol) -> Function:
    """Return an integer expression as a function on `space`.

    Raises:
        NotAffine: If `expr` is not affine or is a condition.
    """
    if isinstance(expr, int):
        return space.const(expr)
    scope = _PiecewiseBuilder(space)
    value = scope.evaluate(expr)
    if isinstance(value, Set):
        raise NotAffine(expr)
    return scope.function(value)


def truth(cond: Expr, space: SpaceProtocol) -> Set:
    """Return the points of `space` that satisfy a condition.

    Raises:
        NotAffine: If `cond` is not affine or is a number.
    """
    points = _PiecewiseBuilder(space).evaluate(cond)
    if not isinstance(points, Set):
        raise NotAffine(cond)
    return points


def piecewise(value: Function) -> PwAff:
    """Convert a function to a piecewise affine function."""
    return value.to_pw_aff() if isinstance(value, Aff) else value


def add(a: Function, b: Function) -> Function:
    """Return `a + b`."""
    if isinstance(a, Aff) and isinstance(b, Aff):
        return a.add(b)
    return piecewise(a).add(piecewise(b))


def _operands(node: Expr) -> tuple[Expr, ...]:
    match node:
        case Binary() | Compare():
            return node.a, node.b
        case Cast():
            return (node.value,)
        case Not():
            return (node.a,)
        case Select():
            return node.condition, node.a, node.b
        case Call(name) if name in ("if_then_else", "abs"):
            return node.args
    return ()


class _PiecewiseBuilder:
    """Evaluator of expressions on one space, which builds isl functions of complete sums only.

    Each isl call is slow, so a sum first accumulates the coefficients of its variables.
    """

    def __init__(self, space: SpaceProtocol) -> None:
        self.space = space
        self._numbers: dict[Var, int] = {}
        self._unknowns: list[Var | Function] = []

    def evaluate(self, root: Expr) -> _Meaning:
        """Return the sum of an integer expression, or the set of a condition."""
        value: _Meaning = fold(root, self._value, _operands)
        return value

    def function(self, total: QuasiAffine) -> Function:
        """Return a sum as an isl function."""
        factors: dict[Var, int] = {}
        others: list[tuple[Function, int]] = []
        for term, factor in total.terms.items():
            assert term.unknown is not None  # a quotient is an unknown that isl computes
            known = self._unknowns[term.unknown]
            if isinstance(known, Var):
                factors[known] = factor
            else:
                others.append((known, factor))
        result: Function = self.space.sum(total.const, factors)
        for known, factor in others:
            result = add(result, known if factor == 1 else known.scale_val(factor))
        return result

    def piecewise(self, value: _Meaning) -> PwAff:
        """Return a number, or a condition as 0 and 1, as a piecewise affine function."""
        if isinstance(value, Set):
            return value.indicator_function()
        return piecewise(self.function(value))

    def _unknown(self, known: Var | Function) -> QuasiAffine:
        self._unknowns.append(known)
        return QuasiAffine({Digit(len(self._unknowns) - 1): 1})

    def _variable(self, var: Var) -> QuasiAffine:
        self.space.var(var)
        if var not in self._numbers:
            self._numbers[var] = len(self._unknowns)
            self._unknowns.append(var)
        return QuasiAffine({Digit(self._numbers[var]): 1})

    def _value(self, node: Expr, operands: list[Any]) -> _Meaning:
        match node:
            case Var() if node.dtype.is_integer:
                return self._variable(node)
            case Const(value, dtype) if dtype.is_bool:
                return self.space.universe_set() if value else self.space.empty_set()
            case Const(int() as value, dtype) if dtype.is_integer:
                return QuasiAffine({}, int(value))
            case Cast(dtype, inner):
                return self._cast(node, dtype, inner.dtype, operands[0])
            case Not():
                return cast(Set, operands[0]).complement()
            case Compare(op):
                return _COMPARE[op](*map(self.piecewise, operands))
            case Binary(op) if node.dtype.is_bool:
                return _logic(node, op, *operands)
            case Binary(op) if _is_exact(node.dtype):
                return self._arithmetic(node, op, *operands)
        return self._value_of_call(node, operands)

    def _value_of_call(self, node: Expr, operands: list[Any]) -> _Meaning:
        match node:
            case Select() | Call("if_then_else"):
                return self._choice(*operands)
            case Call("abs") if _is_exact(node.dtype):
                value = self.piecewise(operands[0])
                return self._unknown(value.max(value.neg()))
        raise NotAffine(node)

    def _choice(self, domain: Set, a: _Meaning, b: _Meaning) -> _Meaning:
        if isinstance(a, Set) and isinstance(b, Set):
            return a.intersect(domain).union(b.subtract(domain))
        first, second = self.piecewise(a), self.piecewise(b)
        chosen = first.intersect_domain(domain).union_add(second.subtract_domain(domain))
        return self._unknown(chosen)

    def _arithmetic(self, node: Expr, op: BinOp, a: QuasiAffine, b: QuasiAffine) -> QuasiAffine:
        match op:
            case BinOp.ADD:
                return a.plus(b)
            case BinOp.SUB:
                return a.plus(b, -1)
            case BinOp.MIN:
                return self._unknown(self.piecewise(a).min(self.piecewise(b)))
            case BinOp.MAX:
                return self._unknown(self.piecewise(a).max(self.piecewise(b)))
        factor = self._constant(b)
        if factor is None and op in (BinOp.MUL, BinOp.BITAND, BinOp.BITXOR):
            a, factor = b, self._constant(a)
        is_deep = op in _DIVIDING and self._divisions(a) >= MAX_DIVISIONS
        known = None if is_deep else factor
        result = None if known is None else self._by_constant(op, a, known, node.dtype.bits)
        if result is None:
            raise NotAffine(node)
        return result

    def _divisions(self, total: QuasiAffine) -> int:
        """Return the number of divisions in the isl functions of a sum."""
        known = [self._unknowns[term.unknown] for term in total.terms if term.unknown is not None]
        return sum(value.dim(dim_type.div) for value in known if isinstance(value, Aff))

    def _by_constant(
        self, op: BinOp, a: QuasiAffine, factor: int, width: int
    ) -> QuasiAffine | None:
        match op:
            case BinOp.MUL:
                return a.times(factor)
            case BinOp.FLOORDIV:
                return self._floordiv(a, factor)
            case BinOp.MOD:
                return self._mod(a, factor)
            case BinOp.SHL if 0 <= factor < width:
                return a.times(2**factor)
            case BinOp.SHR if 0 <= factor < width:
                return self._floordiv(a, 2**factor)
            case BinOp.BITXOR if factor == -1:
                return a.times(-1).shifted(-1)
            case BinOp.BITAND:
                return self._masked(a, factor)
        return None

    def _masked(self, a: QuasiAffine, mask: int) -> QuasiAffine | None:
        if mask >= 0 and mask & (mask + 1) == 0:
            return self._mod(a, mask + 1)
        if mask < 0 and -mask & (-mask - 1) == 0:
            return a.plus(self._mod(a, -mask), -1)
        return None

    def _floordiv(self, a: QuasiAffine, divisor: int) -> QuasiAffine:
        if divisor == 0:
            return QuasiAffine()
        dividend = self.function(a if divisor > 0 else a.times(-1))
        return self._unknown(dividend.scale_down_val(abs(divisor)).floor())

    def _mod(self, a: QuasiAffine, divisor: int) -> QuasiAffine:
        return a.times(0) if divisor == 0 else a.plus(self._floordiv(a, divisor), -divisor)

    def _cast(self, node: Expr, target: DType, source: DType, value: _Meaning) -> _Meaning:
        if isinstance(value, Set):
            if target.is_bool:
                return value
            if target.is_integer:
                return self._unknown(value.indicator_function())
        elif target.is_bool:
            return self.piecewise(value).ne_set(piecewise(self.space.const(0)))
        elif target.is_integer:
            low, high = integer_range(target)
            lowest, highest = integer_range(source)
            if _is_exact(target) or low <= lowest <= highest <= high:
                return value
        raise NotAffine(node)

    def _constant(self, total: QuasiAffine) -> int | None:
        """Return the value of a constant sum, or None if the sum is not constant."""
        return total.const if not total.terms else _constant(self.function(total))


def _logic(node: Expr, op: BinOp, a: Set, b: Set) -> Set:
    if op in AND:
        return a.intersect(b)
    if op in OR:
        return a.union(b)
    if op is BinOp.BITXOR:
        return a.subtract(b).union(b.subtract(a))
    raise NotAffine(node)


def _is_exact(dtype: DType) -> bool:
    """Return whether arithmetic in `dtype` is assumed not to wrap, as for indices."""
    return dtype.kind == "int" and dtype.bits >= 32 and dtype.lanes == 1


def _constant(value: Function) -> int | None:
    """Return the value of a constant function, or None if `value` is undefined or not constant."""
    if not value.is_cst():
        return None
    if isinstance(value, Aff):
        return python_int(value.get_constant_val())
    lower, upper = value.min_val(), value.max_val()
    return python_int(lower) if lower.eq(upper) else None


_COMPARE: dict[CmpOp, Callable[[PwAff, PwAff], Set]] = {
    CmpOp.EQ: PwAff.eq_set,
    CmpOp.NE: PwAff.ne_set,
    CmpOp.LT: PwAff.lt_set,
    CmpOp.LE: PwAff.le_set,
    CmpOp.GT: PwAff.gt_set,
    CmpOp.GE: PwAff.ge_set,
}
