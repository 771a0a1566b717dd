"""XOR layouts of any size: exact answers without enumeration of elements."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tecomp import IndexMap, Layout
from tecomp.ir import Const
from tecomp.poly import evaluate_over_box
from tecomp.poly.maps import bit_matrix, image_extents

Mapping = Callable[..., Sequence[Any]]

SWIZZLES: dict[str, tuple[Mapping, tuple[int, int], tuple[int, ...]]] = {
    "chunks of rows": (
        lambda i, j: [i, (j // 8) ^ (i % 8), j % 8], (4096, 4096), (4096, 512, 8),
    ),
    "chunks of tiles": (
        lambda i, j: [i // 8, j // 64, i % 8, (j % 64 // 8) ^ (i % 8), j % 8], (4096, 4096),
        (512, 64, 8, 8, 8),
    ),
    "whole indices": (lambda i, j: [i, i ^ j], (4096, 4096), (4096, 4096)),
    "Swizzle<3,3,3> of an offset": (
        lambda i, j: [(i * 4096 + j) ^ ((i * 4096 + j >> 6 & 7) << 3)], (4096, 4096), (4096 * 4096,)
    ),
    "no power of two": (
        lambda i, j: [i, (j // 8) ^ (i % 8), j % 8], (4093, 4003), (4093, 504, 8),
    ),
}


@pytest.mark.parametrize(("function", "shape", "places"), SWIZZLES.values(), ids=SWIZZLES)
def test_large_swizzles(
    function: Mapping, shape: tuple[int, int], places: tuple[int, ...]
) -> None:
    index_map = IndexMap.from_func(function)

    assert index_map.map_shape(shape) == places
    assert index_map.is_injective(shape)
    assert index_map.padding_count(shape) == int(np.prod(places)) - shape[0] * shape[1]
    inverse, is_padding = index_map.non_surjective_inverse(shape)
    for i, j in ((0, 0), (1, 77), (13, 4002), (4092, 1234)):
        place = [int(x) for x in function(i, j)]
        back = inverse.map_indices(place)
        assert [e.value for e in back if isinstance(e, Const)] == [i, j]
    assert (str(is_padding) == "False") == (index_map.padding_count(shape) == 0)


@pytest.mark.parametrize(("function", "shape", "places"), SWIZZLES.values(), ids=SWIZZLES)
def test_large_swizzles_take_little_time(
    function: Mapping, shape: tuple[int, int], places: tuple[int, ...]
) -> None:
    """Queries on large swizzles take under 50 ms of CPU time without caches."""
    seconds = []
    for _ in range(5):
        start = time.process_time()
        index_map = IndexMap.from_func(function)
        assert index_map.is_injective(shape)
        assert index_map.map_shape(shape) == places
        index_map.non_surjective_inverse(shape)
        seconds.append(time.process_time() - start)

    assert statistics.median(seconds) < 0.050


TEXTS = (
    "i ^ j", "i ^ 5", "(i // 2) ^ (j % 4)", "(i * 8 + j % 8) ^ (i // 4 * 2)",
    "(i & 5) ^ (j << 1)", "(i ^ (j >> 1)) * 4 + j % 4", "i % 4 ^ 3", "(i | 8) ^ j",
)


@given(st.sampled_from(TEXTS), st.integers(1, 20), st.integers(1, 20))
@example("(i * 8 + j % 8) ^ (i // 4 * 2)", 1, 1)  # `i` has no bits, like the number 0
def test_greatest_values_match_all_elements(text: str, rows: int, columns: int) -> None:
    function = eval(f"lambda i, j: [{text}, i, j]")
    index_map = IndexMap.from_func(function)
    axes, expr = index_map.initial_indices, index_map.final_indices[0]
    (values,) = evaluate_over_box([expr], axes, (rows, columns))

    found = image_extents.greatest_by_bits(expr, axes, (rows, columns))

    assert found in (None, values.max())
    if all(n & (n - 1) == 0 for n in (rows, columns)):
        alone = bit_matrix.greatest(expr, axes, (rows, columns))
        assert alone in (None, values.max())
        assert alone is not None or "|" in text


@pytest.mark.parametrize("op", ["^", "&", "|"])
def test_bit_operations_of_numbers_are_numbers(op: str) -> None:
    """Bit operations fold to constants for an axis of one element."""
    layout = Layout.of((1,), "int8", eval(f"lambda i: [(i % 2) {op} (i * 3 + 5), (i + 5) {op} 3]"))

    (nest,) = layout.dma()

    assert nest.device_offset == layout.offset((0,))
