"""Functions that are recorded once."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tecomp.array.functions.extensions import explain
from tecomp.array.jit import jit
from tecomp.array.statistics import counters
from tecomp.errors import ArrayTypeError
from tests.array.arrays import array
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


def test_all_results_come_from_one_call() -> None:
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
    assert caught.value.message == (
        "jit: the value of an element is asked for, and there is none while a function is "
        "recorded; use where in place of if, or ask outside of the function"
    )
    with pytest.raises(ArrayTypeError) as caught:
        jit(lambda x, y: x)(array(np.ones(3)), {1, 2})
    assert caught.value.message == (
        "jit <lambda>: an argument that is no array has no hash (unhashable type: 'set'); give "
        "arrays, numbers, texts, or tuples of them"
    )


def test_explain_asks_for_arrays_with_elements() -> None:
    with pytest.raises(ArrayTypeError) as caught:
        jit(lambda x: explain(x + 1))(array(np.ones(3)))
    assert caught.value.message == (
        "jit: the value of an element is asked for, and there is none while a function is "
        "recorded; use where in place of if, or ask outside of the function"
    )


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ArrayTypeError) as caught:
        jit(3)  # type: ignore[arg-type]
    assert caught.value.message == "jit: 3 is int; give a function of arrays"


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
        result, given = outer(array(np.arange(3.0) + k))
        np.testing.assert_array_equal(np.asarray(given), np.arange(3.0) + k)
        wanted = np.array([9.0, 1.0 + k, 2.0 + k]) + 2 * (np.arange(3.0) + k) + 1
        np.testing.assert_array_equal(np.asarray(result), wanted)


@pytest.mark.parametrize("period", [1, 2, 3, 5])
def test_a_long_function_is_compiled_in_pieces_that_are_alike(period: int) -> None:
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


@pytest.mark.parametrize("seed", range(5))
def test_drawn_functions_in_pieces(seed: int) -> None:
    draw = random.Random(seed)
    plan = [(draw.randrange(5), draw.random(), draw.random()) for _ in range(300)]
    wanted = {draw.randrange(300) for _ in range(4)} | {299}

    def function(one: Any, other: Any) -> Any:
        made = [one, other]
        for way, far, near in plan:
            x = made[int(far * len(made))]
            y = made[-1 - int(near * min(4, len(made)))]
            made.append((x + y, x - y, x * 0.5, -y, y * 2 - x)[way] * 0.5)
        return [made[k + 2] for k in sorted(wanted)]

    one, other = np.linspace(-1, 1, 6), np.arange(6.0)
    fast = jit(function)
    for _ in range(2):
        for got, expected in zip(
            fast(array(one), array(other)), function(one, other), strict=True
        ):
            assert_close(np.asarray(got), expected, rtol=1e-9, atol=1e-12)
        one, other = other, one
