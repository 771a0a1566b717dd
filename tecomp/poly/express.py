"""From isl back to expressions: readable int64 arithmetic and conditions.

isl turns every remainder into a floor and adds everything up to one affine form; here sums are
taken apart again, so that `j - 4*floor(j/4)` is written `j % 4`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import islpy as isl

from tecomp.ir.dtype import BOOL, INT64
from tecomp.ir.expr import (
    BinOp,
    CmpOp,
    Compare,
    Const,
    Expr,
    Select,
    binary,
    cast,
    index_value,
    logical_and,
    logical_or,
)
from tecomp.poly.sums import Sum, Sums


def to_expr(value: isl.PwAff | isl.Aff, names: Mapping[str, Expr]) -> Expr:
    """`value` as an int64 expression; where it is not defined, the expression is anything.

    Args:
        value: a function that is an integer wherever it is defined.
        names: what `d0, d1, ...` (by position, whatever isl calls them) and the parameters (by
            their names in isl) stand for.
    """
    sums = Sums()
    if isinstance(value, isl.Aff) or value.isa_aff():
        aff = value if isinstance(value, isl.Aff) else value.as_aff()
        return sums.expr(_sum_of(aff, names, sums))
    pieces = _distinct_pieces(value.coalesce())
    if len(pieces) == 1:
        return sums.expr(_sum_of(pieces[0][1], names, sums))
    texts = [sums.expr(_sum_of(aff, names, sums)) for _, aff in pieces]
    for op, smaller in ((BinOp.MIN, True), (BinOp.MAX, False)):
        if _is_extremum(pieces, smaller):
            chain = texts[0]
            for text in texts[1:]:
                chain = binary(op, chain, text)
            return chain
    domain = value.domain()
    chain = texts[-1]
    for (where, _), text in zip(reversed(pieces[:-1]), reversed(texts[:-1]), strict=True):
        chain = Select(set_to_condition(where.gist(domain), names), text, chain)
        domain = domain.union(where)
    return chain


def set_to_condition(points: isl.Set, names: Mapping[str, Expr]) -> Expr:
    """Whether a point is in `points`, as a bool expression; `names` as for `to_expr`."""
    known = points.detect_equalities().coalesce().compute_divs().remove_redundancies()
    sums = Sums()
    if known.is_empty():
        return Const(False, BOOL)
    parts = []
    for basic in known.get_basic_sets():
        conditions = []
        for constraint in basic.get_constraints():
            if not constraint.is_div_constraint():
                left = sums.tidy(_sum_of(constraint.get_aff(), names, sums))
                conditions.append(_comparison(left, constraint.is_equality(), sums))
        parts.append(logical_and(*conditions))
    return logical_or(*parts)


def ast_expr(expr: isl.AstExpr, names: Mapping[str, Expr]) -> Expr:
    """An expression that isl's code generator made; `names` gives its identifiers.

    A condition that always holds, or never, is the number 1 or 0 there, and here too.
    """
    root: list[Expr] = []
    todo: list[tuple[isl.AstExpr, list[Expr], list[Expr] | None]] = [(expr, root, None)]
    while todo:
        node, into, operands = todo.pop()
        kind = isl.ast_expr_type(node.get_type())
        if kind == isl.ast_expr_type.int:
            into.append(index_value(node.get_val().to_python()))
        elif kind == isl.ast_expr_type.id:
            into.append(index_value(names[node.get_id().get_name()]))
        elif operands is None:
            made: list[Expr] = []
            todo.append((node, into, made))
            count = node.get_op_n_arg()
            todo.extend((node.get_op_arg(k), made, None) for k in reversed(range(count)))
        else:
            into.append(_operation(node, operands))
    return root[0]


def _operation(node: isl.AstExpr, operands: list[Expr]) -> Expr:
    op = isl.ast_expr_op_type
    kind = isl.ast_expr_op_type(node.get_op_type())
    if kind in (op.cond, op.select):
        return Select(_truth(operands[0]), *operands[1:])
    if kind == op.minus:
        return binary(BinOp.SUB, Const(0, INT64), operands[0])
    if kind == op.zdiv_r:
        # Only compared with zero, where the sign of a remainder does not matter.
        return binary(BinOp.MOD, *operands)
    build = _BINARY.get(kind)
    if build is None:
        raise ValueError(f"no expression for {node.to_C_str()}")
    result = operands[0]
    for operand in operands[1:]:
        result = build(result, operand)
    return result


def _truth(value: Expr) -> Expr:
    if value.dtype.is_bool:
        return value
    return cast(BOOL, value)


def _logic(op: BinOp) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: binary(op, _truth(a), _truth(b))


def _arithmetic(op: BinOp) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: binary(op, a, b)


def _compare(op: CmpOp) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: Compare(op, a, b)


_OP = isl.ast_expr_op_type
# The stubs of islpy leave out the two whose names are Python's own.
_BINARY: dict[isl.ast_expr_op_type, Callable[[Expr, Expr], Expr]] = {
    _OP.add: _arithmetic(BinOp.ADD),
    _OP.sub: _arithmetic(BinOp.SUB),
    _OP.mul: _arithmetic(BinOp.MUL),
    # `div` divides without a remainder, `pdiv_*` numbers that are not negative.
    _OP.div: _arithmetic(BinOp.FLOORDIV),
    _OP.fdiv_q: _arithmetic(BinOp.FLOORDIV),
    _OP.pdiv_q: _arithmetic(BinOp.FLOORDIV),
    _OP.pdiv_r: _arithmetic(BinOp.MOD),
    _OP.min: _arithmetic(BinOp.MIN),
    _OP.max: _arithmetic(BinOp.MAX),
    _OP.and_then: _logic(BinOp.AND),
    _OP.or_else: _logic(BinOp.OR),
    _OP.eq: _compare(CmpOp.EQ),
    _OP.le: _compare(CmpOp.LE),
    _OP.lt: _compare(CmpOp.LT),
    _OP.ge: _compare(CmpOp.GE),
    _OP.gt: _compare(CmpOp.GT),
    _OP(0): _logic(BinOp.AND),
    _OP(2): _logic(BinOp.OR),
}


def _distinct_pieces(value: isl.PwAff) -> list[tuple[isl.Set, isl.Aff]]:
    """The pieces, simplest condition first, those of one function put together."""
    pieces: list[tuple[isl.Set, isl.Aff]] = []
    for where, aff in value.get_pieces():
        for k, (others, known) in enumerate(pieces):
            if known.plain_is_equal(aff):
                pieces[k] = (others.union(where).coalesce(), known)
                break
        else:
            pieces.append((where, aff))
    return sorted(pieces, key=lambda piece: piece[0].n_basic_set())


def _is_extremum(pieces: Sequence[tuple[isl.Set, isl.Aff]], smaller: bool) -> bool:
    for where, aff in pieces:
        for _, other in pieces:
            if other is not aff:
                wins = aff.le_set(other) if smaller else aff.ge_set(other)
                if not where.is_subset(wins):
                    return False
    return True


def _sum_of(aff: isl.Aff, names: Mapping[str, Expr], sums: Sums) -> Sum:
    """`aff` with its integer divisions as atoms; one with a denominator is rounded down."""
    floors: list[Sum] = []
    for k in range(aff.dim(isl.dim_type.div)):
        floors.append(_one_sum(aff.get_div(k), names, floors, sums))
    return _one_sum(aff, names, floors, sums)


def _one_sum(aff: isl.Aff, names: Mapping[str, Expr], floors: list[Sum], sums: Sums) -> Sum:
    denominator = aff.get_denominator_val().to_python()
    whole = aff.scale_val(denominator) if denominator != 1 else aff
    total = Sum(whole.get_constant_val().to_python())
    for kind in (isl.dim_type.in_, isl.dim_type.param):
        for k in range(whole.dim(kind)):
            if factor := whole.get_coefficient_val(kind, k).to_python():
                name = f"d{k}" if kind == isl.dim_type.in_ else whole.get_dim_name(kind, k)
                total = total.plus(sums.leaf(names[str(name)]), factor)
    for k, floor in enumerate(floors):
        if factor := whole.get_coefficient_val(isl.dim_type.div, k).to_python():
            total = total.plus(floor, factor)
    return sums.floordiv(total, denominator)


def _comparison(value: Sum, is_equality: bool, sums: Sums) -> Expr:
    """`value == 0` or `value >= 0`, without negative factors."""
    up, down = value.positive(), value.negative()
    if not up.terms:
        op = CmpOp.EQ if is_equality else CmpOp.LT
        bound = value.const + (0 if is_equality else 1)
        return Compare(op, sums.expr(down), Const(bound, INT64))
    if not down.terms:
        op = CmpOp.EQ if is_equality else CmpOp.GE
        return Compare(op, sums.expr(up), Const(-value.const, INT64))
    if is_equality:
        left, right = (down, up) if value.const > 0 else (up, down)
        return Compare(CmpOp.EQ, sums.expr(left), sums.expr(right.plus(Sum(abs(value.const)))))
    if value.const == -1:
        return Compare(CmpOp.LT, sums.expr(down), sums.expr(up))
    if value.const < 0:
        return Compare(CmpOp.LE, sums.expr(down.plus(Sum(-value.const))), sums.expr(up))
    return Compare(CmpOp.LE, sums.expr(down), sums.expr(up.plus(Sum(value.const))))
