"""Partitions: shards and owners of elements, compared with enumeration and with isl layouts."""

from __future__ import annotations

import copy
import pickle
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from tecomp.dist import Mesh, Partial, Partition, Replicate, Shard
from tecomp.dist.partition import indices_as_array
from tecomp.errors import LayoutError
from tests.messages import Diagnostic, diagnostic
from tests.strategies.partitions import drawn_partition, drawn_slices, taken


def test_blocks_are_equal_and_the_last_ones_shorter_or_empty() -> None:
    rows = Partition((9, 2), "float32", Mesh((4,)), [Shard(0)])

    assert [rows.local_shape(rank) for rank in range(4)] == [(3, 2), (3, 2), (3, 2), (0, 2)]
    assert rows.local_slice(1) == (slice(3, 6, 1), slice(0, 2, 1))
    assert rows.local_nbytes(0) == 24
    assert rows.owners((8, 0)) == (2,)


def test_sizes_say_how_much_each_process_has() -> None:
    uneven = Partition((10,), "int8", Mesh((4,)), [Shard(0, sizes=(0, 7, 0, 3))])

    assert [uneven.local_shape(rank)[0] for rank in range(4)] == [0, 7, 0, 3]
    assert [uneven.owner((k,)) for k in range(10)] == [1] * 7 + [3] * 3


def test_replicas_and_operands_are_on_all_processes_of_an_axis() -> None:
    mesh = Mesh((2, 3))
    copied = Partition((5, 6), "int8", mesh, [Replicate(), Shard(1)])
    summed = Partition((5, 6), "int8", mesh, [Shard(-2), Partial("sum")])

    assert copied.owners((0, 2)) == (1, 4)
    assert summed.owners((4, 2)) == (3, 4, 5)
    assert (copied.op, summed.op) == (None, "sum")
    assert summed.placements[0] == Shard(0)


def test_the_second_cut_of_an_axis_cuts_the_parts_of_the_first() -> None:
    twice = Partition((10,), "int8", Mesh((2, 2)), [Shard(0), Shard(0)])

    assert [twice.local_shape(rank)[0] for rank in range(4)] == [3, 2, 3, 2]
    assert [twice.owner((k,)) for k in range(10)] == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]


@pytest.mark.parametrize("seed", range(60))
def test_shards_cover_the_array(seed: int) -> None:
    dice = Random(seed)
    partition = drawn_partition(dice, partial=True)
    if dice.random() < 0.4:
        partition = partition.view(drawn_slices(dice, partition.shape))
    copies = np.zeros(partition.shape, int)
    covered = [np.zeros(partition.shape, bool) for _ in range(partition.mesh.size)]
    for rank in range(partition.mesh.size):
        np.add.at(copies, taken(partition, rank), 1)
        covered[rank][taken(partition, rank)] = True
    axes = partition.mesh_axes(Shard)
    times = partition.mesh.size // int(np.prod([partition.mesh.shape[k] for k in axes], dtype=int))

    assert (copies == times).all()
    for index in np.ndindex(*partition.shape):
        assert partition.owners(index) == tuple(r for r, has in enumerate(covered) if has[index])


@pytest.mark.exhaustive(keep=23)
@pytest.mark.parametrize("seed", range(40))
def test_layout_of_a_partition_matches(seed: int) -> None:
    dice = Random(100 + seed)
    partition = drawn_partition(dice)
    shards = partition.mesh_axes(Shard)
    layout = partition.layout

    assert layout.grid_axes == tuple(range(len(shards)))
    for rank in range(partition.mesh.size):
        at = tuple(partition.mesh.coordinates(rank)[k] for k in shards)
        parts = [indices_as_array(places) for places in partition.local_index(rank)]
        for inside in product(*(range(len(part)) for part in parts)):
            index = tuple(int(part[k]) for part, k in zip(parts, inside, strict=True))
            assert layout.place(index) == (*at, *inside)


@pytest.mark.parametrize("seed", range(40))
def test_views_share_the_memory_of_their_base(seed: int) -> None:
    dice = Random(200 + seed)
    base = drawn_partition(dice)
    slices = drawn_slices(dice, base.shape)
    view = base.view(slices)
    array = np.arange(int(np.prod(base.shape, dtype=int))).reshape(base.shape)

    for rank in range(base.mesh.size):
        local = array[taken(base, rank)]
        index = view.indices_in(base, rank)
        seen = local[np.ix_(*(np.arange(n)[k] for n, k in zip(local.shape, index, strict=True)))]
        np.testing.assert_array_equal(seen, array[slices][taken(view, rank)])


