"""Redistribution messages, executed with NumPy, give every process its shard in the fewest runs."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest

from tecomp.dist import (
    Collective,
    Mesh,
    Message,
    Partial,
    Partition,
    Placement,
    Redistribution,
    Replicate,
    Shard,
    redistribution,
)
from tecomp.dist.partition import indices_as_array
from tecomp.errors import LayoutError
from tests.messages import Diagnostic, diagnostic
from tests.strategies.partitions import drawn_partition, drawn_slices, taken

Array = np.ndarray[Any, np.dtype[Any]]


def locals_of(dice: Random, partition: Partition, array: Array) -> list[Array]:
    """Return the local arrays: shards, or random summands along partial mesh axes."""
    found = [array[taken(partition, rank)] for rank in range(partition.mesh.size)]
    axes = partition.mesh_axes(Partial)
    if not axes:
        return found
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank in range(partition.mesh.size):
        at = partition.mesh.coordinates(rank)
        groups.setdefault(tuple(c for k, c in enumerate(at) if k not in axes), []).append(rank)
    for ranks in groups.values():
        rest = found[ranks[0]]
        for rank in ranks[:-1]:
            found[rank] = np.floor(rest * dice.random())
            rest = rest - found[rank]
        found[ranks[-1]] = rest
    return found


def combined(moves: Redistribution, held: list[Array]) -> list[Array]:
    """Return the values after the initial reductions."""
    mesh = moves.source.mesh
    for axis in moves.reduced:
        sums: dict[tuple[int, ...], Array] = {}
        places = [mesh.coordinates(rank) for rank in range(mesh.size)]
        keys = [(*at[:axis], *at[axis + 1 :]) for at in places]
        for key, each in zip(keys, held, strict=True):
            sums[key] = sums.get(key, np.zeros(each.shape)) + each
        held = [sums[key] for key in keys]
    return held


def sent(moves: Redistribution, held: list[Array]) -> list[Array]:
    """Return the local arrays of all processes after all messages."""
    held = combined(moves, held)
    target = moves.target
    results = [np.zeros(target.local_shape(rank)) for rank in range(target.mesh.size)]
    for message in moves.messages:
        (box,) = message.boxes
        assert held[message.source].shape == message.sent_shape
        assert results[message.target].shape == message.received_shape
        results[message.target][box.received_index] += held[message.source][box.sent_index]
    return results


def runs_of(message: Message) -> int:
    """Count the contiguous runs of a message by enumeration of its elements."""
    pairs: list[tuple[int, int]] = []
    for box in message.boxes:
        first = np.arange(prod(message.sent_shape)).reshape(message.sent_shape)
        second = np.arange(prod(message.received_shape)).reshape(message.received_shape)
        pairs += zip(first[box.sent_index].ravel().tolist(), second[box.received_index].ravel().tolist(),
                     strict=True)
    pairs.sort()
    return sum(k == 0 or (a - 1, b - 1) != pairs[k - 1] for k, (a, b) in enumerate(pairs))


def listed_of(message: Message) -> list[list[int]]:
    """Return the sent and received indices of a message along each axis."""
    (box,) = message.boxes
    return [indices_as_array(places).tolist() for places in (*box.sent, *box.received)]


@pytest.mark.exhaustive(keep=76)
@pytest.mark.parametrize("seed", range(150))
def test_every_process_receives_its_elements_once(seed: int) -> None:
    dice = Random(seed)
    source = drawn_partition(dice, partial=True)
    target = drawn_partition(dice, shape=source.shape, size=source.mesh.size)
    array = np.floor(np.random.default_rng(seed).random(source.shape) * 100)
    if dice.random() < 0.3:
        slices = drawn_slices(dice, source.shape)
        source, array = source.view(slices), array[slices]
        target = drawn_partition(dice, shape=source.shape, size=source.mesh.size)
    moves = redistribution(source, target)

    for rank, each in enumerate(sent(moves, locals_of(dice, source, array))):
        np.testing.assert_array_equal(each, array[taken(target, rank)])
    assert len({(m.source, m.target) for m in moves.messages}) == len(moves.messages)
    reported = {(m.source, m.target): listed_of(m) for m in moves.messages}
    assert reported == {
        (rank, m.target): listed_of(m) for rank in range(source.mesh.size) for m in moves.sent_by(rank)}
    for message in moves.messages:
        assert len(message.runs[0]) == runs_of(message)
        assert int(message.runs[2].sum()) == message.size > 0
    if moves.op is None:
        # No process receives an element that it has, and no element is received twice.
        for rank in range(source.mesh.size):
            has, wants = np.zeros((2, *array.shape), bool)
            has[taken(moves.combined, rank)] = True
            wants[taken(target, rank)] = True
            came = sum(m.size for m in moves.received_by(rank) if m.source != rank)
            assert came == (wants & ~has).sum()


@pytest.mark.parametrize(("before", "after", "kind", "nbytes"), [
    (Shard(0), Replicate(), "all_gather", 3 * 96),
    (Replicate(), Shard(1), "slice", 0),
    (Shard(0), Shard(1), "all_to_all", 72),
    (Partial(), Replicate(), "all_reduce", 2 * 3 * 96),
    (Partial(), Shard(0), "reduce_scatter", 3 * 96),
])
def test_the_table_of_collectives(
    before: Placement, after: Placement, kind: str, nbytes: int
) -> None:
    mesh = Mesh((4,))
    source, target = (Partition((8, 12), "int8", mesh, [placed]) for placed in (before, after))
    moves = redistribution(source, target)

    assert moves.collectives == (Collective(0, kind),)
    assert moves.nbytes == nbytes
    assert moves is redistribution(source, Partition((8, 12), "int8", mesh, [after]))


def test_operands_are_not_moved() -> None:
    mesh = Mesh((2, 2))
    source = Partition((4,), "int8", mesh, [Partial("max"), Shard(0)])
    target = Partition((4,), "int8", mesh, [Partial("max"), Replicate()])
    moves = redistribution(source, target)

    assert [(m.source, m.target) for m in moves.messages] == [
        (0, 0), (1, 0), (0, 1), (1, 1), (2, 2), (3, 2), (2, 3), (3, 3)]
    assert (moves.op, moves.reduced, moves.nbytes) == (None, (), 8)
    assert [m.target for m in moves.sent_by(3)] == [2, 3]


def test_a_partition_onto_itself_sends_nothing() -> None:
    rows = Partition((10, 3), "int8", Mesh((4,)), [Shard(0)])
    moves = redistribution(rows, rows)

    assert (moves.nbytes, moves.collectives) == (0, ())
    assert [len(m.runs[0]) for m in moves.messages] == [1, 1, 1, 1]


def test_another_mesh_of_the_same_processes() -> None:
    """Quarters of rows are contained in local halves of rows, so nothing is sent."""
    halves = Partition((8,), "int8", Mesh((2, 2)), [Shard(0), Replicate()])
    quarters = Partition((8,), "int8", Mesh((4,)), [Shard(0)])

    assert redistribution(halves, quarters).nbytes == 0
    assert redistribution(halves, quarters).collectives == ()
    assert redistribution(quarters, halves).nbytes == 8


@pytest.mark.parametrize(("source", "target", "expected"), [
    (Partition((4,), "int8", Mesh((2,)), [Shard(0)]), Partition((5,), "int8", Mesh((2,)), [Shard(0)]),
     Diagnostic("partition", named="int8[4]", target_named="int8[5]")),
    (Partition((4,), "int8", Mesh((2,)), [Shard(0)]), Partition((4,), "int8", Mesh((3,)), [Shard(0)]),
     Diagnostic("partition", mesh="Mesh(m0=2)", size=2, target_mesh="Mesh(m0=3)", mesh_size=3)),
    (Partition((4,), "int8", Mesh((2,)), [Shard(0)]), Partition((4,), "int8", Mesh((2,)), [Partial()]),
     Diagnostic("partition", placements="[Shard(0)]", target_placements="[Partial('sum')]")),
])
def test_refusals(source: Partition, target: Partition, expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        Redistribution(source, target)

    assert diagnostic(caught.value) == expected
