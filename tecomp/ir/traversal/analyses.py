"""Analyses of IR graphs: path conditions, value numbers, line numbers, sizes and buffer views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import Any, TypeAlias

from tecomp.ir.nodes.expr import Call, Expr, Not, Var, logical_and, logical_or
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    DeclBuffer,
    IfThenElse,
    PrimFunc,
    SeqStmt,
)
from tecomp.ir.traversal.rewrite import children, free_variables, post_order, statements_in, walk


@dataclass(frozen=True, slots=True, eq=False)
class PathCondition:
    """Path condition: a condition or its negation, nested in the outer path conditions.

    The empty path condition is represented by None.
    """

    outer: PathCondition | None
    condition: Expr
    is_true: bool = True

    def all(self) -> Iterator[PathCondition]:
        """Yield this path condition and all outer ones, innermost first."""
        guard: PathCondition | None = self
        while guard is not None:
            yield guard
            guard = guard.outer

    def conditions(self) -> tuple[Expr, ...]:
        """Return the conditions that hold, outermost first."""
        found = [g.condition if g.is_true else Not(g.condition) for g in self.all()]
        return tuple(reversed(found))

    def expr(self, outer: PathCondition | None = None) -> Expr:
        """Return the conjunction of all conditions inside the outer path condition `outer`."""
        conditions = []
        for guard in self.all():
            if guard is outer:
                break
            conditions.append(guard.condition if guard.is_true else Not(guard.condition))
        return logical_and(*reversed(conditions))


Arms: TypeAlias = "Sequence[tuple[Any, Expr | None, bool]]"
"""Children of a node, each with its guard condition (or None) and the required truth value."""


def arms(node: Any) -> Arms:
    """Return the children of a node; its condition guards the branches of `if_then_else`."""
    match node:
        case Call("if_then_else", (condition, a, b)):
            return (condition, None, True), (a, condition, True), (b, condition, False)
    return [(child, None, True) for child in children(node)]


class PathConditions:
    """Path conditions under which each subexpression of some expressions is evaluated.

    Args:
        roots: Expressions to analyze.
        parts: Function that returns the children of a node with their guards. Default: `arms`.

    >>> from tecomp.ir.nodes.expr import Var, if_then_else
    >>> i = Var("i")
    >>> x, test = i * i, i > 0
    >>> one, both = if_then_else(test, x, 0), if_then_else(test, x, x + 1)
    >>> str(PathConditions([one]).of(x).condition), PathConditions([both]).of(x)
    ('i > 0', None)
    """

    def __init__(self, roots: Sequence[Expr], parts: Callable[[Any], Arms] = arms) -> None:
        self._found: dict[int, PathCondition | None] = {}
        self._places: dict[int, int] = {}
        inside = [(node, parts(node)) for node in post_order(*roots)]
        # Without a conditional child, no path condition exists.
        if any(arm[1] is not None for _, inner in inside for arm in inner):
            self._find(roots, inside)

    def of(self, node: Expr) -> PathCondition | None:
        """Return a condition that holds wherever `node` is evaluated, or None."""
        return self._found.get(id(node))

    def num_conditions(self, node: Expr) -> int:
        """Return the number of distinct path conditions of the uses of `node`."""
        return self._places.get(id(node), 1)

    def _find(self, roots: Sequence[Expr], inside: Sequence[tuple[Any, Arms]]) -> None:
        paths: dict[int, dict[PathCondition | None, None]] = {id(root): {None: None} for root
            in roots}
        # Visit users before their operands.
        for node, inner in reversed(inside):
            guard = self._found[id(node)] = _weakest_common_condition(paths[id(node)])
            self._places[id(node)] = len(paths[id(node)])
            branches: dict[tuple[int, bool], PathCondition] = {}
            for child, condition, holds in inner:
                path = guard
                if condition is not None:
                    key = id(condition), holds
                    path = branches.setdefault(key, PathCondition(guard, condition, holds))
                paths.setdefault(id(child), {})[path] = None


def _weakest_common_condition(paths: dict[PathCondition | None, None]) -> PathCondition | None:
    """Return a path condition that is implied by each of several path conditions."""
    if None in paths:
        return None
    joined, *others = _without_pairs(paths)
    for other in others:
        joined = _either(joined, other)
        if joined is None:
            break
    return joined


def _without_pairs(paths: dict[PathCondition | None, None]) -> list[PathCondition | None]:
    """Replace a path condition and its complement by the path condition that encloses them."""
    remaining = dict(paths)
    worklist = list(paths)
    by_condition: dict[tuple[int, int], PathCondition] = {}
    while worklist:
        guard = worklist.pop()
        if guard is None:
            return [None]
        key = id(guard.outer), id(guard.condition)
        other = by_condition.setdefault(key, guard)
        if other.is_true != guard.is_true:
            remaining.pop(guard, None)
            remaining.pop(other, None)
            remaining[guard.outer] = None
            worklist.append(guard.outer)
    # Users are visited in reverse order of the text, so reverse the order again.
    return list(remaining)[::-1]


def _either(a: PathCondition | None, b: PathCondition | None) -> PathCondition | None:
    """Return a path condition that either of two implies: their common part and a disjunction."""
    if a is None or b is None:
        return None
    known = set(map(id, a.all()))
    common = next((guard for guard in b.all() if id(guard) in known), None)
    if common is a or common is b:
        return common
    return PathCondition(common, logical_or(a.expr(common), b.expr(common)))


def lines_of(func: PrimFunc) -> dict[int, int]:
    """Return the line number in `str(func)` of each statement, by the id of the statement.

    Lines are counted from 1. The result is empty if the text has fewer lines than statements.

    >>> from tecomp.ir.parser.func_parser import parse
    >>> func = parse('''def f(A: Buffer("float32", (4,))):
    ...     for i in range(4):
    ...         A[i] = float32(1.0)
    ... ''')
    >>> list(lines_of(func).values())
    [2, 3]
    """
    found: dict[int, int] = {}
    count = 0
    worklist: list[Any] = [func.body]
    while worklist:
        stmt = worklist.pop()
        if stmt is None:
            # The line of the keyword `else`.
            count += 1
            continue
        if isinstance(stmt, SeqStmt) and stmt.stmts:
            worklist += reversed(stmt.stmts)
            continue
        count += 1
        found.setdefault(id(stmt), count)
        inside = list(statements_in(stmt))
        if isinstance(stmt, IfThenElse) and len(inside) > 1:
            inside.insert(1, None)
        worklist += reversed(inside)
    header_lines = str(func).rstrip("\n").count("\n") + 1 - count
    return {key: line + header_lines for key, line in found.items()} if header_lines >= 1 else {}


def nonnegative_variables(func: PrimFunc) -> tuple[Var, ...]:
    """Return the size and extent variables that are never negative; pure strides are excluded."""
    params = [param for param in func.params if isinstance(param, Buffer)]
    extents = [n for p in params for n in p.shape if isinstance(n, Expr)]
    strides = [n for p in params for n in p.strides or () if isinstance(n, Expr)]
    signed: set[Var] = set()
    if strides:
        signed.update(var for n in strides for var in free_variables(n))
        signed.difference_update(var for n in extents for var in free_variables(n))
    variables = (n for n in extents if isinstance(n, Var))
    return tuple(dict.fromkeys((*(var for var in func.sizes if var not in signed), *variables)))


class ValueNumbering:
    """Value numbering: structurally equal expressions have the same number.

    >>> from tecomp.ir.nodes.expr import Var
    >>> i, j, numbers = Var("i"), Var("j"), ValueNumbering()
    >>> numbers.of(i + 1) == numbers.of(i + 1), numbers.of(i + 1) == numbers.of(j + 1)
    (True, False)
    """

    def __init__(self) -> None:
        # Hold references to the nodes, so that their ids are not reused.
        self._number_of_value: dict[int, tuple[Any, int]] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}

    def of(self, expr: Expr) -> int:
        """Return the number of an expression."""
        for node in post_order(expr, parts=self._unknown):
            if id(node) not in self._number_of_value:
                number = self._numbers.setdefault(self._signature(node), len(self._numbers))
                self._number_of_value[id(node)] = node, number
        return self._number_of_value[id(expr)][1]

    def _unknown(self, node: Any) -> list[Any]:
        return [part for part in children(node) if id(part) not in self._number_of_value]

    def _signature(self, node: Any) -> tuple[Any, ...]:
        """Return the class, attributes, bound variables and child numbers that identify a node."""
        if hasattr(node, "is_variable"):
            return (id(node),)
        parts = [self._number_of_value[id(part)][1] for part in children(node)]
        kind: type = type(node)
        attributes = [_attribute_values(getattr(node, name)) for name in _describe_fields(kind)]
        names = getattr(node, "bound_fields", ())
        bound = [id(var) for name in names for var in getattr(node, name)]
        return (kind, *attributes, *bound, *parts)


@cache
def _describe_fields(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.compare)


def _attribute_values(value: Any) -> Any:
    """Return the attribute values of a field; child expressions are numbered separately.

    Literals are represented by type and `repr`, because 1 == 1.0 == True and 0.0 == -0.0.
    """
    if isinstance(value, Expr):
        return None
    if isinstance(value, tuple):
        return tuple(map(_attribute_values, value))
    if isinstance(value, bool | int | float):
        return type(value), repr(value)
    return value if isinstance(value, str | Enum | None) else id(value)


def views_with_memory(func: PrimFunc) -> Iterator[tuple[Buffer, Buffer]]:
    """Yield each view that a `DeclBuffer` of a function declares, with the buffer of its memory."""
    nodes = [*walk(func.body, parts=statements_in)]
    if not any(isinstance(node, DeclBuffer) for node in nodes):
        return
    memories: list[tuple[Buffer, Any]] = [
        (param, func.body) for param in func.params if isinstance(param, Buffer)]
    memories += [(n.buffer, n.body) for n in nodes if isinstance(n, Allocate | BufferRealize)]
    for memory, inside in memories:
        for node in walk(inside, parts=statements_in):
            if isinstance(node, DeclBuffer) and node.buffer.data is memory.data:
                yield node.buffer, memory