def test_views_of_blocks_are_views_of_memory() -> None:
    base = Partition((1024, 8), "float32", Mesh((4,)), [Shard(0)])
    view = base.view([slice(514, 510, -1), slice(None)])

    assert view.indices_in(base, 1)[0] == slice(255, 256, 1)
    assert view.indices_in(base, 2)[0] == slice(2, None, -1)


@pytest.mark.parametrize("repeated", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_pickled_partitions_omit_cached_values(repeated: Any) -> None:
    """The hash of a string differs between processes, so the cached hash is not pickled."""
    rows = Partition((8, 4), "float32", Mesh((2,), names=("x",)), [Shard(0)]).view(
        [slice(1, 7), slice(None)])
    assert {rows: 1}[rows] == 1
    assert rows.local_shape(0) == (3, 4)
    result = repeated(rows)

    assert result == rows
    assert "_hash" in rows.__dict__
    assert "_hash" not in result.__dict__


@pytest.mark.parametrize(("make", "expected"), [
    (lambda: Mesh((0, 2)),
     Diagnostic("partition", shape=(0, 2))),
    (lambda: Mesh((2, 2), names=("x", "x")),
     Diagnostic("partition", rank=2, names=['x', 'x'])),
    (lambda: Mesh((2, 2)).coordinates(4),
     Diagnostic("partition", rank=4, subject="Mesh(m0=2, m1=2)", last=3)),
    (lambda: Mesh((2, 2)).rank((0, 2)),
     Diagnostic("partition", coordinates=(0, 2), subject="Mesh(m0=2, m1=2)", ndim=2)),
    (lambda: Shard(0, block=0),
     Diagnostic("partition", block=0)),
    (lambda: Shard("rows"),  # type: ignore[arg-type]
     Diagnostic("partition", axis="rows")),
    (lambda: Shard(0, sizes=(1, -1)),
     Diagnostic("partition", sizes=(1, -1), block=None)),
    (lambda: Partial("xor"),
     Diagnostic("partition", op="xor", ops="sum, prod, min, max, any, all")),
    (lambda: Partition((-1,), "int8", Mesh((2,)), [Shard(0)]),
     Diagnostic("partition", shape=(-1,))),
    (lambda: Partition((4,), "int9", Mesh((2,)), [Shard(0)]),
     Diagnostic("partition", value="int9")),
    (lambda: Partition((4,), "int8", (2,), [Shard(0)]),  # type: ignore[arg-type]
     Diagnostic("partition", mesh=(2,))),
    (lambda: Partition((4,), "int8", Mesh((2,)), [Shard(0), Shard(0)]),
     Diagnostic("partition", placements="[Shard(0), Shard(0)]", mesh_ndim=1)),
    (lambda: Partition((4,), "int8", Mesh((2,)), [Shard(1)]),
     Diagnostic("partition", placed="Shard(1)", ndim=1)),
    (lambda: Partition((4,), "int8", Mesh((2, 2)), [Partial("sum"), Partial("max")]),
     Diagnostic("partition", ops="max and sum")),
    (lambda: Partition((4,), "int8", Mesh((2,)), [Shard(0, sizes=(1, 2))]),
     Diagnostic("partition", sizes=[1, 2], axis=0, extent=4, count=2)),
    (lambda: Partition((4,), "int8", Mesh((2, 2)), [Shard(0, sizes=(2, 2)), Shard(0)]),
     Diagnostic("partition", axis=0, sizes=[2, 2], n_shards=2)),
    (lambda: Partition((4,), "int8", Mesh((2,)), [Shard(0)]).owner((4,)),
     Diagnostic("partition", index=(4,), shape=[4], rank=1)),
    (lambda: Partition((4,), "int8", Mesh((2,)), [Shard(0)]).view([3]),  # type: ignore[list-item]
     Diagnostic("partition", slices=[3], rank=1)),
    (lambda: Partition((4,), "int8", Mesh((2,)), [Partial()]).layout,
     Diagnostic("partition", placements="[Partial('sum')]")),
    (lambda: Partition((4,), "int8", Mesh((2,)), [Shard(0)]).indices_in(
        Partition((5,), "int8", Mesh((2,)), [Shard(0)]), 0),
     Diagnostic("partition", shape=[4], base_shape=[5])),
])
def test_refusals(make: object, expected: Diagnostic) -> None:
    assert callable(make)
    with pytest.raises(LayoutError) as caught:
        make()

    assert diagnostic(caught.value) == expected
