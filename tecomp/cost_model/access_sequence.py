"""Sequences of memory accesses, with their bursts and transactions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tecomp.ir.arith.extents import ceil_div


@dataclass(frozen=True, slots=True)
class Granularity:
    """Properties common to all accesses of a sequence.

    Attributes:
        size: Bytes of an element.
        block: Bytes of a transaction; None for a memory without transactions.
        burst: Maximum number of elements of a burst of a link; None for no limit.
    """

    size: int
    block: int | None
    burst: int | None = None

    @property
    def step(self) -> int:
        """Unit of bursts in bytes: a transaction if bursts consist of these, else an element."""
        if self.block is None or self.burst is None or self.burst * self.size % self.block:
            return self.size
        return self.block

    def steps_of(self, address: int) -> tuple[int, int]:
        """Return the first and the last step of an element."""
        return address // self.step, (address + self.size - 1) // self.step


@dataclass(frozen=True, slots=True)
class AccessSequence:
    """Sequence of accesses to single elements.

    A run continues while the next access is to the next element, or to the same element again. A
    stretch continues while the next access is to the same transaction, or to the next one: gaps
    within a transaction are transferred as well. Where bursts do not consist of whole transactions,
    stretches are runs.

    Attributes:
        count: Number of accesses.
        first: Address of the first access.
        last: Address of the last access.
        runs: Number of runs.
        longest: Elements of the longest run.
        head: Elements of the first run.
        tail: Elements of the last run.
        blocks: Number of transactions: blocks touched by a run, summed over all runs.
        bursts: Number of bursts that the stretches are split into.
        stretches: Number of stretches.
        opening: Transactions of the first stretch, or elements if stretches are runs.
        closing: Transactions of the last stretch, or elements if stretches are runs.
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
    stretches: int = 0
    opening: int = 0
    closing: int = 0

    def shifted(self, amount: int) -> AccessSequence:
        """Return the sequence moved by `amount` bytes, a multiple of the transaction size."""
        if not amount or not self.count:
            return self
        return replace(self, first=self.first + amount, last=self.last + amount)


NOTHING = AccessSequence()


def single(address: int, unit: Granularity) -> AccessSequence:
    """Return a sequence of one access."""
    first, last = unit.steps_of(address)
    length = last - first + 1
    return AccessSequence(
        1, address, address, 1, 1, 1, 1, _blocks(address, unit), _bursts(length, unit),
        1, length, length,
    )


def _blocks(address: int, unit: Granularity) -> int:
    """Return the number of transactions for one element."""
    if unit.block is None:
        return 0
    return (address + unit.size - 1) // unit.block - address // unit.block + 1


def concat_accesses(a: AccessSequence, b: AccessSequence, unit: Granularity) -> AccessSequence:
    """Return the accesses of `a` followed by those of `b`."""
    if not a.count or not b.count:
        return a if a.count else b
    bursts, *stretches = _joined_stretches(a, b, unit)
    gap = b.first - a.last
    if gap not in (0, unit.size):
        return AccessSequence(
            a.count + b.count, a.first, b.last, a.runs + b.runs, max(a.longest, b.longest),
            a.head, b.tail, a.blocks + b.blocks, bursts, *stretches,
        )
    joined = a.tail + b.head - (gap == 0)
    return AccessSequence(
        a.count + b.count, a.first, b.last, a.runs + b.runs - 1,
        max(a.longest, b.longest, joined),
        joined if a.runs == 1 else a.head,
        joined if b.runs == 1 else b.tail,
        a.blocks + b.blocks - _common_transactions(a.last, b.first, unit), bursts, *stretches,
    )


def _joined_stretches(
    a: AccessSequence, b: AccessSequence, unit: Granularity
) -> tuple[int, int, int, int]:
    """Return bursts, stretches, opening and closing of the accesses of `a` followed by `b`."""
    overlap = _overlap(a.last, b.first, unit)
    if overlap is None:
        return a.bursts + b.bursts, a.stretches + b.stretches, a.opening, b.closing
    joined = a.closing + b.opening - overlap
    return (
        a.bursts + b.bursts
        + _bursts(joined, unit) - _bursts(a.closing, unit) - _bursts(b.opening, unit),
        a.stretches + b.stretches - 1,
        joined if a.stretches == 1 else a.opening,
        joined if b.stretches == 1 else b.closing,
    )


def _overlap(last: int, first: int, unit: Granularity) -> int | None:
    """Return the number of common steps of two accesses; None if they are in two stretches."""
    (start, end), (begin, _) = unit.steps_of(last), unit.steps_of(first)
    if first == last:
        return end - start + 1
    return 1 - (begin - end) if begin - end in (0, 1) else None


def _bursts(length: int, unit: Granularity) -> int:
    """Return the number of bursts of a stretch."""
    return ceil_div(length * unit.step, unit.burst * unit.size) if unit.burst else 1


def _common_transactions(last: int, first: int, unit: Granularity) -> int:
    """Return the number of transactions that two adjacent accesses have in common."""
    if unit.block is None:
        return 0
    if last == first:
        return _blocks(first, unit)
    return int((last + unit.size - 1) // unit.block == first // unit.block)
