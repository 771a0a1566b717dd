"""Messages and collectives that change the partition of an array, and halos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from tecomp.caches import memoize
from tecomp.dist.partition.messages import Box, Message, MessageSources
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import (
    Partial,
    Placement,
    Places,
    Replicate,
    Shard,
    count_of,
    indices_as_array,
    indices_as_slice,
)
from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import as_ints

Shape = tuple[int, ...]
Widths: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class HaloRange:
    """Indices of one axis: before a part, in the part, and after the part."""

    before: Places
    part: Places
    after: Places

    @cached_property
    def all(self) -> Places:
        """All indices, in the order of the local array with halo."""
        return indices_as_slice(
            np.concatenate([indices_as_array(p) for p in (self.before, self.part, self.after)]))

    @cached_property
    def extent(self) -> int:
        """Number of all indices."""
        return sum(map(count_of, (self.before, self.part, self.after)))

    @cached_property
    def core(self) -> slice:
        """Position of the part in the local array with halo."""
        first = count_of(self.before)
        return slice(first, first + count_of(self.part), 1)


@dataclass(frozen=True)
class Halo:
    """Messages that give every rank the elements around its part.

    The local array with halo has the part in the middle, at `core(rank)`. At the ends of a
    non-periodic axis the halo is clipped. An empty part has no halo.

    Attributes:
        partition: Partition of the array.
        widths: For each axis the number of indices needed before and after a part.
        periodic: For each axis whether the halo wraps around.
        corners: Whether the halo includes elements outside the part along several axes.

    Raises:
        LayoutError: If the parts are not contiguous along an axis with a halo, or the partition has
            partial values.

    >>> from tecomp.dist import Mesh, Shard
    >>> rows = Partition((8, 5), "float64", Mesh((4,)), [Shard(0)])
    >>> around = halo(rows, (1, 0))
    >>> around.partition is rows, around.widths, around.periodic, around.corners
    (True, ((1, 1), (0, 0)), (False, False), True)
    >>> len(around.messages), around.nbytes
    (6, 240)
    """

    partition: Partition
    widths: Widths
    periodic: tuple[bool, ...]
    corners: bool = True

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        ends = "periodic" if any(self.periodic) else "open"
        return f"halo {self.widths} {ends} {self.partition}"

    def __post_init__(self) -> None:
        if self.partition.op is not None:
            raise LayoutError(
                "halo: {placements} contains Partial placements, which have no halos; reduce the "
                "partial values first",
                kind="partition", placements=list(self.partition.placements),
            )
        for axis in range(len(self.partition.shape)):
            if any(self.widths[axis]) and not self._is_blocks(axis):
                raise LayoutError(
                    "halo: axis {axis} is sharded cyclically, so shards have no contiguous "
                    "neighbours; redistribute to Shard({axis}) first",
                    kind="partition", axis=axis,
                )

    def _is_blocks(self, axis: int) -> bool:
        cuts = self.partition.cuts[axis].cuts
        parts = (
            self.partition.part(axis, nums) for nums in product(*(range(cut.count) for cut in cuts))
        )
        return all(isinstance(part, slice) and part.step == 1 for part in parts)

    def shape(self, rank: int) -> Shape:
        """Return the shape of the local array with halo.

        Raises:
            LayoutError: If `rank` is out of range.

        >>> from tecomp.dist import Mesh, Shard
        >>> around = halo(Partition((8, 5), "float64", Mesh((4,)), [Shard(0)]), (1, 0))
        >>> [around.shape(rank) for rank in range(4)]
        [(3, 5), (4, 5), (4, 5), (3, 5)]
        """
        return tuple(span.extent for span in self._around(rank))

    def core(self, rank: int) -> tuple[slice, ...]:
        """Return the slices of the part in the local array with halo.

        Raises:
            LayoutError: If `rank` is out of range.

        >>> from tecomp.dist import Mesh, Shard
        >>> around = halo(Partition((8, 5), "float64", Mesh((4,)), [Shard(0)]), (1, 0))
        >>> around.core(0), around.core(1)
        ((slice(0, 2, 1), slice(0, 5, 1)), (slice(1, 3, 1), slice(0, 5, 1)))
        """
        return tuple(span.core for span in self._around(rank))

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """All messages in the order of receivers, from a part to a local array with halo.

        There is at most one message from each rank to each other rank. A rank sends a message to
        itself where a periodic axis wraps around within one part.
        """
        return tuple(m for rank in range(self.partition.mesh.size) for m in self.received_by(rank))

    @cached_property
    def nbytes(self) -> int:
        """Total number of bytes sent between different ranks."""
        return sum(m.nbytes for m in self.messages if m.source != m.target)

    def received_by(self, rank: int) -> tuple[Message, ...]:
        """Return the messages to a rank, in the order of senders.

        Raises:
            LayoutError: If `rank` is out of range.

        >>> from tecomp.dist import Mesh, Shard
        >>> around = halo(Partition((8, 5), "float64", Mesh((4,)), [Shard(0)]), (1, 0))
        >>> [(m.source, m.nbytes) for m in around.received_by(1)]
        [(0, 40), (2, 40)]
        """
        found = self._known.get(rank)
        if found is None:
            found = self._known[rank] = tuple(self._received(rank))
        return found

    def sent_by(self, rank: int) -> tuple[Message, ...]:
        """Return the messages from a rank, in the order of receivers.

        Raises:
            LayoutError: If `rank` is out of range.

        >>> from tecomp.dist import Mesh, Shard
        >>> around = halo(Partition((8, 5), "float64", Mesh((4,)), [Shard(0)]), (1, 0))
        >>> [(m.target, m.nbytes) for m in around.sent_by(0)]
        [(1, 40)]
        """
        self.partition.mesh.coordinates(rank)
        return self._by_sender.get(rank, ())

    @cached_property
    def _by_sender(self) -> dict[int, tuple[Message, ...]]:
        found: dict[int, list[Message]] = {}
        for message in self.messages:
            found.setdefault(message.source, []).append(message)
        return {rank: tuple(messages) for rank, messages in found.items()}

    def _received(self, rank: int) -> Iterator[Message]:
        boxes: dict[int, list[Box]] = {}
        for requested, first, keys in self._strips(rank):
            for source, box in self._senders.boxes(rank, requested, keys):
                received = tuple(map(_shift_positions, box.received, first))
                boxes.setdefault(source, []).append(Box(box.sent, received))
        shape, partition = self.shape(rank), self.partition
        for source in sorted(boxes):
            yield Message(
                source, rank, tuple(boxes[source]), partition.local_shape(source), shape,
                partition.dtype.itemsize,
            )

    def _strips(self, rank: int) -> Iterator[tuple[list[Places], Shape, list[object]]]:
        """Yield disjoint boxes of the halo of a part: indices, local position, and cache keys."""
        spans = self._around(rank)
        if not all(count_of(span.part) for span in spans):
            return
        coords = self.partition.mesh.coordinates(rank)
        numbers = [self.partition.numbers(axis, coords) for axis in range(len(spans))]
        for axis, span in enumerate(spans):
            for side, indices in (("before", span.before), ("after", span.after)):
                if not count_of(indices):
                    continue
                kinds = [
                    side if k == axis else "all" if k < axis and self.corners else "part"
                    for k in range(len(spans))
                ]
                yield (
                    [getattr(item, kind) for item, kind in zip(spans, kinds, strict=True)],
                    tuple(map(_first, spans, kinds)),
                    list(zip(numbers, kinds, strict=True)),
                )

    def _around(self, rank: int) -> tuple[HaloRange, ...]:
        if rank not in self._arounds:
            self._arounds[rank] = self._found_around(rank)
        return self._arounds[rank]

    def _found_around(self, rank: int) -> tuple[HaloRange, ...]:
        found = []
        for axis, part in enumerate(self.partition.local_index(rank)):
            extent, (left, right) = self.partition.shape[axis], self.widths[axis]
            if not (count_of(part) and isinstance(part, slice)):
                found.append(HaloRange(slice(0, 0, 1), part, slice(0, 0, 1)))
                continue
            before = np.arange(part.start - left, part.start)
            after = np.arange(part.stop, part.stop + right)
            if self.periodic[axis]:
                before, after = before % extent, after % extent
            else:
                before, after = before[before >= 0], after[after < extent]
            found.append(HaloRange(indices_as_slice(before), part, indices_as_slice(after)))
        return tuple(found)

    @cached_property
    def _arounds(self) -> dict[int, tuple[HaloRange, ...]]:
        return {}

    @cached_property
    def _senders(self) -> MessageSources:
        return MessageSources(self.partition)

    @cached_property
    def _known(self) -> dict[int, tuple[Message, ...]]:
        return {}


def halo(
    partition: Partition, widths: Any, *, periodic: bool | Sequence[bool] = False,
    corners: bool = True,
) -> Halo:
    """Return the halo of a partition, cached for equal arguments.

    Args:
        partition: Partition of the array.
        widths: For each axis the number of indices needed: one number, or one before and one after
            a part.
        periodic: Whether the halo wraps around, for all axes or for each.
        corners: Whether the halo includes elements outside a part along several axes.

    Returns:
        The messages, to be sent with `start_halo` or `update_halo`.

    Raises:
        LayoutError: If an argument does not match the array, the parts are not contiguous along an
            axis with a halo, or the partition has partial values.

    >>> from tecomp.dist import Mesh, Shard
    >>> ring = Partition((8,), "float64", Mesh((4,)), [Shard(0)])
    >>> [(m.source, m.nbytes) for m in halo(ring, [(1, 0)], periodic=True).received_by(0)]
    [(3, 8)]
    """
    ndim = len(partition.shape)
    flags = (periodic,) * ndim if isinstance(periodic, bool) else tuple(map(bool, periodic))
    pairs = [_pair(width) for width in widths] if isinstance(widths, Sequence) else []
    if len(pairs) != ndim or len(flags) != ndim or not all(pairs):
        raise LayoutError(
            "halo: widths={widths!r} and periodic={periodic!r} are not valid for an array of "
            "{ndim} axes; pass per axis one or two non-negative widths, such as (1, (0, 2)), and "
            "one bool in periodic",
            kind="partition", widths=widths, periodic=periodic, ndim=ndim,
        )
    return _halo_of(partition, tuple(pair for pair in pairs if pair), flags, corners)


def _pair(width: Any) -> tuple[int, int] | None:
    found = as_ints((width, width) if isinstance(width, int) else width)
    if found is None or len(found) != 2 or min(found) < 0:
        return None
    return found[0], found[1]


@memoize("dist.halos")
def _halo_of(partition: Partition, widths: Widths, flags: tuple[bool, ...], corners: bool) -> Halo:
    return Halo(partition, widths, flags, corners)


def _first(span: HaloRange, kind: str) -> int:
    """Return the position of one kind of indices of an axis in the local array with halo."""
    before = count_of(span.before)
    return {"before": 0, "all": 0, "part": before, "after": before + count_of(span.part)}[kind]


def _shift_positions(indices: Places, offset: int) -> Places:
    if isinstance(indices, slice):
        return slice(indices.start + offset, indices.stop + offset, indices.step)
    return indices + offset


@dataclass(frozen=True)
class Collective:
    """Collective operation along one mesh axis.

    Attributes:
        mesh_axis: Position of the mesh axis.
        kind: `all_gather`, `slice`, `all_to_all`, `all_reduce` or `reduce_scatter`.

    >>> from tecomp.dist import Mesh
    >>> rows, whole = (Partition((4,), "int8", Mesh((2,)), [p]) for p in (Shard(0), Replicate()))
    >>> (only,) = redistribution(rows, whole).collectives
    >>> only.mesh_axis, only.kind
    (0, 'all_gather')
    """

    mesh_axis: int
    kind: str


KINDS: dict[tuple[type[Placement], type[Placement]], str] = {
    (Shard, Replicate): "all_gather",
    (Replicate, Shard): "slice",
    (Shard, Shard): "all_to_all",
    (Partial, Replicate): "all_reduce",
    (Partial, Shard): "reduce_scatter",
}


@dataclass(frozen=True)
class Redistribution:
    """Communication that changes the partition of an array.

    Partial values that all ranks need are combined first, by one `all_reduce` along each of the
    axes `reduced`. The rest is sent as messages, at most one from each rank to each other rank.

    Attributes:
        source: Current partition.
        target: Requested partition.

    Raises:
        LayoutError: If the partitions differ in shape, dtype or number of ranks, or values would
            become partial.

    >>> from tecomp.dist import Mesh
    >>> rows, columns = (Partition((4, 6), "int8", Mesh((2,)), [Shard(k)]) for k in (0, 1))
    >>> moves = Redistribution(rows, columns)
    >>> moves.source is rows, moves.target is columns, moves.collectives, moves.nbytes
    (True, True, (Collective(mesh_axis=0, kind='all_to_all'),), 12)
    >>> [(m.source, m.target, len(m.runs[0])) for m in moves.messages]
    [(0, 0, 2), (1, 0, 2), (0, 1, 2), (1, 1, 2)]
    >>> parts, whole = (Partition((4,), "int8", Mesh((2,)), [p]) for p in (Partial(), Replicate()))
    >>> summed = Redistribution(parts, whole)
    >>> summed.reduced, summed.combined == whole, summed.op, moves.op
    ((0,), True, None, None)
    """

    source: Partition
    target: Partition

    def __post_init__(self) -> None:
        source, target = self.source, self.target
        if (source.shape, source.dtype) != (target.shape, target.dtype):
            raise LayoutError(
                "redistribute: {named} and {target_named} do not match; pass partitions of the "
                "same shape and dtype",
                kind="partition", named=source.named, target_named=target.named,
            )
        if source.mesh.size != target.mesh.size:
            raise LayoutError(
                "redistribute: {mesh} has {size} processes, but {target_mesh} has {mesh_size}; "
                "pass meshes of the same team",
                kind="partition", mesh=source.mesh, size=source.mesh.size,
                target_mesh=target.mesh, mesh_size=target.mesh.size,
            )
        partial = target.mesh_axes(Partial)
        is_kept = source.mesh.shape == target.mesh.shape and partial == source.mesh_axes(Partial)
        if partial and not (is_kept and source.op == target.op):
            raise LayoutError(
                "redistribute: conversion from {placements} to {target_placements} with these "
                "Partial placements is not supported; pass Shard or Replicate instead",
                kind="partition", placements=list(source.placements),
                target_placements=list(target.placements),
            )

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return f"copy {self.source} -> {self.target}"

    @cached_property
    def reduced(self) -> tuple[int, ...]:
        """Mesh axes along which partial values are combined for all ranks, by `all_reduce`."""
        if self.source.mesh.shape != self.target.mesh.shape:
            return ()
        pairs = zip(self.source.placements, self.target.placements, strict=True)
        return tuple(
            k for k, (before, after) in enumerate(pairs)
            if isinstance(before, Partial) and isinstance(after, Replicate)
        )

    @cached_property
    def combined(self) -> Partition:
        """Partition from which messages are sent: `source` with the `reduced` values combined."""
        source = self.source
        placements = [
            Replicate() if k in self.reduced else placement
            for k, placement in enumerate(source.placements)
        ]
        return Partition(source.shape, source.dtype, source.mesh, placements, source.windows)

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """Collective operation along each mesh axis whose placement changes.

        Empty for meshes of different shapes, whose axes do not correspond.
        """
        if self.source.mesh.shape != self.target.mesh.shape:
            return ()
        pairs = zip(self.source.placements, self.target.placements, strict=True)
        return tuple(
            Collective(k, KINDS[type(before), type(after)])
            for k, (before, after) in enumerate(pairs) if before != after
        )

    @cached_property
    def op(self) -> str | None:
        """Reduction of messages for the same elements; None if there are none to combine."""
        keeps_partial = bool(self.target.mesh_axes(Partial))
        return None if keeps_partial else self.combined.op

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """All messages in the order of receivers, including messages of a rank to itself."""
        return tuple(m for rank in range(self.target.mesh.size) for m in self.received_by(rank))

    @cached_property
    def nbytes(self) -> int:
        """Total number of bytes sent between different ranks.

        An `all_reduce` of n bytes among p ranks counts as 2 * (p - 1) * n: every element is
        combined on one rank and sent to the others.
        """
        total = sum(m.nbytes for m in self.messages if m.source != m.target)
        shape = self.source.mesh.shape
        local_bytes = sum(map(self.source.local_nbytes, range(self.source.mesh.size)))
        for k in self.reduced:
            total += 2 * (shape[k] - 1) * local_bytes // shape[k]
        return total

    def received_by(self, rank: int) -> tuple[Message, ...]:
        """Return the messages to a rank, in the order of senders.

        Raises:
            LayoutError: If `rank` is out of range.

        >>> from tecomp.dist import Mesh
        >>> rows, columns = (Partition((4, 6), "int8", Mesh((2,)), [Shard(k)]) for k in (0, 1))
        >>> [(m.source, m.nbytes) for m in redistribution(rows, columns).received_by(1)]
        [(0, 6), (1, 6)]
        """
        found = self._known.get(rank)
        if found is None:
            found = self._known[rank] = tuple(self._received(rank))
        return found

    def sent_by(self, rank: int) -> tuple[Message, ...]:
        """Return the messages from a rank, in the order of receivers.

        Raises:
            LayoutError: If `rank` is out of range.

        >>> from tecomp.dist import Mesh
        >>> rows, columns = (Partition((4, 6), "int8", Mesh((2,)), [Shard(k)]) for k in (0, 1))
        >>> [(m.target, m.nbytes) for m in redistribution(rows, columns).sent_by(0)]
        [(0, 6), (1, 6)]
        """
        found = self._known_sent.get(rank)
        if found is None:
            found = self._known_sent[rank] = tuple(self._sent(rank))
        return found

    def _received(self, rank: int) -> Iterator[Message]:
        for source, box in self._senders.boxes(rank, *self._wanted(rank)):
            yield self._message(source, rank, box)

    def _sent(self, rank: int) -> Iterator[Message]:
        for target in range(self.target.mesh.size):
            box = self._senders.box(rank, target, *self._wanted(target))
            if box is not None:
                yield self._message(rank, target, box)

    def _wanted(self, rank: int) -> tuple[tuple[Places, ...], list[object]]:
        """Return the indices that a rank requests, and the cache key of each axis."""
        target, coords = self.target, self.target.mesh.coordinates(rank)
        keys: list[object] = [target.numbers(axis, coords) for axis in range(len(target.shape))]
        return target.local_index(rank), keys

    def _message(self, source: int, rank: int, box: Box) -> Message:
        return Message(
            source, rank, (box,), self.source.local_shape(source),
            self.target.local_shape(rank), self.source.dtype.itemsize,
        )

    @cached_property
    def _senders(self) -> MessageSources:
        return MessageSources(self.combined, self.combined.mesh_axes(Partial) if self.op else ())

    @cached_property
    def _known(self) -> dict[int, tuple[Message, ...]]:
        return {}

    @cached_property
    def _known_sent(self) -> dict[int, tuple[Message, ...]]:
        return {}


@memoize("dist.redistributions")
def redistribution(source: Partition, target: Partition) -> Redistribution:
    """Return the redistribution from one partition to another, cached for equal arguments.

    Args:
        source: Current partition.
        target: Requested partition.

    Raises:
        LayoutError: If the partitions differ in shape, dtype or number of ranks, or values would
            become partial.

    >>> from tecomp.dist import Mesh
    >>> rows, whole = (Partition((4,), "int8", Mesh((2,)), [p]) for p in (Shard(0), Replicate()))
    >>> moves = redistribution(rows, whole)
    >>> moves.nbytes, moves is redistribution(rows, whole)
    (4, True)
    """
    return Redistribution(source, target)
