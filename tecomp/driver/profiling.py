"""Measured traces, cost reports and rooflines of kernels."""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.cost_model.cost import CostModelInput, cost
from tecomp.cost_model.iteration_counting import BUDGET, TooManyIterationsError
from tecomp.cost_model.report import CostReport
from tecomp.cost_model.roofline import Roofline, roofline_of
from tecomp.drawing.chrome_trace import ChromeTrace, bar, process_named, trace_of
from tecomp.driver.calibrate import calibrate
from tecomp.driver.memory_check import plan
from tecomp.driver.static_shapes import check_sizes, extent_at, in_numbers
from tecomp.errors import LowerError
from tecomp.ir.extern.c_function import CFunction
from tecomp.ir.extern.registry import register_func, remove_global_func
from tecomp.ir.nodes.dtype import INT32, INT64
from tecomp.ir.nodes.expr import Const, Var
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferStore,
    CallingConvention,
    DeclBuffer,
    ExternCall,
    Let,
    PrimFunc,
    SeqStmt,
    Stmt,
    array_argument,
    seq,
)
from tecomp.ir.traversal.rewrite import nodes_of
from tecomp.lowering.pipeline import LoweringResult
from tecomp.lowering.storage.buffer_rewrite import rename_duplicates
from tecomp.machine.descriptor import Target
from tecomp.scheduling.state import AtRoot, ScheduleState
from tecomp.scheduling.transform_layout import physical_shape_of

_CLOCK = "tecomp.clock_gettime"
_CALLS = 5
"""Number of measured calls; the fastest is reported, because other work disturbed it least."""


def measure_trace(
    func: PrimFunc, signature: Sequence[Buffer | Var], options: Options, arguments: Sequence[Any]
) -> ChromeTrace:
    """Measure the outermost loops and statements of a function, and return a trace.

    Args:
        func: Function to run.
        signature: Parameters as the caller passes them.
        options: Code generation options.
        arguments: Arguments of the call; outputs are written.

    Raises:
        CallError: If an argument is invalid.
    """
    timed, parts = with_clock(func)
    register_func(_CLOCK, CFunction(ctypes.CDLL(None), "clock_gettime", ["int32", "handle"]),
                  override=True)
    try:
        kernel = Kernel(timed, (*signature, timed.params[-1]), **asdict(options))
    finally:
        remove_global_func(_CLOCK)
    ticks = np.zeros((len(parts) + 1, 2), np.int64)
    runs = []
    for _ in range(_CALLS + 1):
        kernel(*arguments, ticks.reshape(-1))
        runs.append(ticks[:, 0] * 10**9 + ticks[:, 1])
    # Discard the first call, which loads code and touches memory.
    best = min(runs[1:], key=lambda run: int(run[-1] - run[0]))
    return _trace(func.name, parts, [int(tick - best[0]) for tick in best])


def with_clock(func: PrimFunc) -> tuple[PrimFunc, list[Stmt]]:
    """Add a parameter that receives the clock around each outermost part; return also the parts.

    >>> from tecomp.ir.parser.func_parser import parse
    >>> func = parse('''def two(A: Buffer("float32", (4,))):
    ...     for i in range(4):
    ...         A[i] = float32(1.0)
    ...     A[0] = float32(2.0)
    ... ''')
    >>> timed, parts = with_clock(func)
    >>> [str(part).splitlines()[0] for part in parts], len(timed.params)
    (['for i in range(4):', 'A[0] = float32(2.0)'], 2)
    """
    parts: list[Stmt] = []
    # Pairs of seconds and nanoseconds: one before the first part and one after each part.
    clock = Buffer("clock", (2 * _count(func.body) + 2,), INT64)

    def tick(number: int) -> Stmt:
        k = Var("k", INT64)
        arg = array_argument(clock, (k,), (Const(2),), (k + 2 * number,), is_written=True)
        return ExternCall(_CLOCK, CallingConvention.C, (Const(time.CLOCK_MONOTONIC, INT32), arg))

    def ended(part: Stmt) -> Stmt:
        parts.append(part)
        return seq(part, tick(len(parts)))

    body = seq(tick(0), _map_statements(func.body, ended))
    return replace(func, params=(*func.params, clock), body=body), parts


