"""Functions inside of a module, written once and called wherever they are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, TypeVar

from tecomp.codegen.llvm.emit import Code, Function, close_guard, open_guard
from tecomp.codegen.llvm.types import suffix
from tecomp.codegen.math.lanes import Real, Truth, Whole

Formula: TypeAlias = Callable[..., Real]
Numbers = TypeVar("Numbers", Real, Whole)
_RARE = "noinline cold"


def mend_lanes(
    near: Real, is_far: Truth, name: str, formula: Formula, arguments: tuple[Real, ...]
) -> Real:
    """`near`, but in the lanes where `is_far` holds what `formula` gives of the arguments.

    It is a function out of line, called if there is such a lane.
    """
    code = near.code
    guard = open_guard(code, is_far.any())
    far = _call(name, formula, arguments, is_rare=True)
    mixed = is_far.select(far, near)
    joined = close_guard(code, guard, mixed.operand, near.kind, near.operand)
    return Real(code, joined, near.scalar, near.lanes)


def call_helper(
    name: str, formula: Callable[..., Numbers], arguments: tuple[Numbers, ...]
) -> Numbers:
    """What `formula` gives, computed by a function that every call of this name shares."""
    return _call(name, formula, arguments, is_rare=False)


def _call(
    name: str, formula: Callable[..., Numbers], arguments: tuple[Numbers, ...], *, is_rare: bool
) -> Numbers:
    first = arguments[0]
    module, symbol = first.code.module, f"tecomp.{name}.{suffix(first.kind)}"
    if symbol not in module.functions:
        helper = _helper(symbol, formula, arguments)
        module.add(replace(helper, is_helper=not is_rare, attributes=_RARE if is_rare else ""))
    module.calls[symbol] += 1
    listed = ", ".join(f"{value.kind} {value.operand}" for value in arguments)
    return first.made(f"call {first.kind} @{symbol}({listed})")


def _helper(
    symbol: str, formula: Callable[..., Numbers], arguments: tuple[Numbers, ...]
) -> Function:
    first = arguments[0]
    code = Code(first.code.module, {})
    inside = []
    for k, value in enumerate(arguments):
        code.name(f"x{k}")
        inside.append(replace(value, code=code, operand=f"%x{k}"))
    code.do(f"ret {first.kind} {formula(*inside).operand}")
    parameters = ", ".join(f"{value.kind} {value.operand}" for value in inside)
    return code.function(f"internal {first.kind}", symbol, parameters)


def each_lane(name: str, *arguments: Real) -> Real:
    """What the C library's `name` of single values gives for each."""
    x, code = arguments[0], arguments[0].code
    symbol = name if x.scalar == "double" else f"{name}f"
    if x.lanes == 1:
        single = code.call(x.scalar, symbol, [(x.scalar, value.operand) for value in arguments])
        return Real(code, single, x.scalar, 1)
    result = "poison"
    for lane in range(x.lanes):
        values = [
            code.op(f"extractelement {x.kind} {value.operand}, i64 {lane}") for value in arguments
        ]
        single = code.call(x.scalar, symbol, [(x.scalar, value) for value in values])
        result = code.op(f"insertelement {x.kind} {result}, {x.scalar} {single}, i64 {lane}")
    return Real(code, result, x.scalar, x.lanes)
