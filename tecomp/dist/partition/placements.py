"""Meshes, placements (shard, replicate, partial) and index sets along an axis."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import gcd, prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tecomp.errors import LayoutError, safe_repr
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.nodes.argument_checks import as_ints
from tecomp.ir.nodes.expr import Expr, index_value, select
from tecomp.operations.reductions import COMBINERS


@dataclass(frozen=True)
class Mesh:
    """Mesh of ranks in row-major order, with the last axis varying fastest.

    Attributes:
        shape: Number of ranks along each axis.
        names: Names of the axes. Default: `m0`, `m1` ...

    Raises:
        LayoutError: If an extent is not a positive integer, or the names are not distinct names for
            all axes.

    >>> mesh = Mesh((2, 3), names=("rows", "columns"))
    >>> print(mesh)
    Mesh(rows=2, columns=3)
    >>> mesh.shape, mesh.names, mesh.ndim, mesh.size
    ((2, 3), ('rows', 'columns'), 2, 6)
    """

    shape: tuple[int, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        raw_shape: Any = (self.shape,) if isinstance(self.shape, int) else self.shape
        shape = as_ints(raw_shape)
        if not shape or min(shape) < 1:
            raise LayoutError(
                "mesh: shape must be one or more positive integers, such as (2, 2), got {shape!r}",
                kind="partition", shape=self.shape,
            )
        names = tuple(self.names) or tuple(f"m{k}" for k in range(len(shape)))
        if len(names) != len(shape) or len(set(names)) < len(names):
            raise LayoutError(
                "mesh: got names {names} for {rank} axes; pass one unique name per axis",
                kind="partition", rank=len(shape), names=list(names),
            )
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "names", names)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return prod(self.shape)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Return the mesh coordinates of a rank.

        Raises:
            LayoutError: If `rank` is out of range.

        >>> Mesh((2, 3)).coordinates(5)
        (1, 2)
        """
        if not 0 <= rank < self.size:
            raise LayoutError(
                "mesh: rank {rank} is out of range for {subject}; pass a rank from 0 to {last}",
                kind="partition", rank=rank, subject=self, last=self.size - 1,
            )
        found = []
        for extent in reversed(self.shape):
            rank, coord = divmod(rank, extent)
            found.append(coord)
        return tuple(reversed(found))

    def rank(self, coordinates: Sequence[int]) -> int:
        """Return the rank at mesh coordinates.

        Raises:
            LayoutError: If `coordinates` are out of bounds.

        >>> Mesh((2, 3)).rank((1, 0))
        3
        """
        inside = len(coordinates) == self.ndim and all(
            0 <= coord < extent for coord, extent in zip(coordinates, self.shape, strict=True)
        )
        if not inside:
            raise LayoutError(
                "mesh: coordinates {coordinates} are out of bounds for {subject}; pass {ndim} "
                "non-negative numbers within the mesh",
                kind="partition", coordinates=tuple(coordinates), subject=self, ndim=self.ndim,
            )
        number = 0
        for coord, extent in zip(coordinates, self.shape, strict=True):
            number = number * extent + coord
        return number

    def __str__(self) -> str:
        axes = zip(self.names, self.shape, strict=True)
        return f"Mesh({', '.join(f'{name}={extent}' for name, extent in axes)})"


OPS = tuple(COMBINERS)
"""Operators that combine partial values."""


@dataclass(frozen=True)
class Shard:
    """Placement that shards an array axis into blocks, dealt out along the mesh axis.

    Attributes:
        axis: Axis of the array; negative values count from the end.
        block: Number of indices per block. Default: each rank gets at most one block. 1 is a cyclic
            distribution, any other value a block-cyclic one.
        sizes: Number of consecutive indices of each rank, possibly 0, instead of `block`.

    Raises:
        LayoutError: If `axis` is not an integer, `block` is not a positive integer, `sizes` has
            anything but nonnegative integers, or both `block` and `sizes` are given.

    >>> Shard(0), Shard(axis=1, block=4), Shard(0, sizes=(3, 0, 5))
    (Shard(0), Shard(1, block=4), Shard(0, sizes=(3, 0, 5)))
    """

    axis: int
    block: int | None = None
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.axis, int):
            raise LayoutError(
                "Shard: axis must be an integer, such as 0, got {axis!r}",
                kind="partition", axis=self.axis,
            )
        if self.block is not None and not (isinstance(self.block, int) and self.block > 0):
            raise LayoutError(
                "Shard: block must be an integer of at least 1, the number of indices per block, "
                "got {block!r}",
                kind="partition", block=self.block,
            )
        if self.sizes is None:
            return
        sizes = as_ints(self.sizes)
        if sizes is None or any(n < 0 for n in sizes) or self.block is not None:
            raise LayoutError(
                "Shard: got sizes={sizes!r} and block={block!r}; pass either block, or sizes with "
                "the non-negative number of indices per process",
                kind="partition", sizes=self.sizes, block=self.block,
            )
        object.__setattr__(self, "sizes", sizes)

    def __repr__(self) -> str:
        block = "" if self.block is None else f", block={self.block}"
        sizes = "" if self.sizes is None else f", sizes={self.sizes}"
        return f"Shard({self.axis}{block}{sizes})"


