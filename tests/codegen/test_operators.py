"""Every operator, comparison, conversion and math function, for every dtype and lane count."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.codegen import Kernel
from tecomp.ir import (
    BOOL,
    INTRINSICS,
    SCALARS,
    Binary,
    BinOp,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    CmpOp,
    Const,
    DType,
    Expr,
    For,
    ForKind,
    Not,
    PrimFunc,
    Ramp,
    Var,
    binary,
    cast,
    compare,
    const,
    holds,
    select,
)
from tecomp.operations import element_type
from tests.strategies.dtypes import FLOATS, INTEGERS
from tests.strategies.functions import REFLECTED

LANES = (1, 3, 4, 7, 8, 16)
FEW_LANES = (1, 7, 8)
LOGIC = (BinOp.AND, BinOp.OR)
BITS = (BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR)
SHIFTS = (BinOp.SHL, BinOp.SHR)
EXTREMES = (BinOp.MIN, BinOp.MAX)

Elementwise = Callable[..., None]


def operators_of(dtype: DType) -> list[BinOp]:
    if dtype.is_bool:
        return [*LOGIC, *BITS, *EXTREMES]
    if dtype.is_float:
        return [op for op in BinOp if op not in (*LOGIC, *BITS, *SHIFTS)]
    return [op for op in BinOp if op not in (*LOGIC, BinOp.DIV)]


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", SCALARS)
def test_operators(elementwise: Elementwise, name: str, lanes: int) -> None:
    def operator(op: BinOp) -> Callable[[Expr, Expr], Expr]:
        return lambda x, y: binary(op, x, y)

    def comparison(op: CmpOp) -> Callable[[Expr, Expr], Expr]:
        return lambda x, y: compare(op, x, y)

    functions = [operator(op) for op in operators_of(DType(name))]
    elementwise(lanes, [name, name], [*functions, *map(comparison, CmpOp)])


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("lanes", FEW_LANES)
@pytest.mark.parametrize("name", INTEGERS)
def test_division_and_shift_by_literals(elementwise: Elementwise, name: str, lanes: int) -> None:
    def by(op: BinOp, value: int) -> Callable[[Expr], Expr]:
        return lambda x: Binary(op, x, const(value, x.dtype))

    values = [0, 1, 2, 3, 4, 7, 64, *((-1, -2, -3) if name.startswith("int") else ())]
    values = [value for value in values if holds(DType(name), value)]
    division = [by(op, value) for op in (BinOp.FLOORDIV, BinOp.MOD) for value in values]
    shifts = [by(op, value) for op in SHIFTS for value in (0, 1, 7, 64) if value in values]
    elementwise(lanes, [name], [*division, *shifts])


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("lanes", FEW_LANES)
@pytest.mark.parametrize("name", SCALARS)
def test_conversions(elementwise: Elementwise, name: str, lanes: int) -> None:
    def to(target: str) -> Callable[[Expr], Expr]:
        return lambda x: cast(target, x)

    elementwise(lanes, [name], [to(target) for target in SCALARS if target != name])


@pytest.mark.exhaustive(keep=26)
@pytest.mark.parametrize("lanes", FEW_LANES)
@pytest.mark.parametrize("name", SCALARS)
def test_select_and_not(elementwise: Elementwise, name: str, lanes: int) -> None:
    elementwise(lanes, ["bool", name, name], [select, lambda c, x, y: select(Not(c), x, y)])


@pytest.mark.exhaustive(keep=1, most=5)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", [x for x in FLOATS if "0" in element_type(x).special_values])
def test_math_of_floats(elementwise: Elementwise, name: str, lanes: int) -> None:
    """Negative arguments of reflected functions are tested against mpmath in test_math.py.

    The terms of a reflection cancel near its zeros, where each side may differ by many ulps.
    """
    def unary(function: str) -> Callable[[Expr, Expr], Expr]:
        if function in REFLECTED:
            return lambda x, y: Call(function, (binary(BinOp.MAX, x, -x),), x.dtype)
        return lambda x, y: Call(function, (x,), x.dtype)

    def dyadic(function: str) -> Callable[[Expr, Expr], Expr]:
        return lambda x, y: Call(function, (x, y), x.dtype)

    kinds = {n: k for n, k in INTRINSICS.items() if k.takes == "float" and k.result_rule == 0}
    functions = [unary(n) if k.arguments == 1 else dyadic(n) for n, k in kinds.items()]
    # The C library and NumPy round differently, each by less than two ulps.
    elementwise(lanes, [name, name], functions, roundings=4)


@pytest.mark.exhaustive(keep=17)
@pytest.mark.parametrize("lanes", FEW_LANES)
@pytest.mark.parametrize("name", FLOATS)
def test_classes_of_floats(elementwise: Elementwise, name: str, lanes: int) -> None:
    def test(function: str) -> Callable[[Expr], Expr]:
        return lambda x: Call(function, (x,), BOOL.with_lanes(x.dtype.lanes))

    elementwise(lanes, [name], [test(n) for n, k in INTRINSICS.items() if k.result_rule == "bool"
                                and k.takes == "float"])


@pytest.mark.exhaustive(keep=19)
@pytest.mark.parametrize("lanes", FEW_LANES)
@pytest.mark.parametrize("name", INTEGERS)
def test_functions_of_integers(elementwise: Elementwise, name: str, lanes: int) -> None:
    def unary(function: str) -> Callable[[Expr], Expr]:
        return lambda x: Call(function, (x,), x.dtype)

    elementwise(lanes, [name], [unary("popcount"), unary("abs")])


def literals(name: str) -> list[Any]:
    dtype = DType(name)
    if dtype.is_bool:
        return [True, False]
    if dtype.is_float:
        numbers = (0.0, -0.0, 0.1, -1.5, 1e30, 65519.0, 65520.0, 1e-42)
        return [*numbers, float("inf"), float("-inf"), float("nan")]
    top = 2 ** (dtype.bits - (dtype.kind == "int")) - 1
    return [0, 1, top, -top - 1 if dtype.kind == "int" else top - 1]


@pytest.mark.exhaustive(keep=9)
@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("name", SCALARS)
def test_literals_are_exact(elementwise: Elementwise, name: str, lanes: int) -> None:
    def literal(value: Any) -> Callable[[Expr], Expr]:
        return lambda x: select(x, Const(value, DType(name)), Const(value, DType(name)))

    elementwise(lanes, ["bool"], [literal(value) for value in literals(name)])


@pytest.mark.parametrize("op", [BinOp.FLOORDIV, BinOp.MOD])
@pytest.mark.parametrize("name", [name for name in INTEGERS if 8 <= DType(name).bits <= 32])
def test_vectors_are_divided_as_python_divides(name: str, op: BinOp) -> None:
    kind, lanes, count = np.dtype(name), 16, 1 << 16
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    random = np.random.default_rng(op is BinOp.MOD)
    near = np.array([least, least + 1, most - 1, most, *range(-3 if least else 0, 4)], np.int64)
    x, y = (
        np.where(random.random(count) < 0.5, random.integers(least, most, count, np.int64),
            random.choice(near, count))
        for _ in range(2)
    )
    # Multiples of the divisor and their neighbours would expose a rounded quotient.
    multiples = x[::3] // np.maximum(y[::3], 1) * y[::3]
    x[::3] = np.clip(multiples - random.integers(0, 2, multiples.shape), least, most)
    a, b, c = (Buffer(item, (count,), DType(name)) for item in "abc")
    i = Var("i")
    place = (Ramp(i * lanes, Const(1), lanes),)
    store = BufferStore(c, binary(op, BufferLoad(a, place), BufferLoad(b, place)), place)
    loop = For(i, Const(0), Const(count // lanes), ForKind.SERIAL, store)
    kernel = Kernel(PrimFunc("divide", (a, b, c), loop))
    found = np.zeros(count, kind)
    kernel(x.astype(kind), y.astype(kind), found)

    divided = np.floor_divide if op is BinOp.FLOORDIV else np.remainder
    expected = np.where(y == 0, 0, divided(x, np.where(y == 0, 1, y))).astype(kind)
    np.testing.assert_array_equal(found, expected)
    assert not {"sdiv", "udiv", "srem", "urem"} & {*kernel.source("llvm").split()}


PROGRAM = """
import numpy as np
from tecomp.codegen import Kernel
from tecomp.ir import parse
for kind in ("int8", "int16", "int32", "int64", "uint8", "uint64"):
    for lanes in (1, 7, 8):
        place = "0" if lanes == 1 else f"ramp(0, 1, {lanes})"
        kernel = Kernel(parse(
            f'def f(A: Buffer("{kind}", ({lanes},)), B: Buffer("{kind}", ({lanes},)), '
            f'D: Buffer("{kind}", ({lanes},)), M: Buffer("{kind}", ({lanes},))):\\n'
            f'    D[{place}] = A[{place}] // B[{place}]\\n'
            f'    M[{place}] = A[{place}] % B[{place}]'
        ))
        least = np.iinfo(kind).min
        for divisor in (0, -1):
            a = np.full(lanes, least, kind)
            b, d, m = np.full_like(a, 0), a.copy(), a.copy()
            b -= a.dtype.type(-divisor)
            kernel(a, b, d, m)
            assert (m == 0).all() and (d == (least if divisor and least else 0)).all()
print("alive")
"""


def test_division_never_ends_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr, done.returncode) == ("alive\n", "", 0)
