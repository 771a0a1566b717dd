"""Functions recorded with `jit`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.functions import explain
from tecomp.array.jit import jit
from tecomp.array.statistics import counters
from tecomp.errors import ArrayIndexError, ArrayTypeError, ArrayValueError
from tests.array.arrays import array
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close


def test_a_function_is_called_once_for_each_type_and_structure() -> None:
    calls = []
    other = array(np.full(3, 2.0))

    def function(x: Any, pair: Any, *, by: float) -> Any:
        calls.append(by)
        return {"y": x * pair[0] + by, "x": x, "more": [pair[1] - other, other]}

    fast = jit(function)
    for k in range(3):
        x, y = np.arange(3.0) + k, np.ones(3)
        result = fast(array(x), (array(y), array(x)), by=1.5)
        np.testing.assert_array_equal(np.asarray(result["y"]), x * y + 1.5)
        np.testing.assert_array_equal(np.asarray(result["x"]), x)
        np.testing.assert_array_equal(np.asarray(result["more"][0]), x - 2)
        assert result["more"][1].shape == (3,)
    assert calls == [1.5]
    fast(array(np.ones(4)[:3]), (array(np.ones(3)), array(np.ones(3))), by=2.5)
    assert calls == [1.5, 2.5]


def test_jit_computes_all_results_in_one_call() -> None:
    fast = jit(lambda x: (x + 1, x * x + 1))
    fast(array(np.ones(5)))
    before = counters.called
    one, other = fast(array(np.full(5, 3.0)))
    assert counters.called == before + 1
    np.testing.assert_array_equal(np.asarray(one) + np.asarray(other), np.full(5, 14.0))


def test_arguments_may_be_pending() -> None:
    x = array(np.ones(4)) + 1
    np.testing.assert_array_equal(np.asarray(jit(lambda y: y * y)(x)), np.full(4, 4.0))


def test_the_value_of_an_element_is_not_there_while_a_function_is_recorded() -> None:
    fast = jit(lambda x: x + 1 if x[0] > 0 else x)
    with pytest.raises(ArrayTypeError) as caught:
        fast(array(np.ones(3)))
    assert diagnostic(caught.value) == (
        Diagnostic("recording", where="jit")
    )
    with pytest.raises(ArrayTypeError) as caught:
        jit(lambda x, y: x)(array(np.ones(3)), {1, 2})
    assert diagnostic(caught.value) == (
        Diagnostic("array-type", name="<lambda>", reason="unhashable type: 'set'")
    )


def test_explain_requires_concrete_arrays() -> None:
    with pytest.raises(ArrayTypeError) as caught:
        jit(lambda x: explain(x + 1))(array(np.ones(3)))
    assert diagnostic(caught.value) == (
        Diagnostic("recording", where="jit")
    )


def test_jit_requires_a_function() -> None:
    with pytest.raises(ArrayTypeError) as caught:
        jit(3)  # type: ignore[arg-type]
    assert diagnostic(caught.value) == Diagnostic("array-type", function=3, type="int")


def test_equal_numbers_of_other_types_are_recorded_for_themselves() -> None:
    times = jit(lambda x, k: x * k)
    x = array(np.arange(3))
    assert [times(x, k).dtype.name for k in (1, 1.0, 1 + 0j)] == ["int64", "float64", "complex128"]
    item = jit(lambda x, items: x * next(iter(items)))
    assert [item(x, {k: 0}).dtype.name for k in (1, 1.0)] == ["int64", "float64"]
    quotient = jit(lambda x, k: x / k)
    for zero in (0.0, -0.0):
        assert float(quotient(array(np.ones(2)), zero)[0]) == np.copysign(np.inf, zero)


def test_numbers_that_are_nan_are_recorded_once() -> None:
    calls = []

    @jit
    def fast(x: Any, k: float) -> Any:
        calls.append(k)
        return x + k

    for _ in range(3):
        assert np.isnan(np.asarray(fast(array(np.ones(2)), float("nan")))).all()
    assert len(calls) == 1


def test_a_recorded_function_is_part_of_one_that_calls_it() -> None:
    @jit
    def inner(pair: Any) -> Any:
        x, y = pair
        x[0] = 9.0
        return {"sum": x + y}

    outer = jit(lambda x: (inner((x, x * 2))["sum"] + 1, x))
    for k in range(2):
        result, source = outer(array(np.arange(3.0) + k))
        changed = np.array([9.0, 1.0 + k, 2.0 + k])
        np.testing.assert_array_equal(np.asarray(source), changed)
        expected = changed + 2 * (np.arange(3.0) + k) + 1
        np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("period", [1, 2, 3, 5])
def test_long_functions_are_compiled_to_equal_kernels(period: int) -> None:
    def steps(x: Any, rounds: int) -> Any:
        for _ in range(rounds):
            x = x * 0.5
            for k in range(period - 1):
                x = (abs, lambda x: -x, lambda x: x * x, lambda x: x - 1)[k](x)
        return x

    rounds = 1000 // period
    data = np.linspace(-2, 2, 7)
    before = counters.compiled
    result = jit(lambda x: steps(x, rounds))(array(data))
    assert counters.compiled - before <= 2
    assert_close(np.asarray(result), steps(data, rounds), rtol=1e-12)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(5))
def test_drawn_functions_in_pieces(seed: int) -> None:
    draw = random.Random(seed)
    plan = [(draw.randrange(5), draw.random(), draw.random()) for _ in range(300)]
    reference = {draw.randrange(300) for _ in range(4)} | {299}

    def function(one: Any, other: Any) -> Any:
        results = [one, other]
        for way, far, near in plan:
            x = results[int(far * len(results))]
            y = results[-1 - int(near * min(4, len(results)))]
            results.append((x + y, x - y, x * 0.5, -y, y * 2 - x)[way] * 0.5)
        return [results[k + 2] for k in sorted(reference)]

    one, other = np.linspace(-1, 1, 6), np.arange(6.0)
    fast = jit(function)
    for _ in range(2):
        for actual, expected in zip(
            fast(array(one), array(other)), function(one, other), strict=True
        ):
            assert_close(np.asarray(actual), expected, rtol=1e-9, atol=1e-12)
        one, other = other, one


def test_arguments_that_are_changed_in_place_are_changed_by_each_call() -> None:
    def step(x: Any, y: Any) -> Any:
        x += y
        y[0] = 9.0
        row = x[1:]
        row *= 2
        return x, y * 2

    fast = jit(step)
    for k in range(3):
        data, other = np.arange(4.0) + k, np.ones(4)
        x, y = xp.asarray(data), xp.asarray(other)
        view = x[:2]
        result, double = fast(x, y)
        data, other = data.copy(), other.copy()
        _, wanted_double = step(data, other)
        assert result is x
        np.testing.assert_array_equal(np.asarray(x), data)
        np.testing.assert_array_equal(np.asarray(y), other)
        np.testing.assert_array_equal(np.asarray(view), data[:2])
        np.testing.assert_array_equal(np.asarray(double), wanted_double)


def test_arrays_from_outside_are_read_and_changed_by_each_call() -> None:
    weights, count = xp.asarray(np.ones(3)) + 0, xp.asarray(np.zeros(()))
    columns = xp.asarray(np.arange(6.0).reshape(2, 3)) * 1
    calls = []

    @jit
    def fast(x: Any) -> Any:
        nonlocal count
        calls.append(x)
        count += 1
        return x * weights + columns.T[:, 1] + columns[0]

    for k in range(4):
        x = np.arange(3.0)
        expected = x * np.asarray(weights) + np.asarray(columns)[1] + np.asarray(columns)[0]
        np.testing.assert_array_equal(np.asarray(fast(xp.asarray(x))), expected)
        assert float(count) == k + 1
        weights += 1
        weights[1] = 10.0 * k
        columns[:, 2] = -k
    assert len(calls) == 1


def test_views_of_views_of_arrays_from_outside_are_read_by_each_call() -> None:
    outside, expected = xp.zeros((4, 3)) + 0, np.zeros((4, 3))

    def function(whole: Any, x: Any) -> None:
        rows = whole[1:][::1]
        row = rows[0]
        row += x

    fast = jit(lambda x: function(outside, x))
    for k in range(3):
        fast(xp.asarray(np.arange(3.0)))
        function(expected, np.arange(3.0))
        np.testing.assert_array_equal(np.asarray(outside), expected)
        outside += k + 1
        expected += k + 1


def test_memory_of_numpy_is_read_when_a_function_is_recorded() -> None:
    data = np.ones(3)
    fast = jit(lambda x: x + xp.asarray(data))
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(fast(xp.asarray(np.zeros(3)))), np.ones(3))
        data[:] = 7.0


def test_an_array_passed_twice_is_recorded_once() -> None:
    def both(x: Any, y: Any) -> Any:
        x += 1
        return x + y

    fast = jit(both)
    x = xp.asarray(np.zeros(2))
    for k in range(2):
        np.testing.assert_array_equal(np.asarray(fast(x, x)), np.full(2, 2.0 + 2 * k))
    np.testing.assert_array_equal(np.asarray(fast(x, xp.asarray(np.ones(2)))), np.full(2, 4.0))


def test_arrays_that_share_elements_with_a_changed_one_are_refused() -> None:
    outside = xp.asarray(np.zeros(3)) + 0

    @jit
    def change(x: Any, y: Any) -> Any:
        x += 1
        return x + y

    @jit
    def change_outside(x: Any) -> Any:
        nonlocal outside
        outside += x
        return x * 2

    x = xp.asarray(np.zeros((2, 3))) + 0
    change(x[0], xp.asarray(np.zeros(3)))
    change_outside(xp.asarray(np.zeros(3)))
    calls: dict[str, Callable[[], Any]] = {
        "change": lambda: change(x[0], x[1]), "change_outside": lambda: change_outside(outside[:]),
    }
    for name, call in calls.items():
        with pytest.raises(ArrayValueError) as caught:
            call()
        assert diagnostic(caught.value) == (
            Diagnostic("array-value", name=name)
        )


def test_a_failed_recording_has_no_effect() -> None:
    outside = xp.asarray(np.zeros(3)) + 0

    @jit
    def fails(x: Any) -> Any:
        nonlocal outside
        outside += x
        x += 1
        return float(x[0])

    x = xp.asarray(np.ones(3))
    for _ in range(2):
        with pytest.raises(ArrayTypeError):
            fails(x)
        np.testing.assert_array_equal(np.asarray(outside), np.zeros(3))
        np.testing.assert_array_equal(np.asarray(x), np.ones(3))
    np.testing.assert_array_equal(np.asarray(outside + x), np.ones(3))


@pytest.mark.parametrize("read", [
    float, int, bool, complex, np.asarray, str, lambda w: w.tolist(), lambda w: w.item(),
    lambda w: np.from_dlpack(w), lambda w: range(3)[w],
])
def test_jit_does_not_read_captured_arrays(read: Callable[[Any], Any]) -> None:
    outside = xp.asarray(np.array(1))
    fast = jit(lambda x: (read(outside), x)[1])
    with pytest.raises(ArrayTypeError) as caught:
        fast(xp.asarray(np.ones(3)))
    assert diagnostic(caught.value) == (
        Diagnostic("recording", where="jit")
    )


LIBRARY: dict[str, Callable[[Any, Any], Any]] = {
    "sort": lambda xp, x: xp.sort(x * 2, axis=0) + 1,
    "argsort": lambda xp, x: xp.argsort(x, axis=1),
    "fft": lambda xp, x: xp.abs(xp.fft.fft(x + 1)) * 2,
    "svd": lambda xp, x: xp.linalg.svd(x, full_matrices=False).S + xp.linalg.svdvals(x),
    "svd of all": lambda xp, x: (lambda u, s, v: (u * s) @ v)(
        *xp.linalg.svd(x, full_matrices=False)),
    "solve": lambda xp, x: xp.linalg.solve(x @ x.T + 3 * xp.eye(3), x) * 2,
    "eigh": lambda xp, x: xp.linalg.eigh(x @ x.T).eigenvalues,
    "inv": lambda xp, x: xp.linalg.inv(x @ x.T + xp.eye(3)),
    "isin": lambda xp, x: xp.isin(x, x[0] + 0),
    "searchsorted": lambda xp, x: xp.searchsorted(xp.sort(x[0]), x),
    "searched": lambda xp, x: x[xp.searchsorted(xp.sort(x[:, 0]), x[0, 0]) % 3],
    "mask": lambda xp, x: xp.sum(x[x > 0]) + x[x[:, 0] > -9, ...],
    "nonzero": lambda xp, x: xp.nonzero(x > 0)[0] + 1,
    "unique": lambda xp, x: xp.unique_values(x) * 2,
    "repeat": lambda xp, x: xp.repeat(x, xp.asarray([0, 2, 1]), axis=0),
    "indices": lambda xp, x: x[xp.asarray([2, 0, -1])] * 2,
}


@pytest.mark.exhaustive(keep=9)
@pytest.mark.parametrize("name", LIBRARY)
def test_functions_of_libraries_and_shapes_that_depend_on_values(name: str) -> None:
    rng = np.random.default_rng(3)
    function = LIBRARY[name]
    fast = jit(lambda x: function(xp, x))
    for _ in range(3):
        x = rng.standard_normal((3, 4))
        actual, expected = np.asarray(fast(xp.asarray(x))), np.asarray(function(np, x))
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def test_functions_of_libraries_are_called_once_for_all_of_their_results() -> None:
    fast = jit(lambda x: xp.linalg.svd(x))
    fast(xp.asarray(np.eye(3)))
    before = counters.libraries["numpy.linalg.svd"]
    found = fast(xp.asarray(np.diag([3.0, 2.0, 1.0])))
    assert counters.libraries["numpy.linalg.svd"] == before + 1
    np.testing.assert_allclose(np.asarray(found.S), [3.0, 2.0, 1.0])


def test_assignments_by_arrays_of_indices_and_masks() -> None:
    def assign(x: Any, rows: Any, mask: Any, value: Any) -> Any:
        y = x * 1
        y[rows] = value
        y[mask] = 0.0
        y[mask[:, 0], 1] = value[0, 1] * 2
        y[0, rows] = -1.0
        return y + 1, x

    fast = jit(assign)
    rng = np.random.default_rng(1)
    for _ in range(3):
        x, value = rng.standard_normal((3, 4)), rng.standard_normal((2, 4))
        rows, mask = rng.integers(-3, 3, 2), rng.standard_normal((3, 4)) > 0
        actual, same = fast(xp.asarray(x), xp.asarray(rows), xp.asarray(mask), xp.asarray(value))
        np.testing.assert_allclose(np.asarray(actual), assign(x, rows, mask, value)[0], rtol=1e-12)
        np.testing.assert_array_equal(np.asarray(same), x)
    with pytest.raises(ArrayIndexError) as caught:
        fast(xp.asarray(x), xp.asarray(np.array([0, 3])), xp.asarray(mask), xp.asarray(value))
    assert diagnostic(caught.value) == (
        Diagnostic(
            "array-index", where="x[...] = value", number=3, axis=0, extent=3,
            inside="use an index from -3 to 2",
        )
    )


def test_devices_are_reached_from_inside() -> None:
    fast = jit(lambda x: (x.to_device("stick128") * 2).to_device("cpu") + 1)
    for k in range(2):
        x = np.arange(4, dtype="float32") + k
        np.testing.assert_array_equal(np.asarray(fast(xp.asarray(x))), x * 2 + 1)


def _add_half(module: Any, x: Any, y: Any, number: int, previous: list[Any]) -> None:
    x += y * 0.5


def _set_row(module: Any, x: Any, y: Any, number: int, previous: list[Any]) -> None:
    x[number] = y[0] + number


def _halve_part(module: Any, x: Any, y: Any, number: int, previous: list[Any]) -> None:
    part = x[1:, ::2]
    part *= 0.5


def _set_columns(module: Any, x: Any, y: Any, number: int, previous: list[Any]) -> None:
    x[:, module.asarray([0, 2])] = y[:, 1:3] * 1


def _set_masked(module: Any, x: Any, y: Any, number: int, previous: list[Any]) -> None:
    x[y > number] = float(number)


def _sorted(module: Any, x: Any, y: Any, number: int, previous: list[Any]) -> None:
    previous.append(module.sort(x - y, axis=0))


def _chosen(module: Any, x: Any, y: Any, number: int, previous: list[Any]) -> None:
    previous.append(module.where(x > y, x, y * number))


def _transposed(module: Any, x: Any, y: Any, number: int, previous: list[Any]) -> None:
    previous.append((x.T * 1).T + module.sum(y, axis=0))


def _taken_rows(module: Any, x: Any, y: Any, number: int, previous: list[Any]) -> None:
    previous.append(x[module.asarray([1, 0, 2])] - y)


STEPS = (_add_half, _set_row, _halve_part, _set_columns, _set_masked, _sorted, _chosen,
         _transposed, _taken_rows)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("seed", range(20))
def test_drawn_functions_with_views_and_changes_in_place(seed: int) -> None:
    """Recorded functions modify their arguments as NumPy does, in each of several calls."""
    draw = random.Random(seed)
    plan = [(draw.choice(STEPS), draw.random(), draw.random(), draw.randrange(-2, 3))
            for _ in range(12)]

    def function(module: Any, one: Any, other: Any, outside: Any) -> Any:
        initial = [one, other, outside]
        for step, far, near, number in plan:
            step(module, initial[int(far * len(initial))], initial[int(near * len(initial))], number, initial)
        return initial[3:]

    shape = (3, 4)
    rng = np.random.default_rng(seed)
    outside, wanted_outside = xp.zeros(shape), np.zeros(shape)
    fast = jit(lambda one, other: function(xp, one, other, outside))
    for _ in range(3):
        data = [rng.standard_normal(shape) for _ in range(2)]
        actual = [xp.asarray(item, copy=True) for item in data]
        if rng.random() < 0.5:
            outside += 1
            wanted_outside += 1
        result, expected = fast(*actual), function(np, data[0], data[1], wanted_outside)
        pairs = [*zip(result, expected, strict=True), *zip(actual, data, strict=True)]
        for mine, reference in [*pairs, (outside, wanted_outside)]:
            np.testing.assert_allclose(np.asarray(mine), reference, rtol=1e-9, atol=1e-9)
