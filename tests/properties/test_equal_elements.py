"""`rfactor` of reducers that keep the first or the last of equal elements agrees with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import CommReducer, ComputeOp, Reduce
from tests.strategies.draws import Dice, Draws

EXTENTS = (1, 2, 3, 4, 7, 8, 12, 17)


def first(x: Any, y: Any) -> list[te.Expr]:
    """Keep the first of equal elements."""
    return [te.Select(x[1] >= y[1], x[n], y[n]) for n in (0, 1)]


def last(x: Any, y: Any) -> list[te.Expr]:
    """Keep the last of equal elements."""
    return [te.Select(y[1] >= x[1], y[n], x[n]) for n in (0, 1)]


def reducer(combine: Callable[..., list[te.Expr]]) -> Any:
    return te.comm_reducer(
        combine, lambda index, value: [te.const(-1, index), te.min_value(value)], name="found")


def wanted(a: np.ndarray[Any, Any], *, is_first: bool) -> np.ndarray[Any, Any]:
    """Return the index of the first or last maximum of each row."""
    flat = a.reshape(len(a), -1)
    index = flat.argmax(1) if is_first else flat.shape[1] - 1 - flat[:, ::-1].argmax(1)
    return np.asarray(index)


@pytest.mark.exhaustive(keep=11)
@pytest.mark.parametrize("seed", range(60))
def test_rfactor_finds_the_same_index(seed: int) -> None:
    d = Draws(Dice(seed=seed))
    is_first, rank = d.chance(50), d.number(1, 2)
    sizes = [d.pick(EXTENTS) for _ in range(rank)]
    step, base = d.number(1, 3), d.number(0, 5)
    A = te.placeholder((5, *sizes), "int32", name="A")
    axes = [te.reduce_axis((0, size), name=f"k{n}") for n, size in enumerate(sizes)]

    def values(i: te.Expr) -> Any:
        index = axes[0] if rank == 1 else axes[0] * sizes[1] + axes[1]
        index = index * step + base
        index = te.cast(index, "int64") if seed % 2 else index
        return reducer(first if is_first else last)((index, A[(i, *axes)]), axis=axes)

    found, most = te.compute((5,), values, name="M")
    s = te.create_schedule(found)
    loops = list(axes)
    for _ in range(d.number(0, 2)):
        loop = loops.pop(d.below(len(loops)))
        loops += s[found].split(loop, factor=d.number(1, 5))
    s.rfactor(found, d.pick(loops), factor_axis=d.below(2))
    if d.chance(30):
        outer, inner = s[found].split(s[found].op.reduce_axis[0], factor=2)
        s.rfactor(found, d.pick((outer, inner)))

    a = np.random.default_rng(seed).integers(0, d.number(1, 3), (5, *sizes)).astype("int32")
    index, value = np.zeros(5, str(found.dtype)), np.zeros(5, "int32")
    tecomp.build(s, [A, found, most])(a, index, value)

    np.testing.assert_array_equal(index, wanted(a, is_first=is_first) * step + base)
    np.testing.assert_array_equal(value, a.reshape(5, -1).max(1))


def combiner_of(s: te.Schedule, tensor: te.Tensor) -> CommReducer:
    """Return the current reducer of a stage."""
    op = s[tensor].op
    assert isinstance(op, ComputeOp)
    (reduce, *_) = op.body
    assert isinstance(reduce, Reduce)
    return reduce.combiner


@pytest.mark.parametrize(("index", "is_ordered"), [
    (lambda k, h: k, False), (lambda k, h: k * 3 + h, True), (lambda k, h: k * 2 + h, False),
    (lambda k, h: 20 - (k * 3 + h), False), (lambda k, h: k * 3 + h * h, False),
    (lambda k, h: te.cast(k * 3 + h, "float32"), False),
    (lambda k, h: te.cast(k * 3 + h, "int64") * 2 + 1, True),
])  # fmt: skip
def test_values_that_order_partial_results(index: Any, *, is_ordered: bool) -> None:
    A = te.placeholder((4, 3), "int32", name="A")
    k, h = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 3), name="h")
    found, _ = te.compute(
        (1,), lambda i: reducer(first)((index(k, h), A[k, h]), axis=[k, h]), name="M")
    s = te.create_schedule(found)
    before = combiner_of(s, found)

    s.rfactor(found, h)

    assert (combiner_of(s, found) is not before) is is_ordered


def test_a_commutative_reducer_is_unchanged() -> None:
    A = te.placeholder((8,), "int64", name="A")
    k = te.reduce_axis((0, 8), name="k")
    total = te.compute((1,), lambda i: te.sum(te.cast(k, "int64") * A[k], axis=k), name="S")
    s = te.create_schedule(total)
    before = combiner_of(s, total)

    s.rfactor(total, s[total].split(k, factor=2)[1])

    assert combiner_of(s, total) is before
