"""Lower a schedule to flat IR: the sequence of passes, and a check that finds a faulty pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from keyword import iskeyword
from time import monotonic
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from tecomp.compute.tensor import Tensor
from tecomp.drawing.drawable import Pictured
from tecomp.errors import LowerError, safe_repr
from tecomp.ir.arith.simplify import join_branches, simplify
from tecomp.ir.nodes.argument_checks import is_one_of
from tecomp.ir.nodes.stmt import Buffer, PrimFunc
from tecomp.ir.traversal.verify import verify
from tecomp.lowering.loops.loop_nest import build_nest
from tecomp.lowering.stages.index_expressions import offsets_of, strides_of
from tecomp.lowering.stages.program import prepare
from tecomp.lowering.storage.allocation import lower_storage
from tecomp.lowering.storage.buffering import double_buffers, roll_buffers
from tecomp.lowering.storage.flatten_buffer import flatten_buffer
from tecomp.lowering.storage.physical_layout import apply_buffer_transforms, fill_padding
from tecomp.lowering.tensor_ops.pattern_match import expand_tensor_ops
from tecomp.lowering.vectorize.unroll import unroll_loops
from tecomp.lowering.vectorize.vector_expr import pack_reads
from tecomp.lowering.vectorize.vectorize import vectorize_loops
from tecomp.poly.sets.isl_context import isl_work
from tecomp.progress import log_duration
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.schedule.primitive_calls import attach_to_primitives
from tecomp.scheduling.split_schedule import with_arguments

Watch: TypeAlias = "Callable[[str, PrimFunc, float], None]"


@dataclass(frozen=True, slots=True)
class Pass:
    """Lowering pass.

    Attributes:
        name: Name of the pass.
        run: Function of the pass.
        flat: Whether buffers are physical (flat) after the pass.
        on_simple: Variant of `run` whose input is simplified (as by `simplify`) and whose result
            is simplified too. Default: None.
    """

    name: str
    run: Callable[[PrimFunc], PrimFunc]
    flat: bool = False
    on_simple: Callable[[PrimFunc], PrimFunc] | None = None


PASSES = (
    # Apply the layout maps to every access; buffers get the physical shapes that callers pass.
    Pass("apply_buffer_transforms", apply_buffer_transforms,
         on_simple=partial(apply_buffer_transforms, is_simple=True)),
    # Store the pad value at physical positions that hold no element.
    Pass("fill_padding", fill_padding),
    # Reuse elements that the previous iteration computed, for stages with a rolling buffer.
    Pass("roll_buffers", roll_buffers),
    # Compute the data of the next iteration before the current data is used (double buffering).
    Pass("double_buffers", double_buffers),
    # Replace realized regions by allocations of the size of the region.
    Pass("lower_storage", lower_storage, on_simple=partial(lower_storage, is_simple=True)),
    # Flatten the indices to one index for each physical axis.
    Pass("flatten_buffer", flatten_buffer, flat=True),
    # Tensor intrinsics are recognizable (for cost counting) up to here; expand them to statements.
    Pass("expand_tensor_ops", expand_tensor_ops, flat=True),
    # Replace joins of adjacent elements by vector loads.
    Pass("pack_reads", pack_reads, flat=True),
    # Vectorize marked loops and mask tails. The input is simplified: all passes above either end
    # with `simplify` or build simplified sums.
    Pass("vectorize_loops", partial(vectorize_loops, is_simple=True), flat=True),
    # Unroll marked loops.
    Pass("unroll_loops", unroll_loops, flat=True),
    # Simplify indices, fold decidable conditions and join branches under equal conditions.
    Pass("simplify", lambda func: join_branches(simplify(func)), flat=True),
)

# Passes after which buffers are physical.
_FLAT = frozenset(step.name for step in PASSES if step.flat)

STAGES = ("nest", *(p.name for p in PASSES))


@dataclass(frozen=True, slots=True)
class LoweringResult(Pictured):
    """Functions after each pass by pass name, in pass order: `functions["flatten_buffer"]`."""

    _drawn_by: ClassVar[str] = "loop_nest:draw_passes"

    functions: dict[str, PrimFunc]

    @property
    def final(self) -> PrimFunc:
        """Function after the last pass that ran."""
        return next(reversed(self.functions.values()))

    @property
    def signature(self) -> PrimFunc:
        """Function whose parameters have the physical shapes that callers pass."""
        return self.functions.get("apply_buffer_transforms", self.final)

    def __repr__(self) -> str:
        return f"<Lowered {self.final.name}: after {', '.join(self.functions)}>"

    def __str__(self) -> str:
        return self.dump()

    def dump(self) -> str:
        """Return the printed function after each pass; a pass without effect is marked `same`."""
        parts = []
        before = ""
        for name, func in self.functions.items():
            text = str(func)
            parts.append(f"# after {name}\n{text}" if text != before else f"# after {name}: same\n")
            before = text
        return "\n".join(parts)


def lower_all(
    schedule: Schedule, args: Sequence[object], name: str = "main", stop_after: str | None = None,
    *, binds: Mapping[Tensor, Buffer] | None = None, watch: Watch | None = None,
) -> LoweringResult:
    """Lower a schedule and return the function after every pass.

    Args:
        schedule: Schedule to lower.
        args: Tensors and size variables, in the order of the function parameters.
        name: Name of the function. Default: "main".
        stop_after: Name of the last pass to run. Default: all passes run.
        binds: For tensors among `args`, a `te.decl_buffer` that declares the strides of their
            arrays, and the offset in them.
        watch: Callback that receives the name, the result and the duration in seconds of each
            pass.

    Raises:
        LowerError: If no code preserves the semantics of the schedule, if an argument is invalid,
            or if `stop_after` is not the name of a pass.

    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    >>> list(lower_all(te.create_schedule(B), [A, B], stop_after="fill_padding").functions)
    ['nest', 'apply_buffer_transforms', 'fill_padding']
    """
    check_stage(stop_after)
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        raise LowerError(
            "lower: name must be a valid identifier, got {name!r}",
            kind="invalid-type", name=name,
        )
    if not isinstance(schedule, Schedule):
        raise LowerError(
            "lower: expected a schedule, got {schedule!r}",
            kind="invalid-type", schedule=schedule,
        )
    full = with_arguments(schedule, args)
    strides, offsets = strides_of(binds, args, "lower"), offsets_of(binds, args)
    with attach_to_primitives(schedule), isl_work("lower"):
        begin = monotonic()
        with log_duration(f"lower {name}: nest"):
            functions = {"nest": simplify(build_nest(prepare(full, args, strides, offsets), name))}
        if watch is not None:
            watch("nest", functions["nest"], monotonic() - begin)
        try:
            _run(functions, stop_after, watch)
        except Exception:
            # Report the first malformed function rather than the failure that follows from it.
            verify_each(functions)
            raise
    return LoweringResult(functions)


_TVM_NAMES = MappingProxyType({
    "ApplyBufferTransforms": "apply_buffer_transforms",
    "FlattenBuffer": "flatten_buffer",
    "InjectDoubleBuffer": "double_buffers",
    "InjectRollingBuffer": "roll_buffers",
    "Simplify": "simplify",
    "StorageFlatten": "flatten_buffer",
    "UnrollLoop": "unroll_loops",
    "VectorizeLoop": "vectorize_loops",
})
"""Passes of TVM and their equivalents."""


def check_stage(stop_after: str | None) -> None:
    """Raise if `stop_after` is neither None nor the name of a pass.

    Raises:
        LowerError: If no pass has this name. For the name of a TVM pass, the message names the
            equivalent pass.
    """
    if stop_after is None or is_one_of(stop_after, STAGES):
        return
    known = _TVM_NAMES.get(stop_after) if isinstance(stop_after, str) else None
    remedy = f"use {safe_repr(known)}, as that pass of TVM is called here; " if known else ""
    raise LowerError(
        "lower: unknown pass {stop_after!r}; {remedy}available passes: {stages}",
        kind="unknown-choice", stop_after=stop_after, remedy=remedy, stages=", ".join(STAGES),
    )


def _run(functions: dict[str, PrimFunc], stop_after: str | None, watch: Watch | None) -> None:
    """Run the passes up to `stop_after`, add the results to `functions`, verify the last one."""
    last = "nest"
    simple = functions[last]
    for step in PASSES:
        if last == stop_after:
            break
        func = functions[last]
        begin = monotonic()
        with log_duration(f"lower {func.name}: {step.name}"):
            if step.on_simple is not None and func is simple:
                func = simple = step.on_simple(func)
            else:
                func = step.run(func)
        functions[step.name] = func
        if watch is not None:
            watch(step.name, func, monotonic() - begin)
        last = step.name
    verify(functions[last], flat=last in _FLAT)


def verify_each(functions: Mapping[str, PrimFunc]) -> None:
    """Verify the functions after each pass, given by pass name in pass order.

    Raises:
        InternalError: If a function is malformed.
    """
    last: tuple[PrimFunc | None, bool] = None, False
    for name, func in functions.items():
        flat = name in _FLAT
        # Skip functions that a pass has not changed, which is the common case.
        if func is not last[0] or flat is not last[1]:
            verify(func, flat=flat)
        last = func, flat
