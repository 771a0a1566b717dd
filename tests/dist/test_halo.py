"""Halo messages, executed with NumPy, give every process the elements around its shard."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from tecomp.dist import Halo, Mesh, Partial, Partition, Placement, Replicate, Shard, halo
from tecomp.errors import LayoutError
from tests.messages import Diagnostic, diagnostic
from tests.strategies.partitions import drawn_sizes, taken

Array = np.ndarray[Any, np.dtype[Any]]


def drawn_halo(dice: Random) -> Halo:
    shape = [dice.choice([1, 2, 5, 7, 12]) for _ in range(dice.randint(1, 3))]
    mesh = Mesh(dice.choice([(1,), (2,), (4,), (2, 2), (3, 2)]))
    placements: list[Placement] = []
    free = list(range(len(shape)))
    for count in mesh.shape:
        if not free or dice.random() < 0.15:
            placements.append(Replicate())
            continue
        axis = free.pop(dice.randrange(len(free)))
        sizes = drawn_sizes(dice, shape[axis], count) if dice.random() < 0.4 else None
        placements.append(Shard(axis, sizes=sizes))
    partition = Partition(shape, "float64", mesh, placements)
    widths = [(dice.choice([0, 1, 2, 3]), dice.choice([0, 1, 2])) for _ in shape]
    periodic = [dice.random() < 0.4 for _ in shape]
    return halo(partition, widths, periodic=periodic, corners=dice.random() < 0.5)


def around(found: Halo, array: Array, rank: int) -> tuple[Array, Array]:
    """Return the shard with its halo, and the mask of elements that a halo without corners has."""
    parts = []
    for axis, part in enumerate(found.partition.local_index(rank)):
        assert isinstance(part, slice)
        extent = array.shape[axis]
        left, right = found.widths[axis] if part.stop > part.start else (0, 0)
        numbers = np.arange(part.start - left, part.stop + right)
        outside = (numbers < part.start) | (numbers >= part.stop)
        keep = np.ones(len(numbers), bool) if found.periodic[axis] else (numbers >= 0) & (numbers < extent)
        parts.append((numbers[keep] % max(extent, 1), outside[keep]))
    index = np.ix_(*(numbers for numbers, _ in parts))
    outer = [np.reshape(o, [-1 if k == a else 1 for k in range(array.ndim)]) for a, (_, o) in enumerate(parts)]
    count = np.add.reduce(np.broadcast_arrays(*(o.astype(int) for o in outer)))
    return array[index], count <= (array.ndim if found.corners else 1)


@pytest.mark.exhaustive(keep=67)
@pytest.mark.parametrize("seed", range(150))
def test_every_process_gets_its_halo(seed: int) -> None:
    found = drawn_halo(Random(seed))
    partition = found.partition
    array = 1 + np.arange(int(np.prod(partition.shape)), dtype=float).reshape(partition.shape)

    for rank in range(partition.mesh.size):
        result, times = np.zeros((2, *found.shape(rank)))
        result[found.core(rank)] = array[taken(partition, rank)]
        times[found.core(rank)] += 1
        for message in found.received_by(rank):
            assert message.received_shape == result.shape
            for box in message.boxes:
                result[box.received_index] = array[taken(partition, message.source)][box.sent_index]
                times[box.received_index] += 1
            assert int(message.runs[2].sum()) == message.size
        expected, needed = around(found, array, rank)
        if expected.size:
            np.testing.assert_array_equal(result, np.where(needed, expected, 0))
            np.testing.assert_array_equal(times, needed.astype(int) * np.ones(expected.shape))
        senders = [message.source for message in found.received_by(rank)]
        assert senders == sorted(set(senders))


def test_halos_wider_than_a_shard_reach_the_second_neighbour() -> None:
    line = Partition((4,), "int8", Mesh((4,)), [Shard(0)])

    assert [(m.source, m.nbytes) for m in halo(line, [2]).received_by(0)] == [(1, 1), (2, 1)]
    assert halo(line, [2]).nbytes == 10


def test_one_message_per_neighbour_for_any_number_of_strips() -> None:
    ring = Partition((8, 3), "float64", Mesh((2,)), [Shard(0)])
    found = halo(ring, [1, 0], periodic=True)

    assert [(m.source, m.target, len(m.boxes), m.nbytes) for m in found.messages] == [
        (1, 0, 2, 48), (0, 1, 2, 48)]
    assert [m.target for m in found.sent_by(0)] == [1]


def test_corners_are_sent_on_demand() -> None:
    mesh = Mesh((3, 3))
    plane = Partition((9, 9), "int8", mesh, [Shard(0), Shard(1)])

    assert len(halo(plane, [1, 1]).received_by(4)) == 8
    assert len(halo(plane, [1, 1], corners=False).received_by(4)) == 4


@pytest.mark.parametrize(("placement", "widths", "periodic", "expected"), [
    (Shard(0, block=1), [1], False,
     Diagnostic("partition", axis=0)),
    (Partial(), [1], False,
     Diagnostic("partition", placements="[Partial('sum')]")),
    (Shard(0), [-1], False,
     Diagnostic("partition", widths=[-1], periodic=False, ndim=1)),
    (Shard(0), [1], [True, False],
     Diagnostic("partition", widths=[1], periodic=[True, False], ndim=1)),
    (Shard(0), 1, False,
     Diagnostic("partition", widths=1, periodic=False, ndim=1)),
])
def test_refusals(placement: Placement, widths: Any, periodic: Any, expected: Diagnostic) -> None:
    partition = Partition((8,), "int8", Mesh((4,)), [placement])
    with pytest.raises(LayoutError) as caught:
        halo(partition, widths, periodic=periodic)

    assert diagnostic(caught.value) == expected
