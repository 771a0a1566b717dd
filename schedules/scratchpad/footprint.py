"""Scratchpad footprint of a tile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm, prod

from tecomp import Access, Affine, Layout, Target, TargetError, accesses, te
from tecomp.schedules.analysis.stages import leads_to
from tecomp.schedules.scratchpad.placement import Placement, number
from tecomp.schedules.tiling.register_blocking import width_of

Sizes = Mapping[te.IterVar, int]
"""Number of consecutive values that each axis takes."""


@dataclass(frozen=True)
class IndexInterval:
    """Values of an index while a part of the result is computed.

    Attributes:
        extent: Maximum number of consecutive values.
        start: First value minus the sum of `terms`.
        terms: Axes with their coefficients, whose sum is the start of a part; None if the start has
            no such form.
        max_extent: Extent of the dimension.
    """

    extent: int
    start: int
    terms: frozenset[tuple[te.IterVar, int]] | None
    max_extent: int

    def hull(self, other: IndexInterval) -> IndexInterval:
        """Return a span that contains both spans."""
        if self.terms is None or self.terms != other.terms:
            return IndexInterval(self.max_extent, 0, None, self.max_extent)
        start = min(self.start, other.start)
        extent = max(self.start + self.extent, other.start + other.extent) - start
        return IndexInterval(min(extent, self.max_extent), start, self.terms, self.max_extent)

    def padded_extent(self, unit: int) -> int:
        """Return the extent rounded out to the sticks or tiles of `unit` values that it touches."""
        if self.extent == 1:
            return 1
        is_axis = self.terms is not None and [c for _, c in self.terms] in ([], [1])
        is_whole = is_axis and self.start % unit == 0
        if is_whole and (self.extent % unit == 0 or self.extent == self.max_extent):
            return self.extent
        return self.extent + unit - 1


Box = tuple[IndexInterval, ...]


@dataclass(frozen=True)
class TiledComputation:
    """Result with the stages that are computed for it, part by part.

    Attributes:
        output: Result.
        total: Reduction that the result consists of or depends on; None if there is none.
        reads: Reads of each computed stage, with the result first.
        materialized: Tensors that are already in memory.
        depth: Reduction axes.
    """

    output: te.Tensor
    total: te.Tensor | None
    reads: Mapping[te.Tensor, Sequence[Access]]
    materialized: Collection[te.Tensor]
    depth: tuple[te.IterVar, ...]

    @property
    def inlined_stages(self) -> list[te.Tensor]:
        """Stages that are computed at their use."""
        return [x for x in self.reads if x not in (self.output, self.total)]

    def readers(self, x: te.Tensor) -> list[te.Tensor]:
        """Return the stages that read a tensor."""
        return [y for y, reads in self.reads.items() if any(read.tensor == x for read in reads)]

    def copied_inputs(self) -> list[te.Tensor]:
        """Return the inputs to copy to the scratchpad: those without data-dependent indices."""
        gathered: set[te.Tensor] = set()
        found: dict[te.Tensor, None] = {}
        for y, reads in self.reads.items():
            gathered |= {read.tensor for read in reads if read.follows_data or y in gathered}
            found |= dict.fromkeys(
                read.tensor for read in reads if read.tensor in self.materialized
            )
        return [x for x in found if x.shape and x not in gathered]

    def boxes(self, part: Sequence[int], depth: Sizes) -> dict[te.Tensor, Box]:
        """Return the region of each tensor that a part of the result needs.

        Args:
            part: Extents of the part.
            depth: Extents of the piece of the reduction that is processed at a time; axes that are
                missing are processed in full.
        """
        found = {self.output: tuple(map(_begin, self.output.op.axis, part))}
        for y, reads in self.reads.items():
            spans = dict(zip(y.op.axis, found[y], strict=True))
            for axis in self.depth if y == self.total else y.op.reduce_axis:
                spans[axis] = _begin(axis, depth.get(axis) or number(axis.extent, y))
            sizes = {axis: span.extent for axis, span in spans.items()}
            for read in reads:
                extents = read.footprint(sizes)
                box = tuple(
                    _span(index, extent, number(size, y), spans)
                    for index, extent, size in zip(
                        read.index, extents, read.tensor.shape, strict=True)
                )
                before = found.get(read.tensor, box)
                pairs = zip(box, before, strict=True)
                found[read.tensor] = tuple(one.hull(other) for one, other in pairs)
        return found


def _begin(axis: te.IterVar, extent: int) -> IndexInterval:
    return IndexInterval(extent, 0, frozenset({(axis, 1)}), number(axis.extent, axis))


def _span(
    index: Affine, extent: int, size: int, spans: Mapping[te.IterVar, IndexInterval]
) -> IndexInterval:
    """Return the span of an index from the spans of its axes."""
    start, terms = index.const, dict[te.IterVar, int]()
    for axis, factor in index.terms:
        interval = spans[axis] if isinstance(axis, te.IterVar) else None
        if interval is None or interval.terms is None:
            return IndexInterval(extent, 0, None, size)
        start += factor * (interval.start if factor > 0 else interval.start + interval.extent - 1)
        for outer, step in interval.terms:
            terms[outer] = terms.get(outer, 0) + factor * step
    return IndexInterval(extent, start, frozenset((x, c) for x, c in terms.items() if c), size)


def work_of(
    output: te.Tensor, total: te.Tensor | None, stages: Sequence[te.Tensor],
    stored: Collection[te.Tensor],
) -> TiledComputation:
    """Return the stages that are computed for a result.

    Args:
        output: Result.
        total: Reduction that the result consists of or depends on; None if there is none.
        stages: Stages of the program, producers first.
        stored: Tensors that are already in memory.
    """
    members, worklist = {output}, [output]
    while worklist:
        new = {y for y in worklist.pop().op.input_tensors if y not in stored} - members
        members |= new
        worklist += new
    ordered = [x for x in reversed(stages) if x in members]
    depth = () if total is None else tuple(total.op.reduce_axis)
    return TiledComputation(output, total, {x: accesses(x).reads for x in ordered}, stored, depth)


def transitive_inputs(
    first: te.Tensor, reads: Mapping[te.Tensor, Sequence[Access]]
) -> dict[te.Tensor, Sequence[Access]]:
    """Return `first` and the stages it depends on, among stages listed after their readers."""
    needed, found = {first}, dict[te.Tensor, Sequence[Access]]()
    for x, x_reads in reads.items():
        if x in needed:
            found[x] = x_reads
            needed |= {read.tensor for read in x_reads}
    return found


def order_of(box: Box, lane: te.IterVar | None) -> list[int]:
    """Return the dimensions of a region with the last one along the lanes of the result moved last.

    Computation runs along the lanes of all operands; only a copy can change which elements the
    lanes contain. The order is unchanged for a result without lanes, which has one element in each
    stick.
    """
    dims = list(range(len(box)))
    lane_dims = [dim for dim in dims if box[dim].terms == frozenset({(lane, 1)})]
    return [dim for dim in dims if dim not in lane_dims[-1:]] + lane_dims[-1:]


def bytes_of(x: te.Tensor, box: Box, where: Placement, *, is_lone: bool = False) -> int:
    """Return the scratchpad bytes of a region, for any start inside a stick or a tile.

    Args:
        x: Tensor.
        box: Region, with its dimensions in scratchpad order.
        where: Placement of tensors in the memories of the target.
        is_lone: Whether each element has a separate stick. Default: False.
    """
    rows = where.target.memory(where.scratchpad).rows or 1
    if is_lone and box:
        *extents, last = [span.extent for span in box]
        return int(where.bytes([*extents, box[-1].padded_extent(rows) if rows > 1 else last, 1],
                               x.dtype))
    height, width = where.unit(x.dtype)
    units = [*[1] * len(box), lcm(height, rows), width]
    # A 1-D region consists of sticks, or of the columns of tiles.
    sizes = units[-len(box) :] if box else []
    return int(where.bytes([s.padded_extent(n) for s, n in zip(box, sizes, strict=True)], x.dtype))


def is_beside(w: TiledComputation, reader: te.Tensor) -> bool:
    """Return whether a stage is computed after a reduction and not for each of its terms."""
    return w.total is None or not leads_to(w.total, reader)


@dataclass(frozen=True)
class Reach:
    """Limit of the address span that a core can use of one tensor.

    Attributes:
        limit: Limit in bytes.
        layouts: Layouts of the tensors that exceed the limit.
    """

    limit: int
    layouts: Mapping[te.Tensor, Layout]

    def unaddressable_tensor(self, parts: Mapping[te.Tensor, Sequence[int]]) -> te.Tensor | None:
        """Return a tensor of which a core cannot address its part; None if there is none."""
        return next((x for x in self.layouts if self.span(x, parts[x]) > self.limit), None)

    def span(self, x: te.Tensor, part: Sequence[int]) -> int:
        """Return the bytes of a tensor that a core spans for a part at its start.

        The span is rounded up to whole indices of the outermost physical dimension that varies, as
        the hardware counts.
        """
        layout = self.layouts[x]
        last = layout.place([
            max(min(n, extent), 1) - 1 for n, extent in zip(part, layout.shape, strict=True)
        ])
        outer = next((dim for dim, coord in enumerate(last) if coord), len(last) - 1)
        inner: int = prod(layout.physical_shape[outer + 1 :])
        return (last[outer] + 1) * inner * int(width_of(x))

    def error(
        self, output: te.Tensor, core: Sequence[int], parts: Mapping[te.Tensor, Sequence[int]],
        target: Target,
    ) -> TargetError | None:
        """Return the error for a division whose parts exceed the span of a core; None if they fit.

        Args:
            output: Result.
            core: Extents of the part of a core.
            parts: Region of each tensor that a core uses for its part.
            target: Target.
        """
        x = self.unaddressable_tensor(parts)
        if x is None:
            return None
        return TargetError(
            "{output}: a core of target {target} can address {limit} bytes of a tensor, but a "
            "part of {core} requires {subject} of {far}; request more parts along other axes, or "
            "compute {output} as several smaller tensors",
            kind="indivisible", output=output.name, target=target.name, limit=self.limit,
            core=" x ".join(map(str, core)), subject=self.span(x, parts[x]), far=x.name,
        )


def reach_of(tensors: Iterable[te.Tensor], where: Placement) -> Reach:
    """Return the address span limit of a target for the given tensors.

    >>> from tecomp import Target
    >>> from tecomp.schedules.scratchpad.placement import placement_of
    >>> A = te.placeholder((8192, 32768), "float16")
    >>> found = reach_of([A], placement_of(Target.load("stick128")))
    >>> found.limit, found.span(A, (512, 16384)), found.span(A, (512, 8192))
    (268431360, 268435456, 134217728)
    """
    limits = where.target.limits
    if limits is None or limits.span_bytes is None:
        return Reach(0, {})
    layouts = {
        x: where.layout_of_tensor(x) for x in tensors if x.shape and x not in where.resident_tensors
    }
    return Reach(limits.span_bytes, {
        x: layout for x, layout in layouts.items()
        if 0 not in layout.shape and prod(layout.physical_shape) * width_of(x) > limits.span_bytes
    })


def depth_units(w: TiledComputation, where: Placement) -> dict[te.IterVar, int]:
    """Return the indivisible extents along the reduction axes: sticks, if they run along them."""
    units = dict.fromkeys(w.depth, 1)
    for read in (read for reads in w.reads.values() for read in reads if read.index):
        for axis, unit in zip(read.axes, where.units(read.tensor), strict=True):
            if axis in units:
                units[axis] = lcm(units[axis], unit)
    return units
