"""Matrix products: transposed operands, batches, bias and activation.

The schedule follows the BLAS libraries: both operands are packed in the order in which a register
tile reads them, and a block of packed rows stays in a cache while all columns are streamed past it.
An operand whose values are reused too rarely to pay for a copy is read from its original location.

Source:
    K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Transactions
    on Mathematical Software 34(3), 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from tecomp import ScheduleError, Target, te
from tecomp.schedules.analysis.matmul import Contraction, Product, need_product, of_matrices
from tecomp.schedules.common import wide_type
from tecomp.schedules.scratchpad import contraction
from tecomp.schedules.scratchpad.placement import Placement, placement_of
from tecomp.schedules.tiling.gemm_blocking import GemmBlocking, plan_blocks
from tecomp.schedules.tiling.gemm_loops import product_at_root
from tecomp.schedules.tiling.reduction import apply_epilogue


def define(
    A: te.Tensor,
    B: te.Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: te.Tensor | None = None,
    activation: Callable[[te.Expr], te.Expr] | None = None,
    out_dtype: str | None = None,
    pairs: bool = True,
    name: str = "matmul",
) -> te.Tensor:
    """Define `activation(A @ B + bias)`.

    Args:
        A: Left operand of shape (..., m, k), or (..., k, m) if `transpose_a`.
        B: Right operand of shape (..., k, n), or (..., n, k) if `transpose_b`, with the same
            leading axes as `A`.
        transpose_a: Whether the last two axes of `A` are exchanged.
        transpose_b: Whether the last two axes of `B` are exchanged.
        bias: Tensor of shape (n,) that is added to each row. Default: no bias.
        activation: Function that is applied to each element last. Default: none.
        out_dtype: Dtype of the result and of the accumulator. Default: the dtype of `A`. float16
            and bfloat16 accumulate in float32, and the result is rounded once.
        pairs: Whether dot-product instructions may multiply and accumulate several adjacent terms
            along the depth, if the target has them for the dtypes; they change the summation order
            of floats.
        name: Name of the result.

    Returns:
        A tensor of shape (..., m, n).

    >>> A, B = te.placeholder((4, 8, 16), name="A"), te.placeholder((4, 16, 32), name="B")
    >>> define(A, B).shape
    (4, 8, 32)
    """
    *batch, m, depth = (*A.shape[:-2], A.shape[-1], A.shape[-2]) if transpose_a else A.shape
    n = B.shape[-2] if transpose_b else B.shape[-1]
    dtype = out_dtype or A.dtype
    wide_dtype = wide_type(dtype)
    if A is B:
        # The two operands are packed differently, so they must be distinct tensors.
        B = te.compute(B.shape, lambda *axes: A(*axes), name=f"{B.name}_again")
    A, B = _convert(A, wide_dtype), _convert(B, wide_dtype)
    k = te.reduce_axis((0, depth), name="k")

    def product(*axes: te.Expr) -> te.Expr:
        *outer, i, j = axes
        a = A(*outer, k, i) if transpose_a else A(*outer, i, k)
        b = B(*outer, j, k) if transpose_b else B(*outer, k, j)
        return te.sum(a * b, axis=k)

    shape = (*batch, m, n)
    attrs = {} if pairs else {"pairs": False}
    if bias is None and activation is None and wide_dtype == dtype:
        return te.compute(shape, product, name=name, attrs=attrs)
    total = te.compute(shape, product, name=f"{name}_sum", attrs=attrs)
    result: te.Tensor = apply_epilogue(total, dtype, bias, len(shape) - 1, activation, name)
    return result


def _convert(x: te.Tensor, dtype: str) -> te.Tensor:
    """Convert `x` to the accumulator dtype; each value is converted once, while it is packed."""
    if x.dtype == dtype:
        return x
    return te.compute(
        x.shape, lambda *axes: te.cast(x(*axes), dtype), name=f"{x.name}_{dtype}"
    )


def describe(output: te.Tensor) -> Product:
    """Return the roles of the axes of a matrix product, optionally with an element-wise epilogue.

    The product is recognized from the accesses of the definition alone, regardless of how it was
    built.

    Args:
        output: Result of `define`, or any tensor that is such a product: with its factors in any
            order, their axes in any order, and any number of axes of each role.

    Raises:
        ScheduleError: If `output` is not a matrix product.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 16), name="B")
    >>> describe(define(A, B, transpose_a=False)).depth
    (k,)
    """
    return need_product(output, "matmul.describe")


def plan(op: te.Tensor | Product, target: str | Path | Target, step_terms: int = 1) -> GemmBlocking:
    """Choose the block sizes of a matrix product of any size.

    * A column tile over one block of the depth occupies an eighth of the second-level cache.
    * A block of packed rows occupies three quarters of that cache. If the columns exceed the
      cache, it occupies an eighth of a core's share of the last of three levels, if that is more:
      rows are read sequentially, so they are prefetched in time from there too, and all columns are
      read from the more distant memory once per block.
    * Blocks have nearly equal sizes, and every core gets the same number of them if possible.

    Args:
        op: Matrix product, or its description.
        target: Target whose vector registers and caches decide the sizes.
        step_terms: Number of terms that one step along the depth accumulates. Default: 1.

    Raises:
        ScheduleError: If `op` is not a matrix product.
    """
    target = Target.of(target)
    return plan_blocks(need_product(op, "matmul.plan"), target, step_terms)


def schedule(
    op: te.Tensor | Product, target: str | Path | Target, plan: GemmBlocking | None = None
) -> te.Schedule:
    """Return a schedule for a matrix product with an optional element-wise epilogue.

    Args:
        op: Result of `define`, any other tensor that is such a product, or its description.
        target: Target.
        plan: Block sizes. Default: the result of `plan`. Ignored for targets with scratchpads.

    Raises:
        ScheduleError: If `op` is not a matrix product.
    """
    target = Target.of(target)
    d = need_product(op, "matmul.schedule")
    s: te.Schedule = te.create_schedule(d.output)
    where = placement_of(target)
    if where is not None:
        product_on_cores(s, d, where)
        where.put_arguments(s)
        return s
    for x in d.between:
        s[x].compute_inline()
    product_at_root(s, d, target, plan)
    return s


def product_on_cores(
    s: te.Schedule, d: Product, where: Placement, stored: Collection[te.Tensor] | None = None
) -> contraction.ContractionTiling:
    """Schedule a matrix product and its epilogue on a target with scratchpads.

    Args:
        s: Schedule.
        d: Description of the product.
        where: Placement of tensors in the memories of the target.
        stored: Tensors that are already in memory. Default: the tensors that are not computed.

    Returns:
        The plan of the blocks.

    Raises:
        ScheduleError: If both factors are the same tensor.
    """
    c = contraction_of(d)
    for x in d.between:
        s[x].compute_inline()
    return contraction.schedule(s, d.output, c, where, stored)


def contraction_of(d: Product) -> Contraction:
    """Return the roles of the axes of a product for a matrix unit that multiplies tiles.

    Raises:
        ScheduleError: If both factors are the same tensor, which would need copies in two layouts.
    """
    if d.rows.tensor == d.columns.tensor:
        name = d.rows.tensor.name
        raise ScheduleError(
            "matmul.schedule: {total} multiplies {name} by itself, but the two factors require "
            "different scratchpad layouts; multiply by a copy: te.compute({name}.shape, lambda "
            "*i: {name}(*i))",
            kind="pattern-mismatch", total=d.total.name, name=name,
        )
    return of_matrices(d)
