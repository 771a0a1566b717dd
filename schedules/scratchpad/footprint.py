"""Scratchpad footprint of a tile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tecomp import Access, Affine, Layout, Target, TargetError, accesses, te
from tecomp.schedules.analysis.stages import leads_to
from tecomp.schedules.scratchpad.placement import Placement, number
from tecomp.schedules.tiling.register_blocking import width_of

Sizes = Mapping[te.IterVar, int]
"""How many values in a row each axis runs through."""


@dataclass(frozen=True)
class Span:
    """The values of an index while a part of the result is computed.

    Attributes:
        extent: how many in a row, at most.
        start: the first one less the sum of `terms`.
        terms: axes with their coefficients, of which the sum says where a part begins; None if that
            is no such sum.
        most: how many values there are.
    """

    extent: int
    start: int
    terms: frozenset[tuple[te.IterVar, int]] | None
    most: int

    def joined(self, other: Span) -> Span:
        """The values of both."""
        if self.terms is None or self.terms != other.terms:
            return Span(self.most, 0, None, self.most)
        start = min(self.start, other.start)
        extent = max(self.start + self.extent, other.start + other.extent) - start
        return Span(min(extent, self.most), start, self.terms, self.most)

    def room(self, unit: int) -> int:
        """Values in the sticks or tiles that it touches, if those have so many each."""
        if self.extent == 1:
            return 1
        is_axis = self.terms is not None and [c for _, c in self.terms] in ([], [1])
        is_whole = is_axis and self.start % unit == 0
        if is_whole and (self.extent % unit == 0 or self.extent == self.most):
            return self.extent
        return self.extent + unit - 1


Box = tuple[Span, ...]


@dataclass(frozen=True)
class Work:
    """A result with the stages that are computed for it, part by part.

    Attributes:
        output: the result.
        total: the reduction that it is made of, or that it is; None if there is none.
        reads: of each stage that is computed, the result first, all that it reads.
        whole: what is there before.
        depth: the axes that are reduced over.
    """

    output: te.Tensor
    total: te.Tensor | None
    reads: Mapping[te.Tensor, Sequence[Access]]
    whole: Collection[te.Tensor]
    depth: tuple[te.IterVar, ...]

    @property
    def inlined(self) -> list[te.Tensor]:
        """The stages whose elements are computed where they are used."""
        return [x for x in self.reads if x not in (self.output, self.total)]

    def readers(self, x: te.Tensor) -> list[te.Tensor]:
        """The stages that read something."""
        return [y for y, reads in self.reads.items() if any(read.tensor == x for read in reads)]

    def copied(self) -> list[te.Tensor]:
        """What has a copy of its part in the scratchpad: all but what data says the place of."""
        far: set[te.Tensor] = set()
        found: dict[te.Tensor, None] = {}
        for y, reads in self.reads.items():
            far |= {read.tensor for read in reads if read.follows_data or y in far}
            found |= dict.fromkeys(read.tensor for read in reads if read.tensor in self.whole)
        return [x for x in found if x.shape and x not in far]

    def boxes(self, part: Sequence[int], depth: Sizes) -> dict[te.Tensor, Box]:
        """What is needed of each tensor for a part of the result.

        Args:
            part: extents of the part.
            depth: how much of reductions is done at a time; all along the axes that it has not.
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
                    _span(index, extent, number(most, y), spans)
                    for index, extent, most in zip(
                        read.index, extents, read.tensor.shape, strict=True)
                )
                before = found.get(read.tensor, box)
                pairs = zip(box, before, strict=True)
                found[read.tensor] = tuple(one.joined(other) for one, other in pairs)
        return found


def _begin(axis: te.IterVar, extent: int) -> Span:
    return Span(extent, 0, frozenset({(axis, 1)}), number(axis.extent, axis))


def _span(
    index: Affine, extent: int, most: int, spans: Mapping[te.IterVar, Span]
) -> Span:
    """The values of an index, while those of each axis are a span."""
    start, terms = index.const, dict[te.IterVar, int]()
    for axis, factor in index.terms:
        own = spans[axis] if isinstance(axis, te.IterVar) else None
        if own is None or own.terms is None:
            return Span(extent, 0, None, most)
        start += factor * (own.start if factor > 0 else own.start + own.extent - 1)
        for outer, step in own.terms:
            terms[outer] = terms.get(outer, 0) + factor * step
    return Span(extent, start, frozenset((x, c) for x, c in terms.items() if c), most)


