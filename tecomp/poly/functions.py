"""Expressions as isl sees them: integers as functions on a space, conditions as sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, cast

from islpy import Aff, PwAff, Set

from tecomp.ir.dtype import DType
from tecomp.ir.expr import (
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
from tecomp.ir.rewrite import fold
from tecomp.ir.stmt import Extent

# An Aff where one piece is enough: it is ten times as fast.
Function: TypeAlias = "Aff | PwAff"
_Value: TypeAlias = "Function | Set"

# In a sum of more, the same terms may come again and again: each is evaluated once then.
_MOST_STEPS = 256
_SIGNS = {BinOp.ADD: 1, BinOp.SUB: -1}

AND = (BinOp.AND, BinOp.BITAND, BinOp.MIN)
OR = (BinOp.OR, BinOp.BITOR, BinOp.MAX)


class NotAffine(Exception):  # noqa: N818  (an answer, which the callers turn into their own error)
    """`expr` is no quasi-affine function of the variables of a space."""

    def __init__(self, expr: Expr) -> None:
        super().__init__(expr)
        self.expr = expr


class Space(Protocol):
    """What expressions ask of a space; `tecomp.poly.affine.Space` answers."""

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
    value = _evaluate(expr, space) if isinstance(expr, Compare) else _sum(expr, space)
    if isinstance(value, Set):
        raise NotAffine(expr)
    return value


def truth(cond: Expr, space: Space) -> Set:
    """Where on `space` a condition holds.

    Raises:
        NotAffine: it is not affine, or a number.
    """
    holds = _evaluate(cond, space)
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


def _sum(root: Expr, space: Space) -> _Value:
    """As `_evaluate`, but a sum counts its variables first: isl takes long for each step."""
    const, factors, others = _terms(root)
    if others and others[0][0] is root:
        return _evaluate(root, space)
    total: Function = space.sum(const, factors)
    for node, factor in others:
        term = _evaluate(node, space)
        if isinstance(term, Set):
            raise NotAffine(node)
        total = add(total, term if factor == 1 else term.scale_val(factor))
    return total


def _terms(root: Expr) -> tuple[int, dict[Var, int], list[tuple[Expr, int]]]:
    """A sum as a number, variables with their factors, and what else is added with its factor."""
    const = 0
    factors: dict[Var, int] = {}
    others: list[tuple[Expr, int]] = []
    todo: list[tuple[Expr, int]] = [(root, 1)]
    for _ in range(_MOST_STEPS):
        if not todo:
            return const, factors, others
        node, factor = todo.pop()
        match node:
            case _ if not _is_exact(node.dtype):
                others.append((node, factor))
            case Var():
                factors[node] = factors.get(node, 0) + factor
            case Const(number):
                const += factor * int(number)
            case Cast(_, inner) if _is_exact(inner.dtype):
                todo.append((inner, factor))
            case Binary(op, a, b) if op in _SIGNS:
                todo += [(b, factor * _SIGNS[op]), (a, factor)]
            case Binary(BinOp.MUL, a, Const(c)):
                todo.append((a, factor * int(c)))
            case _:
                others.append((node, factor))
    return 0, {}, [(root, 1)]


def _evaluate(root: Expr, space: Space) -> _Value:
    return fold(root, lambda node, operands: _value(node, operands, space), _operands)


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


def _value(node: Expr, operands: list[Any], space: Space) -> _Value:
    match node:
        case Var() if node.dtype.is_integer:
            return space.var(node)
        case Const(value, dtype) if dtype.is_bool:
            return space.universe_set() if value else space.empty_set()
        case Const(int() as value, dtype) if dtype.is_integer:
            return space.const(value)
        case Cast(dtype, inner):
            return _cast(node, dtype, inner.dtype, operands[0], space)
        case Not():
            return cast(Set, operands[0]).complement()
        case Compare(op):
            return _compare(op, *operands)
        case Binary(op) if node.dtype.is_bool:
            return _logic(node, op, *operands)
        case Binary(op) if _is_exact(node.dtype):
            return _arithmetic(node, op, *operands)
    return _value_of_call(node, operands)


def _value_of_call(node: Expr, operands: list[Any]) -> _Value:
    match node:
        case Select() | Call("if_then_else"):
            return _choice(*operands)
        case Call("abs") if _is_exact(node.dtype):
            value = piecewise(operands[0])
            return value.max(value.neg())
    raise NotAffine(node)


def _compare(op: CmpOp, a: _Value, b: _Value) -> Set:
    left, right = (
        value.indicator_function() if isinstance(value, Set) else piecewise(value)
        for value in (a, b)
    )
    return _COMPARE[op](left, right)


def _logic(node: Expr, op: BinOp, a: Set, b: Set) -> Set:
    if op in AND:
        return a.intersect(b)
    if op in OR:
        return a.union(b)
    if op is BinOp.BITXOR:
        return a.subtract(b).union(b.subtract(a))
    raise NotAffine(node)


def _arithmetic(node: Expr, op: BinOp, a: Function, b: Function) -> Function:
    match op:
        case BinOp.ADD:
            return add(a, b)
        case BinOp.SUB:
            return add(a, b.neg())
        case BinOp.MIN:
            return piecewise(a).min(piecewise(b))
        case BinOp.MAX:
            return piecewise(a).max(piecewise(b))
    factor = _constant(b)
    if factor is None and op in (BinOp.MUL, BinOp.BITAND, BinOp.BITXOR):
        a, factor = b, _constant(a)
    result = None if factor is None else _by_constant(op, a, factor, node.dtype.bits)
    if result is None:
        raise NotAffine(node)
    return result


def _by_constant(op: BinOp, a: Function, factor: int, width: int) -> Function | None:
    match op:
        case BinOp.MUL:
            return a.scale_val(factor)
        case BinOp.FLOORDIV:
            return _floordiv(a, factor)
        case BinOp.MOD:
            return _mod(a, factor)
        case BinOp.SHL if 0 <= factor < width:
            return a.scale_val(2**factor)
        case BinOp.SHR if 0 <= factor < width:
            return _floordiv(a, 2**factor)
        case BinOp.BITXOR if factor == -1:
            return a.neg().add_constant_val(-1)
        case BinOp.BITAND:
            return _masked(a, factor)
    return None


def _masked(a: Function, mask: int) -> Function | None:
    if mask >= 0 and mask & (mask + 1) == 0:
        return _mod(a, mask + 1)
    if mask < 0 and -mask & (-mask - 1) == 0:
        return add(a, _mod(a, -mask).neg())
    return None


def _floordiv(a: Function, divisor: int) -> Function:
    if divisor == 0:
        return a.scale_val(0)
    dividend = a if divisor > 0 else a.neg()
    return dividend.scale_down_val(abs(divisor)).floor()


def _mod(a: Function, divisor: int) -> Function:
    if divisor == 0:
        return a.scale_val(0)
    return add(a, _floordiv(a, divisor).scale_val(-divisor))


def _choice(holds: Set, a: Any, b: Any) -> PwAff | Set:
    if isinstance(a, Set):
        return a.intersect(holds).union(b.subtract(holds))
    return piecewise(a).intersect_domain(holds).union_add(piecewise(b).subtract_domain(holds))


def _cast(node: Expr, target: DType, source: DType, value: _Value, space: Space) -> _Value:
    if isinstance(value, Set):
        if target.is_bool:
            return value
        if target.is_integer:
            return value.indicator_function()
    elif target.is_bool:
        return piecewise(value).ne_set(piecewise(space.const(0)))
    elif target.is_integer:
        low, high = integer_range(target)
        lowest, highest = integer_range(source)
        if _is_exact(target) or low <= lowest <= highest <= high:
            return value
    raise NotAffine(node)


def _is_exact(dtype: DType) -> bool:
    """Whether arithmetic in this type is taken not to wrap: it is what indices are made of."""
    return dtype.kind == "int" and dtype.bits >= 32 and dtype.lanes == 1


def _constant(value: Function) -> int | None:
    """The number that `value` is everywhere, None if it is none or has several."""
    if not value.is_cst():
        return None
    if isinstance(value, Aff):
        return int(value.get_constant_val().to_python())
    least, most = value.min_val(), value.max_val()
    return int(least.to_python()) if least.eq(most) else None


_COMPARE: dict[CmpOp, Callable[[PwAff, PwAff], Set]] = {
    CmpOp.EQ: PwAff.eq_set,
    CmpOp.NE: PwAff.ne_set,
    CmpOp.LT: PwAff.lt_set,
    CmpOp.LE: PwAff.le_set,
    CmpOp.GT: PwAff.gt_set,
    CmpOp.GE: PwAff.ge_set,
}
