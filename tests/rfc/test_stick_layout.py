"""The Spyre tensor document: every example with its printed form, and the tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tecomp.errors import LayoutError
from tecomp.layout import DataFormats, Dense, Sparse, SpyreTensorLayout, StickLayout
from tests.messages import Diagnostic, diagnostic

DEFAULT = (
    "SpyreTensorLayout(device_size=[128, 3, 64, 64], dim_map =[1, 2, 0, 2], num_stick_dims=1, "
    "format=StickFormat.Dense, device_dtype=DataFormats.SEN169_FP16)"
)


class TorchType:
    """Stand-in for a dtype of PyTorch, which prints its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"torch.{self.name}"


FLOAT16 = TorchType("float16")


def places(layout: StickLayout, dims: tuple[int, ...], lanes: int) -> np.ndarray[Any, Any]:
    """Return element offsets by the documented rule: tiles of lanes, and `dims` as printed."""
    size = layout.device_size
    strides = np.cumprod([1, *size[:0:-1]])[::-1]
    axes = np.indices(layout.shape)
    offset = axes[dims[-1]] % lanes
    for dim, stride in zip(dims[:-1], strides[:-1], strict=True):
        offset = offset + stride * (axes[dim] // lanes if dim == dims[-1] else axes[dim])
    return np.asarray(offset)


def test_default_layout() -> None:
    layout = SpyreTensorLayout((5, 100, 150), FLOAT16)

    assert str(layout) == DEFAULT
    assert f"{layout}" == repr(layout) == DEFAULT
    assert np.array_equal(layout.offsets(), places(layout, (1, 2, 0, 2), 64))


def test_the_elements_of_the_metadata() -> None:
    layout = SpyreTensorLayout((5, 100, 150), FLOAT16)

    assert layout.device_size == [128, 3, 64, 64]
    assert layout.dim_map == [1, 2, 0, 2]
    assert layout.format is Dense
    assert layout.device_dtype is DataFormats.SEN169_FP16
    assert layout.num_stick_dims == 1


def test_each_stick_contains_64_values_and_the_rest_is_padding() -> None:
    layout = SpyreTensorLayout((5, 100, 150), FLOAT16)

    assert layout.elems_in_stick == 64
    assert layout.nbytes == 24_576 * 128 == 3 * 2**20
    assert layout.num_elements * 2 == 150_000
    assert layout.padding_count == 128 * 192 * 64 - 5 * 100 * 150
    assert layout.element((99, 2, 4, 21)) == (4, 99, 149)
    assert [layout.element(at) for at in ((99, 2, 4, 22), (100, 0, 0, 0), (0, 0, 5, 0))] == [None] * 3


def test_explicit_api_with_default_layout() -> None:
    layout = SpyreTensorLayout((5, 100, 150), FLOAT16)

    assert layout == SpyreTensorLayout(size=(5, 100, 150), dtype="float16", pad_all_dims=True)
    assert SpyreTensorLayout is StickLayout


def test_disabling_non_stick_padding() -> None:
    layout = SpyreTensorLayout((5, 100, 150), FLOAT16, pad_all_dims=False)

    assert str(layout) == (
        "SpyreTensorLayout(device_size=[100, 3, 5, 64], dim_map =[1, 2, 0, 2], num_stick_dims=1, "
        "format=StickFormat.Dense, device_dtype=DataFormats.SEN169_FP16)"
    )
    assert layout.nbytes == 1500 * 128 == int(187.5 * 1024)


def test_fine_grained_control_of_padding() -> None:
    layout = SpyreTensorLayout((5, 128, 192), FLOAT16, [0, 1, 2])

    assert str(layout) == (
        "SpyreTensorLayout(device_size=[128, 3, 5, 64], dim_map =[1, 2, 0, 2], num_stick_dims=1, "
        "format=StickFormat.Dense, device_dtype=DataFormats.SEN169_FP16)"
    )


def test_fine_grained_control_of_dimension_order() -> None:
    """Only the stick axis is padded, with the tiling order inverted."""
    layout = SpyreTensorLayout((5, 100, 192), FLOAT16, [1, 0, 2], size=(5, 100, 150))

    assert str(layout) == (
        "SpyreTensorLayout(device_size=[5, 3, 100, 64], dim_map =[0, 2, 1, 2], num_stick_dims=1, "
        "format=StickFormat.Dense, device_dtype=DataFormats.SEN169_FP16)"
    )
    assert layout.padding_count == 5 * 100 * 42
    assert np.array_equal(layout.offsets(), places(layout, (0, 2, 1, 2), 64))


def test_the_stick_dimension_must_be_padded() -> None:
    with pytest.raises(LayoutError) as error:
        SpyreTensorLayout((5, 3, 7), FLOAT16, [0, 1, 2])

    assert diagnostic(error.value) == (
        Diagnostic("sticks", last=7, padded=[5, 3, 7], lanes=64, round_up=64)
    )


def test_the_order_is_for_the_size() -> None:
    with pytest.raises(LayoutError) as error:
        SpyreTensorLayout((5, 3, 64), FLOAT16, [0, 1])

    assert diagnostic(error.value) == (
        Diagnostic("sticks", padded=[5, 3, 64], order=[0, 1])
    )


@pytest.mark.parametrize(
    ("size", "float16", "unpadded", "float32", "int8", "dim_map"),
    [
        ((), [64], [64], [32], [128], [0]),
        ((7,), [1, 64], [1, 64], [1, 32], [1, 128], [0, 0]),
        ((3, 7), [1, 64, 64], [1, 3, 64], [1, 32, 32], [1, 128, 128], [1, 0, 1]),
        (
            (3, 5, 7), [64, 1, 64, 64], [5, 1, 3, 64], [32, 1, 32, 32], [128, 1, 128, 128],
            [1, 2, 0, 2],
        ),
        (
            (2, 3, 5, 7), [64, 64, 1, 64, 64], [3, 5, 1, 2, 64], [32, 32, 1, 32, 32],
            [128, 128, 1, 128, 128], [1, 2, 3, 0, 3],
        ),
        (
            (2, 3, 4, 5, 7), [64, 64, 64, 1, 64, 64], [3, 4, 5, 1, 2, 64],
            [32, 32, 32, 1, 32, 32], [128, 128, 128, 1, 128, 128], [1, 2, 3, 4, 0, 4],
        ),
        (
            (2, 3, 4, 5, 6, 7), [64, 64, 64, 64, 1, 64, 64], [3, 4, 5, 6, 1, 2, 64],
            [32, 32, 32, 32, 1, 32, 32], [128, 128, 128, 128, 1, 128, 128], [1, 2, 3, 4, 5, 0, 5],
        ),
        (
            (1, 5, 70), [64, 2, 1, 64], [5, 2, 1, 64], [32, 3, 1, 32], [128, 1, 1, 128],
            [1, 2, 0, 2],
        ),
    ],
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_sizes_of_all_ranks(
    size: tuple[int, ...], float16: list[int], unpadded: list[int], float32: list[int],
    int8: list[int], dim_map: list[int],
) -> None:
    found = [
        SpyreTensorLayout(size, "float16"),
        SpyreTensorLayout(size, "float16", False),
        SpyreTensorLayout(size, "float32"),
        SpyreTensorLayout(size, "int8"),
    ]

    assert [layout.device_size for layout in found] == [float16, unpadded, float32, int8]
    assert [layout.dim_map for layout in found] == [dim_map] * 4
    assert [layout.nbytes for layout in found] == [
        128 * int(np.prod(shape[:-1])) for shape in (float16, unpadded, float32, int8)
    ]
    assert SpyreTensorLayout(size, "float8_e4m3fn").device_size == int8
    assert SpyreTensorLayout(size, bool).device_size == float16


@pytest.mark.parametrize(
    ("dtype", "device_dtype", "lanes"),
    [
        ("float16", "SEN169_FP16", 64), ("bfloat16", "BFLOAT16", 64), ("float32", "IEEE_FP32", 32),
        ("int32", "IEEE_INT32", 32), ("int16", "SENINT16", 64), ("int8", "SENINT8", 128),
        ("bool", "SEN169_FP16", 64), ("float8_e4m3fn", "SEN143_FP8", 128),
        ("float8_e5m2fnuz", "SEN152_FP8", 128), ("uint8", "SENUINT32", 32),
        ("quint8", "SENUINT32", 32),
    ],
)
def test_types_of_elements(dtype: str, device_dtype: str, lanes: int) -> None:
    layout = SpyreTensorLayout((3, 200), TorchType(dtype))

    assert layout.device_dtype is DataFormats[device_dtype]
    assert str(layout.device_dtype) == f"DataFormats.{device_dtype}"
    assert layout.elems_in_stick == lanes
    assert layout.nbytes == 128 * int(np.prod(layout.device_size[:-1]))
    assert SpyreTensorLayout((3, 200), dtype, stick_bytes=64).elems_in_stick == lanes // 2


def test_int64_is_stored_as_int32() -> None:
    text = (
        "Backend Spyre does not support int64; downcasting to int32 may change values outside "
        "the 32-bit range"
    )
    with pytest.warns(UserWarning, match=text):
        layout = SpyreTensorLayout((3, 40), "int64")

    assert layout.device_dtype is DataFormats.IEEE_INT32
    assert layout.device_size == [2, 32, 32]
    assert layout.dtype == "int64"
    assert layout.storage.encode_array([1, -5]).tolist() == [1, -5]


@pytest.mark.parametrize(
    ("name", "lanes"), [("SENINT4", 256), ("SENINT2", 512), ("SENUINT2", 512)]
)
def test_types_that_no_host_has(name: str, lanes: int) -> None:
    layout = SpyreTensorLayout([2, 5, lanes], [1, 0, 1], 1, Dense, DataFormats[name])

    assert layout.shape == (5, 2 * lanes)
    assert layout.nbytes == 2 * 5 * 128


def test_sparse_sticks() -> None:
    """Sparse sticks hold one element each, in lane 0."""
    layout = SpyreTensorLayout((512, 256), "float16", [0, 1], Sparse)

    assert str(layout) == (
        "SpyreTensorLayout(device_size=[256, 512, 64], dim_map =[1, 0, 1], num_stick_dims=1, "
        "format=StickFormat.Sparse, device_dtype=DataFormats.SEN169_FP16)"
    )
    i, j = np.indices((512, 256))
    assert np.array_equal(layout.offsets(), (j * 512 + i) * 64)
    assert layout.stride_map() == [1, 256, -1]
    assert layout.nbytes == 512 * 256 * 128


def test_sticks_of_the_first_dimension() -> None:
    layout = SpyreTensorLayout((512, 256), "float16", [1, 0])

    assert (layout.device_size, layout.dim_map) == ([8, 256, 64], [0, 1, 0])
    i, j = np.indices((512, 256))
    assert np.array_equal(layout.offsets(), (i // 64 * 256 + j) * 64 + i % 64)
    assert layout.host_dim_order() == [1, 0]


def test_tiling_of_rank_4_by_its_fields() -> None:
    """The reference code's default for rank 4 can be given as an explicit map."""
    layout = SpyreTensorLayout(
        [2, 1, 3, 5, 64], [0, 3, 1, 2, 3], 1, Dense, DataFormats.SEN169_FP16, size=(2, 3, 5, 7)
    )

    a, b, c, d = np.indices((2, 3, 5, 7))
    assert np.array_equal(layout.offsets(), ((a * 3 + b) * 5 + c) * 64 + d)
