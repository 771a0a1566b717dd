"""Rewrite statements that need to know the loops around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tecomp.ir.algebra.simplify import Ranges
from tecomp.ir.language.expr import BinOp, Expr, binary, index_value
from tecomp.ir.language.stmt import For, PrimFunc, Stmt
from tecomp.ir.traversal.natural import natural_variables
from tecomp.ir.traversal.rewrite import children, rebuild
from tecomp.ir.traversal.tasks import Task, run

Rule: TypeAlias = "Callable[[Stmt, Ranges], Stmt | None]"


def rewrite_statements(root: Stmt, rule: Rule, ranges: Ranges) -> Stmt:
    """Apply `rule` once to every statement, inner before outer; None leaves it as it is.

    Args:
        root: where to begin.
        rule: takes a statement and the least and greatest value of the variables around it.
        ranges: of the variables around `root`.
    """
    result: Stmt = run(_statement(root, rule, ranges))
    return result


def _statement(node: Stmt, rule: Rule, ranges: Ranges) -> Task:
    inner = {**ranges, node.loop_var: range_of(node)} if isinstance(node, For) else ranges
    done: dict[int, Any] = {}
    for child in children(node):
        if isinstance(child, Stmt):
            done[id(child)] = yield _statement(child, rule, inner)
    rebuilt = rebuild(node, lambda child: done.get(id(child), child))
    result = rule(rebuilt, ranges)
    return rebuilt if result is None else result


def range_of(loop: For) -> tuple[Expr, Expr]:
    """The least and the greatest value of a loop's variable."""
    end = binary(BinOp.ADD, loop.min, loop.extent)
    return loop.min, binary(BinOp.SUB, end, index_value(1))


def size_ranges(func: PrimFunc) -> Ranges:
    """Extents of arrays are at least 0."""
    return {size: (0, None) for size in natural_variables(func)}
