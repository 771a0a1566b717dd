"""Bit-level math functions agree with NumPy for each dtype, in vectors and scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import TypeMismatchError
from tecomp.ir import DType, integer_range
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.dtypes import FLOATS, INTEGERS

COUNT = 512
ODD = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 6e-8)


def numpy_type(dtype: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def patterns(dtype: str, seed: int) -> Any:
    """Return numbers of every exponent and sign, with special values in adjacent lanes."""
    rng, kind = np.random.default_rng(seed), numpy_type(dtype)
    every = rng.integers(0, 2 ** DType(dtype).bits, COUNT, dtype=np.uint64, endpoint=False)
    values = every.astype(f"u{kind.itemsize}").view(kind)
    odd = np.array(ODD).astype(kind)
    with np.errstate(invalid="ignore"):
        values[np.isnan(values)] = np.nan
    values[:64] = np.repeat(odd, 8) if seed % 2 else np.tile(odd, 8)
    return values


def check(
    agrees: Any, function: Callable[..., te.Expr], operands: list[Any], expected: Any, lanes: int
) -> None:
    names = [te.placeholder((COUNT,), str(x.dtype), name=f"P{k}") for k, x in enumerate(operands)]
    C = te.compute((COUNT,), lambda i: function(*(p[i] for p in names)), name="C")
    s = te.create_schedule(C.op)
    if lanes > 1:
        s[C].vectorize(s[C].split(C.op.axis[0], factor=lanes)[1])
    agrees(s, [*names, C], {**dict(zip(names, operands, strict=True)), C: expected})


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("lanes", [1, 7, 8])
@pytest.mark.parametrize("dtype", FLOATS)
def test_signs_and_neighbours(agrees: Any, dtype: str, lanes: int) -> None:
    x, y = patterns(dtype, 1), patterns(dtype, 2)

    # ml_dtypes gives NaN for a negative zero that the dtype does not have.
    signed = np.copysign(x.astype("float64"), y.astype("float64")).astype(x.dtype)
    check(agrees, te.copysign, [x, y], signed, lanes)
    with np.errstate(all="ignore"):
        check(agrees, te.nextafter, [x, y], np.nextafter(x, y), lanes)


def test_signs_of_zeros_and_of_nan(agrees: Any) -> None:
    x, y = (np.array(np.meshgrid(ODD, ODD), "float32").reshape(2, -1)[k] for k in (0, 1))
    X, Y = te.placeholder((64,), name="X"), te.placeholder((64,), name="Y")
    C = te.compute((64,), lambda i: te.reinterpret("int32", te.copysign(X[i], Y[i])), name="C")

    agrees(te.create_schedule(C.op), [X, Y, C], {X: x, Y: y, C: np.copysign(x, y).view("int32")})


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("lanes", [1, 7, 8])
@pytest.mark.parametrize("of", [*((x, "int32") for x in FLOATS), *(("float32", x) for x in INTEGERS)])
def test_powers_of_two(agrees: Any, of: tuple[str, str], lanes: int) -> None:
    """Subnormal results are rounded once, and any exponent of the integer dtype is valid."""
    dtype, integer = of
    rng, (lowest, highest) = np.random.default_rng(7), integer_range(DType(integer))
    x = patterns(dtype, 1)
    x[64:256] = rng.standard_normal(192).astype(x.dtype)
    n = rng.integers(max(lowest, -2200), min(highest, 2200), COUNT).astype(integer)
    n[64:160] = rng.integers(max(lowest, -160), min(highest, 160), 96).astype(integer)
    n[:2] = np.array([highest, lowest], integer)
    clipped = np.clip(n.astype(object), -6000, 6000).astype("int32")
    widened = x.astype("float64") if x.dtype.itemsize < 4 else x
    with np.errstate(all="ignore"):
        expected = np.ldexp(widened, clipped).astype(x.dtype)

    check(agrees, te.ldexp, [x, n], expected, lanes)


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("lanes", [1, 7, 8])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_zeros_in_front(agrees: Any, dtype: str, lanes: int) -> None:
    rng, kind = np.random.default_rng(8), DType(dtype)
    every = rng.integers(0, 2**64, COUNT, dtype=np.uint64, endpoint=False)
    unsigned = every >> rng.integers(0, 64, COUNT, dtype=np.uint64)
    unsigned &= np.uint64(2**kind.bits - 1)
    unsigned[:3] = 0, 2 ** (kind.bits - 1), 2**kind.bits - 1
    x = unsigned.astype("int64").astype(kind.numpy) if kind.bits < 8 else unsigned.astype(dtype)
    expected = [kind.bits - int(n).bit_length() for n in unsigned]

    check(agrees, te.clz, [x], np.array(expected, "int32"), lanes)


@pytest.mark.parametrize(("dtype", "most"), [("float16", 4), ("float32", 10), ("float64", 22)])
def test_powers_of_ten(dtype: str, most: int) -> None:
    """Representable powers of ten are exact; other exponents give the result of te.power."""
    X = te.placeholder((most + 5,), dtype, name="X")
    C = te.compute((most + 5,), lambda i: te.exp10(X[i]), name="C")
    x = np.array([*range(most + 1), np.inf, -np.inf, np.nan, 0.5], dtype)
    out = np.empty_like(x)

    tecomp.build(te.create_schedule(C.op), [X, C])(x, out)

    np.testing.assert_array_equal(out[: most + 1], np.array([10**k for k in range(most + 1)], dtype))
    np.testing.assert_array_equal(out[most + 1 : -1], np.array([np.inf, 0, np.nan], dtype))
    assert_close(out[-1], 10**0.5, rtol=1e-3 if dtype == "float16" else 1e-6)


A = te.placeholder((), "int32", name="A")
F, H, B = (te.placeholder((), dtype, name="F") for dtype in ("float64", "float16", "bfloat16"))


def test_types() -> None:
    assert te.clz(te.const(3, "uint8")).dtype == te.clz(A).dtype == "int32"
    assert (te.ldexp(H, 3).dtype, te.copysign(H, F).dtype) == ("float16", "float64")
    assert (te.nextafter(B, B).dtype, te.exp10(F).dtype) == ("bfloat16", "float64")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: te.exp10(A), Diagnostic("dtype", caller="exp10", dtype="int32")),
        (lambda: te.copysign(A, 3), Diagnostic("dtype", caller="copysign", dtype="int32")),
        (lambda: te.nextafter(H, B), Diagnostic(
            "dtype", subject="te.nextafter", dtype="float16", y_dtype="bfloat16",
        )),
        (lambda: te.ldexp(A, 3), Diagnostic("dtype", caller="ldexp", dtype="int32")),
        (lambda: te.ldexp(F, 3.0), Diagnostic("dtype", dtype="float32")),
        (lambda: te.clz(F), Diagnostic("dtype", dtype="float64")),
    ],
)
def test_invalid_arguments_are_rejected(call: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(TypeMismatchError) as error:
        call()
    assert diagnostic(error.value) == expected
