"""Results of C functions in definitions: interpreted, compiled, vectorized and parallel."""

from __future__ import annotations

import ctypes
import ctypes.util
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import DefinitionError, TypeMismatchError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
DECLARED = {
    "cbrtf": (["float32"], "float32"),
    "ldexp": (["float64", "int32"], "float64"),
    "ilogb": (["float64"], "int32"),
    "atan2f": (["float32", "float32"], "float32"),
}
for symbol, (taken, given) in DECLARED.items():
    tecomp.register_func(
        f"test.values.{symbol}", tecomp.CFunction(LIBM, symbol, taken, given), override=True)
tecomp.register_func("test.values.python", lambda x: x, override=True)
tecomp.register_func("test.values.silent", tecomp.CFunction(LIBM, "cosf", ["float32"]), override=True)


def value(dtype: str, symbol: str, *args: Any) -> Any:
    return te.call_pure_extern(dtype, f"test.values.{symbol}", *args)


N = 23
A = te.placeholder((N,), name="A")
a = np.linspace(-3, 40, N, dtype="float32")


@pytest.mark.parametrize("mark", ["", "vectorize", "parallel", "unroll", "split"])
def test_elements(mark: str, agrees: Any) -> None:
    B = te.compute((N,), lambda i: te.if_then_else(
        A[i] > 0.0, value("float32", "cbrtf", A[i]) + A[i], 1.0), name="B")
    s = te.create_schedule(B)
    if mark == "split":
        _, inner = s[B].split(B.op.axis[0], 8)
        s[B].vectorize(inner)
    elif mark:
        getattr(s[B], mark)(B.op.axis[0])
    expected = np.where(a > 0, np.cbrt(a) + a, np.float32(1))

    agrees(s, [A, B], {A: a, B: expected.astype("float32")}, 1e-6)


def test_types_of_numbers(agrees: Any) -> None:
    X = te.placeholder((N,), "float64", name="X")
    Y = te.compute((N,), lambda i: value("float64", "ldexp", X[i], 3), name="Y")
    Z = te.compute((N,), lambda i: value("int32", "ilogb", Y[i]) + i, name="Z")
    x = np.linspace(1, 1000, N)
    expected = np.floor(np.log2(8 * x)).astype("int32") + np.arange(N, dtype="int32")

    agrees(te.create_schedule(Z), [X, Z], {X: x, Z: expected})


def test_reductions_and_inlined_stages(agrees: Any) -> None:
    B = te.compute((N,), lambda i: value("float32", "atan2f", A[i], 2.0), name="B")
    k = te.reduce_axis((0, N), name="k")
    C = te.compute((1,), lambda i: te.sum(B[k], axis=k), name="C")
    for inlined in (False, True):
        s = te.create_schedule(C)
        if inlined:
            s[B].compute_inline()
        total = np.arctan2(a, np.float32(2)).sum(keepdims=True)
        kernel = agrees(s, [A, C], {A: a, C: total.astype("float32")}, 1e-5)
        assert kernel.report().calls == ("test.values.atan2f",)
    program = tecomp.compile(C, [A], target="stick128")
    assert_close(program(a), total, rtol=1e-5)


@pytest.mark.parametrize(("name", "expected"), [
    ("expf", np.exp), ("cbrtf", np.cbrt), ("hypotf", np.hypot), ("copysignf", np.copysign),
])
def test_the_math_library_needs_no_names(name: str, expected: Any, agrees: Any) -> None:
    arguments = [A[0]] * expected.nin
    B = te.compute((N,), lambda i: te.call_pure_extern(
        "float32", name, *(A[(i + k) % N] for k in range(len(arguments)))), name="B")
    s = te.create_schedule(B)
    s[B].vectorize(s[B].split(B.op.axis[0], 8)[1])
    values = [np.roll(a, -k) / 8 for k in range(expected.nin)]

    agrees(s, [A, B], {A: a / 8, B: expected(*values)}, 1e-5)


def refused(*args: Any) -> Diagnostic:
    with pytest.raises(DefinitionError) as error:
        te.compute((N,), lambda i: value(*(arg(i) if callable(arg) else arg for arg in args)))
    return diagnostic(error.value)


def test_invalid_arguments_are_rejected() -> None:
    assert refused("float64", "cbrtf", lambda i: A[i]) == (
        Diagnostic(
            "external-function", where="te.call_pure_extern", name="test.values.cbrtf",
            description="gives a float32", result="float64",
        )
    )
    assert refused("float32", "silent", lambda i: A[i]) == (
        Diagnostic(
            "external-function", where="te.call_pure_extern", name="test.values.silent",
            description="does not declare a result type", result="float32",
        )
    )
    assert refused("float32", "cbrtf", lambda i: i) == (
        Diagnostic(
            "external-function", where="te.call_pure_extern", number=0,
            takes="test.values.cbrtf(float32)",
            problem='a int32; convert it with .astype("float32")',
        )
    )
    assert refused("float32", "cbrtf") == (
        Diagnostic(
            "external-function", where="te.call_pure_extern", takes="test.values.cbrtf(float32)",
            given_count=0, plural="s",
        )
    )
    assert refused("float32", "python", lambda i: A[i]) == (
        Diagnostic("external-function", where="te.call_pure_extern", name="test.values.python")
    )
    assert refused("float32", "cbrtx", lambda i: A[i]) == Diagnostic(
        "external-function", where="te.call_pure_extern",
        remedy="no function is registered as 'test.values.cbrtx'; write 'test.values.cbrtf' if that "
               "is meant, or call tecomp.register_func('test.values.cbrtx', f) first",
    )
    with pytest.raises(TypeMismatchError) as error:
        tecomp.CFunction(LIBM, "cosf", ["float32"], "float")
    assert diagnostic(error.value) == (
        Diagnostic(
            "external-function", where="CFunction cosf: result", text="float",
            scalars="int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, bool",
        )
    )


def test_functions_of_ctypes_say_their_result() -> None:
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.cosf.argtypes, library.cosf.restype = [ctypes.c_float], ctypes.c_float

    assert tecomp.CFunction(library.cosf).result == "float32"
    assert tecomp.CFunction(library.cosf)(0.0) == 1.0
