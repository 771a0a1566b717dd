"""Rectangular regions of tensors (`A[i, 0:16]`)."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.compute.affine_index import affine_of
from tecomp.compute.tensor import Tensor, TensorLoad, TensorSlice, range_text
from tecomp.errors import DefinitionError
from tecomp.ir.nodes.expr import Expr, as_expr, cast, is_const
from tecomp.ir.nodes.stmt import Extent
from tecomp.source_locations import Location, user_location


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of a tensor, from some indices on, as many along each axis as an extent says.

    Attributes:
        tensor: of which it is a part.
        starts: the indices of the first element.
        extents: how many there are along each axis; None where only one index was given.
        text: how the user wrote it.
        location: where the user wrote it.
    """

    tensor: Tensor
    starts: tuple[Expr, ...]
    extents: tuple[Extent | None, ...]
    text: str
    location: Location | None

    def shape_as(self, rank: int) -> tuple[Extent, ...]:
        """Its extents as those of an operand of some rank: with axes of one index left out.

        As many as are too many for the operand are left out, the first ones first; where that are
        none of one index, all are there.
        """
        return tuple(self.extent(k) for k in self.axes_as(rank))

    def axes_as(self, rank: int) -> tuple[int, ...]:
        """Its axes that an operand of some rank has."""
        ranged = [k for k, extent in enumerate(self.extents) if extent is not None]
        if len(ranged) >= rank:
            return tuple(ranged)
        # An operand of one element along an axis may be given the index of that.
        return tuple(range(max(len(self.extents) - rank, 0), len(self.extents)))

    def extent(self, axis: int) -> Extent:
        """How many elements it has along an axis."""
        extent = self.extents[axis]
        return 1 if extent is None else extent

    def element(self, axes: tuple[int, ...], index: tuple[Expr, ...]) -> TensorLoad:
        """The element at an index, counted from the first one along some of the axes."""
        inside = dict(zip(axes, index, strict=True))
        place = tuple(
            start if k not in inside else _plus(start, inside[k])
            for k, start in enumerate(self.starts)
        )
        return TensorLoad(self.tensor, place, self.location)


def part_of(given: object, where: str) -> Part | None:
    """What an operand of an intrinsic is; None for what is a number.

    Raises:
        DefinitionError: a range ends before it begins, or leaves its tensor.
    """
    if isinstance(given, Tensor):
        given = TensorSlice(given, ())
    if isinstance(given, TensorLoad):
        given = TensorSlice(given.tensor, given.indices)
    if not isinstance(given, TensorSlice):
        return None
    tensor = given.tensor
    starts: list[Expr] = []
    extents: list[Extent | None] = []
    text = f"{tensor.name}[{', '.join(map(range_text, given.indices)) or ':'}]"
    for k, extent in enumerate(tensor.shape):
        index = given.indices[k] if k < len(given.indices) else slice(None)
        if not isinstance(index, slice):
            starts.append(index)
            extents.append(None)
            continue
        first = as_expr(0) if index.start is None else index.start
        last = extent if index.stop is None else index.stop
        starts.append(first)
        extents.append(_count(first, last, extent, f"{where}: {text}: axis {k}"))
    return Part(tensor, tuple(starts), tuple(extents), text, user_location())


def _count(first: Expr, last: Expr | int, extent: Extent, where: str) -> Extent:
    count = _number(as_expr(last) - first)
    if isinstance(count, int) and count < 1:
        raise DefinitionError(
            f"{where} runs from {range_text(first)} to {range_text(as_expr(last))}; write "
            "first:end, of one element at least",
            kind="outside-index",
        )
    start, end = _number(first), _number(as_expr(last))
    if isinstance(start, int) and start < 0:
        raise DefinitionError(
            f"{where} begins at {start}; indices count from 0", kind="outside-index"
        )
    if isinstance(end, int) and isinstance(extent, int) and end > extent:
        raise DefinitionError(
            f"{where} ends at {end}, and the tensor has {extent} there; end it inside",
            kind="outside-index",
        )
    return count


def _number(index: Expr) -> Extent:
    """The number that an index is; itself if it is none."""
    found = affine_of(index)
    return index if found.terms else found.const


def _plus(start: Expr, index: Expr) -> Expr:
    if is_const(as_expr(_number(start)), 0):
        return index
    return cast(index.dtype, start) + index


