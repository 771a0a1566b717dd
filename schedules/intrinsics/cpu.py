"""CPU dot-product intrinsics for `tensorize` (VNNI, BF16).

The instructions (`vpdpbusd` of AVX-512 VNNI, `vdpbf16ps` of AVX-512 BF16, `sdot`, `bfdot` and
others of ARM) multiply adjacent elements of two vectors and add the products to 32-bit
accumulators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tecomp
from tecomp import te


def intrinsics(target: tecomp.Target) -> list[te.TensorIntrin]:
    """Return the dot-product intrinsics of full vectors, for `tecomp.intrinsics`.

    The list is empty if the target has no table [core].
    """
    if target.core is None:
        return []
    lanes = target.core.lanes("int32")
    kinds = [("uint8", "int8"), ("int8", "int8")]
    return [*(vnni(lanes, a, b) for a, b in kinds), bf16_dot(lanes)]


def vnni(lanes: int, a_dtype: str = "uint8", b_dtype: str = "int8") -> te.TensorIntrin:
    """Return an intrinsic that adds 4-byte dot products to `lanes` sums: `c[j] += a[k] * b[j, k]`.

    The right operand is stored in groups of four along its depth: `lambda k, j: [k // 4, j, k %
    4]`.

    Args:
        lanes: Number of int32 accumulators; 16 fill a vector of 512 bits.
        a_dtype: uint8 or int8; dtype of the operand that is broadcast to all accumulators.
        b_dtype: uint8 or int8; dtype of the right operand.
    """
    return _dots(f"vnni_{a_dtype}_{b_dtype}", lanes, 4, a_dtype, b_dtype, "int32")


def bf16_dot(lanes: int) -> te.TensorIntrin:
    """Return an intrinsic that adds bfloat16 pairs to `lanes` sums: `c[j] += a[k] * b[j, k]`.

    The right operand is stored in pairs along its depth: `lambda k, j: [k // 2, j, k % 2]`.

    Args:
        lanes: Number of float32 accumulators; 16 fill a vector of 512 bits.
    """
    return _dots("bf16_dot", lanes, 2, "bfloat16", "bfloat16", "float32")


def _dots(
    name: str, lanes: int, group: int, a_dtype: str, b_dtype: str, sums: str
) -> te.TensorIntrin:
    a = te.placeholder((group,), a_dtype, name="a")
    b = te.placeholder((lanes, group), b_dtype, name="b")
    k = te.reduce_axis((0, group), name="k")
    c = te.compute(
        (lanes,), lambda j: te.sum(a[k].astype(sums) * b[j, k].astype(sums), axis=k), name="c"
    )

    def statements(
        ins: Sequence[te.Operand], outs: Sequence[te.Operand]
    ) -> tuple[te.Stmt, te.Stmt, te.Stmt]:
        (a, b), (c,) = ins, outs

        def each(value: Callable[[te.Expr], te.Expr | int]) -> te.Stmt:
            return te.for_range(0, lanes, lambda j: c.store(j, value(j)), "j", "vectorized")

        def products(j: te.Expr) -> te.Expr:
            return te.dot(a.vload(0, f"{a_dtype}x{group}"), b.vload((j, 0), f"{b_dtype}x{group}"))

        return each(products), each(lambda j: 0), each(lambda j: c[j] + products(j))

    return te.decl_tensor_intrin(c.op, statements, name, check="later")
