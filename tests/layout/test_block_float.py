"""Block floats against a float64 model: rounding, exponents, byte order and special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tecomp.layout import BlockFloat

Array = np.ndarray[Any, Any]


def model(values: Array, bits: int) -> tuple[Array, Array]:
    """Return the shared exponents of runs of 16 and the codes of finite values, by float64."""
    runs = values.reshape(-1, 16).astype(np.float64)
    runs = np.where(np.abs(runs) < 2.0**-126, 0, runs)
    _, power = np.frexp(np.abs(runs).max(axis=1))
    exponent = np.where(runs.any(axis=1), power - 1 + 127, 0)
    unit = 2.0 ** (exponent[:, None] - 127.0 - (bits - 2))
    magnitude = np.minimum(np.rint(np.abs(runs) / unit), 2 ** (bits - 1) - 1).astype(np.int64)
    sign = (np.signbit(runs) & (magnitude > 0)).astype(np.int64)
    return exponent, (sign << (bits - 1)) | magnitude


def packed(codes: Array, bits: int) -> Array:
    per_byte = 8 // bits
    groups = codes.reshape(-1, per_byte) << (np.arange(per_byte) * bits)
    whole: Array = groups.sum(axis=1).astype(np.uint8)
    return whole


def values_of_all_sizes(count: int) -> Array:
    rng = np.random.default_rng(0)
    spread = rng.integers(-3, 4, count) + np.repeat(rng.integers(-37, 36, count // 16), 16)
    values: Array = (rng.standard_normal(count) * 10.0**spread).astype(np.float32)
    values[:16], values[16:32], values[40] = 0, -0.0, 1e-42
    values[48:64] = np.float32(np.arange(16) / 2 + 56)  # ties
    return np.clip(values, np.finfo(np.float32).min, np.finfo(np.float32).max)


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("elements", [16, 64, 1024])
@pytest.mark.parametrize("bits", [8, 4, 2])
def test_encoded_bytes(bits: int, elements: int) -> None:
    """Each block stores its exponents first, then its codes."""
    values = values_of_all_sizes(4096)
    exponents, codes = model(values, bits)
    heads = exponents.astype(np.uint8).reshape(-1, elements // 16)
    body = packed(codes, bits).reshape(heads.shape[0], -1)

    found = BlockFloat.of(bits, elements=elements).encode_array(values)

    assert np.array_equal(found, np.concatenate([heads, body], axis=1).reshape(-1))


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_decoded_values(bits: int) -> None:
    storage = BlockFloat.of(bits)
    values = values_of_all_sizes(4096)
    exponents, codes = model(values, bits)
    magnitude = (codes & (2 ** (bits - 1) - 1)) * np.where(codes >> (bits - 1), -1.0, 1.0)
    expected = magnitude * 2.0 ** (exponents[:, None] - 127.0 - (bits - 2))

    found = storage.decode_array(storage.encode_array(values))

    assert np.array_equal(found, expected.reshape(-1).astype(np.float32))


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_every_code_under_every_exponent(bits: int) -> None:
    """All codes round-trip under all exponents below that of infinity and NaN."""
    codes = np.arange(2**bits).repeat(max(1, 16 >> bits)) if bits < 4 else np.arange(2**bits)
    codes = np.resize(codes, max(16, 2**bits))
    exponents = np.arange(255)
    storage = BlockFloat.of(bits, elements=len(codes))
    heads = np.repeat(exponents[:, None], len(codes) // 16, axis=1).astype(np.uint8)
    body = np.repeat(packed(codes, bits)[None], 255, axis=0)
    magnitude = (codes & (2 ** (bits - 1) - 1)) * np.where(codes >> (bits - 1), -1.0, 1.0)
    expected = magnitude * 2.0 ** (exponents[:, None] - 127.0 - (bits - 2))
    expected[0] = 0

    found = storage.decode_array(np.concatenate([heads, body], axis=1))

    assert np.array_equal(found, expected.astype(np.float32))


def test_infinity_and_nan() -> None:
    """Inf and NaN take the maximum exponent, which underflows all but the largest other values."""
    values = np.zeros(16, np.float32)
    greatest = float(np.finfo(np.float32).max)
    values[:7] = [np.inf, -np.inf, np.nan, 1.0, -1e30, 2.0**127, greatest]
    storage = BlockFloat.of(8, elements=16)

    found = storage.decode_array(storage.encode_array(values))

    assert found[[0, 1, 3, 4, 5, 6]].tolist() == [np.inf, -np.inf, 0, 0, 2.0**127, np.inf]
    assert np.isnan(found[2])


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "bool"])
def test_other_types(dtype: str) -> None:
    values = np.random.default_rng(0).integers(0, 100, 64).astype(dtype)
    storage = BlockFloat.of(8, elements=64)

    stored = storage.encode_array(values)

    assert np.array_equal(stored, storage.encode_array(values.astype(np.float32)))


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_exponents_of_5_bits(bits: int) -> None:
    """5-bit exponents cover 2**-15 to 2**16; larger values, infinity and NaN saturate."""
    values = values_of_all_sizes(8192).astype(np.float64).reshape(-1, 16)
    ends = [[3e38, -1e9, 1], [-7e4, 1.3e5, 1.4e5], [2.0**-15, 2.0**-20, 0], [0, 0, 0]]
    values[:4, :3] = np.array(ends)
    exponent = model(values.astype(np.float32), 8)[0].clip(112, 143)
    unit = 2.0 ** (exponent[:, None] - 127.0 - (bits - 2))
    most = 2 ** (bits - 1) - 1
    magnitude = np.minimum(np.rint(np.abs(values) / unit), most)
    storage = BlockFloat.of(bits, exponent_bits=5, elements=16)

    stored = storage.encode_array(values.astype(np.float32))
    found = storage.decode_array(stored)

    assert np.array_equal(stored[:, 0], exponent - 112)
    assert np.array_equal(found, np.where(magnitude > 0, np.sign(values), 0) * magnitude * unit)
    special = np.zeros(16, np.float32)
    special[:3] = [np.inf, -np.inf, np.nan]
    greatest = most * 2.0 ** (16 - (bits - 2))
    found = np.abs(storage.decode_array(storage.encode_array(special)))
    assert found.tolist() == [greatest] * 3 + [0] * 13
