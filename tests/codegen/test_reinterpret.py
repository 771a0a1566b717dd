"""`reinterpret`: the bits of a value as another dtype, from the definition to machine code."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Kernel
from tecomp.errors import InternalError, TypeMismatchError
from tecomp.ir import DType, evaluate, parse, verify
from tests.messages import Diagnostic, diagnostic


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(
    ("source", "result"),
    [("float32", "int32"), ("int32", "float32"), ("float64", "uint64"), ("int16", "bfloat16")],
)
def test_bits_stay(source: str, result: str, lanes: int) -> None:
    at, wide = ("ramp(8 * i, 1, 8)", "x8") if lanes > 1 else ("i", "")
    func = parse(f'''def f(A: Buffer("{source}", (16,)), O: Buffer("{result}", (16,))):
    for i in range({16 // lanes}):
        O[{at}] = call("reinterpret", A[{at}], dtype="{result}{wide}")
''')
    verify(func)
    assert parse(str(func)) == func
    a = np.linspace(-9, 9, 16).astype(DType(source).numpy)
    interpreted, compiled = (np.zeros(16, DType(result).numpy) for _ in range(2))

    evaluate(func, [a, interpreted])
    Kernel(func)(a, compiled)

    assert interpreted.tobytes() == compiled.tobytes() == a.tobytes()


@pytest.mark.parametrize("group", ["int16x2", "int8x4"])
def test_groups_in_words(group: str) -> None:
    """32-bit words hold the operands of a dot product, and the loop is still vectorized."""
    A = te.placeholder((5, 6), "int32", "A")
    B = te.placeholder((6, 21), "int32", "B")
    k = te.reduce_axis((0, 6), name="k")
    C = te.compute((5, 21), lambda i, j: te.sum(
        te.dot(te.reinterpret(group, A[i, k]), te.reinterpret(group, B[k, j])), axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = s[C].op.axis
    outer, inner = s[C].split(j, 8)
    s[C].reorder(i, outer, k, inner)
    s[C].vectorize(inner)
    random, kind = np.random.default_rng(0), DType(group)
    a, b = (random.integers(-2**31, 2**31, shape).astype(np.int32) for shape in ((5, 6), (6, 21)))
    c = np.zeros((5, 21), np.int32)

    func = tecomp.lower(s, [A, B, C])
    tecomp.build(s, [A, B, C])(a, b, c)

    assert 'call("reinterpret", broadcast(A[' in str(func)
    x, y = (t.view(kind.numpy).reshape(*t.shape, -1).astype(np.int64) for t in (a, b))
    np.testing.assert_array_equal(c, np.einsum("ikg,kjg->ij", x, y).astype(np.int32))


def test_types_of_other_sizes_are_refused() -> None:
    A = te.placeholder((4,), "int32", "A")

    with pytest.raises(TypeMismatchError) as error:
        te.compute((4,), lambda i: te.reinterpret("int16", A[i]))

    assert diagnostic(error.value) == (
        Diagnostic("dtype", dtype="int32", target="int16")
    )


def test_the_verifier_counts_bits() -> None:
    func = parse('''def f(A: Buffer("int32", (4,)), O: Buffer("int16", (4,))):
    O[0] = call("reinterpret", A[0], dtype="int16")
''')

    with pytest.raises(InternalError) as error:
        verify(func)

    assert diagnostic(error.value) == (
        Diagnostic(
            "internal", function="f", node='call("reinterpret", A[0], dtype="int16")',
            problem="int32 cannot be reinterpreted as int16",
        )
    )
