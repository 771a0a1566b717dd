"""The primitive that says under which condition the elements of a stage are stored."""

from __future__ import annotations

from dataclasses import replace

from tecomp.compute.axis import IterVar
from tecomp.compute.extern import ExternOp
from tecomp.compute.operation import Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import TensorLoad
from tecomp.errors import ScheduleError
from tecomp.ir.language.expr import Expr
from tecomp.ir.traversal.rewrite import walk
from tecomp.scheduling.place import check_loops
from tecomp.scheduling.state import StageState, State, is_data
from tecomp.scheduling.threads import ThreadAxis


def set_store_predicate(state: State, key: Operation, predicate: Expr) -> tuple[State, None]:
    """Store elements where a condition of axes and threads holds; all others are left as they are.

    See `Stage.set_store_predicate`.
    """
    stage = state.stage(key)
    where = f"s[{stage.name}].set_store_predicate"
    compute = stage.compute
    check_loops(stage, where)
    if isinstance(compute, ScanOp | ExternOp):
        what = "a scan" if isinstance(compute, ScanOp) else "a te.extern"
        raise ScheduleError(
            f"{where}: {stage.name} is {what}; say under which condition with te.if_then_else",
            kind="not-this-form",
        )
    if not isinstance(predicate, Expr) or not predicate.dtype.is_bool or predicate.dtype.lanes > 1:
        raise ScheduleError(
            f"{where}: the predicate is {predicate!r}; give a condition, such as "
            "thread.var.equal(0)",
            kind="wrong-argument",
        )
    known = {*compute.axis, *(axis for axis in stage.leaves if is_data(axis))}
    for node in walk(predicate):
        if isinstance(node, TensorLoad) or (isinstance(node, IterVar) and node not in known):
            raise ScheduleError(
                f"{where}: the predicate uses {node}; it may use axes of {stage.name}, thread axes "
                "and sizes",
                kind="thread-axis",
            )
    return state.update(replace(stage, stored=predicate)), None


def check_env_threads(stage: StageState, threads: object) -> None:
    """Refuse thread axes that no scan has around its steps.

    They change nothing: loops that are bound to them run one iteration after another in each step.

    Raises:
        ScheduleError: the stage is no scan, or something is no thread axis.
    """
    where = f"s[{stage.name}].env_threads"
    if not isinstance(stage.op, ScanOp):
        raise ScheduleError(
            f"{where}: {stage.name} is no scan, and threads are around the steps of scans only; "
            "bind its loops",
            kind="not-this-form",
        )
    for thread in threads if isinstance(threads, list | tuple) else [threads]:
        if not isinstance(thread, ThreadAxis):
            raise ScheduleError(
                f"{where}: {thread!r} is no thread axis; give what te.thread_axis makes",
                kind="thread-axis",
            )
