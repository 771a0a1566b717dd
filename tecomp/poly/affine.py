"""From expressions to isl: the only place where variables become positions.

isl reads names such as `mod` and `max` as operators, so it never sees the user's: the variables
of a `Space` are `d0, d1, ...` and `p0, p1, ...` there. The way back, `tecomp.poly.express`, can be
imported from here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import islpy as isl

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
from tecomp.poly.context import CONTEXT
from tecomp.poly.express import ast_expr, set_to_condition, to_expr

__all__ = [
    "NotAffine",
    "Space",
    "ast_expr",
    "condition",
    "condition_hull",
    "index_relation",
    "pw_aff",
    "set_to_condition",
    "to_expr",
]

Extent: TypeAlias = "int | Expr"
_Value: TypeAlias = "isl.Aff | isl.PwAff | isl.Set"

_DIM = isl.dim_type.set
_PARAM = isl.dim_type.param


class NotAffine(Exception):  # noqa: N818  (an answer, which the callers turn into their own error)
    """`expr` is no quasi-affine function of the variables of a space."""

    def __init__(self, expr: Expr) -> None:
        super().__init__(expr)
        self.expr = expr


@dataclass(frozen=True)
class Space:
    """Integer points with one coordinate for each of `dims`, for given values of `params`."""

    dims: tuple[Var, ...]
    params: tuple[Var, ...] = ()

    @cached_property
    def isl(self) -> isl.Space:
        """The isl space, its dimensions named `d0, d1, ...` and `p0, p1, ...`."""
        space = isl.Space.set_alloc(CONTEXT, len(self.params), len(self.dims))
        for k in range(len(self.params)):
            space = space.set_dim_name(_PARAM, k, f"p{k}")
        for k in range(len(self.dims)):
            space = space.set_dim_name(_DIM, k, f"d{k}")
        return space

    @cached_property
    def names(self) -> Mapping[str, Expr]:
        """The variables by their names in isl, as `tecomp.poly.express` wants them."""
        dims = {f"d{k}": var for k, var in enumerate(self.dims)}
        return {**dims, **{f"p{k}": var for k, var in enumerate(self.params)}}

    @cached_property
    def _local(self) -> isl.LocalSpace:
        return isl.LocalSpace.from_space(self.isl)

    @cached_property
    def _affs(self) -> dict[Var, isl.Aff]:
        affs = {
            var: isl.Aff.var_on_domain(self._local, _PARAM, k)
            for k, var in enumerate(self.params)
        }
        for k, var in enumerate(self.dims):
            affs[var] = isl.Aff.var_on_domain(self._local, _DIM, k)
        return affs

    def var(self, var: Var) -> isl.Aff:
        """The coordinate or parameter `var` as a function on the space.

        Raises:
            NotAffine: the space has no such variable.
        """
        found = self._affs.get(var)
        if found is None:
            raise NotAffine(var)
        return found

    def const(self, value: int) -> isl.Aff:
        """The function that is `value` everywhere."""
        return isl.Aff.val_on_domain(self._local, isl.Val.int_from_si(CONTEXT, value))

    def universe_set(self) -> isl.Set:
        """All points."""
        return isl.Set.universe(self.isl)

    def empty_set(self) -> isl.Set:
        """No point."""
        return isl.Set.empty(self.isl)

    def box(self, ranges: Sequence[tuple[Extent, Extent]]) -> isl.Set:
        """Points whose coordinate k is one of `extent` values from `low`, for the k-th range.

        Args:
            ranges: (low, extent) of each dimension; affine in the parameters (or in other
                dimensions, for a set that is no box).

        Raises:
            NotAffine: a bound is not affine.
        """
        points = isl.Set.universe(self.isl)
        for k, (low, extent) in enumerate(ranges):
            if isinstance(low, int) and isinstance(extent, int):
                points = points.lower_bound_val(_DIM, k, low)
                points = points.upper_bound_val(_DIM, k, low + extent - 1)
                continue
            axis = self._affs[self.dims[k]]
            first = _number(low, self)
            points = points.intersect(axis.to_pw_aff().ge_set(_pw(first)))
            points = points.intersect(
                axis.to_pw_aff().lt_set(_pw(_add(first, _number(extent, self))))
            )
        return points


def pw_aff(expr: Extent, space: Space) -> isl.PwAff:
    """`expr`, an integer expression, as a function on `space`.

    Understood are `+ - min max abs`, `*` by a constant, `//` and `%` by a constant, shifts by
    and masks with constants that amount to those, Select and if_then_else, and conversions
    between integer types (taken to lose nothing where the target has 32 bits or more).

    Raises:
        NotAffine: a part of `expr` is something else.
    """
    return _pw(_number(expr, space))


def condition(cond: Expr, space: Space) -> isl.Set:
    """The points of `space` where `cond` holds.

    Raises:
        NotAffine: a part of `cond` is not affine.
    """
    holds = _evaluate(cond, space)
    if not isinstance(holds, isl.Set):
        raise NotAffine(cond)
    return holds


def condition_hull(cond: Expr, space: Space) -> tuple[isl.Set, bool]:
    """Points that include all where `cond` may hold, and whether it holds at each of them.

    A part that depends on more than the variables of `space` is taken to hold or not to hold,
    whichever gives more points.
    """
    exact = True
    done: dict[tuple[int, bool], isl.Set] = {}
    todo: list[tuple[Expr, bool]] = [(cond, False)]
    while todo:
        node, negated = key = todo[-1]
        parts = _logic_parts(node, negated)
        if waiting := [part for part in parts if (id(part[0]), part[1]) not in done]:
            todo.extend(waiting)
            continue
        todo.pop()
        sets = [done[id(part), sign] for part, sign in parts]
        if not sets:
            try:
                hull = condition(node, space)
                hull = hull.complement() if negated else hull
            except NotAffine:
                hull, exact = space.universe_set(), False
        elif len(sets) == 1:
            hull = sets[0]
        elif (node.op in _AND) != negated:  # type: ignore[attr-defined]
            hull = sets[0].intersect(sets[1])
        else:
            hull = sets[0].union(sets[1])
        done[id(node), key[1]] = hull
    return done[id(cond), False], exact


def index_relation(exprs: Sequence[Extent], space: Space) -> isl.Map:
    """`{ [dims] -> [exprs] }` on all points of `space`.

    Raises:
        NotAffine: one of `exprs` is not affine.
    """
    values = [_number(expr, space) for expr in exprs]
    target = isl.Space.set_alloc(CONTEXT, len(space.params), len(values))
    for k in range(len(space.params)):
        target = target.set_dim_name(_PARAM, k, f"p{k}")
    both = space.isl.map_from_domain_and_range(target)
    if all(isinstance(value, isl.Aff) for value in values):
        affs = isl.AffList.alloc(CONTEXT, len(values))
        for value in values:
            affs = affs.add(value)
        return isl.Map.from_multi_aff(isl.MultiAff.from_aff_list(both, affs))
    pieces = isl.PwAffList.alloc(CONTEXT, len(values))
    for value in values:
        pieces = pieces.add(_pw(value))
    return isl.Map.from_multi_pw_aff(isl.MultiPwAff.from_pw_aff_list(both, pieces))


def _logic_parts(node: Expr, negated: bool) -> list[tuple[Expr, bool]]:
    if isinstance(node, Not):
        return [(node.a, not negated)]
    if isinstance(node, Binary) and node.op in (*_AND, *_OR) and node.dtype.is_bool:
        return [(node.a, negated), (node.b, negated)]
    return []


def _number(expr: Extent, space: Space) -> isl.Aff | isl.PwAff:
    if isinstance(expr, int):
        return space.const(expr)
    value = _evaluate(expr, space)
    if isinstance(value, isl.Set):
        raise NotAffine(expr)
    return value


def _evaluate(root: Expr, space: Space) -> _Value:
    """`root` as a function (an Aff where one piece is enough) or, if it is a bool, as a set."""
    done: dict[int, _Value] = {}
    todo: list[Expr] = [root]
    while todo:
        node = todo[-1]
        if id(node) in done:
            todo.pop()
            continue
        operands = _operands(node)
        if waiting := [operand for operand in operands if id(operand) not in done]:
            todo.extend(reversed(waiting))
            continue
        done[id(node)] = _value(node, [done[id(operand)] for operand in operands], space)
        todo.pop()
    return done[id(root)]


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
            return operands[0].complement()
        case Compare(op):
            left, right = (
                value.indicator_function() if isinstance(value, isl.Set) else _pw(value)
                for value in operands
            )
            return _COMPARE[op](left, right)
        case Binary(op) if node.dtype.is_bool:
            return _logic(node, op, operands)
        case Binary(op) if _exact(node.dtype):
            return _arithmetic(node, op, operands)
        case Select() | Call("if_then_else"):
            return _choice(*operands)
        case Call("abs") if _exact(node.dtype):
            value = _pw(operands[0])
            return value.max(value.neg())
    raise NotAffine(node)


def _logic(node: Expr, op: BinOp, operands: list[isl.Set]) -> isl.Set:
    a, b = operands
    if op in _AND:
        return a.intersect(b)
    if op in _OR:
        return a.union(b)
    if op is BinOp.BITXOR:
        return a.subtract(b).union(b.subtract(a))
    raise NotAffine(node)


def _arithmetic(node: Expr, op: BinOp, operands: list[isl.Aff | isl.PwAff]) -> isl.Aff | isl.PwAff:
    a, b = operands
    match op:
        case BinOp.ADD:
            return _add(a, b)
        case BinOp.SUB:
            return _add(a, b.neg())
        case BinOp.MIN:
            return _pw(a).min(_pw(b))
        case BinOp.MAX:
            return _pw(a).max(_pw(b))
    number, other = _constant(b), a
    if number is None and op in (BinOp.MUL, BinOp.BITAND):
        number, other = _constant(a), b
    if number is not None:
        match op:
            case BinOp.MUL:
                return other.scale_val(number)
            case BinOp.FLOORDIV:
                return _floordiv(other, number)
            case BinOp.MOD:
                return _mod(other, number)
            case BinOp.SHL if 0 <= number < node.dtype.bits:
                return other.scale_val(2**number)
            case BinOp.SHR if 0 <= number < node.dtype.bits:
                return _floordiv(other, 2**number)
            case BinOp.BITAND if number >= 0 and number & (number + 1) == 0:
                return _mod(other, number + 1)
            case BinOp.BITAND if number < 0 and -number & (-number - 1) == 0:
                return _add(other, _mod(other, -number).neg())
            case BinOp.BITXOR if number == -1:
                return other.neg().add_constant_val(-1)
    raise NotAffine(node)


def _floordiv(a: isl.Aff | isl.PwAff, divisor: int) -> isl.Aff | isl.PwAff:
    if divisor == 0:
        return a.scale_val(0)
    dividend = a if divisor > 0 else a.neg()
    return dividend.scale_down_val(abs(divisor)).floor()


def _mod(a: isl.Aff | isl.PwAff, divisor: int) -> isl.Aff | isl.PwAff:
    return _add(a, _floordiv(a, divisor).scale_val(-divisor)) if divisor else a.scale_val(0)


def _choice(holds: isl.Set, a: Any, b: Any) -> isl.PwAff | isl.Set:
    if isinstance(a, isl.Set):
        return a.intersect(holds).union(b.subtract(holds))
    return _pw(a).intersect_domain(holds).union_add(_pw(b).subtract_domain(holds))


def _cast(node: Expr, target: DType, source: DType, value: Any, space: Space) -> _Value:
    if isinstance(value, isl.Set):
        if target.is_bool:
            return value
        if target.is_integer:
            return value.indicator_function()
    elif target.is_bool:
        return _pw(value).ne_set(_pw(space.const(0)))
    elif target.is_integer:
        low, high = integer_range(target)
        lowest, highest = integer_range(source)
        if _exact(target) or low <= lowest <= highest <= high:
            return value
    raise NotAffine(node)


def _exact(dtype: DType) -> bool:
    """Whether arithmetic in this type is taken not to wrap: it is what indices are made of."""
    return dtype.kind == "int" and dtype.bits >= 32


def _constant(value: isl.Aff | isl.PwAff) -> int | None:
    if not value.is_cst():
        return None
    aff = value if isinstance(value, isl.Aff) else value.as_aff()
    return int(aff.get_constant_val().to_python())


def _add(a: isl.Aff | isl.PwAff, b: isl.Aff | isl.PwAff) -> isl.Aff | isl.PwAff:
    if isinstance(a, isl.Aff) and isinstance(b, isl.Aff):
        return a.add(b)
    return _pw(a).add(_pw(b))


def _pw(value: isl.Aff | isl.PwAff) -> isl.PwAff:
    return value.to_pw_aff() if isinstance(value, isl.Aff) else value


_AND = (BinOp.AND, BinOp.BITAND, BinOp.MIN)
_OR = (BinOp.OR, BinOp.BITOR, BinOp.MAX)

_COMPARE: dict[CmpOp, Callable[[isl.PwAff, isl.PwAff], isl.Set]] = {
    CmpOp.EQ: isl.PwAff.eq_set,
    CmpOp.NE: isl.PwAff.ne_set,
    CmpOp.LT: isl.PwAff.lt_set,
    CmpOp.LE: isl.PwAff.le_set,
    CmpOp.GT: isl.PwAff.gt_set,
    CmpOp.GE: isl.PwAff.ge_set,
}
