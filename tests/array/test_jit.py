"""Functions that are recorded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tecomp.array.counters import counters
from tecomp.array.jit import jit
from tecomp.errors import ArrayTypeError
from tests.array.arrays import array


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
