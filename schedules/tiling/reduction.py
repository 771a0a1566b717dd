"""Vector accumulators, horizontal reduction trees, dot products, epilogues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tecomp import Target, accesses, knob, te
from tecomp.schedules.analysis.stages import match_copy
from tecomp.schedules.common import Size, ceil_div, wide_type
from tecomp.schedules.tiling.register_blocking import core_of, lanes_of

_BYTES = ("int8", "uint8")


def dot_types(a: str, b: str, total: str, target: Target) -> tuple[str, str] | None:
    """Return the dtypes of the short vectors in dot products, or None if scalars are as fast.

    If the target multiplies bytes of opposite signedness only, the first factor is shifted. Pairs
    of int16 are fast on every target.

    >>> from tecomp import Core
    >>> cpu = Target("vnni", "", {}, Core(1, 64, 32, (32768,), dots=("uint8*int8",)))
    >>> dot_types("int8", "int8", "int32", cpu), dot_types("int8", "int16", "int32", cpu)
    (('uint8x4', 'int8x4'), ('int16x2', 'int16x2'))
    """
    supported = core_of(target).dots
    if total == "int32" and {a, b} <= set(_BYTES):
        if f"{a}*{b}" in supported or f"{b}*{a}" in supported:
            return f"{a}x4", f"{b}x4"
        if "uint8*int8" in supported:
            return ("uint8x4", "int8x4") if b == "int8" else ("int8x4", "uint8x4")
    if total == "int32" and {a, b} <= {*_BYTES, "int16"}:
        return "int16x2", "int16x2"
    if total == "float32" and a == b == "bfloat16" and "bfloat16*bfloat16" in supported:
        return "bfloat16x2", "bfloat16x2"
    return None


def lanes_of_dots(types: tuple[str, str] | None) -> int:
    """Return the number of terms that one step of the depth accumulates.

    >>> lanes_of_dots(("int16x2", "int16x2")), lanes_of_dots(None)
    (2, 1)
    """
    return int(types[0].rpartition("x")[2]) if types else 1


def add_dots(
    s: te.Schedule, total: te.Tensor, axis: te.IterVar, types: tuple[str, str], output: te.Tensor
) -> tuple[te.Tensor, tuple[te.Tensor, te.Tensor], te.Tensor | None]:
    """Rewrite a sum with dot products along an axis, and inline the conversions of its factors.

    The rewritten sum is inlined into its readers, unless it is `output`, which has the loops.

    Returns:
        The sum of dot products, its factors, and the correction that is subtracted from it if one
        factor was shifted by 128, else None.
    """
    for factor in total.op.input_tensors:
        if match_copy(factor) is not None:
            s[factor].compute_inline()
    sums, first, second, *correction = s.into_dots(total, axis, *types)
    if total is not output:
        s[total].compute_inline()
    return sums, (first, second), correction[0] if correction else None


def sum_in_vectors(s: te.Schedule, correction: te.Tensor, width: int) -> None:
    """Accumulate the correction of a shifted factor per column, `width` columns at a time."""
    stage = s[correction]
    *outer, j = stage.op.axis
    column, lane = stage.split(j, factor=width)
    stage.reorder(*outer, column, *stage.op.reduce_axis, lane)
    stage.vectorize(lane)
    stage.parallel(stage.fuse(*outer, column))


def apply_epilogue(
    total: te.Tensor,
    dtype: str,
    bias: te.Tensor | None,
    axis: int,
    activation: Callable[[te.Expr], te.Expr] | None,
    name: str,
) -> te.Tensor:
    """Define `activation(total + bias)`, computed in `wide_type(dtype)` and cast to `dtype` last.

    Args:
        total: Tensor of sums.
        dtype: Dtype of the result.
        bias: One value for each index along an axis, or None.
        axis: Number of that axis.
        activation: Function that is applied to each element, or None.
        name: Name of the result.

    >>> total = te.placeholder((4, 8), "float32", name="total")
    >>> apply_epilogue(total, "float16", None, 1, None, "C").dtype
    'float16'
    """
    wide_dtype = wide_type(dtype)

    def finish(*axes: te.Expr) -> te.Expr:
        value: te.Expr = total(*axes)
        if bias is not None:
            shift = bias(axes[axis])
            value = value + (shift if wide_dtype == dtype else te.cast(shift, wide_dtype))
        value = activation(value) if activation is not None else value
        return value if wide_dtype == dtype else te.cast(value, dtype)

    return te.compute(total.shape, finish, name=name)


Bounds = Mapping[te.Expr, int]
"""Expected upper bounds of symbolic sizes. They affect performance only."""
NO_BOUNDS: Bounds = MappingProxyType({})


def declared_maximum(extent: Size) -> int | None:
    """Return the declared maximum of a size variable; None if it has none."""
    bounds = getattr(extent, "bounds", None)
    return None if bounds is None else bounds.maximum


ACCUMULATORS = 4
"""Vector accumulators, which are independent to hide the latency of additions."""
_MIN_VECTORS_PER_ACCUMULATOR = 8
"""Minimum vectors of a row per accumulator, which pay for combining it."""
LONG = ACCUMULATORS * _MIN_VECTORS_PER_ACCUMULATOR
"""Minimum vectors of a row for which all accumulators are used."""
VECTOR_OF_ROWS = 4
"""Minimum rows that are combined as a vector; two rows are faster as scalars."""
_BLOCK = 64
"""Terms that a floating-point accumulator adds before it is added to the sum of the blocks.

