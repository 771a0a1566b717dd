"""Count executions, addresses and access sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import gcd
from typing import Any, TypeAlias

from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.arith.quasi_affine import QuasiAffine
from tecomp.ir.arith.quasi_affine_conversion import Terms
from tecomp.ir.interpreter.expr import Scope, compile_expr
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    BufferLoad,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    Var,
    binary,
    index_value,
    is_const,
)
from tecomp.ir.nodes.operators import MIRRORED, OPPOSITE
from tecomp.ir.nodes.stmt import Buffer
from tecomp.ir.traversal.rewrite import children, free_variables, post_order, walk


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around a place.

    Attributes:
        var: its variable.
        min: the first value of that.
        extent: the trip count.
        thread: the axis of the grid that it is bound to.
        is_alone: whether there is one statement inside.
        is_parallel: whether cores share its iterations.
    """

    var: Var
    min: Expr
    extent: Expr
    thread: str
    is_alone: bool = True
    is_parallel: bool = False


@dataclass(frozen=True, slots=True)
class Where:
    """A condition that has to hold."""

    condition: Expr


Frame: TypeAlias = "Loop | Where"


@dataclass(frozen=True, slots=True)
class Granularity:
    """What all accesses of a sequence have in common.

    Attributes:
        size: bytes of an element.
        block: bytes of a transaction; None where the memory has none.
        burst: elements that a link moves at once, at most; None for any number.
    """

    size: int
    block: int | None
    burst: int | None = None


@dataclass(frozen=True, slots=True)
class AccessSequence:
    """Accesses one after another, each of one element.

    A run goes on while the next access is to the next element, or to the same one again.

    Attributes:
        count: accesses.
        first: address of the first.
        last: address of the last.
        runs: how many runs there are.
        longest: elements of the longest run.
        head: elements of the first run.
        tail: elements of the last run.
        blocks: transactions: blocks that the runs touch, each run for itself.
        bursts: pieces that the runs are cut into, none longer than a burst.
    """

    count: int = 0
    first: int = 0
    last: int = 0
    runs: int = 0
    longest: int = 0
    head: int = 0
    tail: int = 0
    blocks: int = 0
    bursts: int = 0

    def shifted(self, amount: int) -> AccessSequence:
        """The same accesses, further by a multiple of the bytes of a transaction."""
        if not amount or not self.count:
            return self
        return AccessSequence(
            self.count, self.first + amount, self.last + amount, self.runs, self.longest,
            self.head, self.tail, self.blocks, self.bursts,
        )


NOTHING = AccessSequence()


def single(address: int, unit: Granularity) -> AccessSequence:
    """One access."""
    return AccessSequence(1, address, address, 1, 1, 1, 1, _blocks(address, unit), 1)


def _blocks(address: int, unit: Granularity) -> int:
    """Transactions for one element."""
    if unit.block is None:
        return 0
    return (address + unit.size - 1) // unit.block - address // unit.block + 1


def joined(a: AccessSequence, b: AccessSequence, unit: Granularity) -> AccessSequence:
    """The accesses of `a`, and then those of `b`."""
    if not a.count or not b.count:
        return a if a.count else b
    gap = b.first - a.last
    if gap not in (0, unit.size):
        return AccessSequence(
            a.count + b.count, a.first, b.last, a.runs + b.runs, max(a.longest, b.longest),
            a.head, b.tail, a.blocks + b.blocks, a.bursts + b.bursts,
        )
    middle = a.tail + b.head - (gap == 0)
    return AccessSequence(
        a.count + b.count, a.first, b.last, a.runs + b.runs - 1,
        max(a.longest, b.longest, middle),
        middle if a.runs == 1 else a.head,
        middle if b.runs == 1 else b.tail,
        a.blocks + b.blocks - _shared(a.last, b.first, unit),
        a.bursts + b.bursts
        + _bursts(middle, unit) - _bursts(a.tail, unit) - _bursts(b.head, unit),
    )


def _bursts(length: int, unit: Granularity) -> int:
    """Pieces of a run."""
    return ceil_div(length, unit.burst) if unit.burst else 1


