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
from tecomp.errors import ScheduleError
from tecomp.ir.nodes.argument_checks import is_one_of, whole_number
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.stmt import ForKind
from tecomp.ir.traversal.rewrite import walk
from tecomp.scheduling.compute_location import check_loops, consumers_below
from tecomp.scheduling.loops import mark
from tecomp.scheduling.state import Ahead, StageState, State, is_data, leaf_position
from tecomp.scheduling.threads import ThreadAxis

STEPS = "auto_unroll_max_step"
EXPLICIT = "unroll_explicit"
# What they are about is so without them.
LAUNCH = ("parallel_launch_point", "parallel_stride_pattern", "parallel_barrier_when_finish")
MARKS = {"unroll": ForKind.UNROLLED, "vectorize": ForKind.VECTORIZED}
"""How a loop runs, said by a pragma."""
_KNOWN = ", ".join((STEPS, EXPLICIT, *MARKS, *LAUNCH))

_LIBRARY = "compile the code to a shared library, and call its functions with te.call_extern"

# What code needs in TVM, and what does the same here.
_NEEDED = {"import_c": _LIBRARY, "import_llvm": _LIBRARY}
# What changes how fast it runs there.
_INSTEAD = {
    "debug_skip_region": "leave the stage out of the computation to see what it costs",
    "tensor_core": "use te.dot for the dot products that the machine has",
}


def check_pragma(kind: object, value: object, where: str) -> tuple[str, int]:
    """The pragma and its value.

    One that is not known is warned of: TVM takes any, and so its programs run.

    Raises:
        ScheduleError: what computes the stage would be missing, or the pragma cannot have that
            value.
    """
    if is_one_of(kind, LAUNCH):
        return str(kind), 1
    if not isinstance(kind, str) or kind in _NEEDED:
        instead = _NEEDED.get(kind, "write a text") if isinstance(kind, str) else "write a text"
        raise ScheduleError(
            f"{where}: there is no pragma {kind!r} here; {instead}; the pragmas are {_KNOWN}",
            kind="unknown-choice",
        )
    if kind == EXPLICIT:
        return kind, _truth(value, where)
    if kind != STEPS:
        instead = f"{_INSTEAD[kind]}; " if kind in _INSTEAD else ""
        # The frame of who called `s[T].pragma`.
        warnings.warn(
            f"{where}: there is no pragma {kind!r} here, so it changes nothing; {instead}"
            f"the pragmas are {_KNOWN}",
            stacklevel=6,
        )
        return kind, 1
    steps = None if isinstance(value, Expr) else whole_number(value)
    if steps is None or steps < 0:
        raise ScheduleError(
            f"{where}: {STEPS} is how many statements may be written out, 0 or more, got {value!r}",
            kind="wrong-number",
        )
    return kind, steps


def _truth(value: object, where: str) -> int:
    number = 1 if value is None else int(value) if isinstance(value, bool) else whole_number(value)
    if number not in (0, 1):
        raise ScheduleError(
            f"{where}: {EXPLICIT} is True or False, got {value!r}", kind="wrong-argument"
        )
    return number


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


def prefetch(
    state: State, key: Operation, tensor: Tensor, axis: IterVar, offset: int
) -> tuple[State, None]:
    """Fetch to the caches what a loop reads of a tensor, some iterations before it is read.

    See `Stage.prefetch`.
    """
    stage = state.stage(key)
    leaf_position(stage, axis, "prefetch")
    source = state.stage(tensor.op)
    where = f"s[{stage.name}].prefetch({tensor.name}, {axis.name})"
    if stage.key not in consumers_below(state, source.key):
        read = ", ".join(dict.fromkeys(t.name for t in stage.op.input_tensors)) or "nothing"
        raise ScheduleError(
            f"{where}: {stage.name} does not read {tensor.name}; what it reads is {read}",
            kind="no-reader",
        )
    count = None if isinstance(offset, Expr) else whole_number(offset)
    if count is None or count < 0:
        raise ScheduleError(
            f"{where}: the offset is a number of iterations, 0 or more, got {offset!r}",
            kind="wrong-argument",
        )
    kept = tuple(
        old for old in stage.prefetches
        if old.axis is not axis or state.find(old.tensor.op) is not source
        or old.tensor.value_index != tensor.value_index
    )
    ahead = Ahead(tensor, axis, count)
    return state.update(replace(stage, prefetches=(*kept, ahead))), None


def pragma(
    state: State, key: Operation, axis: IterVar, kind: str, value: int | None = None
) -> tuple[State, None]:
    """Set a pragma of a loop; see `Stage.pragma`."""
    if is_one_of(kind, tuple(MARKS)):
        return mark(state, key, axis, MARKS[kind])
    stage = state.stage(key)
    leaf_position(stage, axis, "pragma")
    name, number = check_pragma(kind, value, f"s[{stage.name}].pragma({axis.name}, {kind!r})")
    pragmas = MappingProxyType({**stage.pragmas, (axis, name): number})
    return state.update(replace(stage, pragmas=pragmas)), None
