"""Random index expressions in symbolic sizes, with the ranges of their variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tecomp.ir import (
    BinOp,
    CmpOp,
    Const,
    Expr,
    Ranges,
    Var,
    binary,
    cast,
    compare,
    if_then_else,
    index_value,
    logical_and,
    logical_or,
    select,
)
from tecomp.poly import values
from tests.strategies.draws import Draws

Points = Mapping[Var, NDArray[np.int64]]

_MOST_POINTS = 1 << 13
_LARGEST = {"n": 6, "m": 4}


@dataclass(frozen=True, repr=False)
class World:
    """Variables with the ranges that a simplifier gets, and sample points in these ranges.

    Attributes:
        sizes: Size variables, which are known when a kernel is called.
        extents: Extents of the axes in terms of the sizes.
        ranges: Lower and upper bound of every variable.
        points: Values of every variable at all points.
    """

    sizes: tuple[Var, ...]
    extents: Mapping[Var, Expr]
    ranges: Ranges
    points: Points

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        return ", ".join(f"{low} <= {var.name} <= {high}" for var, (low, high) in self.ranges.items())

    @property
    def count(self) -> int:
        """Number of points."""
        return len(self.points[self.sizes[0]])

    def evaluate(self, expr: Expr) -> NDArray[Any]:
        """Evaluate `expr` at all points with NumPy."""
        return np.broadcast_to(values(expr, self.points), (self.count,))


@dataclass
class Algebra(Draws):
    """Generator of a world and of expressions in it."""

    n: Var = field(default_factory=lambda: Var("n"))
    m: Var = field(default_factory=lambda: Var("m"))
    axes: list[Var] = field(default_factory=list)
    known: list[Expr] = field(default_factory=list)
    """Extents drawn so far; they are reused, because simplification rules match equal extents."""

    def world(self) -> World:
        """Draw two sizes, one or two axes and often a fused loop."""
        low = self.pick((0, 1))
        ranges: dict[Var, tuple[int | Expr, int | Expr | None]] = {}
        ranges = {self.n: (low, None), self.m: (low, None)}
        extents: dict[Var, Expr] = {}
        for name in ("i", "j")[: self.number(1, 2)]:
            extents[Var(name)] = self.extent()
        if self.chance(60):
            fused = binary(BinOp.MUL, self.extent(), self.extent())
            extents[Var("f")] = fused
        for axis, extent in extents.items():
            start = index_value(self.pick((0, 0, 0, 1, -2)))
            ranges[axis] = (start, binary(BinOp.SUB, binary(BinOp.ADD, start, extent), Const(1)))
        self.axes = [*extents]
        return World((self.n, self.m), extents, ranges, self._points(ranges))

    def _points(self, ranges: Ranges) -> Points:
        found: dict[Var, NDArray[np.int64]] = {}
        count = 1
        for var, (low, high) in ranges.items():
            first = np.broadcast_to(values(index_value(0 if low is None else low), found), (count,))
            end = _LARGEST.get(var.name) if high is None else values(index_value(high), found)
            turns = np.maximum(np.broadcast_to(np.asarray(end), (count,)) - first + 1, 0)
            ends = np.cumsum(turns)
            # Sample combinations at a fixed interval if there are more than `_MOST_POINTS`.
            selected = np.arange(0, int(turns.sum()), int(turns.sum()) // _MOST_POINTS + 1)
            where = np.searchsorted(ends, selected, side="right")
            found = {other: column[where] for other, column in found.items()}
            found[var] = first[where] + selected - (ends - turns)[where]
            count = len(selected)
        return found

    def extent(self) -> Expr:
        """Draw an extent: a constant, or an expression in one or both sizes."""
        if self.known and self.chance(50):
            return self.pick(self.known)
        result = self._extent()
        self.known.append(result)
        return result

    def _extent(self) -> Expr:
        n, m = (self.n, self.m) if self.chance(75) else (self.m, self.n)
        c, d = self.number(2, 4), self.number(1, 4)
        if self.chance(50):
            return self.pick((n + 0, n + n, n * c, n * m))
        kinds: tuple[Expr, ...] = (
            (n + d) // c, n // c * c, (n + c - 1) // c * c, n + m,
            n + d, index_value(self.number(1, 8)), n * m * c, n * (m + d), n % c, n - d,
            binary(BinOp.MIN, n, c), binary(BinOp.MAX, n, d), binary(BinOp.MIN, n, m),
            (n + m) // c, n * n, n // binary(BinOp.MAX, m, 1), c - n, (n + d) * (m + n),
        )
        return self.pick(kinds)

    def index(self, depth: int) -> Expr:
        """Draw an index of sums, products, digits of fused indices, extrema and selections."""
        if depth == 0 or self.chance(6):
            return self._leaf()
        a = self.index(depth - 1)
        match self.number(0, 5):
            case 0:
                return self.digits(a)
            case 1:
                return self._chosen(a, depth - 1)
            case 2 | 3:
                return self._divided(a)
        return self._sum(a, depth - 1)

    def _sum(self, a: Expr, depth: int) -> Expr:
        match self.number(0, 4):
            case 0:
                return a * self.number(-3, 8)
            case 1:
                return a * self.extent()
            case 2:
                return a - self.index(depth)
            case 3:
                # Row-major access of a fused loop nest.
                return a * self.extent() + self.index(depth)
        return a + self.index(depth)

    def _divided(self, a: Expr) -> Expr:
        match self.number(0, 2):
            case 0:
                return a // self._divisor()
            case 1:
                return a % self._divisor()
        return a // self._divisor() % self._divisor()

    def _chosen(self, a: Expr, depth: int) -> Expr:
        match self.number(0, 3):
            case 0:
                return cast("int64", self.condition(depth))
            case 1:
                return select(self.condition(depth), a, self.index(depth))
            case 2:
                return if_then_else(self.condition(depth), a, self.index(depth))
        return binary(self.pick((BinOp.MIN, BinOp.MAX)), a, self.index(depth))

    def digits(self, x: Expr) -> Expr:
        """Draw `x // d * d + x % d`, or an expression that almost has this form."""
        d = self.extent() if self.chance(75) else self._divisor()
        c = self.pick((1, 1, 2, -1))
        others = (d, d, d * 2, self.n, self.m, *self.known)
        if self.chance(35):
            # Three digits: both digits of the row are multiplied by the row length.
            e = self.extent()
            row, k, last = x // e, e if self.chance(75) else self.pick(others), x % e
            return row // d * (self.pick((d, d, *others)) * k) + row % d * k + last
        low = x if self.chance(85) else self._leaf()
        return x // d * (self.pick(others) * c) + low % self.pick((d, d, *others)) * c

    def _divisor(self) -> Expr:
        return index_value(self.pick((1, 2, 3, 4, 6, 8, 12))) if self.chance(40) else self.extent()

    def _leaf(self) -> Expr:
        match self.number(0, 5):
            case 0:
                return index_value(self.number(-4, 9))
            case 1:
                return self.extent()
        return self.pick(self.axes) + 0

    def condition(self, depth: int) -> Expr:
        """Draw a comparison of indices, or a logical combination of comparisons."""
        if depth and self.chance(25):
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return self.pick((logical_and, logical_or))(a, b)
        if depth and self.chance(10):
            return ~self.condition(depth - 1)
        a, b = self.index(depth), self.index(max(depth - 1, 0))
        if self.chance(20):
            b = self.extent()
        return compare(self.pick(list(CmpOp)), a, b)


@st.composite
def worlds_and_indices(draw: Any, depth: int = 3) -> tuple[World, Expr]:
    """Draw a world and an index expression."""
    algebra = Algebra(draw)
    world = algebra.world()
    return world, algebra.index(algebra.number(1, depth))


@st.composite
def worlds_and_digits(draw: Any) -> tuple[World, Expr]:
    """Draw a world and an index recombined from its digits, or almost so."""
    algebra = Algebra(draw)
    world = algebra.world()
    return world, algebra.digits(algebra.index(algebra.number(0, 1)))
