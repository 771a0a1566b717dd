"""Tensor intrinsics for tests of tensorization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tecomp import te


def tile_product(
    m: int,
    n: int,
    depth: int,
    *,
    dtype: str = "float32",
    transposed: bool = False,
    name: str = "multiply",
    **requested: Any,
) -> te.TensorIntrin:
    """Declare an intrinsic for a tile of a matrix product, with body, reset and update.

    Args:
        m: Rows of the tile.
        n: Columns of the tile.
        depth: Extent of the reduction.
        dtype: dtype of operands and result. Default: "float32".
        transposed: If True, the second operand has shape (n, depth) instead of (depth, n).
        name: Name of the intrinsic.
        requested: Further arguments of `te.decl_tensor_intrin`.
    """
    a = te.placeholder((m, depth), dtype, name="a")
    b = te.placeholder((n, depth) if transposed else (depth, n), dtype, name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, k] * (b[j, k] if transposed else b[k, j]), axis=k), name="c",
    )

    def statements(ins: Sequence[te.Operand], outs: Sequence[te.Operand]) -> tuple[Any, Any, Any]:
        (x, y), (z,) = ins, outs

        def each(value: Callable[[Any, Any], Any]) -> Any:
            return te.for_range(0, m, lambda i: te.for_range(
                0, n, lambda j: z.store((i, j), value(i, j)), "j", "vectorized"), "i")

        def step(i: Any, j: Any, d: Any) -> Any:
            return z[i, j] + x[i, d] * (y[j, d] if transposed else y[d, j])

        reset = each(lambda i, j: 0)
        update = te.for_range(0, depth, lambda d: each(lambda i, j: step(i, j, d)), "d")
        return te.stmt_seq(reset, update), reset, update

    return te.decl_tensor_intrin(c.op, statements, name=name, **requested)
