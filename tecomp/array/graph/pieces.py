"""Long pending operations in pieces, so that none takes long to compile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tecomp.array.graph.pending import Pending, Step


@dataclass(frozen=True, slots=True)
class Piece:
    """Operations that are computed together.

    Attributes:
        leaves: the places, in all of the operations, of what is computed before.
        nodes: the places of the results of the operations.
        steps: what computes each, as of pending operations.
        outputs: the results that are wanted, or that pieces behind this one read.
        done: the places of what no piece behind this one reads, and nobody wants.
    """

    leaves: tuple[int, ...]
    nodes: tuple[int, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    done: tuple[int, ...]


def pieces_of(work: Pending, most: int) -> tuple[Piece, ...]:
    """Pending operations in pieces of so many at most.

    A piece ends where few results are read behind it. Where operations come again and again, it is
    a whole number of rounds, so that all pieces but the last are the same kernel.
    """
    count = len(work.steps)
    last = _last_uses(work)
    live = _live(last)
    codes = _codes(work.steps)
    pieces, start = [], 0
    while start < count:
        end = count if count - start <= most else _end(start, most, codes, live)
        pieces.append(_piece(work, range(start, end), last))
        start = end
    return tuple(pieces)


def _last_uses(work: Pending) -> list[int]:
    """The last operation that reads each result; one behind all of them for what is wanted."""
    last = [0] * len(work.steps)
    for k, (_, places) in enumerate(work.steps):
        for place in places:
            if place >= 0:
                last[place] = k
    for place in work.outputs:
        last[place] = len(work.steps)
    return last


def _live(last: Sequence[int]) -> list[int]:
    """How many results before each operation are read from there on."""
    change = [0] * (len(last) + 2)
    for place, use in enumerate(last):
        change[place + 1] += 1
        change[use + 1] -= 1
    return [*accumulate(change)]


def _codes(steps: Sequence[Step]) -> list[int]:
    """Numbers that are equal for equal operations."""
    known: dict[object, int] = {}
    return [known.setdefault(op, len(known)) for op, _ in steps]


def _end(start: int, most: int, codes: list[int], live: Sequence[int]) -> int:
    fewest = most // 2
    period = next((p for p in range(1, fewest) if _comes_again(start, p, most, codes)), 1)
    ends = [e for e in range(start + most, start + fewest, -1) if (e - start) % period == 0]
    return min(ends, key=lambda end: live[end])


def _comes_again(start: int, period: int, most: int, codes: list[int]) -> bool:
    behind = codes[start + period : start + period + most]
    return codes[start : start + len(behind)] == behind


def _piece(work: Pending, own: range, last: Sequence[int]) -> Piece:
    steps = work.steps[own.start : own.stop]
    read = dict.fromkeys(place for _, places in steps for place in places if place < own.start)
    leaves = {place: -1 - k for k, place in enumerate(read)}
    return Piece(
        tuple(leaves),
        tuple(own),
        tuple([
            (op, tuple([place - own.start if place in own else leaves[place] for place in places]))
            for op, places in steps
        ]),
        tuple([k - own.start for k in own if last[k] >= own.stop]),
        tuple([place for place in (*read, *own) if place >= 0 and last[place] < own.stop]),
    )
