"""Reductions whose terms read an element several times, over windows that overlap the borders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tests.strategies.arrays import Array, Guarded, assert_equal, garbage
from tests.strategies.draws import Dice, Draws

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 20)
# Sums of these are exact in every one of the dtypes, so the order of the sums does not matter.
DTYPES = ("float32", "float64", "int32", "float16")
TERMS: dict[str, Callable[[Any], Any]] = {
    "square": lambda x: x * x,
    "polynomial": lambda x: x * x + x,
    "product": lambda x: (x + 1) * (x - 1),
    "power": lambda x: x * x * x,
}
REDUCERS: dict[str, tuple[Any, Any]] = {"sum": (te.sum, np.sum), "max": (te.max, np.max), "min": (te.min, np.min)}


@dataclass(frozen=True)
class Window:
    """A reduction over a window along one axis, and a consumer that reads each total.

    Attributes:
        shape: Shape of the input and of the result.
        dtype: Data type of the input.
        axis: Axis of the window.
        width: Elements of the window.
        term: Name of the function of an element.
        reducer: Name of the reduction.
        factor: Vector length of an explicit schedule; 0 for the schedule of the library.
        is_unrolled: Whether an explicit schedule unrolls the reduction.
    """

    shape: tuple[int, ...]
    dtype: str
    axis: int
    width: int
    term: str
    reducer: str
    factor: int
    is_unrolled: bool

    def define(self) -> list[te.Tensor]:
        """Return the input and the result."""
        A = te.placeholder(self.shape, self.dtype, name="A")
        k = te.reduce_axis((0, self.width), name="k")

        def term(*i: te.Expr) -> te.Expr:
            at = i[self.axis] + k - self.width // 2
            inside = te.all(at >= 0, at < self.shape[self.axis])
            read = A(*i[: self.axis], at, *i[self.axis + 1 :])
            x = te.if_then_else(inside, read, te.const(0, self.dtype))
            value: te.Expr = REDUCERS[self.reducer][0](TERMS[self.term](x), axis=k)
            return value

        total = te.compute(self.shape, term, name="total")
        return [A, te.compute(self.shape, lambda *i: total(*i) - A(*i), name="result")]

    def expected(self, a: Array) -> Array:
        """Compute the result with NumPy."""
        before = self.width // 2
        pads = [(0, 0)] * a.ndim
        pads[self.axis] = (before, self.width - 1 - before)
        wide = np.pad(a, pads)
        windows = np.lib.stride_tricks.sliding_window_view(wide, self.width, self.axis)
        totals = REDUCERS[self.reducer][1](TERMS[self.term](windows), axis=-1)
        result: Array = totals.astype(a.dtype) - a
        return result

    def kernel(self) -> Any:
        """Build the kernel with the library schedule, or with an explicit vectorized schedule."""
        A, result = self.define()
        if not self.factor:
            return tecomp.build(result, [A, result])
        s = te.create_schedule(result)
        total = result.op.input_tensors[0]
        s[total].compute_at(s[result], s[result].op.axis[max(len(self.shape) - 2, 0)])
        for stage in (s[total], s[result]):
            outer, inner = stage.split(stage.op.axis[-1], factor=self.factor)
            if stage is s[total]:
                stage.reorder(outer, stage.op.reduce_axis[0], inner)
                if self.is_unrolled:
                    stage.unroll(stage.op.reduce_axis[0])
            stage.vectorize(inner)
        return tecomp.build(s, [A, result])

    def check(self) -> None:
        """Compare the kernel with NumPy."""
        a = np.random.default_rng(0).integers(-3, 4, self.shape).astype(self.dtype)
        source, result = Guarded(a), Guarded(garbage(self.shape, a.dtype))
        self.kernel()(source.array, result.array)
        for guarded in (source, result):
            guarded.check()
        assert_equal(result.array, self.expected(a), str(self))


def draw_window(draw: Dice) -> Window:
    """Draw a window of at most 7 elements over an array of 1 to 4 axes."""
    d = Draws(draw)
    shape = tuple(d.pick(EXTENTS) for _ in range(d.number(1, 4)))
    while np.prod(shape) > 4000:
        shape = shape[1:]
    return Window(
        shape, d.pick(DTYPES), d.below(len(shape)), d.number(1, 7), d.pick([*TERMS]),
        d.pick([*REDUCERS]), d.pick((0, 0, 4, 8, 16)), d.chance(50),
    )


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("seed", range(60))
def test_random_windows(seed: int) -> None:
    draw_window(Dice(seed=seed)).check()


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("extent", range(1, 41))
def test_all_lengths_of_a_row(extent: int) -> None:
    Window((4, extent), "float32", 0, 5, "square", "sum", 0, is_unrolled=False).check()
