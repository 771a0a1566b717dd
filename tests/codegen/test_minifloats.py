"""Floats of 8 bits or less: conversions and programs against ml_dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te, topi
from tecomp.ir import SCALARS, DType
from tecomp.operations import element_type
from tests.messages import Diagnostic, diagnostic

MINIFLOATS = [name for name in SCALARS if DType(name).kind == "minifloat"]

Array = NDArray[Any]


def converted(values: Array, to: str, lanes: int) -> Array:
    """Return `values` cast by a compiled program with vectors of `lanes` lanes."""
    source = str(values.dtype)
    A = te.placeholder(values.shape, source, name="A")
    B = te.compute(A.shape, lambda i: te.cast(A[i], to), name="B")
    schedule = te.create_schedule(B.op)
    if lanes > 1:
        schedule[B].vectorize(schedule[B].split(B.op.axis[0], factor=lanes)[1])
    result = np.empty(values.shape, DType(to).numpy)
    tecomp.build(schedule, [A, B])(values, result)
    return result


def floats_near(name: str) -> Array:
    """Return all finite values, the midpoints between them and their float32 neighbours.

    Special values and random bit patterns are included.
    """
    codes = np.arange(1 << DType(name).bits, dtype=np.uint8).view(DType(name).numpy)
    codes = codes.astype(np.float64)
    finite = np.unique(codes[np.isfinite(codes)])
    middles = (finite[1:] + finite[:-1]) / 2
    largest = finite[-1]
    special = [np.inf, -np.inf, np.nan, -np.nan, 1e30, 1e-30, -1e-30, 1e-42, 0.0, -0.0]
    beyond = largest * np.array([1.0, 1.03, 1.0357142857142858, 1.0625, 1.125, 7 / 6, 1.25, 1.5, 2.0])
    exact = np.concatenate([finite, middles, beyond, -beyond, special])
    with np.errstate(over="ignore"):
        exact = exact.astype(np.float32)
    steps = [np.nextafter(exact, np.float32(limit)) for limit in (np.inf, -np.inf)]
    random = np.random.default_rng(0).integers(0, 2**32, 20_000, np.uint64).astype(np.uint32)
    found = np.concatenate([exact, *steps, random.view(np.float32)])
    return found[: len(found) // 16 * 16]


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("name", MINIFLOATS)
def test_every_code_is_the_number_of_ml_dtypes(name: str, lanes: int) -> None:
    codes = np.arange(1 << DType(name).bits, dtype=np.uint8).view(DType(name).numpy)

    for wide in ("float16", "bfloat16", "float32", "float64"):
        expected = codes.astype(DType(wide).numpy)
        found = converted(codes, wide, lanes)
        assert np.array_equal(np.isnan(found), np.isnan(expected))
        assert np.array_equal(np.signbit(found), np.signbit(expected))
        assert np.array_equal(found[~np.isnan(expected)], expected[~np.isnan(expected)])


@pytest.mark.exhaustive(keep=17)
@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("name", MINIFLOATS)
def test_rounding_matches_ml_dtypes(name: str, lanes: int) -> None:
    """Ties, overflow, subnormals, infinities and NaN give the same bits."""
    values = floats_near(name)
    with np.errstate(all="ignore"):
        expected = values.astype(DType(name).numpy)

    assert np.array_equal(converted(values, name, lanes).view(np.uint8), expected.view(np.uint8))


@pytest.mark.exhaustive(keep=20)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float64", "int8", "uint16", "int64"])
@pytest.mark.parametrize("name", MINIFLOATS)
def test_values_of_other_dtypes(name: str, source: str) -> None:
    kind = DType(source).numpy
    with np.errstate(all="ignore"):
        values = np.concatenate([np.arange(-128, 128), floats_near(name)[:1024]]).astype(kind)
        expected = values.astype(np.float32).astype(DType(name).numpy)

    assert np.array_equal(converted(values, name, 8).view(np.uint8), expected.view(np.uint8))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", MINIFLOATS)
def test_programs_round_after_every_operation(name: str) -> None:
    kind = DType(name).numpy
    random = np.random.default_rng(0)
    numbers = random.integers(-6, 7, (2, 6, 20))
    a, b = (numbers if element_type(name).is_signed else 2.0**numbers).astype(kind)
    A, B = (te.placeholder((6, 20), name, name=n) for n in "AB")
    total = topi.add(topi.multiply(A, B), A)
    widened = topi.cast(total, "float32")
    peak = topi.max(A, axis=1)
    program = tecomp.compile([total, widened, topi.cast(topi.exp(widened), name), peak], [A, B])

    sums, widened_sums, powers, most = program(a, b)

    expected = a * b + a
    assert np.array_equal(sums, expected)
    assert sums.dtype == expected.dtype
    assert np.array_equal(widened_sums, expected.astype(np.float32))
    with np.errstate(all="ignore"):
        assert np.array_equal(powers.astype(np.float32), np.exp(widened_sums).astype(kind).astype(np.float32),
                              equal_nan=True)
    assert np.array_equal(most, a.max(axis=1))


@pytest.mark.parametrize("name", MINIFLOATS)
def test_the_interpreter_agrees(name: str) -> None:
    A = te.placeholder((40,), name, name="A")
    B = te.compute((40,), lambda i: te.sqrt(te.fabs(A[i])) / (A[i] + te.const(1, name)), name="B")
    schedule = te.create_schedule(B.op)
    data = np.random.default_rng(1).integers(-5, 6, 40).astype(DType(name).numpy)
    found, expected = np.empty_like(data), np.empty_like(data)

    tecomp.build(schedule, [A, B])(data, found)
    tecomp.evaluate(tecomp.lower(schedule, [A, B]), [data, expected])

    assert np.array_equal(found.astype(np.float32), expected.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("name", MINIFLOATS)
def test_printed_functions_are_parsed(name: str) -> None:
    A = te.placeholder((8,), name, name="A")
    B = te.compute((8,), lambda i: A[i] * te.const(1.5, name), name="B")
    func = tecomp.lower(te.create_schedule(B.op), [A, B])

    assert f'Buffer("{name}", (8,))' in str(func)
    assert str(tecomp.ir.parse(str(func))) == str(func)


@pytest.mark.parametrize("name", MINIFLOATS)
def test_arguments_of_other_dtypes_are_refused(name: str) -> None:
    A = te.placeholder((8,), name, name="A")
    program = tecomp.compile(topi.add(A, A), [A])

    with pytest.raises(tecomp.CallError) as error:
        program(np.zeros(8, np.uint8))

    assert diagnostic(error.value) == Diagnostic(
        "argument-mismatch", where="argument 0 (A) of program", parameter=f"{name}[8]",
        shape="uint8[8]", scalar=f"ml_dtypes.{name}",
    )
