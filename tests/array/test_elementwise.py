"""Element-wise functions agree with NumPy for each supported dtype."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayTypeError, ArrayValueError, DeviceMismatchError
from tecomp.operations import elementwise_in
from tecomp.ptensor import FUNCTIONS
from tests.messages import Diagnostic, diagnostic
from tests.strategies.dtypes import NUMPY_SCALARS, standard
from tests.strategies.elements import Data, distances, elements
from tests.strategies.functions import reference, terms

DTYPES = NUMPY_SCALARS
ROWS = elementwise_in("array")


def oracle(kind: str, *data: Data) -> Data:
    with np.errstate(all="ignore"):
        if kind == "floor_divide" and data[0].dtype.kind == "f":
            return floor_divide(*data)
        if kind == "round":
            return np.asarray(np.round(*data))  # `rint`, which the row names, gives floats
        return reference(ROWS[kind], *data)


def floor_divide(x: Data, y: Data) -> Data:
    """Compute NumPy's result, except for infinite operands, where the standard differs."""
    return np.where(np.isfinite(x) & np.isfinite(y), np.floor_divide(x, y), x / y)


def operands(kind: str, dtype: str) -> list[Data]:
    data = [elements(dtype, seed=k) for k in range(FUNCTIONS[kind].arity)]
    if kind == "pow" and dtype.startswith("int"):
        # NumPy has no negative powers of integers.
        data[1] = np.where(data[1] < 0, ~data[1], data[1])
    return data


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("kind", sorted(FUNCTIONS))
def test_elements_match_numpy(kind: str) -> None:
    op = FUNCTIONS[kind]
    for dtype in DTYPES:
        if dtype not in op.functions[kind]:
            continue
        data = operands(kind, dtype)
        result = np.asarray(getattr(xp, kind)(*map(xp.asarray, data)))
        wanted = oracle(kind, *data)
        assert result.dtype == wanted.dtype, dtype
        if result.dtype.kind != "f":
            np.testing.assert_array_equal(result, wanted, err_msg=dtype)
            continue
        apart = distances(
            result, wanted, terms(ROWS[kind].call or kind, list(data)))
        worst = int(np.argmax(apart))
        assert apart[worst] <= max(2.0, *ROWS[kind].ulps), (dtype, [x[worst] for x in data])
        # It is unspecified which of two zeros is the maximum.
        zeros = (wanted == 0) & (kind not in ("maximum", "minimum"))
        np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(wanted[zeros]), dtype)


OF_BOOLEANS = {("bool", kind) for kind in (
    "add", "bitwise_left_shift", "bitwise_right_shift", "divide", "floor_divide", "greater",
    "greater_equal", "less", "less_equal", "maximum", "minimum", "multiply", "pow", "remainder",
)}
"""Functions of numbers that take two booleans as numbers, as in NumPy."""


@pytest.mark.exhaustive(keep=18)
@pytest.mark.parametrize("kind", sorted(FUNCTIONS))
def test_unsupported_dtypes_are_refused_with_supported_ones(kind: str) -> None:
    op = FUNCTIONS[kind]
    taken = op.functions[kind]
    for dtype in (*DTYPES, "complex64", "complex128"):
        if dtype in taken:
            continue
        data = [xp.asarray(np.ones(2, dtype))] * op.arity
        if kind.startswith("logical_") or (dtype, kind) in OF_BOOLEANS:
            of_numpy = getattr(np, ROWS[kind].numpy_name or kind)
            wanted = of_numpy(*[np.ones(2, "bool")] * op.arity)
            np.testing.assert_array_equal(np.asarray(getattr(xp, kind)(*data)), wanted)
            continue
        with pytest.raises(ArrayTypeError) as caught:
            getattr(xp, kind)(*data)
        assert diagnostic(caught.value) == (
            Diagnostic(
                "array-type", where=kind, dtype=' and '.join([dtype] * op.arity),
                supported=', '.join(taken),
            )
        )


@pytest.mark.parametrize("kind", sorted(FUNCTIONS))
def test_signatures_match_the_standard(kind: str) -> None:
    parameters = inspect.signature(getattr(xp, kind)).parameters.values()
    names = ["x"] if FUNCTIONS[kind].arity == 1 else ["x1", "x2"]
    assert [p.name for p in parameters] == names
    assert all(p.kind is p.POSITIONAL_ONLY for p in parameters)


@pytest.mark.exhaustive(keep=35)
@pytest.mark.parametrize("kind", [kind for kind in sorted(FUNCTIONS) if hasattr(strict, kind)])
def test_types_of_results_match_the_standard(kind: str) -> None:
    """Result dtypes are known without evaluation."""
    names = [dtype for dtype in (*DTYPES, "complex64", "complex128") if dtype != "float16"]
    for dtypes in itertools.product(names, repeat=FUNCTIONS[kind].arity):
        try:
            with np.errstate(all="ignore"):
                wanted = getattr(strict, kind)(*[
                    strict.ones((2,), dtype=getattr(strict, dtype)) for dtype in dtypes
                ])
        except TypeError:
            continue
        result = getattr(xp, kind)(*[xp.ones((2,), dtype=np.dtype(dtype)) for dtype in dtypes])
        assert result.dtype.name == str(wanted.dtype).rpartition(".")[2], dtypes


