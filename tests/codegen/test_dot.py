"""`dot`: sums of products of the numbers in 32 bits, through all rooms."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Kernel, emit_assembly
from tecomp.errors import InternalError, TypeMismatchError
from tecomp.ir.dtype import DType
from tecomp.ir.evaluate import evaluate
from tecomp.ir.parser import parse
from tecomp.ir.verify import verify
from tecomp.lowering.vectorize import vectorize_loops
from tests.strategies.arrays import Array

KINDS = [
    ("int8x4", "int8x4"), ("uint8x4", "int8x4"), ("int8x4", "uint8x4"), ("uint8x4", "uint8x4"),
    ("int16x2", "int16x2"), ("bfloat16x2", "bfloat16x2"),
]


def numbers(name: str, shape: tuple[int, ...], seed: int) -> Array:
    dtype, random = DType(name), np.random.default_rng(seed)
    whole = random.integers(-128, 256, (*shape, dtype.lanes))
    if not dtype.is_float:
        bounds = np.iinfo(dtype.numpy)
        whole = random.integers(bounds.min, bounds.max, whole.shape, endpoint=True)
        whole.flat[:4] = bounds.min
        whole.flat[4:8] = bounds.max
    return whole.astype(dtype.numpy)


def exact(a: Array, b: Array) -> Array:
    """Sums over all of the last axis, in int32 if these are integers."""
    if a.dtype.kind in "iu":
        whole: Array = (a.astype(np.int64) * b.astype(np.int64)).sum(-1)
        return whole.astype(np.int32)
    real: Array = (a.astype(np.float64) * b.astype(np.float64)).sum(-1)
    return real.astype(np.float32)


@pytest.mark.parametrize("lanes", [1, 3, 8, 16])
@pytest.mark.parametrize(("first", "second"), KINDS)
def test_dot_of_vectors(first: str, second: str, lanes: int) -> None:
    place = f"ramp({lanes} * i, 1, {lanes})" if lanes > 1 else "i"
    result = "float32" if "bfloat" in first else "int32"
    func = parse(f'''def f(A: Buffer("{first}", (48,)), B: Buffer("{second}", (48,)), O: Buffer("{result}", (48,))):
    for i in range({48 // lanes}):
        O[{place}] = dot(A[{place}], B[{place}])
''')
    assert parse(str(func)) == func
    a, b = numbers(first, (48,), 0), numbers(second, (48,), 1)
    interpreted, compiled = np.zeros(48, result), np.zeros(48, result)

    evaluate(func, [a, b, interpreted])
    Kernel(func)(a, b, compiled)

    np.testing.assert_array_equal(interpreted, exact(a, b))
    np.testing.assert_array_equal(compiled, exact(a, b))


def matmul(first: str, second: str, m: Any, n: Any, k: int, *, lanes: int) -> tuple[Any, Any]:
    A = te.placeholder((m, k), dtype=first, name="A")
    B = te.placeholder((k, n), dtype=second, name="B")
    over = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(te.dot(A[i, over], B[over, j]), axis=over), name="C")
    s = te.create_schedule(C.op)
    i, j = s[C].op.axis
    outer, inner = s[C].split(j, lanes)
    s[C].reorder(i, outer, over, inner)
    s[C].vectorize(inner)
    return s, [A, B, C]


@pytest.mark.parametrize("is_symbolic", [False, True])
@pytest.mark.parametrize(("first", "second"), KINDS)
def test_matmul_with_dots_is_vectorized(first: str, second: str, is_symbolic: bool) -> None:
    n = te.var("n") if is_symbolic else 21
    s, args = matmul(first, second, 5, n, 6, lanes=8)
    a, b = numbers(first, (5, 6), 2), numbers(second, (6, 21), 3)
    wanted = exact(a[:, None].reshape(5, 1, -1), b.transpose(1, 0, 2).reshape(1, 21, -1))
    c = np.zeros_like(wanted)

    func = tecomp.lower(s, args)
    tecomp.build(s, args)(a, b, c)

    assert "dot(broadcast(A[" in str(func)
    np.testing.assert_array_equal(c, wanted)


@pytest.mark.parametrize(
    ("name", "cpu", "instruction"),
    [
        ("int16x2", "haswell", "vpmaddwd"),
        ("int8x4", "haswell", "vpmaddwd"),
        ("uint8x4", "skylake-avx512", "vpmaddwd"),
        ("int16x2", "znver4", "vpdpwssd"),
        ("int8x4", "znver4", "vpdpwssd"),
        ("bfloat16x2", "haswell", "vfmadd"),
    ],
)
def test_machines_have_instructions_for_it(name: str, cpu: str, instruction: str) -> None:
    result = "float32" if "bfloat" in name else "int32"
    func = parse(f'''def f(A: Buffer("{name}", (64,)), B: Buffer("{name}", (64,)), O: Buffer("{result}", (64,))):
    for i in range(8):
        O[ramp(8 * i, 1, 8)] = O[ramp(8 * i, 1, 8)] + dot(A[ramp(8 * i, 1, 8)], B[ramp(8 * i, 1, 8)])
''')

    text = emit_assembly(func, triple="x86_64-unknown-linux-gnu", cpu=cpu)

    assert re.search(rf"{instruction}.*%ymm", text)
    assert not re.search("vpmulld|vpmullw|vphaddd|vpextr|vaddps", text)


def test_elements_of_other_types_are_refused() -> None:
    A = te.placeholder((4,), dtype="int8x4", name="A")
    B = te.placeholder((4,), dtype="int16x2", name="B")

    with pytest.raises(TypeMismatchError) as error:
        te.compute((4,), lambda i: te.dot(A[i], B[i]))

    assert error.value.message == (
        "te.dot takes two elements of 32 bits such as int8x4, int16x2 or bfloat16x2, not int8x4 "
        "and int16x2; give the placeholders such a type, the last axis of their arrays then holds "
        "the numbers of a vector"
    )


def test_the_verifier_knows_what_dot_takes() -> None:
    func = parse('''def f(A: Buffer("int8x4", (4,)), O: Buffer("int16", (4,))):
    O[0] = dot(A[0], A[0], dtype="int16")
''')

    with pytest.raises(InternalError) as error:
        verify(func)

    assert error.value.message == (
        'f: the call of dot has the type int16: `dot(A[0], A[0], dtype="int16")`'
    )


def test_rows_across_the_vector_stay_right() -> None:
    """A vector in an axis that is not the last has no vector form, in a `dot` either."""
    func = parse('''def f(A: Buffer("int16x2", (8, 4), axis_separators=(0,)), O: Buffer("int32", (8,))):
    for i in vectorized(8):
        O[i] = dot(A[i, 1], A[i, 2])
''')
    a = numbers("int16x2", (8, 4), 4)
    result = np.zeros(8, np.int32)

    Kernel(vectorize_loops(func))(a, result)

    np.testing.assert_array_equal(result, exact(a[:, 1], a[:, 2]))
