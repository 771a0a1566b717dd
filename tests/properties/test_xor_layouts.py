"""Addresses, copies, runs and inverses of random layouts with XOR agree with NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tecomp import Layout, relayout
from tests.strategies.copies import Array, assert_copies, host_offsets, run_lengths
from tests.strategies.draws import Draw
from tests.strategies.layouts import function_of, places
from tests.strategies.xor_layouts import draw_xor_layout


@dataclass(frozen=True)
class Swizzled:
    """Layout as text."""

    shape: tuple[int, ...]
    text: str

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self.shape, "int32", function_of(self.text))

    @cached_property
    def offsets(self) -> Array:
        """Offset of each element, computed with NumPy."""
        where = places([self.text], self.shape)
        return np.ravel_multi_index(where, self.layout.physical_shape).reshape(self.shape)

    def packed(self, values: Array) -> Array:
        stored = np.zeros(self.layout.physical_shape, values.dtype)
        stored.flat[self.offsets.ravel()] = values.ravel()
        return stored


@st.composite
def swizzled(draw: Draw, count: int = 1) -> list[Swizzled]:
    """Draw layouts of one tensor."""
    sizes = st.sampled_from((8, 4, 16, 2, 1, 5, 7, 12, 13))
    shapes = st.lists(sizes, min_size=1, max_size=3).map(tuple)
    # A DMA has a maximum number of loop nests, so the number of elements is limited.
    shape = draw(shapes.filter(lambda shape: prod(shape) <= 1024))
    return [Swizzled(shape, draw_xor_layout(draw, shape)) for _ in range(count)]


@given(swizzled())
@example([Swizzled((8,), "lambda t: [t % 2 ^ t // 2 * 2]")])
@example([Swizzled((8,), "lambda t: [t % 4 ^ t // 4 * 4]")])
def test_pack_stores_elements_at_their_physical_index(drawn: list[Swizzled]) -> None:
    (case,) = drawn
    values = np.arange(1, case.offsets.size + 1, dtype="int32").reshape(case.shape)

    stored = case.layout.pack(values)

    assert np.array_equal(stored, case.packed(values))
    assert np.array_equal(case.layout.unpack(stored), values)


@given(swizzled(2))
def test_copies_bring_every_element_from_one_to_another(drawn: list[Swizzled]) -> None:
    source, target = drawn
    values = np.arange(1, source.offsets.size + 1, dtype="int32").reshape(source.shape)

    copied = relayout(source.layout, target.layout)(source.packed(values))

    assert np.array_equal(copied, target.packed(values))


@given(swizzled(2))
def test_nests_and_runs_match_brute_force(drawn: list[Swizzled]) -> None:
    case, other = drawn
    host = host_offsets(case.shape)

    assert_copies(case.layout.dma(), case.offsets, host)
    assert dict(case.layout.runs().lengths) == run_lengths(case.offsets, host)
    assert dict(case.layout.runs_to(other.layout).lengths) == run_lengths(
        case.offsets, other.offsets
    )


@given(swizzled())
def test_an_inverse_leads_back_to_every_element(drawn: list[Swizzled]) -> None:
    (case,) = drawn
    index_map = case.layout.index_map
    inverse = index_map.inverse_or_none(case.shape)
    if inverse is None:
        return

    elements = list(np.ndindex(*case.shape))
    for index in elements[:: len(elements) // 50 + 1]:
        assert case.layout.element(case.layout.place(index)) == index
