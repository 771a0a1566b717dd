"""Partitions: assignment of the elements of an array to the ranks of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tecomp.dist.partition.placements import (
    AxisSplits,
    Mesh,
    Numbers,
    Partial,
    Placement,
    Places,
    Shard,
    check_placements,
    common,
    count_of,
    indices_as_array,
    indices_as_slice,
    window_positions,
)
from tecomp.errors import LayoutError, TecompError
from tecomp.ir.nodes.argument_checks import as_ints
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr
from tecomp.layout.core.layout import Layout

Shape = tuple[int, ...]
Index = tuple[Places, ...]


@dataclass(frozen=True)
class StridedWindow:
    """Indices `start + step * k`, with k >= 0, of an axis of extent `of`."""

    start: int
    step: int
    of: int


@dataclass(frozen=True)
class Partition:
    """Layout whose first physical axes number the ranks of a mesh.

    Attributes:
        shape: Shape of the array.
        dtype: Dtype of the elements.
        mesh: Mesh of the ranks.
        placements: Placement along each mesh axis. Several shards of one array axis split each
            other's parts, in the order of the mesh axes.
        windows: For a view, the window of each axis into the base array; None for other arrays.

    Raises:
        LayoutError: If an extent is negative, the dtype is unknown, or the placements do not match
            the mesh or the array.

    >>> rows = Partition((10, 4), "float32", Mesh((4,)), [Shard(0)])
    >>> rows.shape, rows.dtype, rows.mesh.size, rows.placements, rows.windows
    ((10, 4), dtype('float32'), 4, (Shard(0),), None)
    >>> [rows.local_shape(rank) for rank in range(4)]
    [(3, 4), (3, 4), (3, 4), (1, 4)]
    >>> Partition((10,), "int8", Mesh((2,)), [Partial("max")]).op
    'max'
    """

    shape: Shape
    dtype: np.dtype[Any]
    mesh: Mesh
    placements: tuple[Placement, ...]
    windows: tuple[StridedWindow, ...] | None = None

    def __init__(
        self, shape: Sequence[int], dtype: npt.DTypeLike, mesh: Mesh,
        placements: Sequence[Placement], windows: tuple[StridedWindow, ...] | None = None,
    ) -> None:
        sizes = as_ints(shape)
        if sizes is None or any(n < 0 for n in sizes):
            raise LayoutError(
                "partition: shape must be a tuple of non-negative integers, such as (1000, 200), "
                "got {shape!r}",
                kind="partition", shape=shape,
            )
        if not isinstance(mesh, Mesh):
            raise LayoutError(
                "partition: mesh must be a Mesh, such as Mesh((4,)), got {mesh!r}",
                kind="partition", mesh=mesh,
            )
        checked = check_placements(placements, mesh.ndim, len(sizes))
        fields = (sizes, _dtype(dtype), mesh, checked, windows)
        for name, value in zip(self.__dataclass_fields__, fields, strict=True):
            object.__setattr__(self, name, value)
        self.cuts  # noqa: B018  # raises for sizes that do not match

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Cached properties are recomputed; hashes differ between processes.
        fields = (self.shape, self.dtype, self.mesh, self.placements, self.windows)
        return Partition, fields

    def __str__(self) -> str:
        placements = ", ".join(map(repr, self.placements))
        return f"{self.named} as [{placements}] on {self.mesh}"

    @cached_property
    def named(self) -> str:
        """Dtype and shape as text for messages.

        >>> Partition((10, 4), "float32", Mesh((4,)), [Shard(0)]).named
        'float32[10, 4]'
        """
        return f"{self.dtype.name}{list(self.shape)}"

    @cached_property
    def cuts(self) -> tuple[AxisSplits, ...]:
        """Splits of each axis of the array; for a view, the splits of the base array."""
        splits = []
        for axis, extent in enumerate(self._extents):
            shards = [
                (k, self.mesh.shape[k], placement) for k, placement in enumerate(self.placements)
                if isinstance(placement, Shard) and placement.axis == axis
            ]
            splits.append(AxisSplits.of(extent, axis, shards))
        return tuple(splits)

    @property
    def _extents(self) -> Shape:
        return tuple(window.of for window in self._windows)

    def mesh_axes(self, kind: type[Placement]) -> tuple[int, ...]:
        """Return the mesh axes with placements of one kind.

        >>> from tecomp.dist import Replicate
        >>> Partition((10, 4), "int8", Mesh((2, 3)), [Replicate(), Shard(1)]).mesh_axes(Shard)
        (1,)
        """
        return tuple(k for k, entry in enumerate(self.placements) if isinstance(entry, kind))

    @property
    def op(self) -> str | None:
        """Reduction of the partial values; None if there are none."""
        return next((p.op for p in self.placements if isinstance(p, Partial)), None)

    def part(self, axis: int, numbers: Shape) -> Places:
        """Return the indices along an axis of the part given by its number in each split."""
        found = self._known.get((axis, numbers))
        if found is None:
            found = self.cuts[axis].part(numbers)
            if self.windows is not None:
                window = self.windows[axis]
                found = window_positions(found, window.start, window.step, self.shape[axis])
            self._known[axis, numbers] = found
        return found

    def holders(self, axis: int, indices: Places) -> Sequence[range]:
        """Return, for each split of an axis, the parts that may have one of the wanted indices."""
        if self.windows is None:
            return self.cuts[axis].holders(indices)
        return [range(cut.count) for cut in self.cuts[axis].cuts]

    def numbers(self, axis: int, coordinates: Shape) -> Shape:
        """Return the part of an axis at mesh coordinates, as one number for each split."""
        return tuple(coordinates[cut.mesh_axis] for cut in self.cuts[axis].cuts)

    def local_index(self, rank: int) -> Index:
        """Return the indices of a rank along each axis: a slice, or an array if they are uneven.

        Raises:
            LayoutError: If `rank` is out of range.

        >>> dealt = Partition((7,), "int8", Mesh((2,)), [Shard(0, block=2)])
        >>> dealt.local_index(0)
        (array([0, 1, 4, 5]),)
        """
        coords = self.mesh.coordinates(rank)
        return tuple(
            self.part(axis, self.numbers(axis, coords)) for axis in range(len(self.shape))
        )

    local_slice = local_index

    def local_shape(self, rank: int) -> Shape:
        """Return the shape of the local array of a rank; extents are 0 where the rank has nothing.

        Raises:
            LayoutError: If `rank` is out of range.

        >>> rows = Partition((10, 4), "float32", Mesh((4,)), [Shard(0)])
        >>> rows.local_shape(0), rows.local_shape(3)
        ((3, 4), (1, 4))
        """
        return tuple(count_of(indices) for indices in self.local_index(rank))

    def local_nbytes(self, rank: int) -> int:
        """Return the number of bytes of the local array of a rank.

        Raises:
            LayoutError: If `rank` is out of range.

        >>> Partition((10, 4), "float32", Mesh((4,)), [Shard(0)]).local_nbytes(3)
        16
        """
        return prod(self.local_shape(rank)) * self.dtype.itemsize

    def owner(self, index: Sequence[int]) -> int:
        """Return the first rank that has an element.

        Raises:
            LayoutError: If `index` is out of bounds.

        >>> Partition((10, 4), "float32", Mesh((4,)), [Shard(0)]).owner((7, 0))
        2
        """
        return self.owners(index)[0]

    def owners(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return all ranks that have an element, or an operand of a partial element.

        Raises:
            LayoutError: If `index` is out of bounds.

        >>> from tecomp.dist import Replicate
        >>> Partition((10,), "float32", Mesh((2, 2)), [Shard(0), Replicate()]).owners((7,))
        (2, 3)
        """
        inside = len(index) == len(self.shape) and all(
            0 <= position < extent for position, extent in zip(index, self.shape, strict=True)
        )
        if not inside:
            raise LayoutError(
                "partition: index {index} is out of bounds for an array of shape {shape}; pass "
                "{rank} non-negative indices within the shape",
                kind="partition", index=tuple(index), shape=list(self.shape),
                rank=len(self.shape),
            )
        candidates: list[Sequence[int]] = [range(extent) for extent in self.mesh.shape]
        for cuts, window, position in zip(self.cuts, self._windows, index, strict=True):
            owner = cuts.owner(window.start + window.step * position)
            for cut, k in zip(cuts.cuts, owner, strict=True):
                candidates[cut.mesh_axis] = (k,)
        return tuple(self.mesh.rank(coords) for coords in product(*candidates))

    def view(self, slices: Sequence[slice]) -> Partition:
        """Return the partition of a view, whose elements stay on their ranks.

        Args:
            slices: One slice for each axis, as in NumPy; steps may be negative.

        Raises:
            LayoutError: If `slices` is not one slice for each axis.

        >>> rows = Partition((1024,), "float32", Mesh((4,)), [Shard(0)])
        >>> middle = rows.view([slice(511, 514)])
        >>> [middle.local_slice(rank)[0] for rank in range(4)]
        [slice(0, 0, 1), slice(0, 1, 1), slice(1, 3, 1), slice(0, 0, 1)]
        """
        if len(slices) != len(self.shape) or not all(isinstance(s, slice) for s in slices):
            raise LayoutError(
                "partition.view: got {slices} for an array of {rank} axes; pass one slice per axis",
                kind="partition", slices=list(slices), rank=len(self.shape),
            )
        windows, shape = [], []
        for item, extent, window in zip(slices, self.shape, self._windows, strict=True):
            span = range(*item.indices(extent))
            start, step = window.start + window.step * span.start, window.step * span.step
            windows.append(StridedWindow(start if span else 0, step, window.of))
            shape.append(len(span))
        return Partition(shape, self.dtype, self.mesh, self.placements, tuple(windows))

    def indices_in(self, base: Partition, rank: int) -> tuple[Places, ...]:
        """Return the positions of the local elements of this view in the local array of its base.

        Slices have negative steps where the view does.

        Raises:
            LayoutError: If this is not a view of `base`, or `rank` is out of range.

        >>> rows = Partition((8,), "float32", Mesh((2,)), [Shard(0)])
        >>> every_other = rows.view([slice(None, None, 2)])
        >>> every_other.indices_in(rows, 1)
        (slice(0, 3, 2),)
        """
        if (self._extents, self.mesh, self.placements) != (base.shape, base.mesh, base.placements):
            raise LayoutError(
                "partition.indices_in: an array of shape {shape} is not a view of an array of "
                "shape {base_shape}; pass the partition whose view() created it",
                kind="partition", shape=list(self.shape), base_shape=list(base.shape),
            )
        found = []
        for axis, indices in enumerate(self.local_index(rank)):
            window = self._windows[axis]
            owned = base.local_index(rank)[axis]
            found.append(_in_order(owned, window.start + window.step * indices_as_array(indices)))
        return tuple(found)

    @cached_property
    def layout(self) -> Layout:
        """Partition as an index map: first the mesh axes with shards, then the local index.

        Each rank has as much memory in the layout as the largest part needs.

        Raises:
            LayoutError: If the partition has partial values, or `tecomp` has no such dtype.

        >>> print(Partition((10,), "float32", Mesh((4,)), [Shard(0)]).layout.index_map)
        lambda i0: [i0 // 3 % 4, i0 // 12 * 3 + i0 % 3]
        """
        if self.op is not None:
            raise LayoutError(
                "partition.layout: {placements} contains Partial placements, which have no "
                "layout; reduce the partial values first",
                kind="partition", placements=list(self.placements),
            )
        grid = len(self.mesh_axes(Shard))
        return Layout.of(self.shape, self.dtype.name, self._expressed, grid_axes=range(grid))

    def _expressed(self, *i: Expr) -> list[Expr]:
        parts: dict[int, Expr] = {}
        inside = []
        for cuts, window, index in zip(self.cuts, self._windows, i, strict=True):
            number = index if self.windows is None else index * window.step + window.start
            for cut in cuts.cuts:
                parts[cut.mesh_axis], number = cut.expressed(number)
            inside.append(number)
        return [*(parts[k] for k in sorted(parts)), *inside]

    @cached_property
    def _windows(self) -> tuple[StridedWindow, ...]:
        return self.windows or tuple(StridedWindow(0, 1, n) for n in self.shape)

    @cached_property
    def _known(self) -> dict[tuple[int, Shape], Places]:
        return {}

    @cached_property
    def _hash(self) -> int:
        return hash((self.shape, self.dtype, self.mesh, self.placements, self.windows))


def _in_order(owned: Places, numbers: Numbers) -> Places:
    """Return the positions of owned numbers, as a slice if they are evenly spaced."""
    positions = indices_as_array(common(owned, numbers)[0])
    if len(positions) < 2 or positions[1] > positions[0]:
        return indices_as_slice(positions)
    rising = indices_as_slice(positions[::-1])
    if not isinstance(rising, slice):
        return positions
    return slice(rising.stop - 1, rising.start - 1 if rising.start else None, -rising.step)


def _dtype(value: npt.DTypeLike) -> np.dtype[Any]:
    try:
        return np.dtype(value)
    except TypeError:
        pass
    try:
        return DType(str(value)).numpy
    except TecompError:
        raise LayoutError(
            "partition: {value!r} is not a valid dtype; pass a NumPy dtype, such as float32",
            kind="partition", value=value,
        ) from None
