"""Reductions along rows: vectors of partial results, and a tree that combines their lanes."""

from __future__ import annotations

from tecomp import Target, accesses, te
from tecomp.schedules.structure.sizes import ceil_div
from tecomp.schedules.tiling.tiles import lanes_of

ACCUMULATORS = 4
"""Vectors of partial results: a sum waits for the one before, so several are under way."""
_VECTORS_EACH = 8
"""Vectors of a row from which on such a vector gains more than combining it costs."""
LONG = ACCUMULATORS * _VECTORS_EACH
"""Vectors of a row from which on all of them are used."""
_BLOCK = 64
"""Terms that a partial sum of floats adds up, before it is added to the sum of such blocks.

The errors of sums grow with how many are added one after the other: of a million numbers those of
few blocks, of one block and of few lanes are no more than those of a tree.
"""


def fold(s: te.Schedule, result: te.Tensor, run: te.IterVar, place: te.IterVar,
         target: Target, *, rows: int = 1, order: int | None = None) -> te.Tensor:
    """Reduce with vectors of partial results, which are combined by halves.

        r[i] = sum(A[i, k])   ->   p[i, l] = sum(A[i, k_outer * width + l])
                                   q[i, l] = p[i, l] + p[i, l + width / 2]     and so on
                                   r[i] = q[i, 0] + q[i, 1]

    Args:
        s: the schedule.
        result: a stage that reduces.
        run: its loop along which memory is contiguous.
        place: its loop over elements inside which the partial results of one are computed.
        target: for its vectors.
        rows: how many elements those are. The lanes of several rows are combined side by side, so
            that one does not wait for the other. That is for short rows: their vectors are read
            side by side too, and caches fetch few stretches of memory ahead at once.
        order: the number of a value by which partial results are in order, if that counts.

    Returns:
        The partial results, which do the work.
    """
    lanes = lanes_of(result, run, target)
    accumulators = max(ACCUMULATORS // rows, 1)
    if isinstance(run.extent, int):
        accumulators = max(min(accumulators, ceil_div(run.extent, _VECTORS_EACH * lanes)), 1)
    _, inner = s[result].split(run, factor=accumulators * lanes)
    partial = _combine_later(s, result, inner, place, order)
    *outer, many = s[partial].op.axis
    several, lane = s[partial].split(many, factor=lanes)
    own = outer if rows > 1 else []
    alone = [] if own else outer
    steps = left_of(s, partial)
    if rows == 1 and len(steps) == 1 and _is_long_sum(result, steps[0]):
        steps = [_in_blocks(s, partial, steps[0], lanes)]
    s[partial].reorder(*alone, *steps, *own, several, lane)
    for axis in (*own, several):
        s[partial].unroll(axis)
    s[partial].vectorize(lane)
    width = lanes if accumulators > 1 else lanes // 2
    while width > 1:
        (left,) = s[result].op.reduce_axis
        _, inner = s[result].split(left, factor=width)
        half = _combine_later(s, result, inner, place)
        s[half].reorder(*s[half].op.axis[:-1], *left_of(s, half), s[half].op.axis[-1])
        for axis in (*(s[half].op.axis[:-1] if rows > 1 else ()), *left_of(s, half)):
            s[half].unroll(axis)
        s[half].vectorize(s[half].op.axis[-1])
        width //= 2
    s[result].unroll(s[result].op.reduce_axis[0])
    return partial


def _is_long_sum(result: te.Tensor, steps: te.IterVar) -> bool:
    """Whether floats are added up, and so many that the order counts."""
    is_long = not isinstance(steps.extent, int) or steps.extent >= 2 * _BLOCK
    return is_long and accesses(result).reducer == "sum" and result.dtype.kind == "float"


def _in_blocks(
    s: te.Schedule, partial: te.Tensor, steps: te.IterVar, lanes: int
) -> te.IterVar:
    """Add up blocks of steps, each in registers of its own; returns the loop over blocks."""
    blocks, _ = s[partial].split(steps, factor=_BLOCK)
    block = one(s.rfactor(partial, blocks, factor_axis=0))
    (blocks,) = s[partial].op.reduce_axis
    s[block].set_scope("local")
    s[block].compute_at(s[partial], blocks)
    *outer, many = s[block].op.axis
    several, lane = s[block].split(many, factor=lanes)
    s[block].reorder(*outer, *left_of(s, block), several, lane)
    s[block].unroll(several)
    s[block].vectorize(lane)
    return blocks


def _combine_later(
    s: te.Schedule, result: te.Tensor, inner: te.IterVar, place: te.IterVar,
    order: int | None = None,
) -> te.Tensor:
    """Partial results for each value of `inner`, in registers."""
    partial = one(s.rfactor(result, inner, factor_axis=-1, order=order))
    s[partial].set_scope("local")
    s[partial].compute_at(s[result], place)
    return partial


def left_of(s: te.Schedule, partial: te.Tensor) -> list[te.IterVar]:
    """The loops of a reduction that `rfactor` left to partial results, in the order they had."""
    return [
        axis for axis in s[partial].leaf_iter_vars if axis.iter_type == te.IterVar.CommReduce
    ]


def one(made: te.Tensor | tuple[te.Tensor, ...]) -> te.Tensor:
    """The stage of what `rfactor` made; it has several tensors if the reduction has."""
    return made if isinstance(made, te.Tensor) else made[0]
