"""When each part of a kernel ran on the processor at hand, by its own clock between the parts."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from tecomp.codegen.calls.kernel import Kernel
from tecomp.codegen.llvm.emit import Options
from tecomp.drawing.trace import Trace, bar, process_named, trace_of
from tecomp.ir.language.dtype import INT32, INT64
from tecomp.ir.language.expr import Const, Var
from tecomp.ir.language.outside_call import Convention, OutsideCall, array_argument
from tecomp.ir.language.stmt import (
    Allocate,
    Buffer,
    BufferStore,
    DeclBuffer,
    Let,
    PrimFunc,
    SeqStmt,
    Stmt,
    seq,
)
from tecomp.ir.outside.c_function import CFunction
from tecomp.ir.outside.functions import register_func, remove_global_func
from tecomp.ir.traversal.rewrite import walk

_CLOCK = "tecomp.clock_gettime"
_CALLS = 5
"""How many calls are measured; the quickest one is shown, which other work disturbed least."""


def measured_trace(
    func: PrimFunc, signature: Sequence[Buffer | Var], options: Options, arguments: Sequence[Any]
) -> Trace:
    """The outermost loops and statements of a function as a trace, with the times of a call.

    Args:
        func: what runs.
        signature: its parameters as callers see them.
        options: how code is generated.
        arguments: as for a call; outputs are written.

    Raises:
        CallError: an argument does not fit.
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
    # The first call loads code and memory.
    best = min(runs[1:], key=lambda run: int(run[-1] - run[0]))
    return _trace(func.name, parts, [int(tick - best[0]) for tick in best])


def with_clock(func: PrimFunc) -> tuple[PrimFunc, list[Stmt]]:
    """The function with the clock written to one more parameter around each part; and the parts.

    >>> from tecomp.ir.parsing.parser import parse
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
    # Seconds and nanoseconds, before the first part and after each.
    clock = Buffer("clock", (2 * _count(func.body) + 2,), INT64)

    def tick(number: int) -> Stmt:
        k = Var("k", INT64)
        taken = array_argument(clock, (k,), (Const(2),), (k + 2 * number,), is_written=True)
        return OutsideCall(_CLOCK, Convention.C, (Const(time.CLOCK_MONOTONIC, INT32), taken))

    def ended(part: Stmt) -> Stmt:
        parts.append(part)
        return seq(part, tick(len(parts)))

    body = seq(tick(0), _mapped(func.body, ended))
    return replace(func, params=(*func.params, clock), body=body), parts


def _mapped(stmt: Stmt, change: Callable[[Stmt], Stmt]) -> Stmt:
    """The statement with each outermost loop or statement changed; memory and names stay around."""
    match stmt:
        case SeqStmt(stmts):
            return seq(*[_mapped(each, change) for each in stmts])
        case Allocate() | DeclBuffer() | Let():
            return replace(stmt, body=_mapped(stmt.body, change))
    return change(stmt)


def _count(stmt: Stmt) -> int:
    found: list[Stmt] = []

    def noted(part: Stmt) -> Stmt:
        found.append(part)
        return part

    _mapped(stmt, noted)
    return len(found)


def _trace(name: str, parts: Sequence[Stmt], ticks: Sequence[int]) -> Trace:
    events = [process_named(0, f"{name}, measured")]
    for part, start, end in zip(parts, ticks, ticks[1:], strict=False):
        stores = [node for node in walk(part) if isinstance(node, BufferStore)]
        written = ", ".join(dict.fromkeys(store.buffer.name for store in stores))
        events.append(bar(written or "call", "measured", start / 1e3, (end - start) / 1e3,
                          said={"statement": str(part).splitlines()[0]}))
    return trace_of(events)
