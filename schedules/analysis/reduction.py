"""Recognize reductions and scans and their contiguous axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tecomp import Access, Accesses, ScheduleError, accesses, te
from tecomp.schedules.analysis.stages import (
    is_computed,
    is_pointwise,
    is_same,
    is_scan,
    leads_to,
    steps_to_reduction,
)


@dataclass(frozen=True)
class ReductionPattern:
    """Reduction with the roles of its axes.

    Attributes:
        total: Reduction stage.
        output: `total`, or the result of its element-wise epilogue.
        between: Stages between `total` and `output`.
        runs: Reduction axes in memory order.
        adjacent: Number of trailing reduction axes that are contiguous in memory.
        columns: Number of trailing result axes that are contiguous in memory; 0 if the last axis is
            reduced.
    """

    total: te.Tensor
    output: te.Tensor
    between: tuple[te.Tensor, ...]
    runs: tuple[te.IterVar, ...]
    adjacent: int
    columns: int


def reduction_of(
    output: te.Tensor, chain: Sequence[te.Tensor] | None = None
) -> ReductionPattern | None:
    """Recognize `output` as a reduction with an optional epilogue; None if it is not one.

    Args:
        output: Tensor.
        chain: Stages from `output` back to the reduction, if they are known. Default: None.

    >>> A, k = te.placeholder((4, 8, 6), name="A"), te.reduce_axis((0, 8), name="k")
    >>> total = te.compute((4, 6), lambda i, j: te.max(A[i, k, j] * 2, axis=k), name="total")
    >>> reduction_of(total).columns
    1
    """
    steps = chain or steps_to_reduction(output)
    if not steps or accesses(steps[-1]).has_start:
        return None
    total = steps[-1]
    found = accesses(total)
    main = max([read for read in found.reads if read.axes], key=_axes_of, default=None)
    if main is None:
        return None
    indexed = [axis for axis in main.axes if any(axis is run for run in found.reduce_axis)]
    others = [run for run in found.reduce_axis if not any(run is axis for axis in indexed)]
    runs = (*others, *dict.fromkeys([axis for axis in indexed if axis is not None]))
    middle = tuple(steps[1:-1])
    adjacent = _num_trailing_axes(main.axes, lambda axis, _: any(axis is run for run in runs))
    if adjacent:
        return ReductionPattern(total, output, middle, runs, adjacent, 0)
    if (run := _run_anywhere(main, found)) is not None:
        others = [axis for axis in found.reduce_axis if axis is not run]
        return ReductionPattern(total, output, middle, (*others, run), 1, 0)
    columns = _num_trailing_axes(
        main.axes, lambda axis, n: n <= len(found.axis) and axis is found.axis[-n]
    )
    return ReductionPattern(total, output, middle, runs, 0, columns) if columns else None


def need_reduction(op: te.Tensor | ReductionPattern, caller: str) -> ReductionPattern:
    """Return the description of a reduction.

    Raises:
        ScheduleError: If `op` is not a reduction.
    """
    if isinstance(op, ReductionPattern):
        return op
    found = reduction_of(op)
    if found is None:
        raise ScheduleError(
            "{caller}: {op} is neither a reduction whose result or reduction axis runs along the "
            "last axis of its input, nor an elementwise function of one",
            kind="pattern-mismatch", caller=caller, op=op.name,
        )
    return found


def _axes_of(read: Access) -> int:
    """Return the number of axes that a read depends on."""
    return len({axis for index in read.index for axis in index.axes})


def _run_anywhere(main: Access, found: Accesses) -> te.IterVar | None:
    """Return the reduction axis along rows with arbitrary starts that are not windows, or None."""
    if not main.index or main.index[-1].axis is not None or main.index[-1].is_window:
        return None
    steps = [run for run in found.reduce_axis if main.index[-1].coefficient(run) == 1]
    return steps[0] if len(steps) == 1 else None


def _num_trailing_axes(
    axes: Sequence[te.IterVar | None], fits: Callable[[te.IterVar | None, int], bool]
) -> int:
    """Return the number of trailing axes that fit; `fits` gets each and its number from the end."""
    return next(
        (k for k, axis in enumerate(reversed(axes)) if not fits(axis, k + 1)), len(axes)
    )


def is_of_reductions(x: te.Tensor, readers: Sequence[te.Tensor]) -> bool:
    """Return whether `x` applies the same reduction to a reduction that only `x` reads.

    >>> A = te.placeholder((4, 8, 6), name="A")
    >>> k, j = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, 8), name="j")
    >>> B = te.compute((4, 8), lambda i, j: te.sum(A[i, j, k], axis=k), name="B")
    >>> C = te.compute((4,), lambda i: te.sum(B[i, j], axis=j), name="C")
    >>> is_of_reductions(C, [C]), is_of_reductions(B, [C])
    (True, False)
    """
    found = accesses(x)
    if not found.reducer or not found.is_plain or len(found.factors) != 1 or len(found.reads) != 1:
        return False
    (read,) = found.factors
    inner = accesses(read.tensor)
    is_direct = None not in read.axes and len(set(read.axes)) == len(read.axes) and not found.work
    is_same = inner.reducer == found.reducer and read.tensor.dtype == x.dtype
    is_alone = len(readers) == 1 and len(inner.reads) == 1
    return is_direct and is_same and inner.is_plain and is_alone


@dataclass(frozen=True)
class GroupedScan:
    """Scan of rows that are split into groups.

    Attributes:
        output: Element-wise function of the scans inside the groups and of the group prefixes.
        sums: Scan inside all groups, with the groups as lanes.
        before: Scan over groups.
        columns: Rows as `sums` reads them, with one step for each position in a group.
        totals: Values of `sums` that `before` reads.
    """

    output: te.Tensor
    sums: te.Tensor
    before: te.Tensor
    columns: te.Tensor
    totals: te.Tensor

    @property
    def size(self) -> int:
        """Number of elements of a group."""
        return int(str(self.sums.shape[0]))


def match_grouped_scan(output: te.Tensor) -> GroupedScan | None:
    """Recognize a tensor as the result of a grouped scan.

    Returns:
        The description, or None if the tensor is not a grouped scan.
    """
    made_of = list(dict.fromkeys(output.op.input_tensors))
    if not output.shape or not is_pointwise(output) or len(made_of) != 2:
        return None
    if not all(is_scan(x) and has_own_columns(x) for x in made_of):
        return None
    for sums, before in (made_of, made_of[::-1]):
        columns, totals = scan_input(sums), scan_input(before)
        is_of_groups = totals is not None and set(totals.op.input_tensors) == {sums}
        if columns is None or totals is None or not is_of_groups or not is_pointwise(totals):
            continue
        found = GroupedScan(output, sums, before, columns, totals)
        return found if _is_read_in_groups(found) else None
    return None


def has_own_columns(scan: te.Tensor) -> bool:
    """Return whether each element of a step depends only on the same element of previous steps.

    >>> X, S = te.placeholder((1, 8), name="X"), te.placeholder((5, 8), name="S")
    >>> first = te.compute((1, 8), lambda t, i: X[t, i])
    >>> halves = te.compute((5, 8), lambda t, i: S[t - 1, i] / 2.0)
    >>> turned = te.compute((5, 8), lambda t, i: S[t - 1, 7 - i])
    >>> [has_own_columns(te.scan(first, step, S)) for step in (halves, turned)]
    [True, False]
    """
    assert isinstance(scan.op, te.ScanOp)
    states = scan.op.states
    worklist, visited = list(scan.op.input_tensors), set(scan.op.input_tensors)
    while worklist:
        x = worklist.pop()
        for read in x.op.input_tensors:
            if _is_read_by_columns(x, read):
                worklist += {read} - visited
                visited.add(read)
            elif any(leads_to(read, state) for state in states):
                return False
    return True


def _is_read_by_columns(x: te.Tensor, read: te.Tensor) -> bool:
    """Return whether `x` reads only the same columns of `read`, possibly at other steps."""
    columns = [found.axes[1:] for found in accesses(x).reads if found.tensor == read]
    return bool(columns) and all(is_same(axes, x.op.axis[1:]) for axes in columns)


def scan_input(x: te.Tensor) -> te.Tensor | None:
    """Return the tensor that the steps of a scan read besides their state, if it is computed."""
    *_, step = x.op.input_tensors
    return next((read.tensor for read in accesses(step).reads if is_computed(read.tensor)), None)


def _is_read_in_groups(d: GroupedScan) -> bool:
    """Return whether groups are consecutive blocks of the last axis of the output."""
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