def test_negative_powers_of_integers_are_rounded_towards_zero() -> None:
    x = np.repeat(np.arange(-3, 4, dtype="int32"), 4)
    y = np.tile(np.array([-1, -2, -5, -(2**31)], "int32"), 7)
    wanted = np.where(abs(x) == 1, np.where(y % 2 == 0, 1, x), 0)
    np.testing.assert_array_equal(np.asarray(xp.pow(xp.asarray(x), xp.asarray(y))), wanted)


def test_divisors_that_are_known_to_be_0() -> None:
    x = xp.asarray([7, -7, 0])
    for kind in ("floor_divide", "remainder"):
        np.testing.assert_array_equal(np.asarray(getattr(xp, kind)(x, xp.imag(x))), [0, 0, 0])


@pytest.mark.parametrize("shapes", [((), ()), ((0,), (1,)), ((3, 1), (4,)), ((2, 0, 3), (1, 1))])
def test_shapes_broadcast(shapes: Any) -> None:
    x, y = (np.ones(shape, "float32") for shape in shapes)
    result = xp.add(xp.asarray(x), xp.asarray(y))
    np.testing.assert_array_equal(np.asarray(result), x + y)
    assert result.shape == (x + y).shape


@pytest.mark.parametrize("kind", sorted(kind for kind, op in FUNCTIONS.items() if op.arity == 2))
def test_arrays_on_different_devices_are_refused(kind: str) -> None:
    both = xp.__array_namespace_info__().dtypes(device="stick128")
    dtype = [np.dtype(name) for name in FUNCTIONS[kind].functions[kind] if name in both][-1]
    x, y = xp.ones((2,), dtype=dtype), xp.ones((2,), dtype=dtype, device="stick128")
    for first, second in ((x, y), (y, x)):
        with pytest.raises(DeviceMismatchError) as caught:
            getattr(xp, kind)(first, second)
        assert diagnostic(caught.value) == (
            Diagnostic(
                "device-mismatch", where=kind, k=1, device=first.device,
                first=f"ptensor<2x{dtype}, device='{first.device}'>",
                other=f"ptensor<2x{dtype}, device='{second.device}'>",
            )
        )


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(ArrayValueError) as caught:
        xp.add(xp.asarray(np.ones((2, 3))), xp.asarray(np.ones((2, 4))))
    assert diagnostic(caught.value) == (
        Diagnostic(
            "array-shapes", where="add", texts="(2, 3) and (2, 4)", axis=-1, extents="3 and 4",
        )
    )


@pytest.mark.exhaustive(keep=12)
@pytest.mark.parametrize(("dtype", "number"), [
    ("float32", 2), ("float32", 2.5), ("float32", True), ("int8", 3), ("complex64", 2.5),
    ("float64", 1e300), ("float32", 1e300), ("float16", -70000), ("bool", True), ("float32", 0.1),
    ("float32", float("nan")), ("float32", float("-inf")), ("float32", 2 - 1j), ("int16", 2.5),
])
def test_scalars_are_allowed_as_either_operand(dtype: str, number: complex) -> None:
    x = np.arange(3).astype(dtype)
    with np.errstate(over="ignore"):
        wanted = x == number, number != x
    results = xp.equal(xp.asarray(x), number), xp.not_equal(number, xp.asarray(x))
    for result, data in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(result), data)


def test_operands_must_be_arrays_or_numbers() -> None:
    x = xp.asarray(np.ones(2))
    cases: list[tuple[Any, Diagnostic]] = [
        ((x, "2"), Diagnostic("not-an-array", where="add", subject="x2", class_="str")),
        ((None, x), Diagnostic("not-an-array", where="add", subject="x1", class_="NoneType")),
        ((1, 2), Diagnostic("not-an-array", where="add", subject="x2", type="int")),
    ]
    for given, expected in cases:
        with pytest.raises(ArrayTypeError) as caught:
            xp.add(*given)
        assert diagnostic(caught.value) == expected
    with pytest.raises(ArrayTypeError) as caught:
        xp.exp([1.0])  # type: ignore[arg-type]
    assert diagnostic(caught.value) == (
        Diagnostic("not-an-array", where="exp", subject="x", type="list")
    )


def test_out_of_range_numbers_are_refused() -> None:
    with pytest.raises(ArrayTypeError) as caught:
        xp.add(xp.asarray(np.ones(2, "int8")), 200)
    assert diagnostic(caught.value) == (
        Diagnostic("array-type", where="add", value=200, dtype="int8", minimum=-128, maximum=127)
    )
    with pytest.raises(ArrayTypeError) as caught:
        xp.add(xp.asarray(np.ones(2)), 2**1024)
    assert diagnostic(caught.value) == (
        Diagnostic("array-type", where="add", bits=1025, dtype="float64")
    )


@pytest.mark.exhaustive(keep=12)
@pytest.mark.parametrize("one", standard("integral"))
@pytest.mark.parametrize("other", [*standard("integral"), "float32", "complex128"])
def test_quotients_of_integers_are_numpys(one: str, other: str) -> None:
    x, y = np.asarray([5, 0, 7], one), np.asarray([2, 0, 0], other)
    with np.errstate(all="ignore"):
        wanted, by_two = x / y, x / 2
    found = xp.divide(xp.asarray(x), xp.asarray(y))

    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(np.asarray(found), wanted)
    np.testing.assert_array_equal(np.asarray(xp.asarray(x) / 2), by_two)
