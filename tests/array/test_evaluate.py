"""What is recorded in loops is computed now and then, by the same kernels again and again."""

from __future__ import annotations

import numpy as np

from tecomp.array.graph.evaluate import MOST
from tecomp.array.statistics import counters
from tests.array.arrays import array
from tests.numerics import assert_close


def test_a_loop_is_compiled_once_and_never_too_long() -> None:
    x = np.linspace(0.0, 0.5, 12)
    ours, theirs = array(x), x
    step, own = array(x), x
    before = 0
    for k in range(400):
        square = ours * ours
        ours = square * 0.25 + step
        theirs = theirs * theirs * 0.25 + own
        step, own = step * 0.99, own * 0.99
        assert ours._node.pending <= MOST
        if k == 150:
            before = counters.compiled
    assert counters.compiled == before
    assert_close(np.asarray(ours), theirs, rtol=1e-12)


def test_a_deep_graph_needs_no_recursion() -> None:
    ours = array(np.zeros(3))
    for _ in range(5000):
        ours = ours + 1
    np.testing.assert_array_equal(np.asarray(ours), np.full(3, 5000.0))
