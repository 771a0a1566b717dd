"""Which line of a printed function each of its statements begins at."""

from __future__ import annotations

from typing import Any

from tecomp.ir.language.stmt import IfThenElse, PrimFunc, SeqStmt
from tecomp.ir.traversal.rewrite import statements_in


def lines_of(func: PrimFunc) -> dict[int, int]:
    """The line of each statement in `str(func)`, counted from 1, by the id of the statement.

    Empty where the text has other lines than the statements.

    >>> from tecomp.ir.parsing.parser import parse
    >>> func = parse('''def f(A: Buffer("float32", (4,))):
    ...     for i in range(4):
    ...         A[i] = float32(1.0)
    ... ''')
    >>> list(lines_of(func).values())
    [2, 3]
    """
    found: dict[int, int] = {}
    count = 0
    todo: list[Any] = [func.body]
    while todo:
        stmt = todo.pop()
        if stmt is None:
            # The word `else`.
            count += 1
            continue
        if isinstance(stmt, SeqStmt) and stmt.stmts:
            todo += reversed(stmt.stmts)
            continue
        count += 1
        found.setdefault(id(stmt), count)
        inside = list(statements_in(stmt))
        if isinstance(stmt, IfThenElse) and len(inside) > 1:
            inside.insert(1, None)
        todo += reversed(inside)
    above = str(func).rstrip("\n").count("\n") + 1 - count
    return {key: line + above for key, line in found.items()} if above >= 1 else {}
