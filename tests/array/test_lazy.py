"""Arrays are evaluated on demand, once, with as few kernels as possible."""

from __future__ import annotations

import numpy as np
import pytest

from tecomp.array.array_object import Array, from_node
from tecomp.array.graph import Node, data_of, materialized_node, record
from tecomp.array.statistics import counters
from tecomp.ptensor import ElementwiseBinaryOp, ElementwiseUnaryOp, PTensorType
from tests.numerics import assert_close

ADD, EXP = ElementwiseBinaryOp("add"), ElementwiseUnaryOp("exp")


def node(data: np.ndarray) -> Node:
    return materialized_node(data, PTensorType(data.shape, data.dtype.name))


def array(data: np.ndarray) -> Array:
    return from_node(node(data))


def test_only_referenced_values_are_stored_and_computed_once() -> None:
    x = np.linspace(0, 1, 12).reshape(3, 4)
    pending = record(EXP, node(x))
    dropped = record(ADD, pending, node(x))
    result = record(ADD, dropped, node(x[0]))
    weak = record(ADD, dropped, dropped)  # referenced elsewhere, but not requested
    del dropped
    before = counters.called
    assert_close(data_of(result), np.exp(x) + x + x[0])
    assert pending.data is not None
    assert_close(pending.data, np.exp(x))
    assert_close(data_of(weak), 2 * (np.exp(x) + x))
    assert counters.called == before + 2  # the first evaluation stored the operands of `weak`


def test_unreferenced_intermediate_values_are_not_stored() -> None:
    x = node(np.ones((2, 3)))
    middle = record(EXP, x)
    result = record(ADD, middle, x)
    del middle
    before = result.operands[0]
    del before
    data_of(result)
    assert result.operands == ()


def test_numbers_take_the_type_of_the_array() -> None:
    x = array(np.ones((2, 3), "float32"))
    y = 1 - (x * 2.5 + 1) / 2
    assert y.dtype == np.float32
    assert y.shape == (2, 3)
    np.testing.assert_array_equal(np.asarray(y), np.full((2, 3), -0.75, "float32"))


def test_complex_numbers() -> None:
    z = np.array([1 + 2j, -0.5j, 3.0])
    np.testing.assert_array_equal(np.asarray(array(z) + array(z)[0]), z + z[0])


@pytest.mark.numbers_alone
def test_loops_over_shrinking_slices_have_small_kernels() -> None:
    """The work for each element does not double with each slice of a slice."""
    data = np.random.default_rng(0).uniform(size=40)
    x, expected = array(data), data
    before = counters.compiled
    for _ in range(30):
        x, expected = 0.5 * x[1:] + 0.25 * x[:-1], 0.5 * expected[1:] + 0.25 * expected[:-1]
    assert_close(np.asarray(x), expected, 1e-14)
    assert counters.compiled - before < 5
