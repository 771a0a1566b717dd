"""Lanes that lie apart as far as only the call says: read and written one by one.

Where a gather or a scatter is one instruction, it is many operations: on AMD's processors it takes
two to four times as long as this, on Intel's as long.
"""

from __future__ import annotations

from collections.abc import Generator

from tecomp.codegen.llvm.emit import Code
from tecomp.codegen.llvm.types import memory_type
from tecomp.codegen.values.convert import cast
from tecomp.codegen.values.ramp import as_ramp
from tecomp.ir.language.dtype import INT64, DType
from tecomp.ir.language.expr import Const, Expr, Ramp
from tecomp.ir.language.stmt import Buffer

_AHEAD = 4
"""Lanes whose addresses are made from one: processors add up to 4 times a register to another."""


def unknown_steps(index: Expr) -> Ramp | None:
    """An index of lanes in arithmetic progression, if the difference is no number."""
    ramp = as_ramp(index) if index.dtype.lanes > 1 else None
    return None if ramp is None or isinstance(ramp.stride, Const) else ramp


def read_each(
    code: Code, buffer: Buffer, base: str, ramp: Ramp, count: int
) -> Generator[Expr, str, str]:
    """What the first `count` lanes read from `base` on, in a vector of all lanes."""
    scalar = buffer.dtype.scalar
    kind, element = memory_type(scalar.with_lanes(ramp.lanes)), memory_type(scalar)
    joined = "poison"
    for lane, place in enumerate((yield from _places(code, scalar, base, ramp, count))):
        one = code.read(f"load {element}, ptr {place}, align {scalar.bytes}", buffer.data)
        joined = code.op(f"insertelement {kind} {joined}, {element} {one}, i64 {lane}")
    return joined


def write_each(
    code: Code, buffer: Buffer, base: str, ramp: Ramp, count: int, value: str
) -> Generator[Expr, str, None]:
    """Store the first `count` lanes of a vector from `base` on, the last one last."""
    scalar = buffer.dtype.scalar
    kind, element = memory_type(scalar.with_lanes(ramp.lanes)), memory_type(scalar)
    for lane, place in enumerate((yield from _places(code, scalar, base, ramp, count))):
        one = code.op(f"extractelement {kind} {value}, i64 {lane}")
        code.write(f"store {element} {one}, ptr {place}, align {scalar.bytes}", buffer.data)


def _places(
    code: Code, scalar: DType, base: str, ramp: Ramp, count: int
) -> Generator[Expr, str, list[str]]:
    """The address of each of the first lanes."""
    element = memory_type(scalar)
    first = cast(code, (yield ramp.base), ramp.base.dtype, INT64)
    step = cast(code, (yield ramp.stride), ramp.stride.dtype, INT64)
    steps = [step, *(code.op(f"mul i64 {step}, {k}") for k in range(2, _AHEAD + 1))]
    found = [code.op(f"getelementptr {element}, ptr {base}, i64 {first}")]
    while len(found) < count:
        start = found[-1]
        found += [
            code.op(f"getelementptr {element}, ptr {start}, i64 {ahead}")
            for ahead in steps[: count - len(found)]
        ]
    return found
