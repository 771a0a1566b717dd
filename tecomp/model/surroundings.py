"""Loops and conditions around a place in a form that is quick to count.

Each condition stands right inside the loop whose variable it needs last. One that is linear in that
variable is a bound of the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tecomp.ir.algebra.quasi_affine import QuasiAffine
from tecomp.ir.algebra.terms import Terms
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import (
    Binary,
    BinOp,
    BufferLoad,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    Var,
    binary,
    index_value,
    is_const,
)
from tecomp.ir.language.operators import MIRRORED, OPPOSITE
from tecomp.ir.traversal.rewrite import children, free_variables, post_order, walk
from tecomp.model.frames import Frame, Loop


@dataclass(slots=True)
class CountedLoop:
    """A loop.

    Attributes:
        var: its variable.
        thread: the axis of the grid that it is bound to; empty if to none.
        low: the first value.
        end: the first value after the last one.
        conditions: that have to hold inside, each of which needs the variable.
    """

    var: Var
    thread: str
    low: Expr
    end: Expr
    conditions: list[Expr] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is around a place.

    Attributes:
        conditions: that need no variable of a loop.
        loops: outermost first.
    """

    conditions: tuple[Expr, ...]
    loops: tuple[CountedLoop, ...]


def surroundings_of(terms: Terms, frames: Sequence[Frame]) -> Surroundings:
    """The loops and conditions of `frames`.

    What depends on data is left out: such a condition holds, such a loop has no iterations.
    """
    depths = {f.var: k for k, f in enumerate(f for f in frames if isinstance(f, Loop))}
    outside: list[Expr] = []
    loops: list[CountedLoop] = []
    for frame in frames:
        if isinstance(frame, Loop):
            low, extent = (
                e if is_known(e, depths) else index_value(0) for e in (frame.min, frame.extent)
            )
            end = extent if is_const(low, 0) else binary(
                BinOp.ADD, low, extent)
            loops.append(CountedLoop(frame.var, frame.thread, low, end))
    for frame in frames:
        if isinstance(frame, Loop) or not is_known(frame.condition, depths):
            continue
        for part in _parts(frame.condition):
            depth = depth_of(part, depths)
            if depth < 0:
                outside.append(part)
            elif not _bounds(terms, part, loops[depth], depths):
                loops[depth].conditions.append(part)
    return Surroundings(tuple(outside), tuple(loops))


def is_known(expr: Expr, known: Iterable[Var]) -> bool:
    """Whether it depends on loops alone, and not on data."""
    loops = set(known)
    return all(var in loops for var in free_variables(expr)) and not any(
        isinstance(part, BufferLoad) for part in walk(expr))


def depth_of(expr: Expr, depths: Mapping[Var, int]) -> int:
    """Of the innermost loop whose variable is needed; -1 if none is."""
    return max((depths[var] for var in free_variables(expr)), default=-1)


def known_outside(exprs: Iterable[Expr], depths: Mapping[Var, int], k: int) -> list[Expr]:
    """The largest parts of expressions that depend on the loops outside of loop `k` alone."""
    roots = list(exprs)
    deepest: dict[int, int] = {}
    for node in post_order(*roots):
        own = depths[node] if isinstance(node, Var) else -1
        deepest[id(node)] = max([own, *(deepest[id(part)] for part in children(node))])
    nodes = walk(*roots, parts=lambda node: () if deepest[id(node)] < k else children(node))
    return [node for node in nodes if not isinstance(node, Const) and deepest[id(node)] < k]


def _parts(condition: Expr) -> Iterator[Expr]:
    """Conditions that hold together if and only if `condition` does."""

    def inside(node: Expr) -> Sequence[Expr]:
        match node:
            case Binary(BinOp.AND, a, b):
                return a, b
            case Not(Not(inner)):
                return (inner,)
            case Not(Binary(BinOp.OR, a, b)):
                return Not(a), Not(b)
        return ()

    for node in walk(condition, parts=inside):
        match node:
            case Not(Compare(op, a, b)):
                yield Compare(OPPOSITE[op], a, b)
            case _ if not inside(node):
                yield node


def _bounds(terms: Terms, part: Expr, loop: CountedLoop, depths: Mapping[Var, int]) -> bool:
    """Make a condition a bound of the loop; False if it is none."""
    if not isinstance(part, Compare) or part.op is CmpOp.NE or part.a.dtype != INT64:
        return False
    total = terms.sum_of(part.a).plus(terms.sum_of(part.b), -1)
    factor = sum(c for term, c in total.terms.items() if terms.text(term) is loop.var)
    if factor < 0:
        total = total.times(-1)
    op = MIRRORED[part.op] if factor < 0 else part.op
    rest = {t: c for t, c in total.terms.items() if terms.text(t) is not loop.var}
    if not factor or any(loop.var in free_variables(terms.text(term)) for term in rest):
        return False
    # abs(factor) * var is compared with this; what changes least comes first.
    order = sorted(rest, key=lambda term: depth_of(terms.text(term), depths))
    other = QuasiAffine({term: -rest[term] for term in order}, -total.const)
    factor = abs(factor)
    if op in (CmpOp.GE, CmpOp.GT, CmpOp.EQ):
        least = other.shifted(factor - 1 + (op is CmpOp.GT))
        loop.low = binary(BinOp.MAX, loop.low, _quotient(terms, least, factor))
    if op in (CmpOp.LE, CmpOp.LT, CmpOp.EQ):
        end = _quotient(terms, other.shifted(factor - (op is CmpOp.LT)), factor)
        loop.end = binary(BinOp.MIN, loop.end, end)
    return True


def _quotient(terms: Terms, value: QuasiAffine, divisor: int) -> Expr:
    found = terms.expr(value)
    return found if divisor == 1 else binary(BinOp.FLOORDIV, found, index_value(divisor))