@dataclass(frozen=True)
class Replicate:
    """Placement in which every rank along the mesh axis has the same elements.

    >>> from tecomp.dist import Mesh, Partition
    >>> Partition((10,), "int8", Mesh((2,)), [Replicate()]).local_shape(1)
    (10,)
    """


@dataclass(frozen=True)
class Partial:
    """Placement in which every rank along the mesh axis has one operand of a reduction.

    Attributes:
        op: Reduction: `sum`, `prod`, `min`, `max`, `any` or `all`.

    Raises:
        LayoutError: If `op` is unknown.

    >>> Partial(), Partial(op="max")
    (Partial('sum'), Partial('max'))
    """

    op: str = "sum"

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise LayoutError(
                "Partial: unknown operation {op!r}; pass one of {ops}",
                kind="partition", op=self.op, ops=", ".join(OPS),
            )

    def __repr__(self) -> str:
        return f"Partial({safe_repr(self.op)})"


Placement: TypeAlias = "Shard | Replicate | Partial"


def check_placements(
    placements: Sequence[Placement], mesh_ndim: int, ndim: int
) -> tuple[Placement, ...]:
    """Return validated placements, one for each mesh axis, with nonnegative array axes.

    Raises:
        LayoutError: If the placements do not match the mesh or the array, or partial values would
            be combined by different reductions.
    """
    items = (placements,) if isinstance(placements, Shard | Replicate | Partial) else placements
    checked = tuple(items)
    if len(checked) != mesh_ndim or not all(
        isinstance(placement, Shard | Replicate | Partial) for placement in checked
    ):
        raise LayoutError(
            "partition: placements {placements} do not match the {mesh_ndim} axes of the mesh; "
            "pass one of Shard(axis), Replicate() or Partial(op) per axis",
            kind="partition", placements=list(checked), mesh_ndim=mesh_ndim,
        )
    ops = sorted({placement.op for placement in checked if isinstance(placement, Partial)})
    if len(ops) > 1:
        raise LayoutError(
            "partition: partial values are combined by {ops}, so the result depends on the order; "
            "reduce along one mesh axis first",
            kind="partition", ops=" and ".join(ops),
        )
    return tuple(_normal(placement, ndim) for placement in checked)


def _normal(placement: Placement, ndim: int) -> Placement:
    if not isinstance(placement, Shard):
        return placement
    if not -ndim <= placement.axis < ndim:
        raise LayoutError(
            "partition: the axis of {placed} is out of bounds for an array of {ndim} axes; pass a "
            "valid axis, or Replicate()",
            kind="partition", placed=placement, ndim=ndim,
        )
    return Shard(placement.axis % ndim, placement.block, placement.sizes)


Numbers: TypeAlias = "npt.NDArray[np.int64]"
Places: TypeAlias = "slice | Numbers"
"""Nonnegative indices. A slice has a start, a stop and a positive step; the stop is minimal, and
the step is 1 for fewer than two indices."""

NONE = slice(0, 0, 1)


