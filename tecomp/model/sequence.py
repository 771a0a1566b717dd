"""Sequences of accesses, by what counts of them; joined without writing them out."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.ir.algebra.extents import ceil_div


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
class Sequence:
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

    def shifted(self, amount: int) -> Sequence:
        """The same accesses, further by a multiple of the bytes of a transaction."""
        if not amount or not self.count:
            return self
        return Sequence(
            self.count, self.first + amount, self.last + amount, self.runs, self.longest,
            self.head, self.tail, self.blocks, self.bursts,
        )


NOTHING = Sequence()


def single(address: int, unit: Granularity) -> Sequence:
    """One access."""
    return Sequence(1, address, address, 1, 1, 1, 1, _blocks(address, unit), 1)


def _blocks(address: int, unit: Granularity) -> int:
    """Transactions for one element."""
    if unit.block is None:
        return 0
    return (address + unit.size - 1) // unit.block - address // unit.block + 1


def joined(a: Sequence, b: Sequence, unit: Granularity) -> Sequence:
    """The accesses of `a`, and then those of `b`."""
    if not a.count or not b.count:
        return a if a.count else b
    gap = b.first - a.last
    if gap not in (0, unit.size):
        return Sequence(
            a.count + b.count, a.first, b.last, a.runs + b.runs, max(a.longest, b.longest),
            a.head, b.tail, a.blocks + b.blocks, a.bursts + b.bursts,
        )
    middle = a.tail + b.head - (gap == 0)
    return Sequence(
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
