"""Tell apart what stands in a function more than once, as copies of unrolled code do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tecomp.ir.language.expr import Var
from tecomp.ir.language.stmt import For, Let, PrimFunc, Stmt
from tecomp.ir.traversal.rewrite import children, map_body, rebuild
from tecomp.ir.traversal.tasks import Task, run
from tecomp.lowering.storage.buffers import replace_in_buffer, replace_variables, with_buffer

_Names: TypeAlias = "Mapping[Var, Var]"


def distinct(func: PrimFunc) -> PrimFunc:
    """`func` in which every statement stands once, and every variable is bound once.

    What comes first stays the same object, with its variables; what repeats it is a copy with new
    ones. Expressions may still be shared.
    """
    bound = set(func.bound())
    met: set[int] = set()

    def statement(node: Any, names: _Names) -> Task:
        own: tuple[Var, ...] = getattr(node, "bound", tuple)()
        fresh = {var: Var(var.name, var.dtype) for var in own if var in bound}
        bound.update(own)
        again = id(node) in met
        met.add(id(node))
        inside = {**names, **fresh} if fresh else names
        inner = []
        for child in children(node):
            if isinstance(child, Stmt):
                inner.append((yield statement(child, inside)))
        made = _renamed(node, inner, names, inside)
        return replace(made) if again and made is node else made

    return map_body(func, lambda body: run(statement(body, {})))


def _renamed(node: Any, inner: Sequence[Stmt], names: _Names, inside: _Names) -> Any:
    """`node` with other statements in it, and with other variables.

    Args:
        node: what is copied.
        inner: the statements directly inside it, in order.
        names: the new variables of what is around it.
        inside: these, and its own.
    """
    todo = iter(inner)
    made = rebuild(node, lambda child: (
        next(todo) if isinstance(child, Stmt) else replace_variables(child, names)))
    if not inside:
        return made
    match made:
        case For(var):
            return replace(made, loop_var=inside.get(var, var))
        case Let(var):
            return replace(made, var=inside.get(var, var))
    buffer = getattr(made, "buffer", None)
    return made if buffer is None else with_buffer(made, replace_in_buffer(buffer, inside))
