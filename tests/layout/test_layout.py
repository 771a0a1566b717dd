"""Layouts of tensors of known shape: properties that follow from the index map, and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import LayoutError
from tecomp.layout import Layout
from tecomp.poly.maps import brute_force
from tests.messages import Diagnostic, diagnostic

Golden = Callable[[object], None]


def sticks(shape: tuple[int, int] = (1000, 200)) -> Layout:
    return Layout.of(shape, "float16", lambda i, j: [j // 64, i, j % 64])


def test_sizes_follow_from_the_map() -> None:
    layout = sticks()

    assert layout.physical_shape == (4, 1000, 64)
    assert layout.nbytes == 4 * 1000 * 128
    assert layout.padding_count == 1000 * 56
    assert layout.padding_share == 56 / 256


def test_a_remainder_declares_places() -> None:
    """A remainder declares its full modulus as extent, even if the index covers less of it."""
    layout = Layout.of((5, 100), "float32", lambda i, j: [j // 32 % 8, i % 16, i // 5 % 4, j % 32])

    assert layout.physical_shape == (8, 16, 4, 32)
    assert layout.element((3, 4, 0, 3)) == (4, 99)
    assert layout.element((3, 4, 1, 3)) is None


@pytest.mark.parametrize("index", [(0, 0), (3, 130), (999, 199)])
def test_places_and_back(index: tuple[int, int]) -> None:
    layout = sticks()
    i, j = index

    assert layout.place(index) == (j // 64, i, j % 64)
    assert layout.offset(index) == j // 64 * 64000 + i * 64 + j % 64
    assert layout.element(layout.place(index)) == index
    assert layout.offsets()[index] == layout.offset(index)


def test_padding_is_a_set_of_places() -> None:
    layout = sticks((3, 70))
    places, is_padding = layout.padding
    grid = np.indices(layout.physical_shape)

    found = brute_force.values(is_padding, dict(zip(places, grid, strict=True)))

    assert np.array_equal(found, np.indices((2, 3, 64))[0] * 64 + np.arange(64) >= 70)


def test_memory_axes_end_at_separators() -> None:
    layout = Layout.of(
        (16, 64), "float32", lambda i, j: [i // 4, j // 32, te.AXIS_SEPARATOR, i % 4, j % 32]
    )

    assert layout.axis_separators == (1,)
    assert layout.memory_shape == (8, 128)


def test_grid_axes_count_cores() -> None:
    layout = Layout.of((64, 96), "float32", lambda i, j: [i // 32, i % 32, j], grid_axes=[0])

    assert (layout.grid_shape, layout.shard_shape) == ((2,), (32, 96))
    assert layout.shard_nbytes == 32 * 96 * 4


@pytest.mark.parametrize(
    "layout",
    [
        sticks(),
        Layout.of((6, 13), "float16", lambda i, j: [j // 4, i % 8, j % 4], pad_value=0),
        Layout.of((8, 64), "float32", lambda i, j: [i // 4, i % 4, j], grid_axes=[0]),
        Layout.row_major((), "float32"),
        Layout.row_major((0, 3), "int8"),
    ],
    ids=["sticks", "few", "grid", "scalar", "empty"],
)
def test_printed(layout: Layout, golden: Golden) -> None:
    golden(layout)


def test_equal_layouts_are_equal() -> None:
    same = Layout.of((1000, 200), "float16", lambda a, b: [b // 64, a, b % 64])
    longer = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i % 1024, j % 64])

    assert sticks() == same
    assert hash(sticks()) == hash(same)
    assert sticks() != longer
    assert sticks() != Layout.row_major((1000, 200), "float16")


def test_equivalence_looks_at_places() -> None:
    tiles = Layout.of((8, 128), "float32", lambda i, j: [i // 8, j // 128, i % 8, j % 128])
    rows = Layout.of((8, 128), "float32", lambda i, j: [0, 0, i, j])

    assert tiles.is_equivalent_to(rows)
    assert not tiles.is_equivalent_to(Layout.of((8, 128), "float32", lambda i, j: [0, 0, j, i]))


def test_a_schedule_takes_a_layout() -> None:
    """A schedule applies a layout: the padding value is stored, and results equal NumPy's."""
    layout = Layout.of((5, 100), "float32", lambda i, j: [j // 32, i % 8, j % 32], pad_value=7)
    A = te.placeholder((5, 100), name="A")
    B = te.compute((5, 100), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B)
    s[B].transform_layout(layout)
    a = np.random.default_rng(0).standard_normal((5, 100), np.float32)
    b = np.empty(layout.physical_shape, np.float32)

    tecomp.build(s, [A, B])(a, b)

    expected = np.full(4 * 8 * 32, 7, np.float32)
    expected[layout.offsets()] = 2 * a
    assert np.array_equal(b.reshape(-1), expected)


def of(mapping: Callable[..., Sequence[Any]], shape: Sequence[int] = (8, 8)) -> Callable[[], object]:
    return lambda: Layout.of(shape, "float32", mapping)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            of(lambda i, j: [i // 4, j]),
            Diagnostic(
                "not-injective", first=(0, 0), second=(1, 0), dtype="float32", shape=[8, 8],
                index_map="lambda i, j: [i // 4, j]",
            ),
        ),
        (
            of(lambda i, j: [i, j], (8, -1)),
            Diagnostic("invalid-type", extent=-1, shape=[8, -1]),
        ),
        (
            of(lambda i, j: [i - 2, j]),
            Diagnostic("negative-address", expr="i - 2", value=-2, index=(0, 0), positive=2),
        ),
        (
            lambda: Layout.of((8,), "float32", lambda i: [i], grid_axes=[1]),
            Diagnostic("invalid-value", axis=1, physical_shape_count=1, index_map="lambda i: [i]"),
        ),
        (
            lambda: sticks().place((0, 200)),
            Diagnostic("index-out-of-bounds", subject="element", index=(0, 200), shape=[1000, 200]),
        ),
        (
            lambda: sticks().element((4, 0, 0)),
            Diagnostic("index-out-of-bounds", subject="place", index=(4, 0, 0), shape=[4, 1000, 64]),
        ),
    ],
    ids=["collision", "shape", "negative", "grid", "element", "place"],
)
def test_refusals(make: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        make()

    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (
            sticks(),
            Diagnostic(
                "layout-shape-mismatch", where="s[B].transform_layout", shape=[1000, 200], stage="B",
                brackets_of_shape="[8, 8]",
            ),
        ),
        (
            Layout.row_major((8, 8), "float16"),
            Diagnostic(
                "layout-shape-mismatch", where="s[B].transform_layout", stored="float16", stage="B",
                dtype="float32",
            ),
        ),
    ],
    ids=["shape", "type"],
)
def test_a_layout_of_another_tensor_is_refused(layout: Layout, expected: Diagnostic) -> None:
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] * 2.0, name="B")

    with pytest.raises(LayoutError) as caught:
        te.create_schedule(B)[B].transform_layout(layout)

    assert diagnostic(caught.value) == expected
