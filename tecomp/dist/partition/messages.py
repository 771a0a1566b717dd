"""Messages between ranks and their contiguous runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np

from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import (
    Numbers,
    Places,
    Shard,
    common,
    count_of,
    indices_as_array,
)
from tecomp.poly.accesses.contiguous_runs import merge_maximal_runs

Runs: TypeAlias = tuple[Numbers, Numbers, Numbers]
"""First offsets in the first and in the second memory, in elements, and lengths."""


def runs_of(
    sent: Sequence[Places], sent_shape: Sequence[int],
    received: Sequence[Places], received_shape: Sequence[int],
) -> Runs:
    """Return the maximal contiguous runs of a box of elements, in the order of the first memory.

    Args:
        sent: Positions of the elements along each axis of the first array.
        sent_shape: Shape of the first array, in row-major order.
        received: Positions of the elements along each axis of the second array.
        received_shape: Shape of the second array, in row-major order.

    >>> columns = runs_of([slice(0, 2), slice(0, 3)], (2, 6), [slice(0, 2), slice(3, 6)], (2, 6))
    >>> [part.tolist() for part in columns]
    [[0, 6], [3, 9], [3, 3]]
    """
    first, second, lengths = np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64)
    sent_step = recv_step = 1
    for axis in reversed(range(len(sent))):
        a, b, n = _runs_along(sent[axis], received[axis])
        if len(first) != 1 or not lengths[0] == sent_step == recv_step:
            # Inner axes are not complete, so each step along this axis starts a new run.
            a, b, n = (
                _element_positions(a, n),
                _element_positions(b, n),
                np.ones(int(n.sum()), np.int64),
            )
        first = (a[:, None] * sent_step + first).ravel()
        second = (b[:, None] * recv_step + second).ravel()
        lengths = (n[:, None] * lengths).ravel()
        sent_step, recv_step = sent_step * sent_shape[axis], recv_step * received_shape[axis]
    return merge_maximal_runs(first, second, lengths)


def _runs_along(sent: Places, received: Places) -> Runs:
    """Return the contiguous runs along one axis."""
    if isinstance(sent, slice) and isinstance(received, slice) and sent.step == received.step == 1:
        length = np.array([count_of(sent)])
        return np.array([sent.start]), np.array([received.start]), length
    a, b = indices_as_array(sent), indices_as_array(received)
    is_next = (np.diff(a) == 1) & (np.diff(b) == 1)
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(a), 1), bool), ~is_next]))
    return a[starts], b[starts], np.diff(np.append(starts, len(a)))


def _element_positions(starts: Numbers, lengths: Numbers) -> Numbers:
    """Return the position of every element of the runs."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


Shape = tuple[int, ...]
Index: TypeAlias = "tuple[Places, ...]"
Key: TypeAlias = "tuple[object, ...]"


@dataclass(frozen=True)
class Box:
    """Box of elements to be sent, with their positions along each axis on both sides.

    Attributes:
        sent: Indices in the sender's local array.
        received: Indices in the receiver's local array.

    >>> box = Box((slice(0, 2, 1), slice(3, 6, 1)), (slice(0, 2, 1), slice(0, 3, 1)))
    >>> box.shape, box.size
    ((2, 3), 6)
    >>> box.sent_index == box.sent, box.received_index == box.received
    (True, True)
    """

    sent: Index
    received: Index

    @property
    def shape(self) -> Shape:
        """Number of elements along each axis."""
        return tuple(count_of(indices) for indices in self.sent)

    @cached_property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @cached_property
    def sent_index(self) -> Index:
        """NumPy index of the elements in the sender's array: slices or an open mesh."""
        return _index(self.sent)

    @cached_property
    def received_index(self) -> Index:
        """NumPy index of the elements in the receiver's array: slices or an open mesh."""
        return _index(self.received)


