"""Put allocated buffers at their offsets in the arenas of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import lcm
from typing import Any

from tecomp.ir.language.dtype import BOOL, INT64, DType
from tecomp.ir.language.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    CmpOp,
    Compare,
    Const,
    Expr,
    Ramp,
    Select,
    Var,
    binary,
    cast,
    index_value,
)
from tecomp.ir.language.stmt import (
    Allocate,
    Buffer,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    Stmt,
    seq,
)
from tecomp.ir.traversal.rewrite import bottom_up
from tecomp.lowering.storage.arenas import Arena, Placed

_PATTERN = 0xA5
UINT8 = DType("uint8")


def place_buffers(func: PrimFunc, arenas: Sequence[Arena], *, guards: bool = False) -> PrimFunc:
    """`func` with one allocation for each arena, and its buffers as views of it.

    A view has one index: rows of a memory with several physical axes follow each other there, each
    aligned.

    Args:
        func: a flat function.
        arenas: what `plan_arenas` gives for it.
        guards: put bytes before and after each arena that nothing writes to; if something does, the
            call fails when the region ends.
    """
    filled = [arena for arena in arenas if arena.bytes]
    if not filled:
        return func
    work = _Placing(func, guards)
    for arena in filled:
        work.add(arena)
    body = bottom_up(func.body, work.rule)
    for made in work.inside.get(None, []):
        body = made.around(body)
    return replace(func, body=body, sites=tuple(work.sites))


class _Made:
    """An arena as a buffer: `margin` bytes of guard, the arena, `margin` bytes of guard."""

    def __init__(self, arena: Arena, margin: int, site: int) -> None:
        self.bytes = arena.bytes
        self.margin = margin
        self.site = site
        memory = arena.memory.name
        self.buffer = Buffer(f"{memory}.arena", (self.bytes + 2 * margin,), UINT8, memory)

    def around(self, body: Stmt) -> Stmt:
        """`body` with the arena allocated around it."""
        if not self.margin:
            return Allocate(self.buffer, body)
        return Allocate(self.buffer, seq(*self._filled(), body, *self._checked()))

    def _filled(self) -> list[Stmt]:
        return [self._margin(start, lambda at: BufferStore(
            self.buffer, Const(_PATTERN, UINT8), (at,))) for start in self._starts()]

    def _checked(self) -> list[Stmt]:
        def check(at: Expr) -> Stmt:
            is_kept = Compare(CmpOp.EQ, BufferLoad(self.buffer, (at,)), Const(_PATTERN, UINT8))
            place = binary(BinOp.SUB, at, index_value(self.margin))
            index = Select(is_kept, index_value(0), place)
            site = Const(self.site, INT64)
            fits = Call("check_index", (index, index_value(self.bytes), site), BOOL)
            return IfThenElse(fits, seq())

        return [self._margin(start, check) for start in self._starts()]

    def _starts(self) -> tuple[int, int]:
        return 0, self.margin + self.bytes

    def _margin(self, start: int, statement: Any) -> Stmt:
        var = Var("guard", INT64)
        at = var if start == 0 else binary(BinOp.ADD, var, index_value(start))
        return For(var, index_value(0), index_value(self.margin), ForKind.SERIAL, statement(at))


class _Placing:
    """The arenas of a function, and the views that take the place of its buffers."""

    def __init__(self, func: PrimFunc, guards: bool) -> None:
        self.guards = guards
        self.sites = list(func.sites)
        self.inside: dict[Var | None, list[_Made]] = {}
        self._places: dict[Var, tuple[Placed, _Made]] = {}
        self._views: dict[int, tuple[Buffer, Buffer]] = {}

    def add(self, arena: Arena) -> None:
        """Make the buffer of an arena."""
        steps = (placed.step for placed in arena.placed)
        margin = lcm(arena.memory.alignment_bytes, 64, *steps) if self.guards else 0
        site = len(self.sites)
        if self.guards:
            name = arena.memory.name
            self.sites.append(f"the {arena.bytes} bytes of the arena in memory `{name}`")
        made = _Made(arena, margin, site)
        var = arena.loop.loop_var if arena.loop is not None else None
        self.inside.setdefault(var, []).append(made)
        for placed in arena.placed:
            self._places[placed.buffer.data] = placed, made

    def rule(self, node: Any) -> Any:
        """For `bottom_up`."""
        match node:
            case BufferLoad(buffer, indices, predicate) if buffer.data in self._places:
                return BufferLoad(self._view(buffer), self._moved(buffer, indices), predicate)
            case BufferStore(buffer, value, indices, mask) if buffer.data in self._places:
                return BufferStore(self._view(buffer), value, self._moved(buffer, indices), mask)
            case Allocate(buffer, body) | DeclBuffer(buffer, body) if buffer.data in self._places:
                return DeclBuffer(self._view(buffer), body)
            case For() if node.loop_var in self.inside:
                body = node.body
                for made in self.inside[node.loop_var]:
                    body = made.around(body)
                return replace(node, body=body)
        return None

    def _start(self, buffer: Buffer) -> int:
        """The index of the first element in the arena."""
        placed, made = self._places[buffer.data]
        return (placed.offset + made.margin) // buffer.dtype.bytes

    def _view(self, buffer: Buffer) -> Buffer:
        if id(buffer) not in self._views:
            placed, made = self._places[buffer.data]
            shape = (self._start(buffer) + placed.bytes // buffer.dtype.bytes,)
            view = replace(buffer, shape=shape, axis_separators=(), data=made.buffer.data)
            self._views[id(buffer)] = buffer, view
        return self._views[id(buffer)][1]

    def _moved(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        *rows, index = indices
        placed, _ = self._places[buffer.data]
        step = placed.row // buffer.dtype.bytes
        for row, extent in zip(reversed(rows), (1, *reversed(buffer.shape[1:-1])), strict=False):
            assert isinstance(extent, int)
            step *= extent
            index = _plus(index, binary(BinOp.MUL, row, step))
        start = self._start(buffer)
        return (_plus(index, index_value(start)) if start else index,)


def _plus(index: Expr, amount: Expr) -> Expr:
    """The same index, so much further, of whatever lanes."""
    match index:
        case Const():
            return binary(BinOp.ADD, index, amount) if isinstance(amount, Const) else binary(
                BinOp.ADD, amount, index)
        case Ramp(base, stride, lanes):
            return Ramp(_plus(base, amount), stride, lanes)
        case Broadcast(value, lanes):
            return Broadcast(_plus(value, amount), lanes)
    lanes = index.dtype.lanes
    further = cast(index.dtype.scalar, amount)
    return Binary(BinOp.ADD, index, Broadcast(further, lanes) if lanes > 1 else further)
