"""How often a place is reached, and at which addresses, from the loops and conditions around it.

What happens inside of a loop depends on what is outside by the values of some expressions only. For
each of them that occurs, iterations are joined two by two, and the joined ones again, so that any
range of iterations, of which a bound may depend on loops outside, is joined from a few parts.
Iterations that differ in nothing but a shift of the addresses have the same parts. It is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import gcd
from typing import Any, TypeAlias

from tecomp.ir.algebra.extents import ceil_div
from tecomp.ir.algebra.quasi_affine import QuasiAffine
from tecomp.ir.algebra.terms import Terms
from tecomp.ir.interpreter.expr import Scope, compile_expr
from tecomp.ir.language.expr import BufferLoad, Expr, Var
from tecomp.ir.language.stmt import Buffer
from tecomp.ir.traversal.rewrite import walk
from tecomp.model.frames import Frame
from tecomp.model.sequence import NOTHING, Granularity, joined, single
from tecomp.model.sequence import Sequence as Accesses
from tecomp.model.surroundings import (
    CountedLoop,
    depth_of,
    is_known,
    known_outside,
    surroundings_of,
)

BUDGET = 1_000_000
"""Parts that are joined, at most, for all places of a function together."""

Core = tuple[int, ...]
"""A coordinate for each axis of the grid."""
_ONE = Granularity(1, None)
_Compiled: TypeAlias = "Callable[[list[Any]], Any]"


class TooManyIterationsError(Exception):
    """More iterations would have to be counted than the budget allows."""


@dataclass
class Counter:
    """Counts the places of one function.

    Attributes:
        grid: cores along each axis, in the order of coordinates.
        iterations: that were looked at so far.
        terms: sums that addresses and conditions are.
    """

    grid: Mapping[str, int]
    iterations: int = 0
    terms: Terms = field(default_factory=Terms)
    _times: dict[tuple[int, ...], tuple[Sequence[Frame], dict[Core, int]]] = field(
        default_factory=dict)

    def accesses(
        self,
        frames: Sequence[Frame],
        buffer: Buffer,
        indices: Sequence[Expr],
        block: int | None,
        burst: int | None = None,
    ) -> dict[Core, Accesses]:
        """The accesses of each core that makes any.

        Args:
            frames: loops and conditions around the place.
            buffer: that is accessed.
            indices: where.
            block: bytes of a transaction of its memory, if that has them.
            burst: the most bytes that a link moves at once, if there is a most.
        """
        size = buffer.dtype.bytes
        address = address_of(self.terms, buffer, indices, block)
        unit = Granularity(size, block, max(burst // size, 1) if burst else None)
        found = self._by_core(frames, address, unit)
        if any(isinstance(part, BufferLoad) for index in indices for part in walk(index)):
            # Where it is depends on data: each element counts as far from all others.
            return {core: _apart(each, block) for core, each in found.items()}
        return found

    def times(self, frames: Sequence[Frame]) -> dict[Core, int]:
        """How often each core comes to a place."""
        key = tuple(map(id, frames))
        if key not in self._times:
            found = self._by_core(frames, QuasiAffine(), _ONE)
            counts = {core: accesses.count for core, accesses in found.items()}
            self._times[key] = frames, counts
        return self._times[key][1]

    def _by_core(
        self, frames: Sequence[Frame], address: QuasiAffine, unit: Granularity
    ) -> dict[Core, Accesses]:
        place = _Place(self, frames, address, unit)
        found: dict[Core, Accesses] = {}
        for core in place.cores(self.grid):
            accesses = place.run(dict(zip(self.grid, core, strict=True)))
            if accesses.count:
                found[core] = accesses
        return found


def _apart(accesses: Accesses, block: int | None) -> Accesses:
    count = accesses.count
    return Accesses(count, 0, 0, count, 1, 1, 1, count if block else 0, count)


def address_of(
    terms: Terms, buffer: Buffer, indices: Sequence[Expr], block: int | None
) -> QuasiAffine:
    """The byte of an element; rows of a memory with several axes are apart from each other."""
    size = buffer.dtype.bytes
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    unit = block or size
    pitch = (ceil_div(extents[-1] * size, unit) + 1) * unit if extents else size
    steps = [size]
    for extent in [1, *reversed(extents[1:-1])][: len(indices) - 1]:
        pitch *= extent
        steps.append(pitch)
    total = QuasiAffine()
    for index, each in zip(indices, reversed(steps), strict=True):
        total = total.plus(terms.sum_of(index), each)
    return total


@dataclass(slots=True)
class _Loop:
    """A loop around a place as functions of the variables.

    Attributes:
        counted: the loop.
        slot: of its variable.
        low: the first value.
        end: the first value after the last one.
        conditions: that have to hold inside.
        factor: what the address grows by with the variable.
        adds: parts of the address, times their factors, that are known inside.
        key: values, known outside, that decide what happens in an iteration.
        threads: axes of the grid that loops inside are bound to.
        is_needed: whether iterations differ in more than a shift of the addresses.
    """

    counted: CountedLoop
    slot: int
    low: _Compiled
    end: _Compiled
    conditions: list[_Compiled]
    factor: int
    adds: list[tuple[_Compiled, int]]
    key: list[_Compiled]
    threads: tuple[str, ...]
    is_needed: bool


class _Place:
    """One place, and the parts of the loops around it that were counted so far."""

    def __init__(
        self, counter: Counter, frames: Sequence[Frame], address: QuasiAffine, unit: Granularity
    ) -> None:
        self.counter = counter
        self.unit = unit
        self.block = unit.block or 1
        around = surroundings_of(counter.terms, frames)
        self.scope = Scope(())
        self.depths = {counted.var: k for k, counted in enumerate(around.loops)}
        self.slots = {var: self.scope.declare(var) for var in self.depths}
        self.conditions = self._compiled(around.conditions)
        self.const = address.const
        self.loops = self._loops(around.loops, address)
        self.env: list[Any] = [None] * self.scope.slots
        self.env[0] = True
        self.lines: dict[Any, dict[tuple[int, int], Accesses]] = {}
        self.core: Mapping[str, int] = {}

    def _compiled(self, exprs: Iterable[Expr]) -> list[_Compiled]:
        return [compile_expr(self.scope, expr) for expr in exprs]

    def _loops(self, loops: Sequence[CountedLoop], address: QuasiAffine) -> list[_Loop]:
        """The loops, from the innermost outwards, as each needs what is inside of it."""
        texts = self.counter.terms.listed(address)
        terms = [(a, c) for a, c in texts if is_known(a, self.depths)]
        factors = {atom: c for atom, c in terms if isinstance(atom, Var)}
        rest = [(a, c) for a, c in terms if not isinstance(a, Var)]
        found: list[_Loop] = []
        inside: list[Expr] = []
        threads: tuple[str, ...] = ()
        for k in reversed(range(len(loops))):
            counted = loops[k]
            adds = [(a, c) for a, c in rest if depth_of(a, self.depths) == k]
            inside += [*counted.conditions, *(atom for atom, _ in adds)]
            found.append(_Loop(
                counted, self.slots[counted.var], compile_expr(self.scope, counted.low),
                compile_expr(self.scope, counted.end), self._compiled(counted.conditions),
                factors.get(counted.var, 0),
                [(compile_expr(self.scope, a), c) for a, c in adds],
                self._compiled(known_outside(inside, self.depths, k)), threads,
                any(part is counted.var for expr in inside for part in walk(expr)),
            ))
            inside += [counted.low, counted.end]
            threads = (*threads, counted.thread) if counted.thread else threads
        return found[::-1]

    def cores(self, grid: Mapping[str, int]) -> Iterator[Core]:
        """The cores that may come here: those of the loops around, the first ones otherwise."""
        mine = {loop.counted.thread for loop in self.loops}
        ranges = [range(cores) if axis in mine else range(1) for axis, cores in grid.items()]
        return product(*ranges)

    def run(self, core: Mapping[str, int]) -> Accesses:
        """The accesses of one core."""
        self.core = core
        if not all(condition(self.env) for condition in self.conditions):
            return NOTHING
        offset = self.const % self.block
        return self._from(0, offset).shifted(self.const - offset)

    def _from(self, k: int, offset: int) -> Accesses:
        """What comes inside of the first `k` loops; `offset` is less than a block."""
        if k == len(self.loops):
            return single(offset, self.unit)
        loop, env = self.loops[k], self.env
        low, end = int(loop.low(env)), int(loop.end(env))
        if loop.counted.thread:
            mine = self.core[loop.counted.thread]
            low, end = (mine, mine + 1) if low <= mine < end else (0, 0)
        key = (k, offset, *(value(env) for value in loop.key),
               *(self.core[thread] for thread in loop.threads))
        line = self.lines.setdefault(key, {})
        total = NOTHING
        while low < end:
            # The largest part that begins here and is not too long.
            power = (end - low).bit_length() - 1
            if low:
                power = min(power, (low & -low).bit_length() - 1)
            total = joined(total, self._part(k, line, offset, power, low), self.unit)
            low += 1 << power
        return total

    def _part(
        self, k: int, line: dict[tuple[int, int], Accesses], offset: int, power: int, start: int
    ) -> Accesses:
        """`2 ** power` iterations from a value on."""
        loop = self.loops[k]
        if not loop.is_needed:
            # The same iterations, at addresses that are a multiple of a block further.
            base = start % (self.block // gcd(loop.factor, self.block))
            if base != start:
                found = self._part(k, line, offset, power, base)
                return found.shifted(loop.factor * (start - base))
        known = line.get((power, start))
        if known is not None:
            return known
        self.counter.iterations += 1
        if self.counter.iterations > BUDGET:
            raise TooManyIterationsError
        if power:
            half = 1 << (power - 1)
            made = joined(
                self._part(k, line, offset, power - 1, start),
                self._part(k, line, offset, power - 1, start + half), self.unit,
            )
        else:
            made = self._round(k, loop, offset, start)
        line[power, start] = made
        return made

    def _round(self, k: int, loop: _Loop, offset: int, value: int) -> Accesses:
        env = self.env
        env[loop.slot] = value
        if not all(condition(env) for condition in loop.conditions):
            return NOTHING
        start = offset + loop.factor * value + sum(int(f(env)) * c for f, c in loop.adds)
        inside = start % self.block
        return self._from(k + 1, inside).shifted(start - inside)
