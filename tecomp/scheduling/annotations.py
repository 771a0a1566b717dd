"""Primitives that annotate stages: prefetch, pragma, store predicates, and their checks."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import MappingProxyType

from tecomp.compute.extern import ExternOp
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import ScheduleError, safe_repr
from tecomp.ir.nodes.argument_checks import as_int, is_one_of
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.stmt import ForKind
from tecomp.ir.traversal.rewrite import walk
from tecomp.scheduling.compute_location import check_loops, consumers_below
from tecomp.scheduling.loops import mark
from tecomp.scheduling.state import Ahead, ScheduleState, StageState, is_data, leaf_position
from tecomp.scheduling.threads import ThreadAxis

STEPS = "auto_unroll_max_step"
EXPLICIT = "unroll_explicit"
# Pragmas without effect: the behaviour that they request is the default.
LAUNCH = ("parallel_launch_point", "parallel_stride_pattern", "parallel_barrier_when_finish")
MARKS = {"unroll": ForKind.UNROLLED, "vectorize": ForKind.VECTORIZED}
"""Loop kinds that a pragma can request."""
_KNOWN = ", ".join((STEPS, EXPLICIT, *MARKS, *LAUNCH))

_LIBRARY = "compile the code to a shared library, and call its functions with te.call_extern"

# Pragmas on which TVM code depends for its results, with the alternative here.
_NEEDED = {"import_c": _LIBRARY, "import_llvm": _LIBRARY}
# Pragmas that affect performance only in TVM, with the alternative here.
_ALTERNATIVES = {
    "debug_skip_region": "leave the stage out of the computation to see what it costs",
    "tensor_core": "use te.dot for the dot products that the machine has",
}


def check_pragma(kind: object, value: object, where: str) -> tuple[str, int]:
    """Return the validated name and value of a pragma.

    An unknown pragma gives a warning only, because TVM accepts any pragma and TVM programs should
    run.

    Raises:
        ScheduleError: If the name is not a string, the stage depends on an unsupported pragma for
            its code (`import_c`, `import_llvm`), or the value is invalid.
    """
    if is_one_of(kind, LAUNCH):
        return str(kind), 1
    if not isinstance(kind, str) or kind in _NEEDED:
        instead = _NEEDED.get(kind, "write a text") if isinstance(kind, str) else "write a text"
        raise ScheduleError(
            "{where}: unknown pragma {form!r}; {instead}; supported pragmas: {known}",
            kind="unknown-choice", where=where, form=kind, instead=instead, known=_KNOWN,
        )
    if kind == EXPLICIT:
        return kind, _truth(value, where)
    if kind != STEPS:
        instead = f"{_ALTERNATIVES[kind]}; " if kind in _ALTERNATIVES else ""
        # Attribute the warning to the caller of `s[T].pragma`.
        warnings.warn(
            f"{where}: unknown pragma {safe_repr(kind)} has no effect here; {instead}"
            f"supported pragmas: {_KNOWN}",
            stacklevel=6,
        )
        return kind, 1
    steps = None if isinstance(value, Expr) else as_int(value)
    if steps is None or steps < 0:
        raise ScheduleError(
            "{where}: {steps} must be the maximum number of unrolled statements, an integer >= 0, "
            "got {value!r}",
            kind="invalid-value", where=where, steps=STEPS, value=value,
        )
    return kind, steps


def _truth(value: object, where: str) -> int:
    number = 1 if value is None else int(value) if isinstance(value, bool) else as_int(value)
    if number not in (0, 1):
        raise ScheduleError(
            "{where}: {explicit} must be True or False, got {value!r}",
            kind="invalid-type", where=where, explicit=EXPLICIT, value=value,
        )
    return number


def set_store_predicate(state: ScheduleState, key: Operation, predicate: Expr) -> tuple[
        ScheduleState, None]:
    """Store elements only where a condition of axes and threads holds; others stay unchanged.

    See `Stage.set_store_predicate`.
    """
    stage = state.stage(key)
    where = f"s[{stage.name}].set_store_predicate"
    compute = stage.compute
    check_loops(stage, where)
    if isinstance(compute, ScanOp | ExternOp):
        description = "a scan" if isinstance(compute, ScanOp) else "a te.extern"
        raise ScheduleError(
            "{where}: {stage} is {subject}, which does not support store predicates; use "
            "te.if_then_else instead",
            kind="pattern-mismatch", where=where, stage=stage.name, subject=description,
        )
    if not isinstance(predicate, Expr) or not predicate.dtype.is_bool or predicate.dtype.lanes > 1:
        raise ScheduleError(
            "{where}: the predicate must be a scalar boolean expression, got {predicate!r}; pass a "
            "condition such as thread.var.equal(0)",
            kind="invalid-type", where=where, predicate=predicate,
        )
    known = {*compute.axis, *(axis for axis in stage.leaves if is_data(axis))}
    for node in walk(predicate):
        if isinstance(node, TensorLoad) or (isinstance(node, IterVar) and node not in known):
            raise ScheduleError(
                "{where}: the predicate uses {node}, but only axes of {stage}, thread axes and "
                "size variables are allowed",
                kind="thread-axis", where=where, node=node, stage=stage.name,
            )
    return state.update(replace(stage, stored=predicate)), None


def check_env_threads(stage: StageState, threads: object) -> None:
    """Raise if `threads` are not thread axes around the steps of a scan.

    The threads have no effect: loops bound to them run sequentially in each step.

    Raises:
        ScheduleError: If the stage is not a scan, or an argument is not a thread axis.
    """
    where = f"s[{stage.name}].env_threads"
    if not isinstance(stage.op, ScanOp):
        raise ScheduleError(
            "{where}: {stage} is not a scan, and only scans have threads around their steps; bind "
            "the loops of {stage} instead",
            kind="pattern-mismatch", where=where, stage=stage.name,
        )
    for thread in threads if isinstance(threads, list | tuple) else [threads]:
        if not isinstance(thread, ThreadAxis):
            raise ScheduleError(
                "{where}: expected a thread axis, got {thread!r}; create one with te.thread_axis",
                kind="thread-axis", where=where, thread=thread,
            )


def prefetch(
    state: ScheduleState, key: Operation, tensor: Tensor, axis: IterVar, offset: int
) -> tuple[ScheduleState, None]:
    """Prefetch the elements of a tensor that a loop reads, some iterations ahead.

    See `Stage.prefetch`.
    """
    stage = state.stage(key)
    leaf_position(stage, axis, "prefetch")
    source = state.stage(tensor.op)
    where = f"s[{stage.name}].prefetch({tensor.name}, {axis.name})"
    if stage.key not in consumers_below(state, source.key):
        read = ", ".join(dict.fromkeys(t.name for t in stage.op.input_tensors)) or "nothing"
        raise ScheduleError(
            "{where}: {stage} does not read {tensor}; it reads {read}",
            kind="no-consumer", where=where, stage=stage.name, tensor=tensor.name, read=read,
        )
    count = None if isinstance(offset, Expr) else as_int(offset)
    if count is None or count < 0:
        raise ScheduleError(
            "{where}: offset must be a number of iterations >= 0, got {offset!r}",
            kind="invalid-type", where=where, offset=offset,
        )
    retained = tuple(
        old for old in stage.prefetches
        if old.axis is not axis or state.find(old.tensor.op) is not source
        or old.tensor.value_index != tensor.value_index
    )
    entry = Ahead(tensor, axis, count)
    return state.update(replace(stage, prefetches=(*retained, entry))), None


def pragma(
    state: ScheduleState, key: Operation, axis: IterVar, kind: str, value: int | None = None
) -> tuple[ScheduleState, None]:
    """Attach a pragma to a loop; see `Stage.pragma`."""
    if is_one_of(kind, tuple(MARKS)):
        return mark(state, key, axis, MARKS[kind])
    stage = state.stage(key)
    leaf_position(stage, axis, "pragma")
    where = f"s[{stage.name}].pragma({axis.name}, {safe_repr(kind)})"
    name, number = check_pragma(kind, value, where)
    pragmas = MappingProxyType({**stage.pragmas, (axis, name): number})
    return state.update(replace(stage, pragmas=pragmas)), None
