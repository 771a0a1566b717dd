"""Stores past the caches, for results that are larger than those and not read again soon.

A store of a whole vector to memory `global.stream` is non-temporal where its address allows it: the
line it belongs to is then written without being read first. Such stores reach other cores in any
order, so a fence ends every function that has some.
"""

from __future__ import annotations

from tecomp.codegen.llvm.emit import Code
from tecomp.ir.language.expr import Var
from tecomp.ir.language.stmt import Buffer

STREAM = "global.stream"
_UNIT = 16
"""Bytes: the alignment that arrays mostly have, and that non-temporal stores of a vector need."""


def is_streamed(buffer: Buffer, count: int) -> bool:
    """Whether a store of `count` bytes goes past the caches."""
    return buffer.scope == STREAM and count % _UNIT == 0


def stream_store(code: Code, kind: str, value: str, place: str, align: int, memory: Var) -> None:
    """Store a vector, past the caches if `place` is a multiple of 16."""
    code.streams = True
    number = code.op(f"ptrtoint ptr {place} to i64")
    # Callers pass arrays as they come, and an address that is not aligned would end the process.
    rest = code.op(f"and i64 {number}, {_UNIT - 1}")
    aligned, other, after = code.name("aligned"), code.name("other"), code.name("after")
    code.branch(code.op(f"icmp eq i64 {rest}, 0"), aligned, other)
    code.label(aligned)
    code.write(f"store {kind} {value}, ptr {place}, align {_UNIT}, !nontemporal !1", memory)
    code.jump(after)
    code.label(other)
    code.write(f"store {kind} {value}, ptr {place}, align {align}", memory)
    code.jump(after)
    code.label(after)


def end_function(code: Code) -> None:
    """Return, after all that was stored past the caches."""
    if code.streams:
        code.do("fence seq_cst")
    code.do("ret void")
