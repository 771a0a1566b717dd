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
    """A number of isl's.

    Raises:
        isl.Error: isl has no operation left to write it with, which islpy takes for no text.
    """
    try:
        return int(value.to_python())
    except TypeError:
        raise isl.Error("maximal number of operations exceeded") from None


# An Aff where one piece is enough: it is ten times as fast.
Function: TypeAlias = "Aff | PwAff"
_Meaning: TypeAlias = "QuasiAffine | Set"

AND = (BinOp.AND, BinOp.BITAND, BinOp.MIN)
OR = (BinOp.OR, BinOp.BITOR, BinOp.MAX)
MOST_DIVISIONS = 24
"""Divisions in what is divided again: isl takes twice as long for each more, and counts none of
that as work."""
_DIVIDING = (BinOp.FLOORDIV, BinOp.MOD, BinOp.SHR, BinOp.BITAND)


class NotAffine(Exception):  # noqa: N818  (an answer, which the callers turn into their own error)
    """`expr` is no quasi-affine function of the variables of a space."""

    def __init__(self, expr: Expr) -> None:
        super().__init__(expr)
        self.expr = expr


class Space(Protocol):
    """What expressions ask of a space; `tecomp.poly.sets.to_isl.Space` answers."""

    def var(self, var: Var) -> Aff:
        """The coordinate or parameter `var` as a function on the space."""

    def const(self, value: int) -> Aff:
        """The function that is `value` everywhere."""

    def sum(self, const: int, factors: Mapping[Var, int]) -> Aff:
        """The function `const + factor * variable + ...`."""

    def universe_set(self) -> Set:
        """All points."""

    def empty_set(self) -> Set:
        """No point."""


def number(expr: Extent, space: Space) -> Function:
    """An integer expression as a function on `space`.

    Raises:
        NotAffine: it is not affine, or a condition.
    """
    if isinstance(expr, int):
        return space.const(expr)
    scope = _Scope(space)
    value = scope.evaluate(expr)
    if isinstance(value, Set):
        raise NotAffine(expr)
    return scope.function(value)


def truth(cond: Expr, space: Space) -> Set:
    """Where on `space` a condition holds.

    Raises:
        NotAffine: it is not affine, or a number.
    """
    holds = _Scope(space).evaluate(cond)
    if not isinstance(holds, Set):
        raise NotAffine(cond)
    return holds


def piecewise(value: Function) -> PwAff:
    """The same function, as one that may have several pieces."""
    return value.to_pw_aff() if isinstance(value, Aff) else value


def add(a: Function, b: Function) -> Function:
    """`a + b`."""
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


class _Scope:
    """Values on one space: numbers as sums, which isl is told when they are complete.

    isl takes long for each step, so a sum counts its variables first.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self._numbers: dict[Var, int] = {}
        self._unknowns: list[Var | Function] = []

    def evaluate(self, root: Expr) -> _Meaning:
        """What an expression is."""
        value: _Meaning = fold(root, self._value, _operands)
        return value

    def function(self, total: QuasiAffine) -> Function:
        """A sum as isl has it."""
        factors: dict[Var, int] = {}
        others: list[tuple[Function, int]] = []
        for term, factor in total.terms.items():
            assert term.unknown is not None  # quotients are isl's own here
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
        """A number, or a condition as 0 and 1."""
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

    def _choice(self, holds: Set, a: _Meaning, b: _Meaning) -> _Meaning:
        if isinstance(a, Set) and isinstance(b, Set):
            return a.intersect(holds).union(b.subtract(holds))
        first, second = self.piecewise(a), self.piecewise(b)
        chosen = first.intersect_domain(holds).union_add(second.subtract_domain(holds))
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
        is_deep = op in _DIVIDING and self._divisions(a) >= MOST_DIVISIONS
        known = None if is_deep else factor
        result = None if known is None else self._by_constant(op, a, known, node.dtype.bits)
        if result is None:
            raise NotAffine(node)
        return result

    def _divisions(self, total: QuasiAffine) -> int:
        """How many divisions isl is told of in a sum."""
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
        """The number that a sum is everywhere, None if it is none or has several."""
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
    """Whether arithmetic in this type is taken not to wrap: it is what indices are made of."""
    return dtype.kind == "int" and dtype.bits >= 32 and dtype.lanes == 1


def _constant(value: Function) -> int | None:
    """The number that `value` is everywhere, None if it is none or has several."""
    if not value.is_cst():
        return None
    if isinstance(value, Aff):
        return python_int(value.get_constant_val())
    least, most = value.min_val(), value.max_val()
    return python_int(least) if least.eq(most) else None


_COMPARE: dict[CmpOp, Callable[[PwAff, PwAff], Set]] = {
    CmpOp.EQ: PwAff.eq_set,
    CmpOp.NE: PwAff.ne_set,
    CmpOp.LT: PwAff.lt_set,
    CmpOp.LE: PwAff.le_set,
    CmpOp.GT: PwAff.gt_set,
    CmpOp.GE: PwAff.ge_set,
}
