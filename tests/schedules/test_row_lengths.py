"""Row reductions execute about as many instructions as those of rows one element longer.

Counts are independent of the load of the machine. A bound on them does not bound times: at lengths
where rows stop being transposed, times of neighbours differ by up to 2.3 (`any` of int64).
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tecomp.array as xp
from tecomp.array.kernels import MANY
from tecomp.machine import host_vector_bytes
from tecomp.ptensor import FLOATS, REAL, TruthTest, te_accumulator_dtype
from tecomp.schedules.reduce import _REDUCERS
from tests.strategies.instructions import counted

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the counters are code for x86-64"
)

MOST = 2.1 if host_vector_bytes() == 64 else 1.7
"""Largest ratio of instruction counts for adjacent row lengths.

Kernels for any length count vectors and test for a remainder, which takes up to 4 instructions per
vector. These overlap with the arithmetic: times differ by less than half. The largest ratios with
AVX-512 are 1.7 for sums of float32 and 2.04 for `any` of int16, with AVX2 1.49 for `any` of 128 and
129 int64.
"""
MOST_OF_NARROW = 2.1 if host_vector_bytes() == 64 else 1.8
"""Largest ratio for elements of 1 and 2 bytes.

AVX2 has no masks for them: a partial vector is loaded as a whole one, and then masked. The largest
ratio is 1.54, of sums of 47 and 48 int8.
"""
MOST_OF_TRANSPOSED = 3.0
"""Largest ratio where the longer row is the first that is not transposed.

A transposed row takes fewer instructions, but they wait for the same units: rows of 32 and 33
float64 have the same maximum in 10.7 and 9.3 ns. The largest ratios with AVX-512 are 2.59, of
argmax of 32 and 33 float64; those of other reductions of at least 2 bytes are below `MOST`. With
AVX2 they are 2.93, of `count_nonzero` of 32 and 33 int8, 2.63, of `all` of 16 and 17 int16, 2.48,
of sums of 32 and 33 float64, 2.19, of maxima of 32 and 33 int16, and 1.5 for argmax.
"""
_LONGEST_TRANSPOSED = 32
"""Longest row of a reduction other than a search that is transposed."""
REDUCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(xp, name)
    for name in (*_REDUCERS, *TruthTest.kinds, "count_nonzero", "var", "std", "argmax", "argmin")
}
ONLY_FLOATS = ("mean", "var", "std")


def most(name: str, dtype: str, length: int) -> float:
    """Return the largest ratio of instruction counts for rows of `length` and one more element."""
    width = np.dtype(dtype).itemsize
    has_masks = host_vector_bytes() == 64 and width > 1
    if name in ("argmax", "argmin") or (length <= _LONGEST_TRANSPOSED and not has_masks):
        return MOST_OF_TRANSPOSED
    return MOST_OF_NARROW if width < 4 else MOST


def lengths(dtype: str) -> st.SearchStrategy[int]:
    """Draw lengths near a vector multiple, up to 33 vectors of the dtype or its accumulator."""
    lanes = host_vector_bytes() // np.dtype(dtype).itemsize
    wide = host_vector_bytes() // np.dtype(te_accumulator_dtype(dtype, None)).itemsize
    edge = st.builds(
        lambda unit, vectors, more: unit * vectors + more,
        st.sampled_from((lanes, wide)), st.integers(1, 33), st.integers(-1, 1),
    )
    return edge.filter(lambda n: n >= max(lanes, 16))


def instructions(name: str, dtype: str, length: int) -> float:
    """Return instructions per row of an array that is large enough for short-row kernels."""
    rows = 2 * MANY // length + 7
    data = np.random.default_rng(length).integers(0, 3, (rows, length)).astype(dtype)
    x = xp.asarray(data)
    reduced = partial(REDUCTIONS[name], x, axis=1)
    with counted() as count:
        xp.eval(reduced())
        executed = count.of(lambda: xp.eval(reduced()))
    assert executed > rows
    return executed / rows


@pytest.mark.exhaustive
@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_no_length_takes_many_times_its_neighbours(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(REDUCTIONS)))
    dtypes = FLOATS if name in ONLY_FLOATS else REAL
    dtypes = (*dtypes, "bool") if name in (*TruthTest.kinds, "count_nonzero") else dtypes
    dtype = data.draw(st.sampled_from([d for d in dtypes if d not in ("float16", "bfloat16")]))
    length = data.draw(lengths(dtype))

    own = instructions(name, dtype, length)
    other = instructions(name, dtype, length + 1)

    assert max(own, other) <= most(name, dtype, length) * min(own, other)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("name", "dtype", "vectors"), [
    ("mean", "float64", 4), ("std", "float64", 4), ("std", "float32", 2), ("sum", "float64", 8),
    ("max", "float64", 4), ("sum", "float32", 4), ("any", "int8", 4), ("any", "int16", 8),
    ("max", "int8", 4), ("sum", "float32", 2), ("sum", "float32", 1), ("argmax", "int8", 4),
    ("argmin", "int16", 2), ("argmax", "int16", 4),
])
def test_kernels_for_any_length_are_as_good_for_short_rows(
    name: str, dtype: str, vectors: int
) -> None:
    length = vectors * host_vector_bytes() // np.dtype(dtype).itemsize

    assert instructions(name, dtype, length + 1) <= most(name, dtype, length) * instructions(
        name, dtype, length)


def test_a_transposed_matrix_times_a_vector_reads_memory_in_order() -> None:
    data = np.random.default_rng(0).integers(0, 3, (3000, 20)).astype("float64")
    x, v = xp.asarray(data), xp.asarray(data[:, 0].copy())
    with counted() as count:
        xp.eval(x.T @ v, v @ x)
        transposed, plain = count.of(lambda: xp.eval(x.T @ v)), count.of(lambda: xp.eval(v @ x))

    assert 0 < transposed <= 1.1 * plain
