"""Random programs without a schedule agree with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import auto
from tests.numerics import assert_close
from tests.strategies.te_programs import draw_program

CPU = tecomp.Target.load("cpu")


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    p = draw_program(seed)
    last = [x for x in p.values if x[0].op.input_tensors][-1]
    others = [x for x in p.values if x[0].op.input_tensors and x is not last]
    results = [last, *(p.dice.sample(others, 1) if others and seed % 3 == 0 else ())]
    outputs = [x for x, _ in results]
    inputs, source = p.needed(outputs)
    kernel = tecomp.build(auto(outputs, CPU), [*inputs, *outputs])
    created = [np.full(x.shape, np.nan, np.float32) for x in outputs]
    kernel(*source, *created)

    for value, (_, expected) in zip(created, results, strict=True):
        assert_close(value, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("dtype", "total"), [
    ("bfloat16", "float32"), ("float16", "float32"), ("int8", "int32"), ("uint8", "int32"),
    ("int16", "int32"),
])
def test_products_of_narrow_numbers_with_readers(dtype: str, total: str) -> None:
    """A product is read by two element-wise stages, or by a reduction and an element-wise stage."""
    A, B = te.placeholder((33, 70), dtype, "A"), te.placeholder((70, 50), dtype, "B")
    k, c = te.reduce_axis((0, 70), name="k"), te.reduce_axis((0, 50), name="c")
    C = te.compute((33, 50), lambda i, j: te.sum(
        te.cast(A[i, k], total) * te.cast(B[k, j], total), axis=k), name="C")
    rounded = te.compute(C.shape, lambda i, j: te.cast(C[i, j], "float32"), name="rounded")
    D = te.compute(C.shape, lambda i, j: te.max(rounded[i, j], 0.0), name="D")
    most = te.compute((33,), lambda i: te.max(C[i, c], axis=c), name="most")
    E = te.compute((50, 33), lambda j, i: te.cast(C[i, j] - most[i], "float32"), name="E")
    numbers = np.random.default_rng(0)
    a, b = (numbers.integers(0, 5, x.shape).astype(x.dtype.numpy) for x in (A, B))
    d, e = np.empty((33, 50), np.float32), np.empty((50, 33), np.float32)

    tecomp.build(D, [A, B, D])(a, b, d)
    tecomp.build(E, [A, B, E])(a, b, e)

    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(d, expected)
    np.testing.assert_array_equal(e, (expected - expected.max(1, keepdims=True)).T)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("m", [1, 33, 100])
@pytest.mark.parametrize(("dtype", "total"), [("bfloat16", "float32"), ("int8", "int32")])
def test_products_of_copies_in_another_order(dtype: str, total: str, m: int) -> None:
    """Operands of products are transposed copies with two readers each."""
    A, B = te.placeholder((m, 70), dtype, "A"), te.placeholder((70, 50), dtype, "B")
    turned_a = te.compute((70, m), lambda c, i: te.cast(A[i, c], total), name="turned_a")
    turned_b = te.compute((50, 70), lambda j, c: te.cast(B[c, j], total), name="turned_b")

    def product(name: str) -> te.Tensor:
        k = te.reduce_axis((0, 70), name="k")
        return te.compute((m, 50), lambda i, j: te.sum(
            turned_a[k, i] * turned_b[j, k], axis=k), name=name)

    C, D = product("C"), product("D")
    E = te.compute((m, 50), lambda i, j: C[i, j] + 2 * D[i, j], name="E")
    numbers = np.random.default_rng(0)
    a, b = (numbers.integers(-5, 5, x.shape).astype(x.dtype.numpy) for x in (A, B))
    e = np.empty((m, 50), total)

    tecomp.build(E, [A, B, E])(a, b, e)

    np.testing.assert_array_equal(e, 3 * (a.astype(np.float64) @ b.astype(np.float64)))