@dataclass(frozen=True)
class Message:
    """Message from one rank to another.

    Attributes:
        source: Sender.
        target: Receiver; equal to the sender for elements that move within its memory.
        boxes: Elements, in this order.
        sent_shape: Shape of the sender's local array.
        received_shape: Shape of the receiver's local array.
        itemsize: Number of bytes of an element.

    >>> from tecomp.dist import Mesh, redistribution
    >>> rows, columns = (Partition((4, 6), "int8", Mesh((2,)), [Shard(k)]) for k in (0, 1))
    >>> message = redistribution(rows, columns).messages[1]
    >>> message.source, message.target, message.size, message.nbytes, message.itemsize
    (1, 0, 6, 6, 1)
    >>> message.sent_shape, message.received_shape, [box.shape for box in message.boxes]
    ((2, 6), (4, 3), [(2, 3)])
    >>> offsets_sent, offsets_received, lengths = message.runs
    >>> offsets_sent.tolist(), offsets_received.tolist(), lengths.tolist()
    ([0, 6], [6, 9], [3, 3])
    """

    source: int
    target: int
    boxes: tuple[Box, ...]
    sent_shape: Shape
    received_shape: Shape
    itemsize: int

    @property
    def size(self) -> int:
        """Number of elements."""
        return sum(box.size for box in self.boxes)

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return self.size * self.itemsize

    @cached_property
    def runs(self) -> Runs:
        """Maximal contiguous runs: offsets at the sender, offsets at the receiver, and lengths."""
        found = [
            runs_of(box.sent, self.sent_shape, box.received, self.received_shape)
            for box in self.boxes
        ]
        if len(found) == 1:
            return found[0]
        first, second, lengths = (np.concatenate(column) for column in zip(*found, strict=True))
        return first, second, lengths


class MessageSources:
    """Messages that bring requested elements from a partition.

    Attributes:
        source: Partition that has the elements.
        combined: Mesh axes along which all ranks send their operand of an element.
    """

    def __init__(self, source: Partition, combined: Sequence[int] = ()) -> None:
        self.source = source
        self.combined = combined
        self._sources_by_axis: dict[Key, list[tuple[Shape, Places, Places]]] = {}
        self._pairs: dict[Key, tuple[Places, Places]] = {}

    def boxes(
        self, target: int, requested: Sequence[Places], keys: Sequence[object]
    ) -> Iterator[tuple[int, Box]]:
        """Return the boxes that a rank requests, each with its sender, in the order of senders.

        If several ranks have an element, the sender has the receiver's coordinates along the mesh
        axes without shards. It is the receiver itself, if the receiver has the element.

        Args:
            target: Rank that requests the elements.
            requested: Indices along each axis of the array, in the order of the receiver's memory.
            keys: Cache key of the wanted indices of each axis.
        """
        axes = [self._holders(k, indices, keys[k]) for k, indices in enumerate(requested)]
        coords = self.source.mesh.coordinates(target)
        found = []
        for parts in product(*axes):
            candidates: list[Sequence[int]] = [(k,) for k in coords]
            for k in self.combined:
                candidates[k] = range(self.source.mesh.shape[k])
            for axis, (numbers, _, _) in enumerate(parts):
                for cut, number in zip(self.source.cuts[axis].cuts, numbers, strict=True):
                    candidates[cut.mesh_axis] = (number,)
            box = Box(tuple(part[1] for part in parts), tuple(part[2] for part in parts))
            found += [(self.source.mesh.rank(position), box) for position in product(*candidates)]
        return iter(sorted(found, key=lambda item: item[0]))

    def box(
        self, source: int, target: int, requested: Sequence[Places], keys: Sequence[object]
    ) -> Box | None:
        """Return the box of these elements that one rank sends, or None if it sends none."""
        src, dst = self.source.mesh.coordinates(source), self.source.mesh.coordinates(target)
        varied = {*self.source.mesh_axes(Shard), *self.combined}
        if any(k not in varied and a != b for k, (a, b) in enumerate(zip(src, dst, strict=True))):
            return None
        found = []
        for axis, indices in enumerate(requested):
            numbers = self.source.numbers(axis, src)
            pair = self._common(axis, numbers, indices, keys[axis])
            if not count_of(pair[0]):
                return None
            found.append(pair)
        return Box(tuple(pair[0] for pair in found), tuple(pair[1] for pair in found))

    def _common(
        self, axis: int, numbers: Shape, requested: Places, key: object
    ) -> tuple[Places, Places]:
        """Return the positions of the wanted indices of a part at sender and receiver."""
        found = self._pairs.get((axis, numbers, key))
        if found is None:
            found = common(self.source.part(axis, numbers), requested)
            self._pairs[axis, numbers, key] = found
        return found

    def _holders(
        self, axis: int, requested: Places, key: object
    ) -> list[tuple[Shape, Places, Places]]:
        """Return the parts of an axis with wanted indices: number, positions at both sides."""
        found = self._sources_by_axis.get((axis, key))
        if found is None:
            found = []
            for numbers in product(*self.source.holders(axis, requested)):
                sent, received = self._common(axis, numbers, requested, key)
                if count_of(sent):
                    found.append((numbers, sent, received))
            self._sources_by_axis[axis, key] = found
        return found


def _index(indices: Index) -> Index:
    if all(isinstance(item, slice) for item in indices):
        return indices
    return tuple(np.ix_(*(indices_as_array(item) for item in indices)))
