"""The loop nests of a DMA copy each element once, for random layouts, boxes and strides."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tecomp import Layout
from tests.strategies.copies import Array, assert_copies, host_offsets, pairs, run_lengths
from tests.strategies.draws import Draw
from tests.strategies.layouts import draw_layout, function_of, places


@dataclass(frozen=True)
class Copy:
    """Layout as text, and the copied box with its host strides and offset."""

    shape: tuple[int, ...]
    text: str
    strides: tuple[int, ...] | None = None
    offset: int = 0
    box: tuple[tuple[int, int], ...] = field(default=())

    @property
    def layout(self) -> Layout:
        return Layout.of(self.shape, "int32", function_of(self.text))

    @property
    def device(self) -> Array:
        """Device offset of each element, computed with NumPy."""
        where = places([self.text], self.shape)
        flat = np.ravel_multi_index(where, self.layout.physical_shape)
        return flat.reshape(self.shape)

    @property
    def host(self) -> Array:
        return host_offsets(self.shape, self.strides, self.offset)


@st.composite
def copies(draw: Draw) -> Copy:
    sizes = st.lists(st.sampled_from((3, 2, 1, 5, 7, 8, 13)), max_size=3)
    shape = tuple(draw(sizes))
    text = draw_layout(draw, shape, separated=False)
    strides = draw(st.none() | st.tuples(*[st.integers(-40, 40)] * len(shape)))
    box = []
    for n in shape:
        low = draw(st.integers(0, n))
        box.append((low, draw(st.integers(0, n - low))))
    return Copy(shape, text, strides, draw(st.integers(0, 99)), tuple(box))


@given(copies())
@example(Copy((4, 2), "lambda a0, a1: [a0 ^ (a1 % 4), a1]", None, 0, ((0, 4), (0, 2))))
@example(Copy((7,), "lambda a0: [(6 - (a0)) // 3, (6 - (a0)) % 3]", (-1,), 6, ((1, 5),)))
def test_nests_copy_each_element_once(copy: Copy) -> None:
    layout, device, host = copy.layout, copy.device, copy.host

    whole = layout.dma(copy.strides, copy.offset)
    part = layout.dma(
        copy.strides, copy.offset,
        start=[low for low, _ in copy.box], extents=[count for _, count in copy.box],
    )

    assert_copies(whole, device, host)
    assert_copies(part, device, host, [slice(low, low + n) for low, n in copy.box])


@given(copies())
def test_nests_match_packing(copy: Copy) -> None:
    """A copy by loop nests equals a NumPy scatter to the addresses of all elements."""
    values = np.random.default_rng(0).integers(1, 100, copy.shape)
    expected, found = (np.zeros(copy.layout.physical_shape, np.int64) for _ in range(2))
    expected[tuple(places([copy.text], copy.shape))] = values.ravel()

    for device, host in pairs(copy.layout.dma()):
        found.flat[device] = values.flat[host]

    assert np.array_equal(found, expected)


@given(copies())
def test_runs_match_brute_force(copy: Copy) -> None:
    runs = copy.layout.runs(copy.strides)

    assert dict(runs.lengths) == run_lengths(copy.device, copy.host)
    assert sum(length * count for length, count in runs.lengths) == copy.device.size


@given(copies(), st.data())
def test_runs_between_layouts_match_brute_force(copy: Copy, data: st.DataObject) -> None:
    other = Copy(copy.shape, draw_layout(data.draw, copy.shape, separated=False))

    runs = copy.layout.runs_to(other.layout)

    assert dict(runs.lengths) == run_lengths(copy.device, other.device)