def work_of(
    output: te.Tensor, total: te.Tensor | None, stages: Sequence[te.Tensor],
    whole: Collection[te.Tensor],
) -> Work:
    """The stages that are computed for a result.

    Args:
        output: the result.
        total: the reduction that it is made of, or that it is.
        stages: of the program, producers first.
        whole: what is there before.
    """
    own, todo = {output}, [output]
    while todo:
        new = {y for y in todo.pop().op.input_tensors if y not in whole} - own
        own |= new
        todo += new
    ordered = [x for x in reversed(stages) if x in own]
    depth = () if total is None else tuple(total.op.reduce_axis)
    return Work(output, total, {x: accesses(x).reads for x in ordered}, whole, depth)


def reached(
    first: te.Tensor, reads: Mapping[te.Tensor, Sequence[Access]]
) -> dict[te.Tensor, Sequence[Access]]:
    """Of stages, which come after their readers, those that one of them is made of, and itself."""
    needed, found = {first}, dict[te.Tensor, Sequence[Access]]()
    for x, every in reads.items():
        if x in needed:
            found[x] = every
            needed |= {read.tensor for read in every}
    return found


def order_of(box: Box, lane: te.IterVar | None) -> list[int]:
    """The dimensions of a part, the last one that moves on with the lanes of the result last.

    What is computed goes along the lanes of all that it reads; a copy may change what lies there.
    They keep their order for a result without lanes, which has one element in each stick.
    """
    dims = list(range(len(box)))
    along = [dim for dim in dims if box[dim].terms == frozenset({(lane, 1)})]
    return [dim for dim in dims if dim not in along[-1:]] + along[-1:]


def bytes_of(x: te.Tensor, box: Box, where: Placement, *, is_lone: bool = False) -> int:
    """What a part of a tensor takes in the scratchpad, wherever it begins in a stick or a tile.

    Args:
        x: the tensor.
        box: the part, with its dimensions as they lie there.
        where: the machine.
        is_lone: whether each element has a stick of its own.
    """
    if is_lone and box:
        return int(where.bytes([*(span.extent for span in box), 1], x.dtype))
    units = [1] * len(box) + list(where.unit(x.dtype))
    # Of one axis the sticks count, of a tile its columns.
    own = units[-len(box) :] if box else []
    return int(where.bytes([s.room(n) for s, n in zip(box, own, strict=True)], x.dtype))


def is_beside(w: Work, reader: te.Tensor) -> bool:
    """Whether a stage is computed after a reduction and not for each of its terms."""
    return w.total is None or not leads_to(w.total, reader)


@dataclass(frozen=True)
class Reach:
    """How far apart the elements of a whole tensor may be that a core uses.

    Attributes:
        limit: in bytes.
        layouts: of the tensors that are longer.
    """

    limit: int
    layouts: Mapping[te.Tensor, Layout]

    def far(self, parts: Mapping[te.Tensor, Sequence[int]]) -> te.Tensor | None:
        """A tensor of which a core does not reach its part; None if there is none."""
        return next((x for x in self.layouts if self.span(x, parts[x]) > self.limit), None)

    def span(self, x: te.Tensor, part: Sequence[int]) -> int:
        """Bytes of a tensor that a core reaches over for a part at its beginning.

        Whole indices of the outermost dimension in memory that varies count, as the machine counts.
        """
        layout = self.layouts[x]
        last = layout.place([
            max(min(n, extent), 1) - 1 for n, extent in zip(part, layout.shape, strict=True)
        ])
        outer = next((dim for dim, place in enumerate(last) if place), len(last) - 1)
        inner: int = prod(layout.physical_shape[outer + 1 :])
        return (last[outer] + 1) * inner * int(width_of(x))

    def error(
        self, output: te.Tensor, core: Sequence[int], parts: Mapping[te.Tensor, Sequence[int]],
        target: Target,
    ) -> TargetError | None:
        """The refusal of a division whose cores do not reach their parts; None if they do.

        Args:
            output: the result.
            core: extents of the part of a core.
            parts: of each tensor what a core uses for that.
            target: the machine.
        """
        far = self.far(parts)
        if far is None:
            return None
        return TargetError(
            f"{output.name}: a core of target {target.name} reaches {self.limit} bytes of a "
            f"tensor, and a part of {' x '.join(map(str, core))} needs "
            f"{self.span(far, parts[far])} of {far.name}; ask for more parts along other axes, or "
            f"compute {output.name} as several smaller tensors",
            kind="not-divided",
        )


def reach_of(tensors: Iterable[te.Tensor], where: Placement) -> Reach:
    """What a target lets a core reach of tensors.

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
    layouts = {x: where.whole(x) for x in tensors if x.shape and x not in where.near}
    return Reach(limits.span_bytes, {
        x: layout for x, layout in layouts.items()
        if 0 not in layout.shape and prod(layout.physical_shape) * width_of(x) > limits.span_bytes
    })
