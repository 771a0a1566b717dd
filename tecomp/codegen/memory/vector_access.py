"""Strided, gathered, partial and non-temporal vector access."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.codegen.llvm.ir_builder import Code, memory_type, shuffle_mask, suffix, vector_of
from tecomp.codegen.ops.arithmetic import cast as emit_cast
from tecomp.codegen.ops.index_ramps import as_ramp
from tecomp.codegen.ops.vector_legalization import whole
from tecomp.ir.nodes.dtype import INT64, DType, holds_every
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    Cast,
    Const,
    Expr,
    Ramp,
    Var,
    binary,
    cast,
)
from tecomp.ir.nodes.stmt import Buffer
from tecomp.ir.traversal.rewrite import children, fold

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
    first = emit_cast(code, (yield ramp.base), ramp.base.dtype, INT64)
    step = emit_cast(code, (yield ramp.stride), ramp.stride.dtype, INT64)
    steps = [step, *(code.op(f"mul i64 {step}, {k}") for k in range(2, _AHEAD + 1))]
    found = [code.op(f"getelementptr {element}, ptr {base}, i64 {first}")]
    while len(found) < count:
        start = found[-1]
        found += [
            code.op(f"getelementptr {element}, ptr {start}, i64 {ahead}")
            for ahead in steps[: count - len(found)]
        ]
    return found


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


_MOST = 4
"""Runs of a vector up to which it pays to load them and to choose lanes of each."""
_WHOLE: dict[BinOp, Callable[[int, int], int]] = {
    BinOp.ADD: lambda a, b: a + b, BinOp.SUB: lambda a, b: a - b, BinOp.MUL: lambda a, b: a * b,
}
_PARTED: dict[BinOp, Callable[[int, int], int]] = {
    BinOp.FLOORDIV: lambda a, b: a // b, BinOp.MOD: lambda a, b: a % b,
}


@dataclass(frozen=True, slots=True)
class Run:
    """Elements side by side: `count` of them, from so many after a common place on."""

    start: int
    count: int


@dataclass(frozen=True, slots=True)
class Runs:
    """Where the lanes of an access are.

    Attributes:
        base: the place that all others are counted from.
        runs: what is loaded.
        lanes: for each lane the number of its run, and its place there.
    """

    base: Expr
    runs: tuple[Run, ...]
    lanes: tuple[tuple[int, int], ...]


def runs_of(index: Expr, count: int) -> Runs | None:
    """The runs that the first `count` lanes of an index are in; None for a single step, or many.

    What lies between two elements of a run is in memory too, so that all of it may be read.
    """
    if isinstance(index, Ramp | Broadcast) or count < 2 or as_ramp(index) is not None:
        return None
    found = fold(index, _lanes, _vectors)
    if found is None:
        return None
    offsets = found.offsets[:count]
    runs: list[Run] = []
    for place in sorted(set(offsets)):
        if runs and place < runs[-1].start + index.dtype.lanes:
            runs[-1] = Run(runs[-1].start, place - runs[-1].start + 1)
        else:
            runs.append(Run(place, 1))
    if len(runs) > _MOST:
        return None
    return Runs(cast(INT64, found.base), tuple(runs), tuple(_in_runs(runs, offsets)))


def _in_runs(runs: Sequence[Run], offsets: Sequence[int]) -> list[tuple[int, int]]:
    return [
        next((k, place - run.start) for k, run in enumerate(runs)
             if run.start <= place < run.start + run.count)
        for place in offsets
    ]


@dataclass(frozen=True, slots=True)
class _Lanes:
    """A vector of integers: what all lanes have in common, and what each has more."""

    base: Expr
    offsets: tuple[int, ...]

    @property
    def values(self) -> list[int] | None:
        """The number in each lane, if these are known."""
        if not isinstance(self.base, Const):
            return None
        return [int(self.base.value) + offset for offset in self.offsets]


def _vectors(node: Any) -> Sequence[Any]:
    """The parts of a vector; what all of its lanes have in common is taken as it is."""
    return () if node.dtype.lanes == 1 or isinstance(node, Ramp | Broadcast) else children(node)


def _lanes(node: Any, parts: list[_Lanes | None]) -> _Lanes | None:
    match node:
        case Broadcast(value) if value.dtype.lanes == 1:
            return _Lanes(value, (0,) * node.lanes)
        case Ramp(base, Const(step)):
            return _Lanes(base, tuple(int(step) * k for k in range(node.lanes)))
        case Cast() if node.value.dtype.is_integer and holds_every(
            node.dtype.scalar, node.value.dtype.scalar
        ):
            (inner,) = parts
            return inner and _Lanes(cast(node.dtype.scalar, inner.base), inner.offsets)
        case Binary(op, _, _) if node.dtype.is_integer:
            a, b = parts
            return None if a is None or b is None else _combined(op, a, b)
    return None


def _combined(op: BinOp, a: _Lanes, b: _Lanes) -> _Lanes | None:
    known = a.values, b.values
    if op in _PARTED:
        if known[0] is None or known[1] is None or 0 in known[1]:
            return None
        numbers = map(_PARTED[op], known[0], known[1])
        return _Lanes(Const(0, a.base.dtype), tuple(numbers))
    if op not in _WHOLE or (op is BinOp.MUL and not (_is_number(a) or _is_number(b))):
        return None
    base = binary(op, a.base, b.base)
    if op is not BinOp.MUL:
        return _Lanes(base, tuple(map(_WHOLE[op], a.offsets, b.offsets)))
    factor, other = (a, b) if _is_number(a) else (b, a)
    assert isinstance(factor.base, Const)
    times = int(factor.base.value)
    return _Lanes(base, tuple(times * offset for offset in other.offsets))


def _is_number(lanes: _Lanes) -> bool:
    """Whether all lanes are one number."""
    return isinstance(lanes.base, Const) and not any(lanes.offsets)


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
