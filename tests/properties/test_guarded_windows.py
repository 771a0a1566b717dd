"""Rolling buffers under windows with guarded borders: results and buffer sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.driver import ScheduledKernel
from tecomp.ir import Allocate, walk
from tests.strategies.arrays import Array
from tests.strategies.draws import Draws
from tests.strategies.fenced import call_fenced

KINDS = ("clamp", "zero", "mirror", "wrap")


@dataclass(frozen=True)
class Taps:
    """Access pattern of a window along one axis of `extent` elements.

    Attributes:
        kind: Values beyond the ends: "clamp", "zero", "mirror" or "wrap".
        extent: Number of elements of the axis that is read.
        count: Number of taps of the window.
        stride: Distance between consecutive windows.
        dilation: Distance between consecutive taps.
        before: Number of elements by which the first window extends before the first element.
        after: Number of elements by which the last window extends beyond the last element.
    """

    kind: str
    extent: int
    count: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def reach(self) -> int:
        """Number of elements from the first tap to the last one."""
        return (self.count - 1) * self.dilation + 1

    @property
    def windows(self) -> int:
        """Number of windows."""
        return (self.extent + self.before + self.after - self.reach) // self.stride + 1

    def tap_index(self, window: Any, tap: Any) -> Any:
        """Return the index of a tap before border handling."""
        return window * self.stride + tap * self.dilation - self.before

    def read(self, at: te.Expr) -> te.Expr:
        """Return the index after border handling."""
        last = self.extent - 1
        if self.kind == "clamp":
            return te.max(te.min(at, last), 0)
        if self.kind == "mirror":
            inside: te.Expr = te.if_then_else(at > last, 2 * last - at, at)
            return te.if_then_else(at < 0, 0 - at, inside)
        return (at + self.extent) % self.extent if self.kind == "wrap" else at

    def guard(self, at: te.Expr) -> te.Expr:
        """Return whether an index is in bounds."""
        return te.all(at >= 0, at < self.extent)

    def most(self) -> int:
        """Return the largest index range from the oldest element still needed to the newest one."""
        rows = np.arange(self.extent)[:, None]
        wide = padded(rows + 1, self, Taps("zero", 1, 1, 1, 1, 0, 0))[:, 0] - 1
        reads = [wide[self.tap_index(window, np.arange(self.count)) + self.before]
                 for window in range(self.windows)]  # fmt: skip
        reads = [found[found >= 0] for found in reads]
        return max(
            int(found.max() - np.concatenate(reads[k:]).min() + 1)
            for k, found in enumerate(reads) if found.size
        )


def padded(a: Array, rows: Taps, columns: Taps) -> Array:
    """Pad `a` with the values beyond its ends."""
    for axis, taps in enumerate((rows, columns)):
        width = [(0, 0), (0, 0)]
        width[axis] = (taps.before, taps.after)
        mode = {"clamp": "edge", "mirror": "reflect", "wrap": "wrap"}.get(taps.kind, "constant")
        a = np.pad(a, width, mode)  # type: ignore[call-overload]
    return a


@st.composite
def windows(draw: Any, kinds: tuple[str, ...] = KINDS) -> Taps:
    d = Draws(draw)
    extent = d.number(3, 12)
    count, dilation = d.number(2, 4), d.number(1, 2)
    reach = (count - 1) * dilation + 1
    before, after = (d.number(0, min(extent - 1, 4)) for _ in range(2))
    after = max(after, min(reach + 2 - extent - before, extent - 1))
    stride = d.number(1, min(reach - 1, 3))
    return Taps(d.pick(kinds), extent, count, stride, dilation, before, after)


def program(rows: Taps, columns: Taps, along: int) -> tuple[te.Schedule, list[te.Tensor]]:
    """Define sums over windows of `2 * A`, with a rolling buffer for `2 * A`."""
    A = te.placeholder((rows.extent, columns.extent), dtype="int32", name="A")
    P = te.compute(A.shape, lambda y, x: A[y, x] * 2, name="P")

    def window(y: te.Expr, x: te.Expr) -> te.Expr:
        total: te.Expr = te.const(0, "int32")
        for k in range(rows.count):
            for l in range(columns.count):  # noqa: E741  (a tap of the other axis)
                at = rows.tap_index(y, k), columns.tap_index(x, l)
                value: te.Expr = P[rows.read(at[0]), columns.read(at[1])]
                guards = [t.guard(place) for t, place in zip((rows, columns), at, strict=True)
                          if t.kind == "zero"]  # fmt: skip
                if guards:
                    value = te.if_then_else(te.all(*guards), value, 0)
                total = total + value * (k * 4 + l + 1)
        return total

    C = te.compute((rows.windows, columns.windows), window, name="C")
    s = te.create_schedule(C)
    s[P].compute_at(s[C], C.op.axis[along])
    s[P].rolling_buffer()
    return s, [A, C]


def held(s: te.Schedule, args: list[te.Tensor]) -> int:
    """Return the number of elements of the largest allocation."""
    func = tecomp.lower(s, args, stop_after="flatten_buffer")
    return max(
        prod(int(str(n)) for n in node.buffer.shape)
        for node in walk(func.body) if isinstance(node, Allocate)
    )


def check(rows: Taps, columns: Taps, along: int) -> None:
    s, args = program(rows, columns, along)
    a = np.random.default_rng(0).integers(-9, 9, (rows.extent, columns.extent)).astype("int32")
    widened = padded(a, rows, columns).astype(np.int64)
    expected = np.zeros((rows.windows, columns.windows), np.int64)
    for k in range(rows.count):
        for l in range(columns.count):  # noqa: E741  (a tap of the other axis)
            part = widened[k * rows.dilation :: rows.stride, l * columns.dilation :: columns.stride]
            expected += 2 * (k * 4 + l + 1) * part[: rows.windows, : columns.windows]
    kernel = tecomp.build(s, args)
    # Run the kernel on fenced arrays, and in the interpreter, which rejects out-of-bounds accesses.
    for run in (partial(call_fenced, kernel), interpreted(kernel)):
        found = np.zeros(expected.shape, "int32")
        run(a, found)
        np.testing.assert_array_equal(found, expected)


def interpreted(kernel: ScheduledKernel) -> Callable[..., None]:
    """Return a function that runs the last lowered function in the interpreter."""
    return lambda *arrays: tecomp.evaluate(
        kernel.lowered.final, [array.reshape(-1) for array in arrays])


POINT = Taps("clamp", 7, 1, 1, 1, 0, 0)


@given(windows())
def test_guarded_rows_are_retained(rows: Taps) -> None:
    if rows.windows < 2:
        return
    s, args = program(rows, POINT, 0)
    check(rows, POINT, 0)
    if rows.windows < 4:
        return  # too few windows to see the rolling dimension
    # The buffer also holds the elements by which a window extends before the border.
    assert held(s, args) <= (rows.most() + rows.before) * 7


@pytest.mark.exhaustive
@given(windows(), windows(), st.integers(0, 1))
def test_windows_of_two_dimensions(rows: Taps, columns: Taps, along: int) -> None:
    if min(rows.windows, columns.windows) < 2:
        return
    check(rows, columns, along)


@pytest.mark.parametrize(("kind", "rows"), [("clamp", 3), ("zero", 3), ("mirror", 3)])
def test_three_rows_are_retained(kind: str, rows: int) -> None:
    taps = Taps(kind, 30, 3, 1, 1, 1, 1)
    s, args = program(taps, POINT, 0)

    assert held(s, args) == rows * 7
