"""How often a place is reached, and at which addresses, from the loops and conditions around it.

Rounds of a loop that differ in nothing but a shift of the addresses are counted at once; rounds in
which something else depends on the loop's variable, such as a bound or a condition inside, are
counted one by one. Both are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import gcd
from typing import Any

from tecomp.ir.evaluate_expr import Scope, compile_expr
from tecomp.ir.expr import BufferLoad, Expr, Var
from tecomp.ir.linear import Linear, Terms
from tecomp.ir.rewrite import free_variables, walk
from tecomp.ir.stmt import Buffer
from tecomp.model.sequence import NOTHING, Step, joined, repeated, single
from tecomp.model.sequence import Sequence as Accesses
from tecomp.model.sites import Frame, Round, Where

BUDGET = 1_000_000
"""Rounds that are counted one by one, at most, for all places of a function together."""

Core = tuple[int, ...]
"""A coordinate for each axis of the grid."""
_ONE = Step(1, None)


class TooManyRoundsError(Exception):
    """More rounds would have to be counted one by one than the budget allows."""


@dataclass
class Counter:
    """Counts the places of one function.

    Attributes:
        grid: cores along each axis, in the order of coordinates.
        rounds: that were counted one by one so far.
    """

    grid: Mapping[str, int]
    rounds: int = 0
    _terms: Terms = field(default_factory=Terms)

    def accesses(
        self, frames: Sequence[Frame], buffer: Buffer, indices: Sequence[Expr], block: int | None
    ) -> dict[Core, Accesses]:
        """The accesses of each core that makes any."""
        size = buffer.dtype.bytes
        address = _address(self._terms, buffer, indices, block)
        found = self._by_core(frames, address, Step(size, block))
        if any(isinstance(part, BufferLoad) for index in indices for part in walk(index)):
            # Where it is depends on data: each element counts as far from all others.
            return {core: _apart(each, block) for core, each in found.items()}
        return found

    def times(self, frames: Sequence[Frame]) -> dict[Core, int]:
        """How often each core comes to a place."""
        found = self._by_core(frames, Linear(), _ONE)
        return {core: accesses.count for core, accesses in found.items()}

    def _by_core(
        self, frames: Sequence[Frame], address: Linear, step: Step
    ) -> dict[Core, Accesses]:
        place = _Place(self, frames, address, step)
        found: dict[Core, Accesses] = {}
        for core in place.cores(self.grid):
            accesses = place.run(dict(zip(self.grid, core, strict=True)))
            if accesses.count:
                found[core] = accesses
        return found


def _apart(accesses: Accesses, block: int | None) -> Accesses:
    count = accesses.count
    return Accesses(count, 0, 0, count, 1, 1, 1, count if block else 0)


def _address(
    terms: Terms, buffer: Buffer, indices: Sequence[Expr], block: int | None
) -> Linear:
    """The byte of an element; rows of a memory with several axes are apart from each other."""
    size = buffer.dtype.bytes
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    unit = block or size
    pitch = (-(-extents[-1] * size // unit) + 1) * unit if extents else size
    steps = [size]
    for extent in [1, *reversed(extents[1:-1])][: len(indices) - 1]:
        pitch *= extent
        steps.append(pitch)
    total = Linear()
    for index, each in zip(indices, reversed(steps), strict=True):
        total = total.plus(terms.linear(index), each)
    return total


class _Place:
    """One place: the loops and conditions around it as functions of their variables."""

    def __init__(
        self, counter: Counter, frames: Sequence[Frame], address: Linear, step: Step
    ) -> None:
        self.counter = counter
        self.frames = frames
        self.step = step
        self.scope = Scope(())
        self.slots = {f.var: self.scope.declare(f.var) for f in frames if isinstance(f, Round)}
        self.const = address.const
        self.factors = {a: c for a, c in address.terms.values() if isinstance(a, Var)}
        rest = [(a, c) for a, c in address.terms.values() if not isinstance(a, Var)]
        known = [(a, c) for a, c in rest if self._is_known(a)]
        self.rest = [(compile_expr(self.scope, a), c) for a, c in known]
        self.bounds: list[Any] = [self._compiled(frame) for frame in frames]
        self.needs = self._needs([a for a, _ in known])
        self.env: list[Any] = [None] * self.scope.slots
        self.env[0] = True
        self.memo: dict[Any, Accesses] = {}
        self.core: Mapping[str, int] = {}

    def _is_known(self, expr: Expr) -> bool:
        """Whether it depends on loops alone, and not on data."""
        loops = all(var in self.slots for var in free_variables(expr))
        return loops and not any(isinstance(part, BufferLoad) for part in walk(expr))

    def _compiled(self, frame: Frame) -> Any:
        if isinstance(frame, Where):
            is_known = self._is_known(frame.condition)
            return compile_expr(self.scope, frame.condition) if is_known else lambda env: True
        low, extent = (
            compile_expr(self.scope, e) if self._is_known(e) else (lambda env: 0)
            for e in (frame.min, frame.extent)
        )
        return low, extent

    def _needs(self, rest: Sequence[Expr]) -> list[tuple[int, ...]]:
        """For each frame the slots of variables that it, or something inside, depends on.

        A variable that the address alone depends on, and as a multiple, is not among them.
        """
        used = {var for expr in rest for var in free_variables(expr)}
        needs = [used]
        for frame in reversed(self.frames):
            exprs = (frame.condition,) if isinstance(frame, Where) else (frame.min, frame.extent)
            used = used | {v for e in exprs if self._is_known(e) for v in free_variables(e)}
            needs.append(used)
        order = list(self.slots)
        return [
            tuple(self.slots[var] for var in order if var in used) for used in reversed(needs)
        ]

    def cores(self, grid: Mapping[str, int]) -> Iterator[Core]:
        """The cores that may come here: those of the loops around, the first ones otherwise."""
        bound = {frame.thread for frame in self.frames if isinstance(frame, Round)}
        return product(*(range(grid[axis] if axis in bound else 1) for axis in grid))

    def run(self, core: Mapping[str, int]) -> Accesses:
        """The accesses of one core."""
        self.core = core
        return self._from(0, self.const % (self.step.block or 1)).shifted(
            self.const - self.const % (self.step.block or 1)
        )

    def _from(self, k: int, offset: int) -> Accesses:
        """What comes inside of the first `k` frames; `offset` is less than a block."""
        key = (k, offset, tuple(self.env[slot] for slot in self.needs[k]), tuple(
            self.core[f.thread] for f in self.frames[k:] if isinstance(f, Round) and f.thread))
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._made(k, offset)
        return found

    def _made(self, k: int, offset: int) -> Accesses:
        if k == len(self.frames):
            more = sum(int(closure(self.env)) * c for closure, c in self.rest)
            return single(offset + more, self.step)
        frame = self.frames[k]
        if isinstance(frame, Where):
            return self._from(k + 1, offset) if self.bounds[k](self.env) else NOTHING
        low, extent = (int(f(self.env)) for f in self.bounds[k])
        if frame.thread:
            if not low <= self.core[frame.thread] < low + extent:
                return NOTHING
            low, extent = self.core[frame.thread], 1
        return self._loop(k, frame, range(low, low + max(extent, 0)), offset)

    def _loop(self, k: int, frame: Round, values: range, offset: int) -> Accesses:
        slot = self.slots[frame.var]
        factor = self.factors.get(frame.var, 0)
        if slot in self.needs[k + 1]:
            return self._rounds(k, slot, factor, values, offset)
        block = self.step.block or 1
        period = block // gcd(factor, block)
        whole = len(values) // period
        if whole < 2:
            return self._rounds(k, slot, factor, values, offset)
        chunk = self._rounds(k, slot, factor, values[:period], offset)
        step = factor * period
        full = repeated(chunk, whole, step, self.step)
        rest = self._rounds(k, slot, factor, values[whole * period:], offset)
        return joined(full, rest, self.step)

    def _rounds(
        self, k: int, slot: int, factor: int, values: range, offset: int
    ) -> Accesses:
        """Round by round."""
        self.counter.rounds += len(values)
        if self.counter.rounds > BUDGET:
            raise TooManyRoundsError
        block = self.step.block or 1
        total = NOTHING
        for value in values:
            self.env[slot] = value
            start = offset + factor * value
            inner = self._from(k + 1, start % block)
            total = joined(total, inner.shifted(start - start % block), self.step)
        self.env[slot] = None
        return total
