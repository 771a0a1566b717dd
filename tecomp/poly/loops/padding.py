"""Loops over the places of a buffer that hold no element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tecomp.ir.language.expr import Expr, Var
from tecomp.ir.language.stmt import For, ForKind, IfThenElse, Range, Stmt
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.poly.loops.scan import scan
from tecomp.poly.sets.affine import NotAffine, Space, condition


def padding_loops(
    where: Expr,
    indices: Sequence[Var],
    bounds: Sequence[Range],
    body: Callable[[tuple[Expr, ...]], Stmt],
) -> Stmt:
    """Run `body` at each place in `bounds` where `where` holds, in row-major order.

    The loops visit those places only. Where the condition is not affine, as for a swizzle with
    XOR, they visit all of `bounds` and ask.

    Args:
        where: a condition on `indices`.
        indices: one variable for each axis; the loops are named after them.
        bounds: first place and extent along each axis.
        body: makes the statement for a place.
    """
    box = [(part.min, part.extent) for part in bounds]
    used: dict[Var, None] = {}
    for expr in (where, *(end for pair in box for end in pair)):
        used.update(free_variables(expr))
    space = Space(tuple(indices), tuple(var for var in used if var not in set(indices)))
    try:
        points = condition(where, space).intersect(space.box(box)).coalesce()
    except NotAffine:
        return _asking(where, indices, bounds, body)
    return scan(points, space, lambda at, _: body(tuple(at[index] for index in indices)))


def _asking(
    where: Expr,
    indices: Sequence[Var],
    bounds: Sequence[Range],
    body: Callable[[tuple[Expr, ...]], Stmt],
) -> Stmt:
    result: Stmt = IfThenElse(where, body(tuple(indices)))
    for index, part in reversed(list(zip(indices, bounds, strict=True))):
        result = For(index, part.min, part.extent, ForKind.SERIAL, result)
    return result
