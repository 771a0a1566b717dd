"""Blocked layouts by their oneDNN names, against block arithmetic in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tecomp.errors import LayoutError
from tecomp.layout import Layout, blocked, blocked_tag, same_memory
from tests.messages import Diagnostic, diagnostic


@pytest.mark.parametrize(
    ("shape", "tag", "index", "offset"),
    [
        ((2, 16, 5, 4), "nChw8c", (1, 9, 2, 3), 569),
        ((1, 17, 5, 4), "nChw8c", (0, 16, 4, 3), 472),
        ((2, 17, 5, 4), "nChw8c", (1, 16, 4, 3), 952),
        ((32, 32, 3, 3), "OIhw16i16o", (17, 5, 2, 1), 6481),
        ((32, 16), "OI4i16o4i", (17, 6), 326),
        ((32, 48), "BA16a16b", (17, 33), 1297),
        ((2, 3, 4, 5), "nhwc", (1, 2, 3, 4), 119),
    ],
)
def test_offsets(shape: tuple[int, ...], tag: str, index: tuple[int, ...], offset: int) -> None:
    assert blocked(shape, "float32", tag).offset(index) == offset


def test_tails_are_padded_with_zeros() -> None:
    layout = blocked((2, 17, 5, 4), "float32", "nChw8c")

    assert layout.physical_shape == (2, 3, 5, 4, 8)
    assert layout.pad_value == 0
    assert layout.padding_count == 2 * 7 * 5 * 4


def test_every_place_of_a_doubly_blocked_layout() -> None:
    shape = (20, 10, 2)
    layout = blocked(shape, "float32", "ABc8b16a2b")
    a, b, c = np.indices(shape)
    ends = (2, 1, 2, 8, 16, 2)

    expected = np.ravel_multi_index((a // 16, b // 16, c, b // 2 % 8, a % 16, b % 2), ends)

    assert layout.physical_shape == ends
    assert np.array_equal(layout.offsets(), expected)


@pytest.mark.parametrize(
    ("shape", "tag", "axes"),
    [
        ((2, 16, 5, 4), "nChw8c", "nchw"),
        ((2, 5, 5, 4), "nChw8c", "nchw"),
        ((2, 17, 5, 4), "nhwc", "nchw"),
        ((32, 48, 3, 3), "OIhw16i16o", "oihw"),
        ((40, 48, 3, 3), "OIhw4i16o4i", "oihw"),
        ((32, 48), "BA16a16b", None),
        ((7,), "A4a", None),
    ],
)
def test_tags_round_trip(shape: tuple[int, ...], tag: str, axes: str | None) -> None:
    assert blocked_tag(blocked(shape, "float32", tag), axes) == tag


def test_unnamed_layouts_have_a_tag() -> None:
    layout = Layout.of((8, 12), "float32", lambda i, j: [j // 4, i, j % 4])

    assert blocked_tag(layout) == "Ba4b"
    assert same_memory(layout, blocked((8, 12), "float32", "Ba4b"))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: blocked((2, 3), "float32", "nc4"),
            Diagnostic("layout-text", tag="nc4", position=2, rest="4"),
        ),
        (
            lambda: blocked((2, 3), "float32", "nchw"),
            Diagnostic("layout-text", tag="nchw", order_count=4, order="nchw", shape=[2, 3], rank=2),
        ),
        (
            lambda: blocked((2, 3), "float32", "nC"),
            Diagnostic("layout-text", letter="C", tag="nC", has="has no block"),
        ),
        (
            lambda: blocked((2, 3), "float32", "nc8c"),
            Diagnostic("layout-text", letter="c", tag="nc8c", has="has blocks"),
        ),
        (
            lambda: blocked((2, 3), "float32", "xy"),
            Diagnostic("layout-text", tag="xy", images="ncdhw", weights="goidhw"),
        ),
        (
            lambda: blocked((2, 3), "float32", "nn"),
            Diagnostic("layout-text", tag="nn", twice="n"),
        ),
        (
            lambda: blocked((2, 3), "float32", "nc", axes="nh"),
            Diagnostic("layout-text", tag="nc", outer="nc", order="nh"),
        ),
        (
            lambda: blocked((2, 3), "float32", "nC0c"),
            Diagnostic("layout-text", tag="nC0c"),
        ),
        (
            lambda: blocked_tag(Layout.of((8, 8), "float32", lambda i, j: [i, i ^ j])),
            Diagnostic("layout-text", index_map="lambda i, j: [i, i ^ j]", shape=[8, 8]),
        ),
    ],
)
def test_refusals(make: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        make()

    assert diagnostic(caught.value) == expected
