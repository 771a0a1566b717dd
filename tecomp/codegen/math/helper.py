"""Functions and constants inside of a module, written once and used wherever they are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tecomp.codegen.llvm.emit import Code, Module
from tecomp.codegen.llvm.types import suffix
from tecomp.codegen.math.lanes import Real

Formula: TypeAlias = Callable[..., Real]


def call_helper(
    name: str, formula: Formula, arguments: tuple[Real, ...], attributes: str = ""
) -> Real:
    """What `formula` gives, computed by a function that every call of this name shares."""
    first = arguments[0]
    symbol = f"@tecomp.{name}.{suffix(first.kind)}"
    kinds = [f"{value.kind} %x{k}" for k, value in enumerate(arguments)]
    head = f"internal {first.kind} {symbol}({', '.join(kinds)}) {attributes}".rstrip()

    def text() -> str:
        code = Code(first.code.module, {})
        inside = []
        for k, value in enumerate(arguments):
            code.name(f"x{k}")
            inside.append(Real(code, f"%x{k}", value.scalar, value.lanes))
        code.do(f"ret {first.kind} {formula(*inside).operand}")
        return code.text(head)

    define_once(first.code.module, f"define {head}", text)
    listed = ", ".join(f"{value.kind} {value.operand}" for value in arguments)
    return first.made(f"call {first.kind} {symbol}({listed})")


def define_once(module: Module, head: str, text: Callable[[], str]) -> None:
    """Put `text()`, which begins with `head`, into the module if it is not there yet."""
    if not any(known.startswith(head) for known in module.functions):
        module.functions.append(text())


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
