"""Count the executions and memory accesses of a function, by the bounds of its loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import gcd
from typing import Any, TypeAlias

from tecomp.cost_model.access_sequence import (
    NOTHING,
    AccessSequence,
    Granularity,
    concat_accesses,
    single,
)
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.arith.quasi_affine import QuasiAffine
from tecomp.ir.arith.quasi_affine_conversion import TermTable
from tecomp.ir.interpreter.expr import SlotScope, compile_expr
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
from tecomp.ir.traversal.rewrite import children, contains, free_variables, post_order, walk


@dataclass(frozen=True, slots=True)
class Loop:
    """Loop around a site.

    Attributes:
        var: Loop variable.
        min: First value of the loop variable.
        extent: Number of iterations.
        thread: Axis of the core grid that the loop is bound to; empty if none.
        is_alone: Whether the loop contains a single statement.
        is_parallel: Whether cores share the iterations.
    """

    var: Var
    min: Expr
    extent: Expr
    thread: str
    is_alone: bool = True
    is_parallel: bool = False


@dataclass(frozen=True, slots=True)
class GuardCondition:
    """Condition around a site."""

    condition: Expr


Frame: TypeAlias = "Loop | GuardCondition"


@dataclass(slots=True)
class CountedLoop:
    """Loop with bounds tightened by conditions.

    Attributes:
        var: Loop variable.
        thread: Axis of the core grid that the loop is bound to; empty if none.
        low: First value.
        end: Exclusive upper bound.
        conditions: Conditions on the body that depend on the loop variable.
    """

    var: Var
    thread: str
    low: Expr
    end: Expr
    conditions: list[Expr] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Context of a site.

    Attributes:
        conditions: Conditions that depend on no loop variable.
        loops: Enclosing loops, outermost first.
    """

    conditions: tuple[Expr, ...]
    loops: tuple[CountedLoop, ...]


