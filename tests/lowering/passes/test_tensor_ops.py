"""`expand_tensor_ops` replaces target operations by their statements."""

from __future__ import annotations

from collections.abc import Callable

from tecomp.ir import PrimFunc
from tecomp.lowering import expand_tensor_ops

Check = Callable[..., PrimFunc]


def test_the_body_takes_the_place_of_the_operation(check: Check) -> None:
    check(expand_tensor_ops, """
def f(A: Buffer("float32", (8,)), B: Buffer("float32", (8,))):
    for i in range(2):
        with TensorOp("double", tile=(4,), unit="lanes", mode="fast"):
            with Operands():
                for a0 in range(4):
                    reads(A[i * 4 + a0])
                for b0 in range(4):
                    writes(B[i * 4 + b0])
            for j in range(4):
                B[i * 4 + j] = A[i * 4 + j] + A[i * 4 + j]
""", """
def f(A: Buffer("float32", (8,)), B: Buffer("float32", (8,))):
    for i in range(2):
        for j in range(4):
            B[i * 4 + j] = A[i * 4 + j] + A[i * 4 + j]
""")