def _map_statements(stmt: Stmt, change: Callable[[Stmt], Stmt]) -> Stmt:
    """Apply `change` to each outermost loop or statement, below allocations and bindings."""
    match stmt:
        case SeqStmt(stmts):
            return seq(*[_map_statements(child, change) for child in stmts])
        case Allocate() | DeclBuffer() | Let():
            return replace(stmt, body=_map_statements(stmt.body, change))
    return change(stmt)


def _count(stmt: Stmt) -> int:
    found: list[Stmt] = []

    def noted(part: Stmt) -> Stmt:
        found.append(part)
        return part

    _map_statements(stmt, noted)
    return len(found)


def _trace(name: str, parts: Sequence[Stmt], ticks: Sequence[int]) -> ChromeTrace:
    events = [process_named(0, f"{name}, measured")]
    for part, start, end in zip(parts, ticks, ticks[1:], strict=False):
        stores = nodes_of(BufferStore, part)
        names = ", ".join(dict.fromkeys(store.buffer.name for store in stores))
        events.append(bar(names or "call", "measured", start / 1e3, (end - start) / 1e3,
                          details={"statement": str(part).splitlines()[0]}))
    return trace_of(events)


def report_of(
    name: str, state: ScheduleState, lowered: LoweringResult, target: Target,
    sizes: Mapping[str, int]
) -> CostReport:
    """Return the cost report of a kernel.

    Raises:
        CallError: If a size is missing or invalid.
        LowerError: If there are too many iterations to count.
    """
    flat, known = specialize_for_cost_model(name, lowered, sizes)
    found = plan(lowered, target, partial(in_numbers, sizes=known))
    peaks = {memory: found.peak(memory) for memory in target.memories}
    try:
        return cost(CostModelInput(name, flat, peaks, _padding(state, known)), target)
    except TooManyIterationsError:
        raise LowerError(
            "report: more than {budget} loop iterations in {name} must be evaluated separately, "
            "because they depend on conditions or bounds that are not affine; use smaller sizes",
            kind="limit-exceeded", budget=BUDGET, name=name,
        ) from None


def specialize_for_cost_model(
    name: str, lowered: LoweringResult, sizes: Mapping[str, int]
) -> tuple[PrimFunc, Mapping[str, int]]:
    """Return the function with constant sizes to which the cost model applies, and its sizes.

    The function precedes vectorization. Repeated statements are duplicated, so that every access
    counts as often as it occurs in the printed form.
    """
    func = lowered.functions["flatten_buffer"]
    known = check_sizes(func, sizes, "report")
    return rename_duplicates(in_numbers(func, known)), known


def _padding(state: ScheduleState, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """Return the bytes of padding of placeholders and root stages, by memory."""
    found: Counter[str] = Counter()
    for stage in state:
        if not stage.layout.maps or not (stage.is_placeholder or isinstance(stage.attach, AtRoot)):
            continue
        for tensor in stage.op.outputs:
            stored, elements = (
                prod(extent_at(extent, sizes) or 0 for extent in shape)
                for shape in (physical_shape_of(stage), tensor.shape)
            )
            found[stage.scope] += (stored - elements) * tensor.dtype.bytes
    return found


def kernel_roofline(
    name: str, state: ScheduleState, lowered: LoweringResult, target: Target,
    sizes: Mapping[str, int],
    seconds: float | None,
) -> Roofline:
    """Return the roofline of a kernel; calibrate the host if the target does not state its rates.

    Args:
        name: Label of the kernel.
        state: State of the schedule.
        lowered: Function after each pass.
        target: Target of the kernel.
        sizes: Sizes of the program, by name.
        seconds: Measured time of a call in seconds, or None.

    Raises:
        CallError: If a size is missing or invalid.
        LowerError: If there are too many iterations to count.
    """
    is_here = target.core is not None and target.code.kind == "host"
    machine = calibrate(target) if is_here else target
    report = report_of(name, state, lowered, machine, sizes)
    return roofline_of(report, seconds)
