"""XLA tiled layouts, against the tiling rule written with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tecomp.errors import LayoutError
from tecomp.ir import SCALARS
from tecomp.layout import Layout, storage_format, xla, xla_layout, xla_text
from tests.messages import Diagnostic, diagnostic


@pytest.mark.parametrize(
    ("text", "index", "offset"),
    [
        ("f32[3,5]{1,0:T(2,2)}", (2, 3), 17),
        ("f32[8,8]{1,0:T(2,4)(2,1,1,1)}", (6, 5), 51),
        ("bf16[16,256]{1,0:T(8,128)(2,1)}", (1, 0), 1),
        ("bf16[16,256]{1,0:T(8,128)(2,1)}", (0, 1), 2),
        ("bf16[16,256]{1,0:T(8,128)(2,1)}", (9, 130), 3077),
        ("f32[5,130]{1,0:T(8,128)}", (4, 129), 1537),
        ("s8[64,256]{1,0:T(8,128)(4,1)}", (9, 130), 3081),
        ("f32[8,16]{0,1}", (1, 2), 17),
    ],
)
def test_offsets(text: str, index: tuple[int, ...], offset: int) -> None:
    """Offsets equal the figures of OpenXLA's page on tiled layouts and of its TPU tiles."""
    assert xla(text).offset(index) == offset


def test_joined_axes() -> None:
    layout = xla("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}")

    assert layout.num_places == 12432
    assert layout.physical_shape == (56, 37, 2, 3)


def test_memory_space() -> None:
    assert xla("f32[8]{0:T(8)S(5)}").memory == "space.5"


def tiled(shape: Sequence[int], order: Sequence[int], tiles: Sequence[Sequence[int]]) -> np.ndarray:
    """Return element offsets by the tiling rule: pad to whole tiles, split, and recurse inside."""
    numbers = np.arange(int(np.prod(shape)) or 0).reshape(shape)
    memory = np.transpose(numbers, list(reversed(order)))
    for tile in tiles:
        k = len(tile)
        padding = [(0, 0)] * (memory.ndim - k) + [
            (0, -n % t) for n, t in zip(memory.shape[memory.ndim - k :], tile, strict=True)
        ]
        memory = np.pad(memory, padding, constant_values=-1)
        head = memory.shape[: memory.ndim - k]
        cut = [x for n, t in zip(memory.shape[memory.ndim - k :], tile, strict=True)
               for x in (n // t, t)]
        axes = [len(head) + 2 * x for x in range(k)] + [len(head) + 2 * x + 1 for x in range(k)]
        memory = memory.reshape(*head, *cut).transpose(*range(len(head)), *axes)
    flat = memory.reshape(-1)
    offsets = np.empty(numbers.size, np.int64)
    offsets[flat[flat >= 0]] = np.flatnonzero(flat >= 0)
    return offsets.reshape(shape)


@st.composite
def tilings(draw: st.DrawFn) -> tuple[list[int], list[int], list[list[int]]]:
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    order = draw(st.permutations(range(len(shape))))
    tiles = draw(
        st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=len(shape)), max_size=2)
    )
    return shape, list(order), tiles


@settings(max_examples=150, deadline=None)
@given(tilings())
def test_any_tiles(case: tuple[list[int], list[int], list[list[int]]]) -> None:
    shape, order, tiles = case

    layout = xla_layout(shape, "float32", order, tiles)

    assert np.array_equal(layout.offsets(), tiled(shape, order, tiles))


@pytest.mark.parametrize(
    "text",
    [
        "f32[3,5]{1,0:T(2,2)}",
        "bf16[16,256]{1,0:T(8,128)(2,1)}",
        "f32[5,130]{1,0:T(8,128)}",
        "s8[64,256]{1,0:T(8,128)(4,1)}",
        "f32[8,16]{0,1}",
        "f32[4,8,16]{1,2,0:T(4,4)}",
        "pred[]{}",
        "f32[100]{0:T(64)}",
        "f32[8]{0:T(8)S(5)}",
    ],
)
def test_texts_round_trip(text: str) -> None:
    repeated = xla(xla_text(xla(text)))

    assert np.array_equal(repeated.offsets(), xla(text).offsets())
    assert (repeated.dtype, repeated.shape, repeated.memory) == (
        xla(text).dtype, xla(text).shape, xla(text).memory
    )


@pytest.mark.parametrize(
    "text",
    ["f32[3,5]{1,0:T(2,2)}", "bf16[16,256]{1,0:T(8,128)(2,1)}", "f32[5,130]{1,0:T(8,128)}",
     "f32[8,16]{0,1}", "f32[3,4]{1,0}"],
)
def test_default_texts_round_trip_unchanged(text: str) -> None:
    assert xla_text(xla(text)) == text


@pytest.mark.parametrize("dtype", SCALARS)
def test_every_dtype_has_a_name(dtype: str) -> None:
    layout = Layout.row_major((3, 5), dtype)

    assert xla(xla_text(layout)).dtype == dtype


def test_packed_elements_are_refused() -> None:
    """XLA's `s4` without a size of elements takes a byte each."""
    packed = replace(Layout.row_major((4, 8), "int8"), storage=storage_format("int4"))
    assert xla_text(Layout.row_major((4, 8), "int4")) == "s4[4,8]{1,0}"

    with pytest.raises(LayoutError) as error:
        xla_text(packed)

    assert diagnostic(error.value) == Diagnostic(
        "layout-text", index_map="lambda index0, index1: [index0, index1]", storage="int4",
        shape=[4, 8],
    )


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: xla("f32[3,5]{1,0:T(2,2}"),
            Diagnostic("layout-text", text="f32[3,5]{1,0:T(2,2}", position=12, rest=":T(2,2}"),
        ),
        (
            lambda: xla("f32[3,5]{1,1}"),
            Diagnostic("layout-text", minor_to_major=[1, 1], shape=[3, 5]),
        ),
        (
            lambda: xla("f32[3]{0:T(2,2)}"),
            Diagnostic("layout-text", tile="(2,2)", axis_count=1, shape=[3]),
        ),
        (
            lambda: xla("f32[3]{0:T(0)}"),
            Diagnostic("layout-text", tile="(0)"),
        ),
        (
            lambda: xla("c64[3]{0}"),
            Diagnostic(
                "layout-text", type="c64",
                types=", ".join(sorted(xla_text(Layout.row_major((), name)).partition("[")[0] for name in SCALARS)),
            ),
        ),
        (
            lambda: xla_text(Layout.of((8, 8), "float32", lambda i, j: [i, i ^ j])),
            Diagnostic(
                "layout-text", index_map="lambda i, j: [i, i ^ j]", storage="float32",
                shape=[8, 8],
            ),
        ),
    ],
)
def test_refusals(make: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        make()

    assert diagnostic(caught.value) == expected
