"""RFC 0047, tensors with device-specific layouts: statements and examples on layouts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tecomp.layout import Layout, Sparse, SpyreTensorLayout
from tests.bench import tiled_table
from tests.bench.layouts_table import encoder


def test_row_and_column_major_are_strides() -> None:
    rows = Layout.row_major((4, 6), "float32")
    columns = Layout.of((4, 6), "float32", lambda i, j: [j, i])

    i, j = np.indices((4, 6))
    assert np.array_equal(rows.offsets(), 6 * i + j)
    assert np.array_equal(columns.offsets(), i + 4 * j)


def test_a_tiled_tensor_has_no_strides() -> None:
    """The steps along one axis differ, so no single stride describes them."""
    offsets = SpyreTensorLayout((1024, 256), "float16").offsets()

    assert set(np.diff(offsets, axis=1).reshape(-1).tolist()) == {1, 65536 - 63}


def test_the_256_elements_of_each_row_form_4_sticks() -> None:
    layout = SpyreTensorLayout((1024, 256), "float16")

    assert layout.elems_in_stick == 64
    assert sorted({layout.place((7, j))[0] for j in range(256)}) == [0, 1, 2, 3]


def test_tiled_tensor_has_a_3d_layout() -> None:
    layout = SpyreTensorLayout((1024, 256), "float16")

    assert tuple(layout.device_size) == (4, 1024, 64)
    assert tuple(layout.device_strides) == (65536, 64, 1)


def test_contiguous_tiles() -> None:
    """`(N, 64)` tiles with 1 <= N <= 1024 are contiguous."""
    offsets = SpyreTensorLayout((1024, 256), "float16").offsets()

    for rows, n, tile in ((0, 1, 0), (17, 100, 2), (0, 1024, 3)):
        block = offsets[rows : rows + n, tile * 64 : tile * 64 + 64].reshape(-1)
        assert np.array_equal(block, block[0] + np.arange(n * 64))


def test_sticks_of_one_row_are_apart() -> None:
    layout = SpyreTensorLayout((1024, 256), "float16")

    assert layout.offset((3, 64)) - layout.offset((3, 0)) == 65536
    assert layout.offset((4, 0)) - layout.offset((3, 0)) == 64


def test_the_loop_nest_of_the_example() -> None:
    """Ranges, device strides, host strides: ((4, 1024, 64), (65536, 64, 1), (64, 256, 1))."""
    layout = SpyreTensorLayout((1024, 256), "float16")
    host = np.random.default_rng(0).integers(0, 2**16, 1024 * 256, np.uint16)
    device = np.zeros(layout.num_places, np.uint16)
    i, j, k = np.indices((4, 1024, 64))
    device[i * 65536 + j * 64 + k * 1] = host[j * 256 + (i * 64 + k * 1)]

    assert np.array_equal(device[layout.offsets()], host.reshape(1024, 256))
    assert tuple(layout.device_size) == (4, 1024, 64)
    assert tuple(layout.device_strides) == (65536, 64, 1)
    assert tuple(layout.stride_map((256, 1))) == (64, 256, 1)


@pytest.mark.parametrize("size", [(192,), (3, 128), (2, 3, 64), (2, 3, 4, 128), (2, 1, 3, 2, 64)])
def test_n_plus_k_loops(size: tuple[int, ...]) -> None:
    """Loops over device axes with both strides visit each element of a whole tensor."""
    layout = SpyreTensorLayout(size, "float16", pad_all_dims=False)
    index = np.indices(layout.device_size)

    device = sum(n * stride for n, stride in zip(index, layout.device_strides, strict=True))
    host = sum(n * max(step, 0) for n, step in zip(index, layout.stride_map(), strict=True))

    assert len(layout.device_size) == len(size) + 1
    assert layout.device_strides == sorted(layout.device_strides, reverse=True)
    assert np.array_equal(layout.offsets().reshape(-1)[host], device)


def test_padded_tensors() -> None:
    """The last stick of each row has the last 8 elements and 112 bytes of padding."""
    layout = SpyreTensorLayout((1000, 200), "float16", pad_all_dims=False)

    assert tuple(layout.device_size) == (4, 1000, 64)
    assert [layout.element((3, 5, lane)) for lane in (0, 7, 8, 63)] == [
        (5, 192), (5, 199), None, None,
    ]
    assert sum(layout.element((3, 5, lane)) is None for lane in range(64)) * 2 == 112


def test_inputs_with_identical_layouts() -> None:
    same = SpyreTensorLayout((64, 128), "float16"), SpyreTensorLayout((64, 128), np.float16)
    other = SpyreTensorLayout((64, 128), "float16", [1, 0])

    assert same[0] == same[1]
    assert hash(same[0]) == hash(same[1])
    assert other not in same


def test_reductions_leave_one_element_in_a_stick() -> None:
    layout = SpyreTensorLayout((512, 1), "float16", [0, 1], Sparse)

    assert layout.device_size == [1, 512, 64]
    assert all(place[2] == 0 for place in map(layout.place, [(0, 0), (7, 0), (511, 0)]))
    assert layout.padding_count == 512 * 63


def test_restickify_changes_the_stick_dimension() -> None:
    rows = SpyreTensorLayout((128, 256), "float16", [0, 1])
    columns = SpyreTensorLayout((128, 256), "float16", [1, 0])

    assert (rows.device_size, rows.stride_map()) == ([4, 128, 64], [64, 256, 1])
    assert (columns.device_size, columns.stride_map()) == ([2, 256, 64], [16384, 1, 256])
    i, j = np.indices((128, 256))
    assert np.array_equal(columns.offsets(), (i // 64 * 256 + j) * 64 + i % 64)


@pytest.mark.exhaustive
def test_the_table_of_benefits() -> None:
    """The cycles in docs/tiled-tensors.md equal the output of the command."""
    text = (Path(__file__).parents[2] / "docs" / "tiled-tensors.md").read_text(encoding="utf-8")
    for name, program in (*tiled_table.operations(), ("encoder layer", encoder())):
        found = tiled_table.row(name, program)
        assert found in text.splitlines()
        in_rows, in_sticks, chosen = (
            int(item.replace(",", "")) for item in found.split("|")[2:5]
        )
        assert in_rows >= in_sticks >= chosen
