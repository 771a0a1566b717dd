"""Rectangular regions of tensors, such as `A[i, 0:16]`, as operands of intrinsics."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.compute.affine_index import affine_of
from tecomp.compute.tensor import Tensor, TensorLoad, TensorSlice, range_text
from tecomp.errors import DefinitionError
from tecomp.ir.nodes.expr import Expr, as_expr, cast, is_const
from tecomp.ir.nodes.stmt import Extent
from tecomp.source_locations import Location, user_location


@dataclass(frozen=True, slots=True)
class TensorRegion:
    """Rectangular region of a tensor, given by its first element and its extents.

    Attributes:
        tensor: Tensor that contains the region.
        starts: Indices of the first element.
        extents: Extent along each axis; None for an axis with a single index.
        text: Text of the region, for error messages.
        location: Source location of the region.
    """

    tensor: Tensor
    starts: tuple[Expr, ...]
    extents: tuple[Extent | None, ...]
    text: str
    location: Location | None

    def shape_as(self, rank: int) -> tuple[Extent, ...]:
        """Return the shape of the region as an operand of the given rank; see `axes_as`."""
        return tuple(self.extent(k) for k in self.axes_as(rank))

    def axes_as(self, rank: int) -> tuple[int, ...]:
        """Return the axes of the region that correspond to the axes of an operand.

        These are the axes given by ranges if there are at least `rank` of them, otherwise the last
        `rank` axes.
        """
        ranged = [k for k, extent in enumerate(self.extents) if extent is not None]
        if len(ranged) >= rank:
            return tuple(ranged)
        # An operand axis of extent 1 may be given as a single index instead of a range.
        return tuple(range(max(len(self.extents) - rank, 0), len(self.extents)))

    def extent(self, axis: int) -> Extent:
        """Return the extent along an axis, 1 for a single index."""
        extent = self.extents[axis]
        return 1 if extent is None else extent

    def element(self, axes: tuple[int, ...], index: tuple[Expr, ...]) -> TensorLoad:
        """Return the load at `index` relative to the first element, along the given axes."""
        inside = dict(zip(axes, index, strict=True))
        indices = tuple(
            start if k not in inside else _plus(start, inside[k])
            for k, start in enumerate(self.starts)
        )
        return TensorLoad(self.tensor, indices, self.location)


def part_of(argument: object, where: str) -> TensorRegion | None:
    """Return the region that an intrinsic argument denotes, or None for a number.

    Raises:
        DefinitionError: If a range is empty or out of bounds.
    """
    if isinstance(argument, Tensor):
        argument = TensorSlice(argument, ())
    if isinstance(argument, TensorLoad):
        argument = TensorSlice(argument.tensor, argument.indices)
    if not isinstance(argument, TensorSlice):
        return None
    tensor = argument.tensor
    starts: list[Expr] = []
    extents: list[Extent | None] = []
    text = f"{tensor.name}[{', '.join(map(range_text, argument.indices)) or ':'}]"
    for k, extent in enumerate(tensor.shape):
        index = argument.indices[k] if k < len(argument.indices) else slice(None)
        if not isinstance(index, slice):
            starts.append(index)
            extents.append(None)
            continue
        first = as_expr(0) if index.start is None else index.start
        last = extent if index.stop is None else index.stop
        starts.append(first)
        extents.append(_count(first, last, extent, f"{where}: {text}: axis {k}"))
    return TensorRegion(tensor, tuple(starts), tuple(extents), text, user_location())


def _count(first: Expr, last: Expr | int, extent: Extent, where: str) -> Extent:
    count = _number(as_expr(last) - first)
    if isinstance(count, int) and count < 1:
        raise DefinitionError(
            "{where} runs from {first} to {last}; write first:end with at least one element",
            kind="index-out-of-bounds", where=where, first=range_text(first),
            last=range_text(as_expr(last)),
        )
    start, end = _number(first), _number(as_expr(last))
    if isinstance(start, int) and start < 0:
        raise DefinitionError(
            "{where} begins at {start}; indices start at 0",
            kind="index-out-of-bounds", where=where, start=start,
        )
    if isinstance(end, int) and isinstance(extent, int) and end > extent:
        raise DefinitionError(
            "{where} ends at {end}, but the axis has extent {extent}; end it in bounds",
            kind="index-out-of-bounds", where=where, end=end, extent=extent,
        )
    return count


def _number(index: Expr) -> Extent:
    """Return the value of a constant index, or the index itself."""
    found = affine_of(index)
    return index if found.terms else found.const


def _plus(start: Expr, index: Expr) -> Expr:
    if is_const(as_expr(_number(start)), 0):
        return index
    return cast(index.dtype, start) + index


