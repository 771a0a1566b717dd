"""Element-wise functions equal NumPy for all shapes and chains."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import tecomp
from tecomp import te
from tecomp.schedules import activations, elementwise
from tests.numerics import assert_close
from tests.strategies.fenced import call_fenced

SIZES = [1, 2, 3, 7, 127, 1000, 1023]


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape, np.float32) for shape in shapes]


def run(output: te.Tensor, args: list[te.Tensor], inputs: list[np.ndarray],
        target: tecomp.Target) -> np.ndarray:
    schedule = elementwise.schedule(output, target)
    kernel = tecomp.build(schedule, [*args, output])
    sizes = np.broadcast_shapes(*(array.shape for array in inputs))
    result = np.full(sizes, 99, output.dtype)
    call_fenced(kernel, *inputs, result)
    return result


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n: int, target: tecomp.Target) -> None:
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    a, b = arrays((n,), (n,))
    C = elementwise.define(lambda x, y: x * y + 1.0, A, B)

    assert_close(run(C, [A, B], [a, b], target), a * b + 1, rtol=1e-6, atol=1e-6)


@pytest.mark.exhaustive(keep=14)
@pytest.mark.parametrize(
    "shapes",
    [
        ((5, 7), (5, 7)), ((5, 7), (7,)), ((5, 1), (1, 7)), ((3, 5, 7), (5, 1)), ((70, 3), (3,)),
        ((4, 3, 11, 13), (3, 1, 1)), ((2, 300), (2, 1)), ((6, 9), ()), ((), ()), ((1, 1), (1,)),
        ((0, 4), (4,)),
    ],
)
def test_broadcast(shapes: tuple[tuple[int, ...], ...], target: tecomp.Target) -> None:
    tensors = [te.placeholder(shape, name=f"T{k}") for k, shape in enumerate(shapes)]
    inputs = arrays(*shapes)
    C = elementwise.define(lambda x, y: x - y * 2.0, *tensors)

    result = run(C, tensors, inputs, target)
    assert_close(result, inputs[0] - inputs[1] * 2, rtol=1e-6, atol=1e-6)


def test_a_chain_is_one_loop(target: tecomp.Target) -> None:
    A, b = te.placeholder((9, 33), name="A"), te.placeholder((33,), name="b")
    total = elementwise.define(lambda x, y: x + y, A, b, name="total")
    C = elementwise.define(activations.relu, total)
    a, bias = arrays((9, 33), (33,))

    np.testing.assert_array_equal(run(C, [A, b], [a, bias], target), np.maximum(a + bias, 0))
    assert "Allocate" not in str(tecomp.lower(elementwise.schedule(C, target), [A, b, C]))


def test_repeated_subexpressions_are_computed_once(target: tecomp.Target) -> None:
    A, b = te.placeholder((9, 33), name="A"), te.placeholder((33,), name="b")
    weights = elementwise.define(te.exp, b, name="weights")
    C = elementwise.define(lambda x, y: x * y, A, weights)
    a, row = arrays((9, 33), (33,))

    assert_close(run(C, [A, b], [a, row], target), a * np.exp(row), rtol=1e-5)
    assert "as weights" in str(tecomp.lower(elementwise.schedule(C, target), [A, b, C]))


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float64"])
def test_types(dtype: str, target: tecomp.Target) -> None:
    A = te.placeholder((3, 50), dtype, name="A")
    a = np.arange(150).reshape(3, 50).astype(dtype)

    np.testing.assert_array_equal(run(elementwise.define(lambda x: x + x, A), [A], [a], target),
                                  a + a)


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("shape", [(1, 1), (3, 1000), (40, 3), (127, 129)])
def test_sizes_known_at_the_call(shape: tuple[int, int], target: tecomp.Target) -> None:
    n, m = te.var("n"), te.var("m")
    A, b = te.placeholder((n, m), name="A"), te.placeholder((m,), name="b")
    a, row = arrays(shape, shape[1:])

    whole = elementwise.define(lambda x: x * 3.0, A)
    np.testing.assert_array_equal(run(whole, [A], [a], target), a * 3)
    rows = elementwise.define(lambda x, y: x + y, A, b)
    np.testing.assert_array_equal(run(rows, [A, b], [a, row], target), a + row)


def test_shapes_that_do_not_fit_are_refused() -> None:
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((4,), name="B")

    with pytest.raises(ValueError, match="broadcast") as error:
        elementwise.define(lambda x, y: x + y, A, B)

    assert str(error.value) == (
        "shapes (4, 5), (4,) do not broadcast: axis -1 has extents 4, 5; make them equal, or 1"
    )


@pytest.mark.parametrize("fp_contract", [True, False])
@pytest.mark.parametrize("most", [1e-3, 1.0, 6.0, 100.0, 1e38])
def test_gelu_is_the_share_below(most: float, fp_contract: bool) -> None:
    n = 100_000
    X = te.placeholder((n,), name="X")
    Y = elementwise.define(activations.gelu, X)
    target = tecomp.Target.load("cpu")
    kernel = tecomp.build(elementwise.schedule(Y, target), [X, Y], fp_contract=fp_contract)
    x, y = np.linspace(-most, most, n).astype(np.float32), np.empty(n, np.float32)
    call_fenced(kernel, x, y)
    widened = x.astype(np.float64)

    np.testing.assert_array_less(np.abs(y - widened * ndtr(widened)), 3e-7 * np.abs(widened) + 1e-45)
    np.testing.assert_array_equal(y[x < -5.7], 0)
    np.testing.assert_array_equal(y[x > 5.7], x[x > 5.7])


def test_gelu_of_nan() -> None:
    X = te.placeholder((4,), name="X")
    Y = elementwise.define(activations.gelu, X)
    x = np.array([np.nan, np.inf, -0.0, 0.0], np.float32)
    result = run(Y, [X], [x], tecomp.Target.load("cpu"))

    np.testing.assert_array_equal(result, x)
    np.testing.assert_array_equal(np.signbit(result[2:]), [True, False])


@pytest.mark.parametrize("n", [3, 5, 6, 7, 8])
def test_short_rows_are_computed_in_one_vector(n: int, target: tecomp.Target) -> None:
    A, B = te.placeholder((50, n), name="A"), te.placeholder((50,), name="B")
    a, b = arrays((50, n), (50,))
    C = te.compute((50, n), lambda i, j: te.exp(A[i, j] - B[i]), name="C")
    schedule = elementwise.schedule(C, target)
    result = np.full((50, n), 99, C.dtype)

    call_fenced(tecomp.build(schedule, [A, B, C]), a, b, result)

    assert_close(result, np.exp(a - b[:, None]), rtol=1e-6, atol=1e-6)
    vectors = -(-n // (target.core.vector_bytes // 4)) if target.core is not None else 1
    assert str(tecomp.lower(schedule, [A, B, C])).count("exp(") <= vectors