def surroundings_of(terms: TermTable, frames: Sequence[Frame]) -> Surroundings:
    """Return the loops and conditions of `frames`.

    A condition that depends on data is dropped. A bound that depends on data is replaced by 0, so a
    loop with such an extent has no iterations.
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
    """Return whether an expression depends on the given loop variables only, and not on data."""
    loops = set(known)
    return all(var in loops for var in free_variables(expr)) and not contains(BufferLoad, expr)


def depth_of(expr: Expr, depths: Mapping[Var, int]) -> int:
    """Return the depth of the innermost loop that `expr` depends on; -1 if there is none."""
    return max((depths[var] for var in free_variables(expr)), default=-1)


def known_outside_loop(exprs: Iterable[Expr], depths: Mapping[Var, int], k: int) -> list[Expr]:
    """Return the maximal subexpressions that depend only on loops outside loop `k`."""
    roots = list(exprs)
    deepest: dict[int, int] = {}
    for node in post_order(*roots):
        depth = depths[node] if isinstance(node, Var) else -1
        deepest[id(node)] = max([depth, *(deepest[id(part)] for part in children(node))])
    nodes = walk(*roots, parts=lambda node: () if deepest[id(node)] < k else children(node))
    return [node for node in nodes if not isinstance(node, Const) and deepest[id(node)] < k]


def _parts(condition: Expr) -> Iterator[Expr]:
    """Yield conditions whose conjunction is equivalent to `condition`."""

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


def _bounds(terms: TermTable, part: Expr, loop: CountedLoop, depths: Mapping[Var, int]) -> bool:
    """Turn a condition into a bound of the loop; return False if that is not possible."""
    if not isinstance(part, Compare) or part.op is CmpOp.NE or part.a.dtype != INT64:
        return False
    total = terms.sum_of(part.a).plus(terms.sum_of(part.b), -1)
    factor = sum(c for term, c in total.terms.items() if terms.text(term) is loop.var)
    if factor < 0:
        total = total.times(-1)
    op = MIRRORED[part.op] if factor < 0 else part.op
    others = {t: c for t, c in total.terms.items() if terms.text(t) is not loop.var}
    if not factor or any(loop.var in free_variables(terms.text(term)) for term in others):
        return False
    # abs(factor) * var is compared with this sum; the terms of the outermost loops come first.
    order = sorted(others, key=lambda term: depth_of(terms.text(term), depths))
    other = QuasiAffine({term: -others[term] for term in order}, -total.const)
    factor = abs(factor)
    if op in (CmpOp.GE, CmpOp.GT, CmpOp.EQ):
        lower = other.shifted(factor - 1 + (op is CmpOp.GT))
        loop.low = binary(BinOp.MAX, loop.low, _quotient(terms, lower, factor))
    if op in (CmpOp.LE, CmpOp.LT, CmpOp.EQ):
        end = _quotient(terms, other.shifted(factor - (op is CmpOp.LT)), factor)
        loop.end = binary(BinOp.MIN, loop.end, end)
    return True


def _quotient(terms: TermTable, value: QuasiAffine, divisor: int) -> Expr:
    found = terms.expr(value)
    return found if divisor == 1 else binary(BinOp.FLOORDIV, found, index_value(divisor))


BUDGET = 1_000_000
"""Maximum number of joined parts, over all sites of a function."""

Core = tuple[int, ...]
"""Coordinate of a core on each axis of the grid."""
_ONE = Granularity(1, None)
_Compiled: TypeAlias = "Callable[[list[Any]], Any]"


class TooManyIterationsError(Exception):
    """Exception for more iterations to be counted than the budget allows."""


@dataclass
class Counter:
    """Counter of the accesses of one function.

    Attributes:
        grid: Number of cores along each axis, in the order of coordinates.
        iterations: Number of iterations evaluated so far.
        terms: Quasi-affine sums of addresses and conditions.
    """

    grid: Mapping[str, int]
    iterations: int = 0
    terms: TermTable = field(default_factory=TermTable)
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
        """Return the access sequence of each core that makes any access.

        Args:
            frames: Enclosing loops and conditions.
            buffer: Accessed buffer.
            indices: Indices of the accessed element.
            block: Bytes of a transaction of the memory; None if it has none.
            burst: Maximum bytes of a burst of the link; None for no limit.
        """
        size = buffer.dtype.bytes
        address = address_of(self.terms, buffer, indices, block)
        unit = Granularity(size, block, max(burst // size, 1) if burst else None)
        found = self._by_core(frames, address, unit)
        if any(isinstance(part, BufferLoad) for index in indices for part in walk(index)):
            # The address depends on data: no two accesses are counted as contiguous.
            return {core: _strided_accesses(sequence, block) for core, sequence in found.items()}
        return found

    def times(self, frames: Sequence[Frame]) -> dict[Core, int]:
        """Return the number of executions of a site on each core."""
        key = tuple(map(id, frames))
        if key not in self._times:
            found = self._by_core(frames, QuasiAffine(), _ONE)
            counts = {core: accesses.count for core, accesses in found.items()}
            self._times[key] = frames, counts
        return self._times[key][1]

    def _by_core(
        self, frames: Sequence[Frame], address: QuasiAffine, unit: Granularity
    ) -> dict[Core, AccessSequence]:
        site = _CountedSite(self, frames, address, unit)
        found: dict[Core, AccessSequence] = {}
        for core in site.cores(self.grid):
            accesses = site.run(dict(zip(self.grid, core, strict=True)))
            if accesses.count:
                found[core] = accesses
        return found


def _strided_accesses(accesses: AccessSequence, block: int | None) -> AccessSequence:
    count = accesses.count
    return AccessSequence(
        count, 0, 0, count, 1, 1, 1, count if block else 0, count, count, 1, 1
    )


def address_of(
    terms: TermTable, buffer: Buffer, indices: Sequence[Expr], block: int | None
) -> QuasiAffine:
    """Return the byte address of an element, with rows padded so that no run crosses rows."""
    size = buffer.dtype.bytes
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    unit = block or size
    pitch = (ceil_div(extents[-1] * size, unit) + 1) * unit if extents else size
    steps = [size]
    for extent in [1, *reversed(extents[1:-1])][: len(indices) - 1]:
        pitch *= extent
        steps.append(pitch)
    total = QuasiAffine()
    for index, step in zip(indices, reversed(steps), strict=True):
        total = total.plus(terms.sum_of(index), step)
    return total


@dataclass(slots=True)
class _SymbolicLoop:
    """Loop around a site, compiled to functions of the enclosing variables.

    Attributes:
        counted: Loop.
        slot: Slot of the loop variable in the environment.
        low: First value.
        end: Exclusive upper bound.
        conditions: Conditions on the body.
        factor: Increment of the address per iteration.
        adds: Nonlinear terms of the address that are known in the body, with their factors.
        key: Values known outside the loop on which the accesses of an iteration depend.
        threads: Axes of the core grid that inner loops are bound to.
        is_needed: Whether iterations differ in more than a shift of the addresses.
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


