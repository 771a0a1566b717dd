"""`pack_reads` combines reads of adjacent elements into one operand, or rejects the reads."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp.ir import PrimFunc, evaluate, parse, verify
from tecomp.lowering import pack_reads
from tests.messages import Diagnostic, diagnostic


def function(value: str, body: str = "for i in range(4):\n        O[i] = dot({0}, {0})") -> PrimFunc:
    func = parse(
        'def f(A: Buffer("int16", (9,)), B: Buffer("int16", (8,)), O: Buffer("int32", (4,))):\n'
        f"    {body.format(value)}"
    )
    assert isinstance(func, PrimFunc)
    verify(func, flat=True)
    assert parse(str(func)) == func
    return func


def test_side_by_side() -> None:
    func = function("join(A[i * 2], A[i * 2 + 1])")

    packed = pack_reads(func)

    assert str(packed) == (
        'def f(A: Buffer("int16", (9,)), B: Buffer("int16", (8,)), O: Buffer("int32", (4,))):\n'
        '    with DeclBuffer(Buffer("int16x2", (4,), data=A.data)) as A_x2:\n'
        "        for i in range(4):\n"
        "            O[i] = dot(A_x2[i], A_x2[i])"
    )
    verify(packed, flat=True)
    assert pack_reads(packed) is packed
    a = np.arange(9, dtype="int16")
    for item in (func, packed):
        out = np.zeros(4, "int32")
        evaluate(item, [a, a[:8].copy(), out])
        np.testing.assert_array_equal(out, (a[:8].astype("int32") ** 2).reshape(4, 2).sum(1))


def test_memory_of_the_function() -> None:
    func = function("", (
        'with Allocate(Buffer("int16", (2,))) as t:\n'
        "        t[0] = A[0]\n"
        "        t[1] = A[1]\n"
        "        O[0] = dot(join(t[0], t[1]), join(t[0], t[1]))"
    ))

    assert str(pack_reads(func).body) == (
        'with Allocate(Buffer("int16", (2,))) as t:\n'
        '    with DeclBuffer(Buffer("int16x2", (1,), data=t.data)) as t_x2:\n'
        "        t[0] = A[0]\n"
        "        t[1] = A[1]\n"
        "        O[0] = dot(t_x2[0], t_x2[0])"
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            "join(A[i], A[i + 4])",
            "`A[i]` and `A[i + 4]` are read together, but are not contiguous; give A a layout "
            "whose last axis holds these elements",
        ),
        (
            "join(A[i], A[i + 1])",
            "`A[i]` and the next 1 are read together, but the first may not be at a multiple of "
            "2; give A a layout with an innermost `% 2`",
        ),
        (
            "join(A[i * 2], B[i * 2 + 1])",
            "`join(A[i * 2], B[i * 2 + 1])` joins elements of several buffers; join elements of one",
        ),
        (
            "join(A[i * 2], int16(3))",
            "`join(A[i * 2], int16(3))` joins `int16(3)`, which is not a memory load; join "
            "elements of one operand",
        ),
        (
            "join(A[i * 2], A.load(i * 2 + 1, where=i < 3))",
            "`A[i * 2]` and `A.load(i * 2 + 1, where=i < 3)` are read together, but under "
            "different conditions; give the tensor a layout with whole groups and a pad_value",
        ),
    ],
)
def test_refusals(value: str, problem: str) -> None:
    with pytest.raises(tecomp.LowerError) as caught:
        pack_reads(function(value))
    assert diagnostic(caught.value) == Diagnostic("lower", problem=problem)
