"""Under which condition the elements of a stage are stored, in terms of its axes."""

from __future__ import annotations

from collections.abc import Mapping

from tecomp.compute.axis import IterVar
from tecomp.errors import LowerError
from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import Const, Expr, Var, is_const
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.lowering.stages.program import Program
from tecomp.scheduling.state import StageState, is_data
from tecomp.scheduling.threads import ThreadAxis

_MOST_THREADS = 1 << 16
"""Threads are looked at one by one: of so many that takes less than a second."""


def stored_where(
    program: Program, stage: StageState, values: Mapping[IterVar, Expr]
) -> Expr | None:
    """The predicate of a stage as a condition of its axes; None if it has none.

    Args:
        program: knows the sizes.
        stage: what is stored.
        values: its loops as functions of its axes.

    Raises:
        LowerError: threads that compute the same elements would store different ones.
    """
    if stage.stored is None:
        return None
    condition = substitute(stage.stored, dict(program.sizes))
    loops: dict[Var, Expr] = {
        axis: values[axis] for axis in free_variables(condition)
        if isinstance(axis, IterVar) and axis not in stage.compute.axis
    }
    bound = {tag: leaf for leaf, tag in stage.threads.items() if is_data(leaf)}
    shared = []
    for thread in free_variables(condition):
        if not isinstance(thread, ThreadAxis):
            continue
        if thread.tag in bound:
            loops[thread] = values[bound[thread.tag]]
        else:
            shared.append(thread)
    for thread in shared:
        condition = _of_one_thread(program, stage, condition, thread)
    return substitute(condition, loops)


def _of_one_thread(
    program: Program, stage: StageState, condition: Expr, thread: ThreadAxis
) -> Expr:
    """The condition for that thread, of those that compute the same, that stores them."""
    found: list[Expr] = []
    for number in range(_threads(program, stage, thread)):
        here = simplify(substitute(condition, {thread: Const(number, thread.dtype)}))
        if not is_const(here, False) and not any(same(here, other) for other in found):
            found.append(here)
    if len(found) != 1:
        raise LowerError(
            f"s[{stage.name}].set_store_predicate: {thread.name} has "
            f"{'no thread' if not found else 'threads'} that store"
            f"{'s' if not found else ' different elements'} under {stage.stored}, and all compute "
            "the same elements; compare it with one number, such as thread.var.equal(0)",
            kind="thread-axis",
        )
    return found[0]


def _threads(program: Program, stage: StageState, thread: ThreadAxis) -> int:
    """How many threads an axis has."""
    extents = [
        leaf.extent for each in program.state for leaf, tag in each.threads.items()
        if tag == thread.tag
    ]
    known = [n for n in (thread.extent, *extents) if isinstance(n, int)]
    if not known:
        raise LowerError(
            f"s[{stage.name}].set_store_predicate: no loop is bound to {thread.tag}, so how many "
            "threads there are is not known; bind a loop to it, or use an axis of "
            f"{stage.name}",
            kind="thread-axis",
        )
    if max(known) > _MOST_THREADS:
        raise LowerError(
            f"s[{stage.name}].set_store_predicate: {thread.name} has {max(known)} threads, and "
            f"which of them store is looked up for {_MOST_THREADS} at most; bind a loop that is "
            "shorter",
            kind="thread-axis",
        )
    return max(known)
