"""From a schedule to flat IR: the passes, in order, and a check that finds the one that errs."""

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
from tecomp.errors import LowerError
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.argument_checks import is_one_of
from tecomp.ir.nodes.stmt import Buffer, PrimFunc
from tecomp.ir.traversal.verify import verify
from tecomp.lowering.loops.loop_nest import build_nest
from tecomp.lowering.stages.index_expressions import strides_of
from tecomp.lowering.stages.program import prepare
from tecomp.lowering.storage.allocation import lower_storage
from tecomp.lowering.storage.buffering import double_buffers, roll_buffers
from tecomp.lowering.storage.physical_layout import (
    apply_buffer_transforms,
    fill_padding,
    flatten_buffer,
)
from tecomp.lowering.tensor_ops.operand_binding import expand_tensor_ops
from tecomp.lowering.vectorize.pack_reads import pack_reads
from tecomp.lowering.vectorize.unroll import unroll_loops
from tecomp.lowering.vectorize.vectorize import vectorize_loops
from tecomp.poly.sets.isl_context import isl_work
from tecomp.progress import doing
from tecomp.scheduling.deferred_errors import told_at_primitives
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.split_schedule import with_arguments

Watch: TypeAlias = "Callable[[str, PrimFunc, float], None]"


@dataclass(frozen=True, slots=True)
class Pass:
    """A step of lowering: its name, and whether buffers are physical after it.

    `on_simple` does the same for a function as `simplify` leaves it, and leaves it so.
    """

    name: str
    run: Callable[[PrimFunc], PrimFunc]
    flat: bool = False
    on_simple: Callable[[PrimFunc], PrimFunc] | None = None


PASSES = (
    # Layout maps are applied to every access; buffers get the shapes that callers pass.
    Pass("apply_buffer_transforms", apply_buffer_transforms,
         on_simple=partial(apply_buffer_transforms, is_simple=True)),
    # Places that hold no element get their pad value.
    Pass("fill_padding", fill_padding),
    # What the last iteration has computed is kept for this one, where that was asked for.
    Pass("roll_buffers", roll_buffers),
    # What the next iteration needs is computed before this one's is used, where that was asked for.
    Pass("double_buffers", double_buffers),
    # Regions that exist for a while become allocations of their own size.
    Pass("lower_storage", lower_storage, on_simple=partial(lower_storage, is_simple=True)),
    # One index for each physical axis.
    Pass("flatten_buffer", flatten_buffer, flat=True),
    # What the machine does at once is counted before here, and from here on statements like all.
    Pass("expand_tensor_ops", expand_tensor_ops, flat=True),
    # Elements that are joined to one operand are read at once.
    Pass("pack_reads", pack_reads, flat=True),
    # Loops marked so become vector operations; tails are masked. What was put together so far, by
    # passes that end with `simplify` or add up sums themselves, is simple.
    Pass("vectorize_loops", partial(vectorize_loops, is_simple=True), flat=True),
    # Loops marked so are written out.
    Pass("unroll_loops", unroll_loops, flat=True),
    # Indices in their shortest form, conditions decided where they can be.
    Pass("simplify", simplify, flat=True),
)

STAGES = ("nest", *(p.name for p in PASSES))


@dataclass(frozen=True, slots=True)
class Lowered(Pictured):
    """A function after each pass, in order: `functions["flatten_buffer"]`."""

    _drawn_by: ClassVar[str] = "loop_nest:draw_passes"

    functions: dict[str, PrimFunc]

    @property
    def final(self) -> PrimFunc:
        """After the last pass that ran."""
        return next(reversed(self.functions.values()))

    @property
    def signature(self) -> PrimFunc:
        """With the parameters in the shapes that callers pass."""
        return self.functions.get("apply_buffer_transforms", self.final)

    def __repr__(self) -> str:
        return f"<Lowered {self.final.name}: after {', '.join(self.functions)}>"

    def __str__(self) -> str:
        return self.dump()

    def dump(self) -> str:
        """The printed function after every pass that changed it."""
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
) -> Lowered:
    """The function of a schedule after every pass.

    Args:
        schedule: what to lower.
        args: tensors and size variables, in the order of the function's parameters.
        name: of the function.
        stop_after: the last pass to run, by name; all of them if None.
        binds: for tensors among the arguments a `te.decl_buffer` with the strides that their arrays
            have.
        watch: told the name of each pass, what it made and how many seconds that took.

    Raises:
        LowerError: the schedule has no code that keeps its meaning, or there is no such pass.

    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    >>> list(lower_all(te.create_schedule(B), [A, B], stop_after="fill_padding").functions)
    ['nest', 'apply_buffer_transforms', 'fill_padding']
    """
    check_stage(stop_after)
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        raise LowerError(
            f"lower: the name of a function is an identifier, not {name!r}", kind="wrong-argument"
        )
    if not isinstance(schedule, Schedule):
        raise LowerError(f"lower: expected a schedule, got {schedule!r}", kind="wrong-argument")
    whole = with_arguments(schedule, args)
    strides = strides_of(binds, args, "lower")
    with told_at_primitives(schedule), isl_work("lower"):
        begin = monotonic()
        with doing(f"lower {name}: nest"):
            functions = {"nest": simplify(build_nest(prepare(whole, args, strides), name))}
        if watch is not None:
            watch("nest", functions["nest"], monotonic() - begin)
        try:
            _run(functions, stop_after, watch)
        except Exception:
            # The first function that is not well formed says more than what came of it.
            verify_each(functions)
            raise
    return Lowered(functions)


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
"""Passes of TVM, and those that do the same."""


def check_stage(stop_after: str | None) -> None:
    """Refuse a name that no pass has.

    Raises:
        LowerError: If there is no such pass; with the name of the pass that a pass of TVM is here.
    """
    if stop_after is None or is_one_of(stop_after, STAGES):
        return
    known = _TVM_NAMES.get(stop_after) if isinstance(stop_after, str) else None
    cure = f"use {known!r}, as that pass of TVM is called here; " if known else ""
    raise LowerError(
        f"lower: there is no pass {stop_after!r}; {cure}the passes are {', '.join(STAGES)}",
        kind="unknown-choice",
    )


def _run(functions: dict[str, PrimFunc], stop_after: str | None, watch: Watch | None) -> None:
    """Add what each pass makes, and check the last of it."""
    last = "nest"
    simple = functions[last]
    for step in PASSES:
        if last == stop_after:
            break
        func = functions[last]
        begin = monotonic()
        with doing(f"lower {func.name}: {step.name}"):
            if step.on_simple is not None and func is simple:
                func = simple = step.on_simple(func)
            else:
                func = step.run(func)
        functions[step.name] = func
        if watch is not None:
            watch(step.name, func, monotonic() - begin)
        last = step.name
    verify(functions[last], flat=_is_flat(last))


def verify_each(functions: Mapping[str, PrimFunc]) -> None:
    """Check what every pass has made, by its name, in order.

    Raises:
        InternalError: a function is not well formed.
    """
    last: tuple[PrimFunc | None, bool] = None, False
    for name, func in functions.items():
        flat = _is_flat(name)
        # Most passes leave most functions as they are.
        if func is not last[0] or flat is not last[1]:
            verify(func, flat=flat)
        last = func, flat


def _is_flat(name: str) -> bool:
    return any(step.name == name and step.flat for step in PASSES)
