"""The first lanes of a vector in memory, read and written in pieces that processors have.

What lies behind the last of these lanes is neither read nor written, whatever the type. LLVM is
not asked for that: vectors of other lengths that it has converted it stores with bytes too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tecomp.codegen.llvm.emit import Code
from tecomp.codegen.llvm.types import shuffle_mask, suffix, vector_of
from tecomp.codegen.values.whole_vectors import whole
from tecomp.ir.language.expr import Var

_WIDEST = 64
"""Bytes of the widest register of any machine; LLVM makes several of it where there are less."""

Write = Callable[[str, str, str, int, int], None]


def read_first(
    code: Code, element: str, size: int, count: int, lanes: int, place: str, align: int,
    memory: Var,
) -> str:
    """The `count` values from `place` on, and zeros up to `lanes`.

    Args:
        code: the function in the making.
        element: LLVM's type of one value.
        size: its bytes.
        count: how many values are there.
        lanes: of the result.
        place: the address of the first.
        align: what that is a multiple of.
        memory: what is read.
    """
    kind = vector_of(element, lanes)
    joined = "zeroinitializer"
    for start, length, width in _cut(code, count, size):
        at, known = _offset(code, element, size, place, align, start)
        held = vector_of(element, width)
        if length < width:
            name = f"llvm.masked.load.{suffix(held)}.p0"
            part = code.call(held, name, [
                (f"ptr align {known}", at), first_mask(length, width), (held, "zeroinitializer")])
        else:
            part = code.read(f"load {held}, ptr {at}, align {known}", memory)
        if width == 1:
            joined = code.op(f"insertelement {kind} {joined}, {element} {part}, i64 {start}")
            continue
        if width != lanes:
            spread = [k - start if start <= k < start + width else width for k in range(lanes)]
            part = code.op(
                f"shufflevector {held} {part}, {held} zeroinitializer, {shuffle_mask(spread)}")
        if start:
            chosen = [k + lanes * (k >= start) for k in range(lanes)]
            part = code.op(f"shufflevector {kind} {joined}, {kind} {part}, {shuffle_mask(chosen)}")
        joined = part
    return joined


def write_first(
    code: Code, element: str, size: int, count: int, lanes: int, value: str, place: str,
    align: int, write: Write,
) -> None:
    """Store the first `count` of the `lanes` lanes of a value from `place` on.

    Args:
        code: the function in the making.
        element: LLVM's type of one lane.
        size: its bytes.
        count: how many lanes to store.
        lanes: of `value`.
        value: the operand.
        place: the address of the first.
        align: what that is a multiple of.
        write: stores a whole operand: its type, itself, an address, its alignment and
            the bytes.
    """
    kind = vector_of(element, lanes)
    for start, length, width in _cut(code, count, size):
        at, known = _offset(code, element, size, place, align, start)
        held = vector_of(element, width)
        part = value
        if width == 1:
            part = code.op(f"extractelement {kind} {value}, i64 {start}")
        elif width != lanes:
            mask = shuffle_mask([min(start + k, lanes - 1) for k in range(width)])
            part = code.op(f"shufflevector {kind} {value}, {kind} poison, {mask}")
        if length == width:
            write(held, part, at, known, size * width)
            continue
        name = f"llvm.masked.store.{suffix(held)}.p0"
        code.run(name, [(held, part), (f"ptr align {known}", at), first_mask(length, width)])


def _cut(code: Code, count: int, size: int) -> Iterator[tuple[int, int, int]]:
    """First lane, number of lanes and width of each piece; a mask tells where those two differ."""
    start, widest = 0, _WIDEST // size
    while start < count:
        rest = count - start
        width = min(whole(rest), widest)
        if width > rest and not code.module.has_masks():
            # Without masks LLVM makes a branch for each lane: two whole halves are less.
            width //= 2
        yield start, min(rest, width), width
        start += width


def _offset(
    code: Code, element: str, size: int, place: str, align: int, start: int
) -> tuple[str, int]:
    """The address of a lane, and what it is a multiple of."""
    if not start:
        return place, align
    at = code.op(f"getelementptr {element}, ptr {place}, i64 {start}")
    offset = start * size
    return at, min(align, offset & -offset)


def first_mask(count: int, width: int) -> tuple[str, str]:
    """Type and operand of the mask of the first `count` of `width` lanes."""
    lanes = ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(width))
    return vector_of("i1", width), f"<{lanes}>"
