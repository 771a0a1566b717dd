"""Lanes that are known steps apart: loads of the runs that they lie in, and a choice of lanes.

Elements of one row and, in between, those of another are two runs; elements that several lanes read
are in one. A gather takes an access for each lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.codegen.values.ramp import as_ramp
from tecomp.ir.language.dtype import INT64, holds_every
from tecomp.ir.language.expr import (
    Binary,
    BinOp,
    Broadcast,
    Cast,
    Const,
    Expr,
    Ramp,
    binary,
    cast,
)
from tecomp.ir.traversal.rewrite import children, fold

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
