"""Schedule row-wise operators: fuse all stages of a row into one loop over rows.

A row stays in the first-level cache while each of its stages traverses it once. Rows of few vectors
are transposed, so that each lane of a vector belongs to a different row.
"""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import ScheduleError, Target, accesses, knob, te
from tecomp.schedules.common import product
from tecomp.schedules.scratchpad.placement import placement_of
from tecomp.schedules.scratchpad.rowwise import schedule_blocks
from tecomp.schedules.tiling.reduction import fold
from tecomp.schedules.tiling.register_blocking import core_of, lanes_of, transpose_squares, width_of

_MAX_TRANSPOSED_VECTORS = 4
"""Vectors of a row up to which a horizontal reduction takes longer than transposing rows."""
_MAX_TRANSPOSED_ROW = 256
"""Elements of a row up to which tuning may transpose rows; they stay in the first-level cache."""


def schedule_rows(output: te.Tensor, target: Target) -> te.Schedule:
    """Return a schedule for a row-wise operator with intermediate rows and values per row.

    Stages are classified by shape: stages of the shape of `output` are rows, and stages without its
    last axis are values per row.
    """
    s = te.create_schedule(output)
    where = placement_of(target)
    stages = [x.op.output(0) for x in s.stages if x.op.input_tensors and x.op is not output.op]
    if where is not None:
        schedule_blocks(s, output, stages, where)
        where.put_arguments(s)
    else:
        rows_at_root(s, output, stages, target)
    return s


def rows_at_root(
    s: te.Schedule, output: te.Tensor, stages: Sequence[te.Tensor], target: Target
) -> None:
    """Schedule rows and their intermediate stages as a separate loop nest.

    Args:
        s: Schedule.
        output: Rows of the result.
        stages: Stages that are computed for each row, producers first. Their other inputs must
            already be in memory.
        target: Target whose vector registers and caches decide the sizes.
    """
    if _is_transposed(output, target):
        _compute_rows_in_lanes(s, output, stages, target)
    else:
        _compute_row_at_a_time(s, output, stages, target)


def values_at_root(
    s: te.Schedule, output: te.Tensor, stages: Sequence[te.Tensor], target: Target
) -> None:
    """Schedule one value per row and its intermediate stages as a separate loop nest.

    All stages process one row after the other, or a few that stay in a cache together. An
    element-wise function of values per row is vectorized over rows.
    """
    row = _walk_values(s, output, stages, target)
    if output.op.reduce_axis:
        fold(s, output, output.op.reduce_axis[-1], row, target)
    for x in reversed(stages):
        s[x].compute_at(s[output], row)
        fused = s[x].fuse(*s[x].op.axis)
        if x.op.reduce_axis:
            fold(s, x, x.op.reduce_axis[-1], fused, target)
        elif len(x.shape) > len(output.shape):
            _, lane = s[x].split(fused, factor=lanes_of(x, x.op.axis[-1], target))
            s[x].vectorize(lane)


def _walk_values(
    s: te.Schedule, output: te.Tensor, stages: Sequence[te.Tensor], target: Target
) -> te.IterVar:
    """Parallelize over rows, in vectors of rows that fit the first-level cache; return the loop."""
    *axes, last = output.op.axis
    lanes = 1 if output.op.reduce_axis else lanes_of(output, last, target)
    while lanes > 1 and lanes * _longest_row_bytes(stages) > core_of(target).cache_bytes[0] // 2:
        lanes //= 2
    if lanes > 1:
        last, lane = s[output].split(last, factor=lanes)
        s[output].vectorize(lane)
    row = s[output].fuse(*axes, last)
    s[output].parallel(row)
    return row


def _longest_row_bytes(stages: Sequence[te.Tensor]) -> float:
    """Return the bytes of the longest row that a stage reduces; infinity if it is symbolic."""
    sizes = [
        (product(axis.extent for axis in x.op.reduce_axis), width_of(x))
        for x in stages if x.op.reduce_axis
    ]
    return max(size * width if isinstance(size, int) else float("inf") for size, width in sizes)


