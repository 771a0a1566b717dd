"""`lower`: the loops of a schedule as a function, and a page that says how they came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path

from tecomp.codegen.llvm.emit import Options
from tecomp.compute.tensor import Tensor
from tecomp.driver.cached import Build
from tecomp.driver.dump import dump_build
from tecomp.errors import LowerError
from tecomp.ir.language.given import check_kind
from tecomp.ir.language.stmt import Buffer, PrimFunc
from tecomp.lowering.pipeline import STAGES, check_stage, lower_all
from tecomp.machine.descriptor import Target
from tecomp.scheduling.arguments import with_arguments
from tecomp.scheduling.schedule import Schedule


def lower(
    schedule: Schedule,
    args: Sequence[object],
    name: str = "main",
    stop_after: str | None = None,
    *,
    simple_mode: bool = False,
    binds: Mapping[Tensor, Buffer] | None = None,
    dump: str | Path | None = None,
) -> PrimFunc:
    """The loops of a schedule as a function over buffers.

    Args:
        schedule: what to lower.
        args: tensors and size variables, in the order of the function's parameters.
        name: of the function.
        stop_after: the last pass to run: `nest`, `apply_buffer_transforms`, `fill_padding`,
            `roll_buffers`, `double_buffers`, `lower_storage`, `flatten_buffer`,
            `expand_tensor_ops`, `pack_reads`,
            `vectorize_loops`, `unroll_loops` or `simplify`.
        simple_mode: show loops as they were scheduled, before any is vectorized or unrolled; the
            same as stopping after `flatten_buffer`.
        binds: for tensors among the arguments a `te.decl_buffer` with the strides that their arrays
            have.
        dump: the path of an HTML page to write: the schedule, layouts, all passes with what they
            changed and how long they took, code for the processor at hand beside the loops that
            it comes from, and the cost there. What was done until an error is there too.

    Returns:
        The function; `print` shows it.

    Raises:
        LowerError: the schedule has no code that keeps its meaning, or there is no such pass; or
            the page cannot be written.

    >>> from tecomp import te
    >>> A = te.placeholder((8, 4), name="A")
    >>> B = te.compute((4, 8), lambda i, j: A[j, i] + 1.0, name="B")
    >>> s = te.create_schedule(B)
    >>> print(lower(s, [A, B]))
    def main(A: Buffer("float32", (32,)), B: Buffer("float32", (32,))):
        for i in range(4):
            for j in range(8):
                B[i * 8 + j] = A[j * 4 + i] + float32(1.0)
    """
    check_stage(stop_after)
    if simple_mode and stop_after is None:
        stop_after = "flatten_buffer"
    if dump is None:
        return lower_all(schedule, args, name, stop_after, binds=binds).final
    check_kind(dump, str | Path, "lower: dump", "give the path of a file", LowerError)
    check_kind(schedule, Schedule, "lower: the schedule", "make one with te.create_schedule",
               LowerError)
    whole = copy(with_arguments(schedule, args))
    build = Build(whole, args, name, Target.of("cpu"), Options(), dict(binds or {}))
    return dump_build(build, dump).functions[stop_after or STAGES[-1]]
