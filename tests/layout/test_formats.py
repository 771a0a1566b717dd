"""Storage formats: sizes in memory, packed integers and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import LayoutError
from tecomp.ir import SCALARS
from tecomp.layout import BFP8, INT4, UINT4, BlockFloat, Format, Layout, PackedInt, storage_format
from tecomp.layout.formats.registry import NAMED_FORMATS
from tecomp.poly import IndexMap
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close


def tiles(storage: Format) -> Layout:
    """Return a 64x96 layout in 32x32 tiles of four faces each."""
    index_map = IndexMap.from_func(
        lambda i, j: [i // 32, j // 32, i // 16 % 2, j // 16 % 2, i % 16, j % 16]
    )
    return Layout((64, 96), te.placeholder((1,)).dtype, index_map, storage)


@pytest.mark.parametrize(
    ("name", "per_tile"),
    [
        ("float32", 4096), ("float16", 2048), ("bfloat16", 2048), ("uint8", 1024),
        ("bfp8", 1088), ("bfp4", 576), ("bfp2", 320), ("int4", 512),
    ],
)
def test_bytes_of_a_tile(name: str, per_tile: int) -> None:
    layout = tiles(storage_format(name))

    assert layout.nbytes == 6 * per_tile
    assert np.prod(layout.storage_shape) * layout.storage.stored.bytes == 6 * per_tile


def test_blocks_are_the_last_axes() -> None:
    assert tiles(BFP8).storage_shape == (2, 3, 1088)
    assert tiles(INT4).storage_shape == (2, 3, 2, 2, 16, 8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bfloat16_is_rounded_to_even(dtype: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**32, 10_000, np.uint64).astype(np.uint32).view(np.float32)
    values = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        expected = values.astype(ml_dtypes.bfloat16)

    found = storage_format("bfloat16").encode_array(values.astype(dtype))

    assert np.array_equal(found, expected)


@pytest.mark.parametrize("storage", [INT4, UINT4], ids=lambda f: f.name)
def test_every_byte_of_two_integers(storage: PackedInt) -> None:
    """Each byte packs two integers with the first in the low half, as ml_dtypes decodes them."""
    packed = np.arange(256, dtype=np.uint8)
    halves = np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)
    expected = halves.astype(getattr(ml_dtypes, storage.name)).astype(np.int64)
    expected = np.where((storage is INT4) & (halves > 7), halves.astype(np.int64) - 16, expected)

    found = storage.decode_array(packed)

    assert np.array_equal(found, expected)
    assert np.array_equal(storage.encode_array(found), packed)


@pytest.mark.exhaustive(keep=21)
@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "bool"]
)
@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("signed", [True, False])
def test_integers_saturate(bits: int, signed: bool, dtype: str) -> None:
    storage = PackedInt.of(bits, signed=signed)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    start = 0 if dtype[0] in "ub" else -40
    data = np.arange(start, 88).astype(dtype)

    found = storage.decode_array(storage.encode_array(data))

    assert np.array_equal(found, np.clip(data.astype(np.int64), low, high))


def test_floats_become_the_nearest_integers() -> None:
    data = np.array([2.5, 3.5, -0.5, -1.5, 0.49, np.nan, np.inf, -np.inf])

    found = INT4.decode_array(INT4.encode_array(data), "float32")

    assert found.tolist() == [2, 4, 0, -2, 0, 0, 7, -8]


def test_blocks_of_several_axes() -> None:
    """Blocks run along the last axis of a tensor, in schedules and for arrays."""
    A = te.placeholder((3, 10), "int8", name="A")
    packed = INT4.encode(A)
    B = INT4.decode(packed)
    a = np.random.default_rng(0).integers(-8, 8, (3, 10), np.int8)
    middle, b = np.empty((3, 5), np.uint8), np.empty((3, 10), np.int8)

    tecomp.build(te.create_schedule(B), [A, packed, B])(a, middle, b)

    assert np.array_equal(middle, (a[:, ::2] & 15) | (a[:, 1::2].astype(np.uint8) << 4))
    assert np.array_equal(middle, INT4.encode_array(a))
    assert np.array_equal(b, a)


def test_no_elements() -> None:
    assert INT4.encode_array(np.empty((0, 4), np.int8)).shape == (0, 2)
    assert BFP8.decode_array(np.empty((3, 0), np.uint8)).shape == (3, 0)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: storage_format("float7"),
            Diagnostic(
                "storage-format", name="float7",
                named=", ".join(dict.fromkeys((*NAMED_FORMATS, *SCALARS))),
            ),
        ),
        (
            lambda: tiles(BlockFloat.of(8, elements=80)),
            Diagnostic("storage-format", name="bfp8", elements=80, shape=[2, 3, 2, 2, 16, 16]),
        ),
        (
            lambda: BlockFloat.of(8, elements=40),
            Diagnostic("storage-format", bits=8, elements=40, exponent_bits=8, run=16),
        ),
        (
            lambda: PackedInt.of(3, signed=True),
            Diagnostic("storage-format", bits=3),
        ),
        (
            lambda: INT4.encode_array(np.zeros((2, 3), np.int8)),
            Diagnostic("storage-format", storage="int4", shape=[2, 3], old=2, subject="elements"),
        ),
        (
            lambda: BFP8.encode(te.placeholder((4, 100), name="A")),
            Diagnostic(
                "storage-format", name="bfp8", tensor="A", shape="[4, 100]", size=1024,
                subject="elements",
            ),
        ),
        (
            lambda: BFP8.decode_array(np.zeros(1088, np.float32)),
            Diagnostic("storage-format", storage="bfp8", stored="uint8", dtype="float32"),
        ),
        (
            lambda: BFP8.encoded(te.placeholder((4,), name="A")[0]),
            Diagnostic("storage-format", name="bfp8", elements=1024, subject="encode"),
        ),
    ],
)
def test_invalid_arguments_are_rejected(make: Callable[[], Any], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as error:
        make()

    assert diagnostic(error.value) == expected


@pytest.mark.parametrize(
    ("name", "accepted", "lost"),
    [
        ("int8", (-128, 127), (128, -129, 0.5)),
        ("float16", (65504, -0.1), (1e5,)),
        ("int4", (-8, 7), (8, -9, 0.5)),
        ("uint4", (0, 15), (-1, 16)),
        ("float8_e4m3fn", (448, 463, -0.1, float("nan")), (465, float("inf"))),
        ("float8_e5m2", (57344, float("-inf")), (1e6,)),
        ("bfp8", (1e30, 0.1), ()),
    ],
)
def test_padding_is_a_number_of_the_format(
    name: str, accepted: tuple[float, ...], lost: tuple[float, ...]
) -> None:
    """A padding value is rounded to the storage format and reads back as the rounded value."""
    storage = storage_format(name)

    def padded(value: float) -> Layout:
        plain = Layout.row_major((32, 32), "float64")
        return Layout(plain.shape, plain.dtype, plain.index_map, storage, value)

    for value in accepted:
        assert padded(value).pad_value is value
        block = np.full(1024, value)
        repeated = storage.decode_array(storage.encode_array(block), "float64")
        assert_close(repeated, block, rtol=0.08)
    for value in lost:
        with pytest.raises(LayoutError) as caught:
            padded(value)
        assert diagnostic(caught.value) == (
            Diagnostic("pad-value", value=value, storage=name)
        )
