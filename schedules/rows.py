"""Stages that belong to a row: what is computed for each row of the result, inside its loop.

Rows that fill few vectors are turned: a vector then has one element of each of several rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import Target, te
from tecomp.schedules.fold import fold
from tecomp.schedules.tiles import Size, core_of, lanes_of, product, walk_squares, width_of

_SHORT = 4
"""Vectors in a row up to which adding up the lanes of one takes longer than turning rows."""

_MOST = 256
"""Elements of a row up to which a few rows, turned, stay in the first cache."""
_MANY = 8
"""Rows from which on they fill a vector."""


def are_turned(A: te.Tensor) -> bool:
    """Whether what runs along the rows of `A` is to walk through several of them at once."""
    *rows, columns = A.shape
    if not rows or not all(isinstance(extent, int) for extent in (*rows[1:], columns)):
        return False
    count = product(rows)
    return columns < _MOST and (not isinstance(count, int) or count >= _MANY)


def are_short(output: te.Tensor, target: Target) -> bool:
    """Whether the rows of `output` are short, and there are enough of them for a vector."""
    if len(output.shape) < 2:
        return False
    count, columns = output.shape[-2:]
    lanes = max(core_of(target).vector_bytes // width_of(output), 1)
    fits = not isinstance(count, int) or count >= lanes
    return fits and isinstance(columns, int) and columns < _SHORT * lanes


def turned(A: te.Tensor, dtype: str, name: str) -> te.Tensor:
    """A copy of `A` in which its last axis is the first, and the others are one after it.

    >>> turned(te.placeholder((4, 5, 3), name="A"), "float32", "A_turned").shape
    (3, 20)
    """
    *rows, columns = A.shape
    return te.compute(
        (columns, product(rows)),
        lambda column, row: te.cast(A(*_index_of(row, rows), column), dtype), name=name,
    )


def number_of(index: Sequence[te.Expr], shape: Sequence[Size]) -> te.Expr:
    """Which one an element is, counted as they lie in memory."""
    number = te.const(0, "int64")
    for place, extent in zip(index, shape, strict=True):
        number = number * extent + place
    return number


def _index_of(number: te.Expr, shape: Sequence[Size]) -> list[te.Expr]:
    """Where the element of a number is."""
    index: list[te.Expr] = []
    for extent in reversed(shape[1:]):
        index.append(number % extent)
        number = number // extent
    return [number, *reversed(index)]


def turn_where_used(
    s: te.Schedule, x: te.Tensor, output: te.Tensor, block: te.IterVar, lanes: int
) -> None:
    """Make what `turned` gives for a block of rows of `output`, in squares."""
    s[x].compute_at(s[output], block)
    s[x].set_scope("local")
    walk_squares(s[x], *s[x].op.axis, lanes)


def side_by_side(s: te.Schedule, output: te.Tensor, target: Target) -> None:
    """Compute every stage for some rows of `output` at once, each row in a lane of its own."""
    stage = s[output]
    *outer, row, column = stage.op.axis
    lanes = lanes_of(output, row, target)
    block, row = stage.split(row, factor=lanes)
    walk_squares(stage, row, column, lanes)
    shared = stage.fuse(*outer, block)
    stage.parallel(shared)
    copies = _copied(s, output)
    made = [x.op.output(0) for x in s.stages if x.op.input_tensors and x.op is not output.op]
    for x in reversed(made):
        part = s[x]
        part.compute_at(stage, shared)
        part.set_scope("local")
        *rest, lane = part.op.axis
        if len(x.shape) == len(output.shape):
            part.transform_layout(lambda *i: [*i[:-2], i[-1], i[-2]])
            *rest, lane = part.leaf_iter_vars
        if x in copies:
            walk_squares(part, rest[-1], lane, lanes)
            continue
        part.reorder(*rest, *x.op.reduce_axis, lane)
        part.vectorize(lane)


def _copied(s: te.Schedule, output: te.Tensor) -> list[te.Tensor]:
    """Copies of the given rows, for those stages before the last that read them."""
    copies: list[te.Tensor] = []
    for source in s.stages:
        x = source.op.output(0)
        readers = [y.op.output(0) for y in s.stages
                   if x in y.op.input_tensors and y.op is not output.op]
        if readers and not source.op.input_tensors and len(x.shape) == len(output.shape):
            copies.append(s.cache_read(x, "local", readers))
    return copies


def walk_rows(s: te.Schedule, output: te.Tensor, target: Target) -> te.IterVar:
    """Walk through each row of `output` in vectors, and share the rows; returns their loop."""
    *rows, columns = s[output].op.axis
    _, lane = s[output].split(columns, factor=lanes_of(output, columns, target))
    s[output].vectorize(lane)
    row = s[output].fuse(*rows)
    s[output].parallel(row)
    return row


def reduce_row(
    s: te.Schedule, x: te.Tensor, output: te.Tensor, row: te.IterVar, target: Target
) -> None:
    """Reduce a row in vectors of partial results, where `output` needs it."""
    s[x].compute_at(s[output], row)
    s[x].set_scope("local")
    fold(s, x, s[x].op.reduce_axis[-1], s[x].fuse(*s[x].op.axis), target)


def keep_row(
    s: te.Schedule, x: te.Tensor, output: te.Tensor, row: te.IterVar, target: Target
) -> None:
    """Compute a row in vectors, where `output` needs it; it stays in the first cache."""
    s[x].compute_at(s[output], row)
    columns = s[x].op.axis[-1]
    _, lane = s[x].split(columns, factor=lanes_of(x, columns, target))
    s[x].vectorize(lane)


def keep_value(s: te.Schedule, x: te.Tensor, output: te.Tensor, row: te.IterVar) -> None:
    """Compute a value that all elements of a row use, once for the row."""
    s[x].compute_at(s[output], row)
    s[x].set_scope("local")