The rounding error of a sum grows with the number of sequential additions. For a million terms, few
blocks, one block and few lanes together have no larger error than a tree.
"""


def fold(s: te.Schedule, result: te.Tensor, run: te.IterVar, loop: te.IterVar,
         target: Target, *, rows: int = 1, order: int | None = None) -> te.Tensor:
    """Reduce with vector accumulators, which are combined pairwise by halves.

        r[i] = sum(A[i, k])   ->   p[i, l] = sum(A[i, k_outer * width + l])
                                   q[i, l] = p[i, l] + p[i, l + width / 2]     and so on
                                   r[i] = q[i, 0] + q[i, 1]

    Args:
        s: Schedule.
        result: Reduction stage.
        run: Its reduction loop along which memory is contiguous.
        loop: Its loop over elements at which the partial results are computed.
        target: Target whose vector registers decide the sizes.
        rows: Number of elements per iteration of `loop`. Default: 1. One row is read after the
            other, and the lanes of all of them are reduced together at the end, which makes the
            horizontal reductions independent.
        order: Number of the reduced value by which partial results are ordered, if the order
            matters. Default: None.

    Returns:
        The stage of partial results, which does most of the work.
    """
    lanes = lanes_of(result, run, target)
    accumulators = max(ACCUMULATORS // rows, 1)
    if isinstance(run.extent, int):
        accumulators = max(
            min(accumulators, ceil_div(run.extent, _MIN_VECTORS_PER_ACCUMULATOR * lanes)), 1)
        others = [n for n in (1, 2, 4, 8) if n * lanes <= run.extent and n != accumulators]
        accumulators = knob("accumulators", [accumulators, *others])
    _, inner = s[result].split(run, factor=accumulators * lanes)
    partial = _combine_later(s, result, inner, loop, order)
    *outer, column = s[partial].op.axis
    vector, lane = s[partial].split(column, factor=lanes)
    steps = remaining_reduction_loops(s, partial)
    if rows == 1 and len(steps) == 1 and _is_long_sum(result, steps[0]):
        steps = [_in_blocks(s, partial, steps[0], lanes)]
    s[partial].reorder(*outer, *steps, vector, lane)
    for axis in (*(outer if rows > 1 else ()), vector):
        s[partial].unroll(axis)
    s[partial].vectorize(lane)
    width = lanes if accumulators > 1 else lanes // 2
    while width > 1:
        (remaining,) = s[result].op.reduce_axis
        _, inner = s[result].split(remaining, factor=width)
        folded = _combine_later(s, result, inner, loop)
        s[folded].reorder(
            *s[folded].op.axis[:-1], *remaining_reduction_loops(s, folded), s[folded].op.axis[-1]
        )
        for axis in (
            *(s[folded].op.axis[:-1] if rows > 1 else ()),
            *remaining_reduction_loops(s, folded),
        ):
            s[folded].unroll(axis)
        s[folded].vectorize(s[folded].op.axis[-1])
        width //= 2
    if rows >= VECTOR_OF_ROWS:
        _combine_pairs(s, result, loop)
    elif rows > 1:
        # LLVM would vectorize a loop, which waits for stores of several rows before it loads them.
        *_, row, _ = s[result].leaf_iter_vars
        s[result].unroll(row)
    s[result].unroll(s[result].op.reduce_axis[0])
    return partial


def _combine_pairs(s: te.Schedule, result: te.Tensor, loop: te.IterVar) -> None:
    """Combine the last two partial results of all rows as vectors across the rows."""
    (remaining,) = s[result].op.reduce_axis
    _, inner = s[result].split(remaining, factor=1)
    pair = _combine_later(s, result, inner, loop)
    (step,) = remaining_reduction_loops(s, pair)
    *outer, row, lane = s[pair].op.axis
    s[pair].reorder(*outer, lane, step, row)
    s[pair].unroll(step)
    s[pair].vectorize(row)
    *_, row, _ = s[result].leaf_iter_vars
    s[result].reorder(s[result].op.reduce_axis[0], row)
    s[result].vectorize(row)


def _is_long_sum(result: te.Tensor, steps: te.IterVar) -> bool:
    """Return whether the stage sums enough floats that the order affects the rounding error."""
    is_long = not isinstance(steps.extent, int) or steps.extent >= 2 * _BLOCK
    return is_long and accesses(result).reducer == "sum" and result.dtype.kind == "float"


def _in_blocks(
    s: te.Schedule, partial: te.Tensor, steps: te.IterVar, lanes: int
) -> te.IterVar:
    """Accumulate blocks of steps in separate registers; return the loop over blocks."""
    blocks, _ = s[partial].split(steps, factor=_BLOCK)
    block = first_output(s.rfactor(partial, blocks, factor_axis=0))
    (blocks,) = s[partial].op.reduce_axis
    s[block].set_scope("local")
    s[block].compute_at(s[partial], blocks)
    *outer, column = s[block].op.axis
    vector, lane = s[block].split(column, factor=lanes)
    s[block].reorder(*outer, *remaining_reduction_loops(s, block), vector, lane)
    s[block].unroll(vector)
    s[block].vectorize(lane)
    return blocks


def _combine_later(
    s: te.Schedule, result: te.Tensor, inner: te.IterVar, loop: te.IterVar,
    order: int | None = None,
) -> te.Tensor:
    """Create partial results in registers for each value of `inner`."""
    partial = first_output(s.rfactor(result, inner, factor_axis=-1, order=order))
    s[partial].set_scope("local")
    s[partial].compute_at(s[result], loop)
    return partial


def remaining_reduction_loops(s: te.Schedule, partial: te.Tensor) -> list[te.IterVar]:
    """Return the reduction loops that `rfactor` left to the partial results, in their order."""
    return [
        axis for axis in s[partial].leaf_iter_vars if axis.iter_type == te.IterVar.CommReduce
    ]


def first_output(tensors: te.Tensor | tuple[te.Tensor, ...]) -> te.Tensor:
    """Return the first tensor that `rfactor` created; reductions of tuples have several."""
    return tensors if isinstance(tensors, te.Tensor) else tensors[0]