def _is_transposed(output: te.Tensor, target: Target) -> bool:
    """Return whether each lane computes another row, as short rows do that fill a vector."""
    if len(output.shape) < 2:
        return False
    count, columns = output.shape[-2:]
    lanes = max(core_of(target).vector_bytes // width_of(output), 1)
    fits = not isinstance(count, int) or count >= lanes
    if not fits or not isinstance(columns, int) or columns > _MAX_TRANSPOSED_ROW:
        return False
    is_short = columns < _MAX_TRANSPOSED_VECTORS * lanes
    transposed: bool = knob("transposed", [is_short, not is_short])
    return transposed


def _compute_rows_in_lanes(
    s: te.Schedule, output: te.Tensor, stages: Sequence[te.Tensor], target: Target
) -> None:
    """Compute every stage for several rows of `output` at once, with one row per lane."""
    stages = [*stages, *_values_of_rows(s, output)]
    stage = s[output]
    *outer, row, column = stage.op.axis
    lanes = lanes_of(output, row, target)
    block, row = stage.split(row, factor=lanes)
    transpose_squares(stage, row, column, lanes)
    shared = stage.fuse(*outer, block)
    stage.parallel(shared)
    copies = _cache_row_inputs(s, output, stages)
    for x in reversed([*copies, *stages]):
        part = s[x]
        part.compute_at(stage, shared)
        part.set_scope("local")
        *others, lane = part.op.axis
        if len(x.shape) == len(output.shape):
            part.transform_layout(lambda *i: [*i[:-2], i[-1], i[-2]])
            *others, lane = part.leaf_iter_vars
        if x in copies:
            transpose_squares(part, others[-1], lane, lanes)
            continue
        part.reorder(*others, *x.op.reduce_axis, lane)
        part.vectorize(lane)


def _values_of_rows(s: te.Schedule, output: te.Tensor) -> list[te.Tensor]:
    """Materialize subexpressions of `output` that are constant along a row."""
    found: list[te.Tensor] = []
    column = s[output].op.axis[-1]
    while accesses(s[output].op.output(0)).repeated[-1]:
        try:
            found.append(s.cache_repeated(output, column, "local"))
        except ScheduleError:
            # The subexpression is also constant across rows, or is computed under a condition.
            break
    return found


def _cache_row_inputs(
    s: te.Schedule, output: te.Tensor, stages: Sequence[te.Tensor]
) -> list[te.Tensor]:
    """Create local copies of the row inputs that are in memory, for the stages in `stages`."""
    copies: list[te.Tensor] = []
    for source in dict.fromkeys(x for y in stages for x in y.op.input_tensors):
        if source not in stages and len(source.shape) == len(output.shape):
            readers = [y for y in stages if source in y.op.input_tensors]
            copies.append(s.cache_read(source, "local", readers))
    return copies


def _compute_row_at_a_time(
    s: te.Schedule, output: te.Tensor, stages: Sequence[te.Tensor], target: Target
) -> None:
    """Compute every stage for one row of `output` at a time."""
    row = _walk_rows(s, output, target)
    for x in reversed(stages):
        if x.op.reduce_axis:
            _reduce_row(s, x, output, row, target)
        elif len(x.shape) == len(output.shape):
            _compute_row(s, x, output, row, target)
        else:
            _compute_row_value(s, x, output, row)


def _walk_rows(s: te.Schedule, output: te.Tensor, target: Target) -> te.IterVar:
    """Vectorize the rows of `output`, parallelize over them, and return the row loop."""
    *rows, columns = s[output].op.axis
    _, lane = s[output].split(columns, factor=lanes_of(output, columns, target))
    s[output].vectorize(lane)
    row = s[output].fuse(*rows)
    s[output].parallel(row)
    return row


def _reduce_row(
    s: te.Schedule, x: te.Tensor, output: te.Tensor, row: te.IterVar, target: Target
) -> None:
    """Reduce a row inside the row loop of `output`, with vector accumulators."""
    s[x].compute_at(s[output], row)
    s[x].set_scope("local")
    fold(s, x, s[x].op.reduce_axis[-1], s[x].fuse(*s[x].op.axis), target)


def _compute_row(
    s: te.Schedule, x: te.Tensor, output: te.Tensor, row: te.IterVar, target: Target
) -> None:
    """Compute a row in vectors inside the row loop of `output`; it stays in the L1 cache."""
    s[x].compute_at(s[output], row)
    columns = s[x].op.axis[-1]
    _, lane = s[x].split(columns, factor=lanes_of(x, columns, target))
    s[x].vectorize(lane)


def _compute_row_value(s: te.Schedule, x: te.Tensor, output: te.Tensor, row: te.IterVar) -> None:
    """Compute a value that all elements of a row use, once per row."""
    s[x].compute_at(s[output], row)
    s[x].set_scope("local")
