"""Products of matrices, of any transposition, in batches, with a bias and an activation.

The schedule is that of the BLAS libraries: both operands are packed into the order in which a tile
of registers walks through them; a block of rows stays in a cache while all columns pass. What is
used too seldom for a copy to pay is read where it lies.

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
from tecomp.schedules.gemm.blocking import Plan, plan_blocks
from tecomp.schedules.gemm.loops import product_at_root
from tecomp.schedules.scratchpad import contraction
from tecomp.schedules.scratchpad.placement import Placement, placement_of
from tecomp.schedules.tiling.reduction import finished


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
    """`activation(A @ B + bias)`.

    Args:
        A: shape (..., m, k), or (..., k, m) if transposed.
        B: shape (..., k, n), or (..., n, k) if transposed, with the same leading axes.
        transpose_a: whether the last two axes of A are exchanged.
        transpose_b: whether those of B are.
        bias: shape (n,), added to each row.
        activation: applied to each element at last.
        out_dtype: type of the result, in which products are added up; that of A if None. For
            narrow floats they are added up in float32, and the result is rounded once.
        pairs: whether a processor may multiply and add up several neighbours along the depth in
            one instruction, where it has one for the types; of floats the order of the sum changes.
        name: of the result.

    Returns:
        Shape (..., m, n).

    >>> A, B = te.placeholder((4, 8, 16), name="A"), te.placeholder((4, 16, 32), name="B")
    >>> define(A, B).shape
    (4, 8, 32)
    """
    *batch, m, depth = (*A.shape[:-2], A.shape[-1], A.shape[-2]) if transpose_a else A.shape
    n = B.shape[-2] if transpose_b else B.shape[-1]
    dtype = out_dtype or A.dtype
    wide = wide_type(dtype)
    if A is B:
        # Each operand is packed in its own way, so there have to be two.
        B = te.compute(B.shape, lambda *axes: A(*axes), name=f"{B.name}_again")
    A, B = _converted(A, wide), _converted(B, wide)
    k = te.reduce_axis((0, depth), name="k")

    def product(*axes: te.Expr) -> te.Expr:
        *outer, i, j = axes
        a = A(*outer, k, i) if transpose_a else A(*outer, i, k)
        b = B(*outer, j, k) if transpose_b else B(*outer, k, j)
        return te.sum(a * b, axis=k)

    shape = (*batch, m, n)
    wish = {} if pairs else {"pairs": False}
    if bias is None and activation is None and wide == dtype:
        return te.compute(shape, product, name=name, attrs=wish)
    total = te.compute(shape, product, name=f"{name}_sum", attrs=wish)
    result: te.Tensor = finished(total, dtype, bias, len(shape) - 1, activation, name)
    return result


def _converted(x: te.Tensor, dtype: str) -> te.Tensor:
    """`x` in the type of the sums: each value is converted once, while it is packed."""
    if x.dtype == dtype:
        return x
    return te.compute(
        x.shape, lambda *axes: te.cast(x(*axes), dtype), name=f"{x.name}_{dtype}"
    )


def describe(output: te.Tensor) -> Product:
    """The roles of the axes of a product, or of what is made of one element by element.

    It is read off what the tensor reads: how it is written, called or made makes no difference.

    Args:
        output: the result of `define`, or any tensor that is such a product: with its factors in
            any order, their axes in any order, any number of axes of each kind.

    Raises:
        ScheduleError: it is no product.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 16), name="B")
    >>> describe(define(A, B, transpose_a=False)).depth
    (k,)
    """
    return need_product(output, "matmul.describe")


def plan(op: te.Tensor | Product, target: str | Path | Target, each: int = 1) -> Plan:
    """The blocks for a product of any size, whose steps along the depth add up `each` terms.

    * The columns of a tile, for the whole depth, take an eighth of the second cache.
    * A block of packed rows takes three quarters of it, or an eighth of a core's share of the third
      if that is more: rows are walked in order, so that they come in time from there too, and all
      columns pass by from farther away once for each block.
    * Blocks are even, and each core has as many.

    Args:
        op: a product, or its description.
        target: for its vectors and caches.
        each: terms that one step adds up.

    Raises:
        ScheduleError: `op` is no product.
    """
    target = Target.of(target)
    return plan_blocks(need_product(op, "matmul.plan"), target, each)


def schedule(
    op: te.Tensor | Product, target: str | Path | Target, plan: Plan | None = None
) -> te.Schedule:
    """A schedule for a product, or for what is made of one element by element.

    Args:
        op: the result of `define`, any other tensor that is such a product, or its description.
        target: the machine.
        plan: how it is cut; what `plan` says if None. Machines with scratchpads have none.

    Raises:
        ScheduleError: `op` is no product.
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
    s: te.Schedule, d: Product, where: Placement, whole: Collection[te.Tensor] | None = None
) -> contraction.Plan:
    """Schedule a product and what is made of it on a machine with scratchpads.

    Args:
        s: the schedule.
        d: the product.
        where: the machine.
        whole: what is there before; what is not computed if None.

    Returns:
        How it is cut.

    Raises:
        ScheduleError: it is a matrix times itself.
    """
    c = contraction_of(d)
    for x in d.between:
        s[x].compute_inline()
    return contraction.schedule(s, d.output, c, where, whole)


def contraction_of(d: Product) -> Contraction:
    """What the axes of a product are to a unit that multiplies tiles.

    Raises:
        ScheduleError: it is a matrix times itself, of which there would have to be two kinds of
            copies.
    """
    if d.rows.tensor == d.columns.tensor:
        name = d.rows.tensor.name
        raise ScheduleError(
            f"matmul.schedule: {d.total.name} multiplies {name} by itself, and scratchpads have "
            f"rows and columns in different layouts; multiply by a copy: te.compute({name}.shape, "
            f"lambda *i: {name}(*i))",
            kind="not-this-form",
        )
    return of_matrices(d)