class _CountedSite:
    """One site, and memoized counts of parts of its loops."""

    def __init__(
        self, counter: Counter, frames: Sequence[Frame], address: QuasiAffine, unit: Granularity
    ) -> None:
        self.counter = counter
        self.unit = unit
        self.block = unit.block or 1
        surroundings = surroundings_of(counter.terms, frames)
        self.scope = SlotScope(())
        self.depths = {loop.var: k for k, loop in enumerate(surroundings.loops)}
        self.slots = {var: self.scope.declare(var) for var in self.depths}
        self.conditions = self._compiled(surroundings.conditions)
        self.const = address.const
        self.loops = self._loops(surroundings.loops, address)
        self.env: list[Any] = [None] * self.scope.slots
        self.env[0] = True
        self.lines: dict[Any, dict[tuple[int, int], AccessSequence]] = {}
        self.core: Mapping[str, int] = {}

    def _compiled(self, exprs: Iterable[Expr]) -> list[_Compiled]:
        return [compile_expr(self.scope, expr) for expr in exprs]

    def _loops(self, loops: Sequence[CountedLoop], address: QuasiAffine) -> list[_SymbolicLoop]:
        """Compile the loops from the innermost outwards, as each depends on what is inside."""
        texts = self.counter.terms.listed(address)
        terms = [(a, c) for a, c in texts if is_known(a, self.depths)]
        factors = {atom: c for atom, c in terms if isinstance(atom, Var)}
        nonlinear = [(a, c) for a, c in terms if not isinstance(a, Var)]
        found: list[_SymbolicLoop] = []
        inside: list[Expr] = []
        threads: tuple[str, ...] = ()
        for k in reversed(range(len(loops))):
            loop = loops[k]
            adds = [(a, c) for a, c in nonlinear if depth_of(a, self.depths) == k]
            inside += [*loop.conditions, *(atom for atom, _ in adds)]
            found.append(_SymbolicLoop(
                loop, self.slots[loop.var], compile_expr(self.scope, loop.low),
                compile_expr(self.scope, loop.end), self._compiled(loop.conditions),
                factors.get(loop.var, 0),
                [(compile_expr(self.scope, a), c) for a, c in adds],
                self._compiled(known_outside_loop(inside, self.depths, k)), threads,
                any(part is loop.var for expr in inside for part in walk(expr)),
            ))
            inside += [loop.low, loop.end]
            threads = (*threads, loop.thread) if loop.thread else threads
        return found[::-1]

    def cores(self, grid: Mapping[str, int]) -> Iterator[Core]:
        """Return the cores that may execute the site; only coordinate 0 along unbound axes."""
        bound_axes = {loop.counted.thread for loop in self.loops}
        ranges = [range(cores) if axis in bound_axes else range(1) for axis, cores in grid.items()]
        return product(*ranges)

    def run(self, core: Mapping[str, int]) -> AccessSequence:
        """Return the accesses of one core."""
        self.core = core
        if not all(condition(self.env) for condition in self.conditions):
            return NOTHING
        offset = self.const % self.block
        return self._from(0, offset).shifted(self.const - offset)

    def _from(self, k: int, offset: int) -> AccessSequence:
        """Return the accesses inside the first `k` loops; `offset` is less than a block."""
        if k == len(self.loops):
            return single(offset, self.unit)
        loop, env = self.loops[k], self.env
        low, end = int(loop.low(env)), int(loop.end(env))
        if loop.counted.thread:
            coordinate = self.core[loop.counted.thread]
            low, end = (coordinate, coordinate + 1) if low <= coordinate < end else (0, 0)
        key = (k, offset, *(value(env) for value in loop.key),
               *(self.core[thread] for thread in loop.threads))
        line = self.lines.setdefault(key, {})
        total = NOTHING
        while low < end:
            # Take the largest power-of-two range that is aligned at `low` and fits before `end`.
            power = (end - low).bit_length() - 1
            if low:
                power = min(power, (low & -low).bit_length() - 1)
            total = concat_accesses(total, self._part(k, line, offset, power, low), self.unit)
            low += 1 << power
        return total

    def _part(
        self, k: int, line: dict[tuple[int, int], AccessSequence], offset: int, power: int,
        start: int,
    ) -> AccessSequence:
        """Return the accesses of `2 ** power` iterations from `start` on."""
        loop = self.loops[k]
        if not loop.is_needed:
            # Equal to the iterations from `base`, with addresses shifted by a multiple of a block.
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
            result = concat_accesses(
                self._part(k, line, offset, power - 1, start),
                self._part(k, line, offset, power - 1, start + half), self.unit,
            )
        else:
            result = self._round(k, loop, offset, start)
        line[power, start] = result
        return result

    def _round(self, k: int, loop: _SymbolicLoop, offset: int, value: int) -> AccessSequence:
        env = self.env
        env[loop.slot] = value
        if not all(condition(env) for condition in loop.conditions):
            return NOTHING
        start = offset + loop.factor * value + sum(int(f(env)) * c for f, c in loop.adds)
        inside = start % self.block
        return self._from(k + 1, inside).shifted(start - inside)
