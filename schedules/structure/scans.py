"""Scans: which columns follow from which, and sums inside of groups of a row and before them."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp import accesses, te
from tecomp.schedules.structure.stages import (
    is_computed,
    is_pointwise,
    is_same,
    is_scan,
    leads_to,
)


@dataclass(frozen=True)
class GroupedScan:
    """A scan of rows that are cut into groups.

    Attributes:
        output: made of a scan inside of its group and of what comes before, element by element.
        sums: the scan inside of all groups, side by side.
        before: the scan over groups.
        columns: what `sums` has read of the rows: a step for each place in a group.
        totals: what `before` has read of `sums`.
    """

    output: te.Tensor
    sums: te.Tensor
    before: te.Tensor
    columns: te.Tensor
    totals: te.Tensor

    @property
    def size(self) -> int:
        """Elements of a group."""
        return int(str(self.sums.shape[0]))


def grouped_scan_of(output: te.Tensor) -> GroupedScan | None:
    """The scan inside of groups, and of what comes before them, that a tensor is made of.

    Returns:
        None if it is made of something else.
    """
    made_of = list(dict.fromkeys(output.op.input_tensors))
    if not output.shape or not is_pointwise(output) or len(made_of) != 2:
        return None
    if not all(is_scan(x) and has_own_columns(x) for x in made_of):
        return None
    for sums, before in (made_of, made_of[::-1]):
        columns, totals = scanned(sums), scanned(before)
        is_of_groups = totals is not None and set(totals.op.input_tensors) == {sums}
        if columns is None or totals is None or not is_of_groups or not is_pointwise(totals):
            continue
        found = GroupedScan(output, sums, before, columns, totals)
        return found if _is_read_in_groups(found) else None
    return None


def has_own_columns(scan: te.Tensor) -> bool:
    """Whether each element of a step follows from that element of steps before, and from no other.

    >>> X, S = te.placeholder((1, 8), name="X"), te.placeholder((5, 8), name="S")
    >>> first = te.compute((1, 8), lambda t, i: X[t, i])
    >>> halves = te.compute((5, 8), lambda t, i: S[t - 1, i] / 2.0)
    >>> turned = te.compute((5, 8), lambda t, i: S[t - 1, 7 - i])
    >>> [has_own_columns(te.scan(first, step, S)) for step in (halves, turned)]
    [True, False]
    """
    assert isinstance(scan.op, te.ScanOp)
    states = scan.op.states
    todo, seen = list(scan.op.input_tensors), set(scan.op.input_tensors)
    while todo:
        x = todo.pop()
        for read in x.op.input_tensors:
            if _is_read_by_columns(x, read):
                todo += {read} - seen
                seen.add(read)
            elif any(leads_to(read, state) for state in states):
                return False
    return True


def _is_read_by_columns(x: te.Tensor, read: te.Tensor) -> bool:
    """Whether `x` has of `read` the same columns alone, maybe of other steps."""
    columns = [found.axes[1:] for found in accesses(x).reads if found.tensor == read]
    return bool(columns) and all(is_same(axes, x.op.axis[1:]) for axes in columns)


def scanned(x: te.Tensor) -> te.Tensor | None:
    """What the steps of a scan read beside their state, if that is computed."""
    *_, step = x.op.input_tensors
    return next((read.tensor for read in accesses(step).reads if is_computed(read.tensor)), None)


def _is_read_in_groups(d: GroupedScan) -> bool:
    """Whether groups are pieces of the last axis of the output, one after the other."""
    if not isinstance(d.sums.shape[0], int):
        return False
    last = d.output.op.axis[-1]
    for read in accesses(d.output).reads:
        group = read.index[0 if read.tensor == d.before else -1]
        if group.quotient(last) != (d.size, 1):
            return False
        if read.tensor == d.sums and read.index[0].axes != (last,):
            return False
    return True
