"""Constants that are out of range for their dtype are rejected by every function."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest

import tecomp
from tecomp import Layout, StickLayout, te
from tecomp.errors import TecompError
from tecomp.ir import SCALARS, DType, holds
from tests.messages import Diagnostic, diagnostic

NUMBERS: tuple[Any, ...] = (
    0, 1, 2, -1, 0.5, 1.0, -0.0, 127, 128, -128, -129, 255, 256, 300, 32767, 32768, 65504, 65519,
    65520, 2**31 - 1, 2**31, -(2**31), 2**32, 2**63 - 1, 2**63, 2**64 - 1, 3.4e38, 3.5e38,
    1e39, 1e300, -1e39, math.inf, -math.inf, math.nan, True, np.int8(-1), np.float64(0.25),
)
Place: TypeAlias = Callable[[str, Any], object]


def kept(value: Any, dtype: str) -> bool:
    """Return whether NumPy's conversion preserves a number, up to floating-point rounding."""
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    if DType(dtype).is_float:
        with np.errstate(over="ignore"):
            result = float(np.array(float(value)).astype(kind))
        if dtype == "float4_e2m1fn":  # it saturates, and 8 would be the number after 6
            return bool(abs(value) < 7)
        return math.isnan(result) if math.isnan(value) else result == value or math.isfinite(result)
    if isinstance(value, float) and not math.isfinite(value):
        return False
    iinfo: Any = ml_dtypes.iinfo
    low, high = (0, 1) if dtype == "bool" else (iinfo(kind).min, iinfo(kind).max)
    return value == int(value) and int(low) <= int(value) <= int(high)


def pad_value(dtype: str, value: Any) -> object:
    A = te.placeholder((6,), dtype, name="A")
    B = te.compute((6,), lambda i: A[i], name="B")
    s = te.create_schedule(B.op)
    return s[B].transform_layout(lambda i: [i // 4, i % 4], pad_value=value)


def pad_function(dtype: str, value: Any) -> object:
    A = te.placeholder((6,), dtype, name="A")
    B = te.compute((6,), lambda i: A[i], name="B")
    s = te.create_schedule(B.op)
    return s[B].transform_layout(lambda i: [i // 4, i % 4], pad_value=lambda p, q: value)


def initial(dtype: str, value: Any) -> object:
    A, k = te.placeholder((6,), dtype, name="A"), te.reduce_axis((0, 6), name="k")
    return te.compute((1,), lambda i: te.max(A[k], axis=k, init=value))


def identity(dtype: str, value: Any) -> object:
    A, k = te.placeholder((6,), dtype, name="A"), te.reduce_axis((0, 6), name="k")
    least = te.comm_reducer(te.min, lambda t: value, name="least")
    return te.compute((1,), lambda i: least(A[k], axis=k))


def stored(dtype: str, value: Any) -> object:
    return te.extern((4,), [], lambda ins, outs: outs[0].store(0, value), dtype=dtype)


PLACES: dict[str, Place] = {
    "te.const": lambda dtype, value: te.const(value, dtype),
    "pad_value of a schedule": pad_value,
    "a function for pad_value": pad_function,
    "pad_value of a layout": lambda dtype, value: Layout.of(
        (6,), dtype, lambda i: [i // 4, i % 4], pad_value=value),
    "init of a reduction": initial,
    "identity of a reducer": identity,
    "a store of te.extern": stored,
    "a bound of te.clip": lambda dtype, value: te.clip(te.var("x", dtype), value, value),
}


@pytest.mark.parametrize("dtype", SCALARS)
def test_the_rule_matches_numpy(dtype: str) -> None:
    found = {repr(value): holds(DType(dtype), value) for value in NUMBERS}

    assert found == {repr(value): kept(value, dtype) for value in NUMBERS}


@pytest.mark.exhaustive(keep=26)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", SCALARS)
def test_out_of_range_constants_are_refused(place: str, dtype: str) -> None:
    if place == "a bound of te.clip" and dtype == "bool":
        return
    for value in NUMBERS:
        if kept(value, dtype):
            PLACES[place](dtype, value)
            continue
        with pytest.raises(TecompError) as error:
            PLACES[place](dtype, value)
        assert error.value.location is not None
        assert error.value.location.file == __file__


def refusal(call: Callable[[], object]) -> Diagnostic:
    with pytest.raises(TecompError) as error:
        call()
    return diagnostic(error.value)


def test_refusals() -> None:
    assert refusal(lambda: pad_value("int8", 300)) == (
        Diagnostic("pad-value", where="s[B].transform_layout", expr=300, name="B", dtype="int8")
    )
    assert refusal(lambda: Layout.of((6,), "int32", lambda i: [i], pad_value=math.nan)) == (
        Diagnostic("pad-value", value="nan", dtype="int32")
    )
    assert refusal(lambda: StickLayout((6,), "float16", pad_value=1e9)) == (
        Diagnostic("pad-value", value=1000000000.0, dtype="float16")
    )
    wrong: Any = "zero"
    assert refusal(lambda: Layout.of((6,), "int32", lambda i: [i], pad_value=wrong)) == (
        Diagnostic("pad-value", value="zero")
    )
    assert refusal(lambda: te.const(2, "bool")) == (
        Diagnostic("literal", value=2, dtype="bool"))
    literal = (
        Diagnostic("literal", where="te.compute C", node=1e+39, dtype="float32")
    )
    k = te.reduce_axis((0, 3), name="k")
    bodies: tuple[Callable[..., Any], ...] = (
        lambda i: 1e39, lambda i: te.exp(1e39), lambda i: te.max(1e39, 1.0),
        lambda i: te.if_then_else(i > 1, 1e39, 1.0), lambda i: te.sum(te.power(1e39, 2.0), axis=k),
    )
    for body in bodies:
        assert refusal(partial(te.compute, (4,), body, "C")) == literal


def test_functions_of_other_types_for_padding() -> None:
    """The pad value of an expression needs an explicit cast."""
    A = te.placeholder((6,), "int8", name="A")
    B = te.compute((6,), lambda i: A[i], name="B")
    s = te.create_schedule(B.op)

    assert refusal(
        lambda: s[B].transform_layout(lambda i: [i // 4, i % 4], pad_value=lambda p, q: q)
    ) == (
        Diagnostic(
            "pad-value", where="s[B].transform_layout", expr="p1", dtype="int64", name="B",
            expected_dtype="int8",
        )
    )
    s[B].transform_layout(
        lambda i: [i // 4, i % 4], pad_value=lambda p, q: (q * -1).astype("int8"))

    kernel = tecomp.build(s, [A, B])
    out = kernel.empty(B)
    kernel(np.ones(6, "int8"), out)

    assert out.tolist() == [[1, 1, 1, 1], [1, 1, -2, -3]]


def test_literals_beyond_float32_are_allowed_with_float64_operands() -> None:
    assert str(te.var("x", "float64") + 1e39) == "x + float64(1e+39)"
