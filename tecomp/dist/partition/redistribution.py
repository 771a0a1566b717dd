"""Redistribution: messages and collectives that change the partition of an array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tecomp.caches import memoize
from tecomp.dist.partition.messages import Box, Message, MessageSources
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial, Placement, Places, Replicate, Shard
from tecomp.errors import LayoutError


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