def steps(start: int, stop: int, step: int = 1) -> slice:
    """Return the normalized slice of the indices from `start` to `stop`, exclusive.

    >>> steps(1, 9, 4), steps(3, 2)
    (slice(1, 6, 4), slice(0, 0, 1))
    """
    count = -(-(stop - start) // step)
    if count <= 0:
        return NONE
    return slice(start, start + (count - 1) * step + 1, step if count > 1 else 1)


def count_of(indices: Places) -> int:
    """Return the number of indices."""
    if isinstance(indices, slice):
        return len(range(indices.start, indices.stop, indices.step))
    return len(indices)


def indices_as_array(indices: Places) -> Numbers:
    """Return the indices as an array."""
    if isinstance(indices, slice):
        return np.arange(indices.start, indices.stop, indices.step)
    return indices


def indices_as_slice(numbers: Numbers) -> Places:
    """Return the indices as a slice if they are evenly spaced in ascending order.

    >>> indices_as_slice(np.array([1, 4, 7])), indices_as_slice(np.array([1, 4, 8]))
    (slice(1, 8, 3), array([1, 4, 8]))
    """
    if len(numbers) < 2:
        return steps(int(numbers[0]), int(numbers[0]) + 1) if len(numbers) else NONE
    step = int(numbers[1] - numbers[0])
    if step > 0 and np.all(np.diff(numbers) == step):
        return steps(int(numbers[0]), int(numbers[-1]) + 1, step)
    return numbers


def select_indices(indices: Places, inner: Places) -> Places:
    """Return the elements of `indices` at the positions `inner`.

    >>> select_indices(slice(10, 20, 2), slice(1, 4, 2))
    slice(12, 17, 4)
    """
    if isinstance(indices, slice) and isinstance(inner, slice):
        first, step = indices.start + inner.start * indices.step, indices.step * inner.step
        return steps(first, first + count_of(inner) * step, step)
    return indices_as_slice(indices_as_array(indices)[inner])


def common(owned: Places, requested: Places) -> tuple[Places, Places]:
    """Return the positions of the common indices in `owned` and in `requested`.

    `owned` must be ascending; `requested` may have any order and duplicates.

    >>> common(slice(0, 10, 1), slice(8, 14, 1))
    (slice(8, 10, 1), slice(0, 2, 1))
    """
    if isinstance(owned, slice) and isinstance(requested, slice):
        return _intersect_slices(owned, requested)
    if not count_of(owned):
        return NONE, NONE
    known, numbers = indices_as_array(owned), indices_as_array(requested)
    positions = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    hits = np.flatnonzero(known[positions] == numbers)
    return indices_as_slice(positions[hits]), indices_as_slice(hits)


def _intersect_slices(owned: slice, requested: slice) -> tuple[slice, slice]:
    """Intersect two slices: the least common index, then every common multiple of the steps.

    Source:
        The Chinese remainder theorem.
    """
    shared = gcd(owned.step, requested.step)
    quotient, remainder = divmod(requested.start - owned.start, shared)
    if remainder:
        return NONE, NONE
    period = requested.step // shared
    meeting = owned.start + quotient * pow(owned.step // shared, -1, period) % period * owned.step
    step, low = owned.step * period, max(owned.start, requested.start)
    first = meeting + -((meeting - low) // step) * step
    count = count_of(steps(first, min(owned.stop, requested.stop), step))
    return _numbers(owned, first, step, count), _numbers(requested, first, step, count)


def _numbers(indices: slice, first: int, step: int, count: int) -> slice:
    start, stride = (first - indices.start) // indices.step, step // indices.step
    return steps(start, start + count * stride, stride)


def window_positions(indices: Places, start: int, step: int, extent: int) -> Places:
    """Return all k in [0, extent), ascending, for which `start + step * k` is in `indices`.

    >>> window_positions(slice(4, 8, 1), 1, 2, 10)
    slice(2, 4, 1)
    """
    if isinstance(indices, slice) and indices.step == 1:
        if step < 0:
            first, last = -((indices.stop - 1 - start) // -step), (start - indices.start) // -step
        else:
            first, last = -((start - indices.start) // step), (indices.stop - 1 - start) // step
        return steps(max(first, 0), min(last + 1, extent)) if count_of(indices) else NONE
    numbers, remainder = np.divmod(indices_as_array(indices) - start, step)
    hits = numbers[(remainder == 0) & (numbers >= 0) & (numbers < extent)]
    return indices_as_slice(hits[::-1] if step < 0 else hits)


@dataclass(frozen=True)
class AxisSplit:
    """Split of an axis, or of the parts of earlier splits, along one mesh axis.

    Attributes:
        mesh_axis: Mesh axis that numbers the parts.
        count: Number of parts.
        block: Number of consecutive indices dealt out at a time.
        sizes: Number of indices of each part, in order, instead of `block`.
    """

    mesh_axis: int
    count: int
    block: int
    sizes: tuple[int, ...] | None

    def part(self, k: int, extent: int) -> Places:
        """Return the indices of part `k` of an axis with a given extent."""
        if self.sizes is not None:
            start = sum(self.sizes[:k])
            return steps(start, start + self.sizes[k])
        first, period = k * self.block, self.block * self.count
        if period >= extent:
            return steps(first, min(first + self.block, extent))
        if self.block == 1:
            return steps(k, extent, self.count)
        starts = np.arange(first, extent, period)
        numbers = (starts[:, None] + np.arange(self.block)).ravel()
        return indices_as_slice(numbers[numbers < extent])

    def locate(self, index: int) -> tuple[int, int]:
        """Return the part that has an index, and the local index in this part."""
        if self.sizes is None:
            period = self.block * self.count
            inside = index // period * self.block + index % self.block
            return index // self.block % self.count, inside
        k = bisect_right(self._ends, index)
        return k, index - sum(self.sizes[:k])

    def expressed(self, index: Expr) -> tuple[Expr, Expr]:
        """Return part and local index of an index expression, as expressions."""
        if self.sizes is None:
            period = self.block * self.count
            inside = index // period * self.block + index % self.block
            return index // self.block % self.count, inside
        part: Expr = index_value(0)
        start: Expr = index_value(0)
        for end in self._ends[:-1]:
            is_after = index >= end
            part = part + select(is_after, 1, 0)
            start = select(is_after, end, start)
        return part, index - start

    def holders(self, low: int, high: int) -> range:
        """Return the range of parts that may have an index in `[low, high)`."""
        if high <= low:
            return range(0)
        if self.sizes is None and high - low > self.block * (self.count - 1):
            return range(self.count)
        first, last = self.locate(low)[0], self.locate(high - 1)[0]
        return range(first, last + 1) if first <= last else range(self.count)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(accumulate(self.sizes or ()))


@dataclass(frozen=True)
class AxisSplits:
    """All splits of one axis, each of which splits the parts of the previous one.

    Attributes:
        extent: Extent of the axis.
        cuts: Splits in the order of the mesh axes.
    """

    extent: int
    cuts: tuple[AxisSplit, ...]

    @classmethod
    def of(cls, extent: int, axis: int, shards: Sequence[tuple[int, int, Shard]]) -> AxisSplits:
        """Return the splits of an axis for its shard placements.

        Args:
            extent: Extent of the axis.
            axis: Position of the axis, for messages.
            shards: Mesh axis, extent of the mesh axis, and placement of each split.

        Raises:
            LayoutError: If `sizes` do not match the mesh axis or the extent, or are combined with
                another split.
        """
        splits: list[AxisSplit] = []
        size = extent
        for mesh_axis, count, shard in shards:
            if shard.sizes is not None:
                _check_sizes(shard.sizes, count, extent, axis, len(shards))
            block = shard.block or max(ceil_div(size, count), 1)
            splits.append(AxisSplit(mesh_axis, count, block, shard.sizes))
            size = min(count_of(splits[-1].part(0, size)), size) if shard.sizes is None else size
        return cls(extent, tuple(splits))

    def part(self, numbers: Sequence[int]) -> Places:
        """Return the indices of a part given by its number in each split."""
        indices: Places = steps(0, self.extent)
        for k, cut in zip(numbers, self.cuts, strict=True):
            indices = select_indices(indices, cut.part(k, count_of(indices)))
        return indices

    def owner(self, index: int) -> tuple[int, ...]:
        """Return the number in each split of the part that has an index."""
        found: list[int] = []
        for cut in self.cuts:
            k, index = cut.locate(index)
            found.append(k)
        return tuple(found)

    def holders(self, requested: Places) -> Sequence[range]:
        """Return, for each split, the parts that may have one of the wanted indices."""
        ranges = [range(cut.count) for cut in self.cuts]
        if self.cuts and isinstance(requested, slice):
            ranges[0] = self.cuts[0].holders(requested.start, requested.stop)
        return ranges


def _check_sizes(
    sizes: tuple[int, ...], count: int, extent: int, axis: int, n_shards: int
) -> None:
    if len(sizes) != count or sum(sizes) != extent:
        raise LayoutError(
            "partition: sizes {sizes} do not match axis {axis} of size {extent} on {count} "
            "processes; pass {count} sizes whose sum is {extent}",
            kind="partition", sizes=list(sizes), axis=axis, extent=extent, count=count,
        )
    if n_shards > 1:
        raise LayoutError(
            "partition: axis {axis} has sizes {sizes} and is sharded along {n_shards} mesh axes, "
            "which is not supported; pass blocks, or shard it along one mesh axis",
            kind="partition", axis=axis, sizes=list(sizes), n_shards=n_shards,
        )
