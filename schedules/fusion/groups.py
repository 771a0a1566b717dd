"""Partition the stages of a program into fusion groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from math import prod

from tecomp import Access, Target, accesses, knob, te
from tecomp.schedules.analysis.convolution import convolution_of, windows_of
from tecomp.schedules.analysis.matmul import product_of
from tecomp.schedules.analysis.reduction import has_own_columns, match_grouped_scan
from tecomp.schedules.analysis.stages import (
    is_pointwise,
    is_same,
    is_scan,
    is_value_of_row,
    match_copy,
    strip_cast,
)
from tecomp.schedules.common import Size, ceil_div, same_shape
from tecomp.schedules.scratchpad.placement import NO_LAYOUTS, Layouts, Placement, placement_of
from tecomp.schedules.tiling.register_blocking import core_of, width_of

_MAX_FREE_OPERATIONS = 4
"""Maximum operations per element that cost no more than storing and loading it."""
_MAX_EXTRA_OPERATIONS = 64
"""Maximum operations per element up to which tuning may compute a stage in each of its readers."""
_FIND = 8
"""Operations to compute the address of a gathered element, as a vector of addresses."""
_MAX_EXPRESSION_OPERATIONS = 256
"""Maximum operations of an expression including all stages inlined into it."""
_MIN_ROW_ELEMENTS = 64
"""Minimum elements of a row that is traversed by itself, in vectors along the row."""
_UNKNOWN = 1024
"""Value that symbolic extents count as."""


@dataclass(frozen=True)
class FusedStages:
    """Fusion group: stages that are computed in the same loop nest.

    Attributes:
        output: Stage that has the loop nest.
        chain: Stages from `output` back to the reduction whose epilogue they form; only `output` if
            there is none.
        rows: Stages that are computed for each row of `output`, producers first, or the scan whose
            steps run along its rows; empty if the group is a chain.
        is_value: Whether an element of `output` is one value per row instead of an element of a
            row.
    """

    output: te.Tensor
    chain: tuple[te.Tensor, ...]
    rows: tuple[te.Tensor, ...] = ()
    is_value: bool = False


@dataclass(frozen=True)
class StageGraph:
    """Stages of a schedule with their readers.

    Attributes:
        stages: Computed stages, producers first.
        readers: Stages that read each of them.
        results: Stages that are outputs.
    """

    stages: tuple[te.Tensor, ...]
    readers: dict[te.Tensor, list[te.Tensor]]
    results: frozenset[te.Tensor]
    positions: dict[te.Tensor, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", {x: k for k, x in enumerate(self.stages)})

    def members(
        self, output: te.Tensor, joins: Callable[[te.Tensor], bool]
    ) -> set[te.Tensor]:
        """Return `output` with the stages that only members read and that may join them.

        Only operands of members are visited, last first, so that long programs take linear time.
        """
        members, found, pending = {output}, set[te.Tensor](), [(0, output)]
        while pending:
            _, x = heappop(pending)
            if x is not output and not (members.issuperset(self.readers[x]) and joins(x)):
                continue
            members.add(x)
            for operand in (y.op.output(0) for y in x.op.input_tensors):
                if operand in self.positions and operand not in found:
                    found.add(operand)
                    heappush(pending, (-self.positions[operand], operand))
        return members


def program_of(s: te.Schedule) -> StageGraph:
    """Return the program of a schedule; an operation with several outputs counts as its first."""
    stages = tuple([x.op.output(0) for x in s.stages if x.op.input_tensors])
    readers: dict[te.Tensor, list[te.Tensor]] = {x: [] for x in stages}
    for y in stages:
        for op in dict.fromkeys([x.op for x in y.op.input_tensors]):
            if op.output(0) in readers:
                readers[op.output(0)].append(y)
    return StageGraph(stages, readers, frozenset([s[op].op.output(0) for op in s.outputs]))


def groups_of(
    p: StageGraph, target: Target, *, is_resident: bool = False, layouts: Layouts = NO_LAYOUTS
) -> tuple[list[FusedStages], list[te.Tensor]]:
    """Return the groups of a program in order of computation, and the stages that are inlined.

    Args:
        p: Program.
        target: Target.
        is_resident: Whether values stay in scratchpads from group to group. Computing them again in
            each core saves nothing then, and computing them row by row only if they are read from
            inputs by all cores.
        layouts: Layouts of tensors that do not have the default layout of the target.
    """
    inlined = _stages_to_inline(p)
    found: dict[te.Tensor, FusedStages] = {}
    used = {
        x for x in p.stages if is_of_scan(p, x) or (_is_absorbed(p, x) and not is_resident)
    }
    for group in _scans_in_groups(p):
        found[group.output] = group
        used |= {group.output, *group.rows}
        inlined -= {group.output, *group.rows}
    by_row: tuple[tuple[Callable[..., set[te.Tensor]], bool], ...] = (
        (partial(_rows_of_all_cores, layouts=layouts), False),) if is_resident else (
        (_rows, False), (partial(_values, inlined=inlined), True))
    for members_of, is_value in by_row:
        for group in _row_by_row(p, used, inlined, target, members_of):
            group = replace(group, is_value=is_value)
            found[group.output] = group
    for x in p.stages:
        output = _transposable_stage(p, x, inlined, target) if x not in used else None
        if output is not None and output not in used:
            found[output] = FusedStages(output, (output,), (x,))
            used |= {x, output}
    for x in p.stages:
        if x.op.reduce_axis and x not in used:
            chain = _chain(p, x, used)
            found[chain[0]] = FusedStages(chain[0], chain)
            used |= set(chain)
            inlined.discard(chain[0])
    for x in p.stages:
        if x not in used and x not in inlined:
            found[x] = FusedStages(x, (x,))
    order = [found[x] for x in p.stages if x in found]
    middle = {x for group in order for x in group.chain[1:-1]}
    return order, [x for x in p.stages if x in inlined and x not in middle]


def _row_by_row(
    p: StageGraph, used: set[te.Tensor], inlined: set[te.Tensor], target: Target,
    members_of: Callable[..., set[te.Tensor]],
) -> Iterator[FusedStages]:
    """Yield the groups that are computed row by row of their last stage; add them to `used`."""
    after = _after_reductions(p)
    for x in reversed(p.stages):
        if x not in after or x in used or x in inlined or not x.shape:
            continue
        members = members_of(p, x, used, target)
        if not any(y.op.reduce_axis for y in members):
            continue
        if target.core is None:
            # Rows in a scratchpad are not recomputed for each reader.
            inlined -= members
        rows = tuple(y for y in p.stages if y in members and y not in inlined)
        used |= members | {x}
        yield FusedStages(x, (x,), rows)


def _after_reductions(p: StageGraph) -> set[te.Tensor]:
    """Return the stages that depend on a reduction; only these may be computed from rows."""
    found: set[te.Tensor] = set()
    for x in p.stages:
        if any(y.op.reduce_axis or y.op.output(0) in found for y in x.op.input_tensors):
            found.add(x)
    return found


def _stages_to_inline(p: StageGraph) -> set[te.Tensor]:
    """Return the pointwise stages to inline, because that adds little or no work."""
    found: set[te.Tensor] = set()
    factors = {x for y in p.stages for x in _factors(y)}
    times: dict[te.Tensor, float] = {}
    for x in reversed(p.stages):
        readers = p.readers[x]
        times[x] = sum([
            (times[y] if y in found else _points(y)) * read.times
            for y in readers for read in accesses(y).reads if read.tensor == x
        ])
        is_free = x not in p.results and x not in factors and x.op.num_outputs == 1
        if not (is_free and is_pointwise(x) and all(accesses(y).reads for y in readers)):
            continue
        if len(readers) > 1 and _is_transposing(x) and not all(_undoes(y, x) for y in readers):
            continue
        repeats = times[x] / max(_count(x.shape), 1)
        extra = _work(x) * (repeats - 1)
        is_cheap = extra <= _MAX_FREE_OPERATIONS
        options = [is_cheap, not is_cheap] if extra <= _MAX_EXTRA_OPERATIONS else [False]
        if knob(f"inline_{p.positions[x]}", options):
            found.add(x)
    return _short(p, found)


def find_transposed_terms(p: StageGraph) -> te.Tensor | None:
    """Return a transposing stage that only reductions read, and that they can absorb.

    Absorbed into the reduction, its source is traversed in memory order. Factors of products are
    packed in any case or read unpacked, so a factor qualifies only if it is a pure permutation of
    the axes of its source.
    """
    for x in p.stages:
        if _is_turned_factor(p, x):
            return x
    if not any(map(_is_transposing, p.stages)):
        return None
    inlined = _stages_to_inline(p)
    turning: set[te.Tensor] = set()
    for x in p.stages:
        if x not in inlined:
            continue
        if _is_transposing(x) or turning & set(x.op.input_tensors):
            turning.add(x)
            if all(y.op.reduce_axis and x not in _factors(y) for y in p.readers[x]):
                return x
    return None


def _is_turned_factor(p: StageGraph, x: te.Tensor) -> bool:
    """Return whether a stage permutes the axes of a tensor and is a factor of products only."""
    source = match_copy(x)
    if source is None or source.tensor.dtype != x.dtype:
        return False
    if x in p.results or not p.readers[x] or is_same(source.axes, x.op.axis):
        return False
    for y in p.readers[x]:
        product = product_of(y, [y]) if y.op.reduce_axis else None
        if product is None:
            return False
        if sum(factor.tensor == x for factor in (product.rows, product.columns)) != 1:
            return False
    return True


def _is_transposing(x: te.Tensor) -> bool:
    """Return whether a pointwise stage is strided along the contiguous axis of an input.

    Squares of the stage are transposed in registers, once for all its readers.
    """
    if not x.op.axis or x.op.reduce_axis:
        return False
    last = x.op.axis[-1]
    return any(
        read.index and read.axes[-1] not in (None, last)
        and any(index.coefficient(last) != 0 for index in read.index)
        for read in accesses(x).reads
    )


def _is_across(x: te.Tensor) -> bool:
    """Return whether an input of a reduction is contiguous along a result axis, not its terms."""
    if not x.op.reduce_axis or not x.op.axis:
        return False
    return any(
        read.index and any(read.index[-1].coefficient(axis) for axis in x.op.axis)
        and all(read.index[-1].coefficient(run) == 0 for run in x.op.reduce_axis)
        and any(index.coefficient(run) for index in read.index for run in x.op.reduce_axis)
        for read in accesses(x).reads
    )


def _undoes(y: te.Tensor, x: te.Tensor) -> bool:
    """Return whether `y` restores the contiguous axis of the inputs of `x`, which `y` reads."""
    if not y.op.axis or y.op.reduce_axis:
        return False
    last = y.op.axis[-1]
    dims = [
        [dim for dim, index in enumerate(read.index) if index.coefficient(last) != 0]
        for read in accesses(y).reads if read.tensor == x
    ]
    if any(len(found) != 1 for found in dims):
        return False
    contiguous = {x.op.axis[found[0]] for found in dims}
    return all(read.axes[-1] in contiguous for read in accesses(x).reads if read.index)


def _work(x: te.Tensor) -> int:
    """Return the operations per element, including address computation by divisions."""
    found = accesses(x)
    far_reads = sum(_is_far(read) for read in found.reads if read.index)
    return found.work + _FIND * far_reads


def _is_far(read: Access) -> bool:
    """Return whether a read is a gather that is not affine, even as a row-major offset."""
    if read.index[-1].is_affine:
        return False
    return read.offset is None or not read.offset.is_affine


def _short(p: StageGraph, inlined: set[te.Tensor]) -> set[te.Tensor]:
    """Return the stages to inline without exceeding `_MAX_EXPRESSION_OPERATIONS`."""
    size: dict[te.Tensor, int] = {}
    left = set(inlined)
    for x in p.stages:
        found = accesses(x)
        parts = {read.tensor: 0 for read in found.reads if read.tensor in left}
        for read in found.reads:
            if read.tensor in parts:
                parts[read.tensor] += read.times * (size[read.tensor] + 1)
        while parts and found.work + sum(parts.values()) > _MAX_EXPRESSION_OPERATIONS:
            longest = max(parts, key=lambda y: parts[y])
            left.discard(longest)
            del parts[longest]
        size[x] = found.work + sum(parts.values())
    return left


def _factors(y: te.Tensor) -> tuple[te.Tensor, ...]:
    """Return the inputs that a stage packs in its own order, so that inlining them is useless."""
    if accesses(y).reducer is None:
        return ()
    if (product := product_of(y, [y], any_terms=True)) is not None:
        return product.rows.tensor, product.columns.tensor
    if (convolution := convolution_of(y, [y])) is not None:
        return convolution.image, convolution.weights
    if (windows := windows_of(y, [y])) is not None:
        return (windows.image,)
    return ()


def _is_absorbed(p: StageGraph, x: te.Tensor) -> bool:
    """Return whether a pointwise stage is computed while it is packed for its only reader.

    Packing may run several times, once for each core. A stage that can be the epilogue of a
    reduction is therefore fused with the reduction.
    """
    is_free = is_pointwise(x) and x not in p.results and len(p.readers[x]) == 1
    if not is_free or x not in _factors(p.readers[x][0]):
        return False
    return not any(
        y.op.reduce_axis and y in p.readers and len(p.readers[y]) == 1 for y in x.op.input_tensors
    )


def is_of_scan(p: StageGraph, x: te.Tensor) -> bool:
    """Return whether a stage is the start or the step of a scan."""
    return any(accesses(y).is_scan for y in p.readers[x])


def _scans_in_groups(p: StageGraph) -> Iterator[FusedStages]:
    """Yield grouped scans, each with the stage that adds the prefix of each group."""
    for x in p.stages:
        d = match_grouped_scan(x)
        if d is None:
            continue
        members = {d.columns, d.sums, d.totals, d.before, x}
        members |= {y for z in (d.sums, d.before) for y in z.op.input_tensors if y in p.readers}
        members |= {y for y in d.columns.op.input_tensors if y in p.readers and is_pointwise(y)
                and p.readers[y] == [d.columns] and y not in p.results}
        inner = members - {x}
        if not inner & p.results and all(set(p.readers[y]) <= members for y in inner):
            yield FusedStages(
                x, (x,), tuple(y for y in p.stages if y in inner and not is_of_scan(p, y))
            )


def _transposable_stage(
    p: StageGraph, scan: te.Tensor, inlined: set[te.Tensor], target: Target
) -> te.Tensor | None:
    """Return the pointwise stage whose rows are the steps of a scan, if it is the only reader."""
    if target.core is None or not is_scan(scan):
        return None
    if len(scan.shape) != 2 or scan.op.num_outputs > 1 or scan in p.results:
        return None
    if not has_own_columns(scan):
        return None
    core, steps = core_of(target), scan.shape[0]
    if not isinstance(steps, int) or 2 * steps * core.vector_bytes > core.second_cache:
        return None
    read, is_transposed = scan, True
    while read is scan or read in inlined:
        readers = p.readers[read]
        if len(readers) != 1 or not is_pointwise(readers[0]):
            return None
        (y,) = readers
        order = tuple(reversed(y.op.axis)) if is_transposed else y.op.axis
        if not all(is_same(x.axes, order) for x in accesses(y).reads if x.tensor == read):
            return None
        read, is_transposed = y, False
    return read


def _points(y: te.Tensor) -> int:
    return _count(axis.extent for axis in (*y.op.axis, *y.op.reduce_axis))


def _count(sizes: Iterable[Size]) -> int:
    return prod(size if isinstance(size, int) else _UNKNOWN for size in sizes)


def _chain(p: StageGraph, total: te.Tensor, used: set[te.Tensor]) -> tuple[te.Tensor, ...]:
    """Return the element-wise epilogue of a reduction and the reduction, last stage first."""
    chain = [total]
    while True:
        x = chain[0]
        if x in p.results or len(p.readers[x]) != 1 or x.op.num_outputs > 1:
            return tuple(chain)
        (y,) = p.readers[x]
        reads = [read for read in accesses(y).reads if read.tensor == x]
        is_same_place = all(is_same(read.axes, y.op.axis) for read in reads)
        if y in used or not (reads and is_pointwise(y) and is_same_place):
            return tuple(chain)
        if not same_shape(x.shape, y.shape) or y.op.num_outputs > 1:
            return tuple(chain)
        chain.insert(0, y)


def _rows(
    p: StageGraph, output: te.Tensor, used: set[te.Tensor], target: Target
) -> set[te.Tensor]:
    """Return the stages that can be computed row by row of `output`: no other stage reads them."""
    if len(output.shape) < 2 or not is_pointwise(output) or not _fits(output, target):
        return set()
    if _is_transposing(output):
        return set()
    return _members(p, output, used)


def _rows_of_all_cores(
    p: StageGraph, output: te.Tensor, used: set[te.Tensor], target: Target, layouts: Layouts
) -> set[te.Tensor]:
    """Return the stages of rows that are read from inputs, if there are rows for all cores.

    An operand that a kernel computes may stay in the scratchpads in another division, which
    kernels of single stages follow. Sticks along other axes contain elements of several rows.
    """
    members = _rows(p, output, used, target)
    default, where = placement_of(target), placement_of(target, layouts)
    if not members or default is None or where is None:
        return set()
    units = default.units(output)[:-1]
    rows = prod([ceil_div(_count([n]), unit) for n, unit in zip(output.shape, units, strict=False)])
    operands = {x for y in members | {output} for x in y.op.input_tensors} - members
    is_read = all(x not in p.positions or match_copy(x) is not None for x in operands)
    has_rows = all(
        where.units(x) == default.units(x) for x in (output, *operands)
        if same_shape(x.shape, output.shape)
    )
    return members if rows >= target.cores and is_read and has_rows else set()


def _values(
    p: StageGraph, output: te.Tensor, used: set[te.Tensor], target: Target, inlined: set[te.Tensor]
) -> set[te.Tensor]:
    """Return the stages that compute one value per row; empty if a single stage reads the row."""
    is_shared = target.core is not None and _count(output.shape) >= target.core.count
    if not is_shared or not _is_value(output, output):
        return set()
    def joins(x: te.Tensor) -> bool:
        is_free = x not in used and x not in p.results and x.op.num_outputs == 1
        return is_free and _is_value(x, output) and all(
            _reads_own(y, x, len(output.shape)) for y in p.readers[x])

    members = p.members(output, joins)
    walks = [_walk_of(x, len(output.shape)) for x in members if x.op.reduce_axis]
    # The bounds of a row of symbolic length choose the loops of a single reduction.
    runs = [x.op.reduce_axis[0].extent for x in members if x.op.reduce_axis]
    is_open = not all(isinstance(extent, int) for extent in runs)
    stored = members - inlined if is_open else members
    is_single = len(walks) == 1 and all(len(x.shape) == len(output.shape) for x in stored)
    is_long = any(length >= _MIN_ROW_ELEMENTS for length, _ in walks)
    is_small = all(size <= core_of(target).second_cache // 8 for _, size in walks)
    return members - {output} if is_long and is_small and not is_single else set()


def _walk_of(x: te.Tensor, leading: int) -> tuple[int, int]:
    """Return the elements that a reduction reads for one value, and the bytes for a whole row."""
    (run,) = x.op.reduce_axis
    width = max(read.tensor.dtype.bytes for read in accesses(x).reads)
    known = prod(size for size in (run.extent, *x.shape[leading:]) if isinstance(size, int))
    return _count([run.extent]), known * int(width)


def _is_value(x: te.Tensor, output: te.Tensor) -> bool:
    """Return whether a stage has one value, or a row of partial values, per element of `output`."""
    leading = len(output.shape)
    if not same_shape(x.shape[:leading], output.shape) or len(x.shape) > leading + 1:
        return False
    if not x.op.reduce_axis:
        return bool(is_pointwise(x))
    found, (run, *others) = accesses(x), x.op.reduce_axis
    if found.reducer is None or found.has_start or others or not found.reads:
        return False
    run_reads = [read for read in found.reads if any(run in index.axes for index in read.index)]
    in_order = all(read.index[-1].coefficient(run) == 1 for read in run_reads)
    same_rows = all(is_same(read.axes[:leading], x.op.axis[:leading]) for read in run_reads)
    return bool(run_reads) and in_order and (same_rows or len(x.shape) == leading)


def _reads_own(y: te.Tensor, x: te.Tensor, leading: int) -> bool:
    """Return whether `y` reads only elements of `x` with the same leading index."""
    reads = [read for read in accesses(y).reads if read.tensor == x]
    return all(is_same(read.axes[:leading], y.op.axis[:leading]) for read in reads)


def _members(p: StageGraph, output: te.Tensor, used: set[te.Tensor]) -> set[te.Tensor]:
    def joins(x: te.Tensor) -> bool:
        is_free = x not in used and x not in p.results and x.op.num_outputs == 1
        if not is_free or _is_transposing(x) or _is_across(x):
            return False
        return _is_part_of_row(x, output) and all(
            _stays_in_row(x, y, output) for y in p.readers[x])

    return p.members(output, joins) - {output}


def _fits(output: te.Tensor, target: Target) -> bool:
    """Return whether several rows fit the second-level cache, and there are rows for all cores.

    On targets with scratchpads, rows that exceed the scratchpad are processed in pieces, so the
    result is always True.
    """
    if target.core is None:
        return True
    core, (*rows, columns) = core_of(target), output.shape
    fits_cache = isinstance(columns, int) and 8 * columns * width_of(output) <= core.second_cache
    return fits_cache and _count(rows) >= core.count


def _is_part_of_row(x: te.Tensor, output: te.Tensor) -> bool:
    """Return whether a stage is a row or a value per row: pointwise, or a reduction of one row."""
    is_value: bool = is_value_of_row(x, output)
    if x.op.reduce_axis:
        found = accesses(x)
        is_known = found.reducer is not None and not found.has_start
        return is_value and len(x.op.reduce_axis) == 1 and is_known
    return is_pointwise(x) and (is_value or same_shape(x.shape, output.shape))


def _stays_in_row(x: te.Tensor, y: te.Tensor, output: te.Tensor) -> bool:
    """Return whether `y` reads only elements of `x` in the same row."""
    leading = len(output.shape) - 1
    reads = [read for read in accesses(y).reads if read.tensor == x]
    return all(is_same(read.axes[:leading], y.op.axis[:leading]) for read in reads)


def materialized_tensors(s: te.Schedule, groups: Sequence[FusedStages]) -> set[te.Tensor]:
    """Return the tensors that are in memory before their readers: inputs and results of groups."""
    inputs = _with_sibling_outputs(stage.op.output(0) for stage in s.stages
        if not stage.op.input_tensors)
    return inputs | _with_sibling_outputs(group.output for group in groups)


def _with_sibling_outputs(tensors: Iterable[te.Tensor]) -> set[te.Tensor]:
    """Return the tensors with all other outputs of their operations."""
    return {y for x in tensors for y in x.op.outputs}


def groups_on_cores(p: StageGraph, where: Placement) -> list[FusedStages]:
    """Return the groups for scratchpads; a stage that several groups need is a separate group."""
    groups, inlined = groups_of(p, where.target)
    found = {group.output: group for group in groups}
    owners = {x: {group.output} for group in groups for x in (*group.chain, *group.rows)}
    for x in reversed(p.stages):
        if x in owners:
            continue
        owners[x] = {y for reader in p.readers[x] for y in owners[reader]}
        is_local = x in inlined or is_of_scan(p, x) or _is_brought(p, x)
        if not is_local or len(owners[x]) > 1 or any(found[y].rows for y in owners[x]):
            found[x], owners[x] = FusedStages(x, (x,)), {x}
    return [found[x] for x in p.stages if x in found]


def _is_brought(p: StageGraph, x: te.Tensor) -> bool:
    """Return whether a factor is converted or padded while it is copied to a scratchpad."""
    if strip_cast(x) is not x:
        return True
    found = [convolution_of(y, [y]) for y in p.readers[x] if y.op.reduce_axis]
    return any(d is not None and d.image == x for d in found)
