"""Regions that outlive an iteration of a loop: where they are inside it, and memory around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.expr import Expr, Not
from tecomp.ir.language.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
)
from tecomp.ir.traversal.rewrite import bottom_up, walk
from tecomp.lowering.storage.scopes import Rule, rewrite_statements, size_ranges

Mark: TypeAlias = Literal["ahead", "carried"]
"""The field of a `BufferRealize` that has the variable of the loop."""

_Guarded: TypeAlias = "tuple[Stmt, list[Expr]]"


def across_iterations(func: PrimFunc, mark: Mark, rule: Rule) -> PrimFunc:
    """`func` without marks, after `rule` has taken the marked regions out of every loop.

    Args:
        func: any function; one without marks stays as it is.
        mark: which regions are meant.
        rule: takes a statement and the values of the variables around it; None leaves it as it is.
    """
    if not any(_has(node, mark) for node in walk(func.body)):
        return func
    body = rewrite_statements(func.body, rule, size_ranges(func))

    def unmarked(node: Any) -> Stmt | None:
        # A loop of one iteration is none any more: it has no next one, and none before.
        return replace(node, **{mark: None}) if _has(node, mark) else None

    return simplify(replace(func, body=bottom_up(body, unmarked)))


def _has(node: Any, mark: Mark) -> bool:
    return isinstance(node, BufferRealize) and getattr(node, mark) is not None


def regions_of(loop: For, mark: Mark) -> Iterator[tuple[BufferRealize, list[Expr]]]:
    """The regions in the body of `loop` that are marked with it, and the conditions around each."""

    def inside(item: _Guarded) -> list[_Guarded]:
        node, conditions = item
        match node:
            case BufferRealize() if getattr(node, mark) is loop.loop_var:
                return []
            case IfThenElse(condition, then, other):
                cases = [(then, [*conditions, condition])]
                return cases if other is None else [*cases, (other, [*conditions, Not(condition)])]
            case SeqStmt(stmts):
                return [(stmt, conditions) for stmt in stmts]
            case BufferRealize(body=body) | Allocate(body=body) | For(body=body):
                return [(body, conditions)]
        return []

    for node, conditions in walk((loop.body, []), parts=inside):
        if _has(node, mark) and getattr(node, mark) is loop.loop_var:
            yield node, conditions


def allocated_around(buffers: Sequence[Buffer], body: Stmt) -> Stmt:
    """Memory for `buffers` during `body`, that of the first around the others."""
    for buffer in reversed(buffers):
        body = Allocate(buffer, body)
    return body


def replaced(root: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """`root` with one statement replaced."""
    return bottom_up(root, lambda node: new if node is old else None)
