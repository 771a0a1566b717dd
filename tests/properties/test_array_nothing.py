"""Functions of arrays with extents of 0 agree with NumPy for all memory layouts."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tecomp
import tecomp.array as xp
from tecomp.array.graph import materialized_node
from tecomp.array.kernels import dense, merge_axes, operand_of, strides_of
from tecomp.ptensor import PTensorType
from tests.numerics import assert_close

SHAPES = ((4, 5), (0, 5), (4, 0), (0, 0), (1, 0), (0, 1), (2, 0, 4), (2, 3, 0), (0, 1, 0))


def _cumulated(m: Any, x: Any, axis: int) -> Any:
    return np.cumsum(x, axis=axis) if m is np else xp.cumulative_sum(x, axis=axis)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise": lambda m, x: m.exp(x * 2) + 1,
    "sum": lambda m, x: m.sum(x * 2, axis=-1),
    "sum 0": lambda m, x: m.sum(x + 1, axis=0, keepdims=True),
    "sums": lambda m, x: m.sum(x * 2, axis=-1) + m.sum(x * x, axis=-1),
    "var": lambda m, x: m.var(x * 2, axis=-1),
    "std 0": lambda m, x: m.std(x, axis=0),
    "mean": lambda m, x: m.mean(x),
    "standard": lambda m, x: (x - m.mean(x, axis=-1, keepdims=True)) / m.std(x, axis=-1)[..., None],
    "prod": lambda m, x: m.prod(x, axis=0),
    "all": lambda m, x: m.all(x > 1, axis=-1),
    "any": lambda m, x: m.any(x > 1),
    "count": lambda m, x: m.count_nonzero(x > 1, axis=0),
    "max": lambda m, x: m.max(x, axis=-1),
    "min": lambda m, x: m.min(x * 2, axis=0),
    "argmax": lambda m, x: m.argmax(x * 2, axis=-1),
    "argmin": lambda m, x: m.argmin(x),
    "running": lambda m, x: _cumulated(m, x * 2, -1) + 1,
    "sum of running": lambda m, x: m.sum(_cumulated(m, x, 0), axis=0),
    "product": lambda m, x: m.matmul(x, m.matrix_transpose(x)) + 1,
    "product T": lambda m, x: m.matmul(m.matrix_transpose(x), x * 2),
    "vector": lambda m, x: m.matmul(x, m.sum(x, axis=tuple(range(x.ndim - 1)))),
    "tensordot": lambda m, x: m.tensordot(x, x, axes=x.ndim),
    "differences": lambda m, x: m.sum(x[..., None] - x[..., None, :], axis=-1),
    "slices": lambda m, x: m.sum(x[..., 1:] - x[..., :-1], axis=-1),
    "none": lambda m, x: m.sum(x[:0] * 2, axis=0),
    "sorted": lambda m, x: m.sum(m.sort(x, axis=-1), axis=-1),
    "roll": lambda m, x: m.sum(m.roll(x, 1, axis=-1) * x, axis=-1),
    "joined": lambda m, x: m.sum(m.concat([x, x * 2], axis=-1), axis=-1),
    "repeated": lambda m, x: m.sum(m.broadcast_to(x, (3, *x.shape)), axis=(0, -1)),
}


def ways_to_lie(shape: tuple[int, ...]) -> Iterator[Any]:
    """Yield NumPy arrays of a shape: dense, transposed, broadcast, and slices of a larger array."""
    yield np.ones(shape)
    yield np.ones(shape[::-1]).T
    yield np.broadcast_to(np.ones(shape[-1:]), shape)
    yield np.ones([n + 2 for n in shape])[tuple([slice(1, 1 + n) for n in shape])]


def tried(function: Callable[[Any, Any], Any], m: Any, x: Any) -> Any:
    """Return the result of a function, or the exception that rejects its argument."""
    refused = (ValueError,) if m is np else (tecomp.TecompError,)
    try:
        return function(m, x)
    except refused as error:
        return error


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("seed", range(3))
def test_functions_of_extents_of_0_equal_those_of_numpy(seed: int) -> None:
    """Several functions are evaluated together, so that some have a result and others an error."""
    rng = random.Random(seed)
    for _ in range(15):
        source = rng.choice(list(ways_to_lie(rng.choice(SHAPES))))
        names = rng.sample(sorted(FUNCTIONS), 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the mean of an empty array
            expected = [tried(FUNCTIONS[name], np, source) for name in names]
        x = xp.asarray(source)
        found = [tried(FUNCTIONS[name], xp, x) for name in names]
        xp.eval(*[one for one in found if not isinstance(one, Exception)])
        for name, one, other in zip(names, found, expected, strict=True):
            message = f"{name} of {source.shape} with strides {source.strides}: {one!r}"
            assert isinstance(one, Exception) == isinstance(other, Exception), message
            if not isinstance(one, Exception):
                assert_close(np.asarray(one), other, err_msg=message)


@pytest.mark.parametrize("shape", SHAPES)
def test_operands_have_the_extents_of_their_loops(shape: tuple[int, ...]) -> None:
    """Empty operands have the extents of their loops, although their strides are arbitrary."""
    for data in ways_to_lie(shape):
        node = materialized_node(data, PTensorType(shape, "float64"))
        found = strides_of([node], shape)
        assert found is not None
        groups = merge_axes(shape, [*found, dense(shape)], [None] * len(shape))
        loops = tuple([int(np.prod([shape[axis] for axis in group])) for group in groups])
        how = operand_of(node, groups, loops, found[0])

        assert how.view(data).shape == tuple([loops[k] for k in how.axes])
