"""Scans that are parts of something: sums inside of groups of a row, and of what is before them."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp import accesses, te
from tecomp.schedules.structure.stages import is_computed, is_pointwise, is_scan


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
    if not all(map(is_scan, made_of)):
        return None
    for sums, before in (made_of, made_of[::-1]):
        columns, totals = scanned(sums), scanned(before)
        is_of_groups = totals is not None and set(totals.op.input_tensors) == {sums}
        if columns is None or totals is None or not is_of_groups or not is_pointwise(totals):
            continue
        found = GroupedScan(output, sums, before, columns, totals)
        return found if _is_read_in_groups(found) else None
    return None


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