def _shared(last: int, first: int, unit: Granularity) -> int:
    """Transactions that two accesses, next to each other, have in common."""
    if unit.block is None:
        return 0
    if last == first:
        return _blocks(first, unit)
    return int((last + unit.size - 1) // unit.block == first // unit.block)


@dataclass(slots=True)
class CountedLoop:
    """A loop.

    Attributes:
        var: its variable.
        thread: the axis of the grid that it is bound to; empty if to none.
        low: the first value.
        end: the first value after the last one.
        conditions: that have to hold inside, each of which needs the variable.
    """

    var: Var
    thread: str
    low: Expr
    end: Expr
    conditions: list[Expr] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is around a place.

    Attributes:
        conditions: that need no variable of a loop.
        loops: outermost first.
    """

    conditions: tuple[Expr, ...]
    loops: tuple[CountedLoop, ...]


def surroundings_of(terms: Terms, frames: Sequence[Frame]) -> Surroundings:
    """The loops and conditions of `frames`.

    What depends on data is left out: such a condition holds, such a loop has no iterations.
    """
    depths = {f.var: k for k, f in enumerate(f for f in frames if isinstance(f, Loop))}
    outside: list[Expr] = []
    loops: list[CountedLoop] = []
    for frame in frames:
        if isinstance(frame, Loop):
            low, extent = (
                e if is_known(e, depths) else index_value(0) for e in (frame.min, frame.extent)
            )
            end = extent if is_const(low, 0) else binary(
                BinOp.ADD, low, extent)
            loops.append(CountedLoop(frame.var, frame.thread, low, end))
    for frame in frames:
        if isinstance(frame, Loop) or not is_known(frame.condition, depths):
            continue
        for part in _parts(frame.condition):
            depth = depth_of(part, depths)
            if depth < 0:
                outside.append(part)
            elif not _bounds(terms, part, loops[depth], depths):
                loops[depth].conditions.append(part)
    return Surroundings(tuple(outside), tuple(loops))


def is_known(expr: Expr, known: Iterable[Var]) -> bool:
    """Whether it depends on loops alone, and not on data."""
    loops = set(known)
    return all(var in loops for var in free_variables(expr)) and not any(
        isinstance(part, BufferLoad) for part in walk(expr))


def depth_of(expr: Expr, depths: Mapping[Var, int]) -> int:
    """Of the innermost loop whose variable is needed; -1 if none is."""
    return max((depths[var] for var in free_variables(expr)), default=-1)


def known_outside(exprs: Iterable[Expr], depths: Mapping[Var, int], k: int) -> list[Expr]:
    """The largest parts of expressions that depend on the loops outside of loop `k` alone."""
    roots = list(exprs)
    deepest: dict[int, int] = {}
    for node in post_order(*roots):
        own = depths[node] if isinstance(node, Var) else -1
        deepest[id(node)] = max([own, *(deepest[id(part)] for part in children(node))])
    nodes = walk(*roots, parts=lambda node: () if deepest[id(node)] < k else children(node))
    return [node for node in nodes if not isinstance(node, Const) and deepest[id(node)] < k]


def _parts(condition: Expr) -> Iterator[Expr]:
    """Conditions that hold together if and only if `condition` does."""

    def inside(node: Expr) -> Sequence[Expr]:
        match node:
            case Binary(BinOp.AND, a, b):
                return a, b
            case Not(Not(inner)):
                return (inner,)
            case Not(Binary(BinOp.OR, a, b)):
                return Not(a), Not(b)
        return ()

    for node in walk(condition, parts=inside):
        match node:
            case Not(Compare(op, a, b)):
                yield Compare(OPPOSITE[op], a, b)
            case _ if not inside(node):
                yield node


def _bounds(terms: Terms, part: Expr, loop: CountedLoop, depths: Mapping[Var, int]) -> bool:
    """Make a condition a bound of the loop; False if it is none."""
    if not isinstance(part, Compare) or part.op is CmpOp.NE or part.a.dtype != INT64:
        return False
    total = terms.sum_of(part.a).plus(terms.sum_of(part.b), -1)
    factor = sum(c for term, c in total.terms.items() if terms.text(term) is loop.var)
    if factor < 0:
        total = total.times(-1)
    op = MIRRORED[part.op] if factor < 0 else part.op
    rest = {t: c for t, c in total.terms.items() if terms.text(t) is not loop.var}
    if not factor or any(loop.var in free_variables(terms.text(term)) for term in rest):
        return False
    # abs(factor) * var is compared with this; what changes least comes first.
    order = sorted(rest, key=lambda term: depth_of(terms.text(term), depths))
    other = QuasiAffine({term: -rest[term] for term in order}, -total.const)
    factor = abs(factor)
    if op in (CmpOp.GE, CmpOp.GT, CmpOp.EQ):
        least = other.shifted(factor - 1 + (op is CmpOp.GT))
        loop.low = binary(BinOp.MAX, loop.low, _quotient(terms, least, factor))
    if op in (CmpOp.LE, CmpOp.LT, CmpOp.EQ):
        end = _quotient(terms, other.shifted(factor - (op is CmpOp.LT)), factor)
        loop.end = binary(BinOp.MIN, loop.end, end)
    return True


def _quotient(terms: Terms, value: QuasiAffine, divisor: int) -> Expr:
    found = terms.expr(value)
    return found if divisor == 1 else binary(BinOp.FLOORDIV, found, index_value(divisor))


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
    ) -> dict[Core, AccessSequence]:
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
    ) -> dict[Core, AccessSequence]:
        place = _Place(self, frames, address, unit)
        found: dict[Core, AccessSequence] = {}
        for core in place.cores(self.grid):
            accesses = place.run(dict(zip(self.grid, core, strict=True)))
            if accesses.count:
                found[core] = accesses
        return found


def _apart(accesses: AccessSequence, block: int | None) -> AccessSequence:
    count = accesses.count
    return AccessSequence(count, 0, 0, count, 1, 1, 1, count if block else 0, count)


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
        self.lines: dict[Any, dict[tuple[int, int], AccessSequence]] = {}
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

    def run(self, core: Mapping[str, int]) -> AccessSequence:
        """The accesses of one core."""
        self.core = core
        if not all(condition(self.env) for condition in self.conditions):
            return NOTHING
        offset = self.const % self.block
        return self._from(0, offset).shifted(self.const - offset)

    def _from(self, k: int, offset: int) -> AccessSequence:
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
        self, k: int, line: dict[tuple[int, int], AccessSequence], offset: int, power: int,
        start: int,
    ) -> AccessSequence:
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

    def _round(self, k: int, loop: _Loop, offset: int, value: int) -> AccessSequence:
        env = self.env
        env[loop.slot] = value
        if not all(condition(env) for condition in loop.conditions):
            return NOTHING
        start = offset + loop.factor * value + sum(int(f(env)) * c for f, c in loop.adds)
        inside = start % self.block
        return self._from(k + 1, inside).shifted(start - inside)
