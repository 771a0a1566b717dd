"""Teams of processes: what they compute together, and what is said when they do not agree."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.strategies.ranks import Pools, printed, ran

SAME = "all ranks have to make the same calls in the same order"


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_copies_between_random_partitions(n: int, pools: Pools) -> None:
    assert pools.printed("copies", n) == ["copied 60"]


@pytest.mark.parametrize("n", [1, 3, 4])
def test_halos_and_reductions(n: int, pools: Pools) -> None:
    assert pools.printed("halos", n) == ["all as on one"]


@pytest.mark.parametrize("n", [2, 4])
def test_halos_of_several_arrays(n: int, pools: Pools) -> None:
    assert pools.printed("merged", n) == ["merged"]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_lowered_functions(n: int, pools: Pools) -> None:
    """Calls of the runtime, as `tests/ptensor/test_runtime.py` has them printed."""
    assert pools.printed("lowered", n) == ["as with NumPy"]


def test_an_exception_on_one_rank_ends_all_with_its_traceback() -> None:
    start = time.monotonic()
    done = ran("wrong", 3, "raises")

    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.count("ValueError: one rank alone") == 1
    assert time.monotonic() - start < 60  # a second on a machine that has nothing else to do


def test_an_error_of_all_ranks_is_told_once() -> None:
    done = ran("wrong", 3, "all_raise")

    assert done.returncode == 1
    assert done.stderr.count("ValueError: on every rank") == 1


def test_an_exception_ends_all_without_the_runner_of_mpi4py() -> None:
    """Which ends the others; MPI alone would wait for them."""
    mpiexec = str(Path(sys.executable).parent / "mpiexec")
    done = ran("wrong", 3, "raises", started=(mpiexec, "-n", "3", sys.executable))

    assert done.returncode == 1
    assert done.stderr.count("ValueError: one rank alone") == 1


@pytest.mark.parametrize(("what", "message"), [
    ("skips", "team 1: call 1 is `allreduce sum float64[3]` on rank 1 and `barrier` on rank"),
    ("shapes", "team 1: call 1 is `allreduce sum float64[3]` on rank"),
    ("leaves", "team 1: rank 1 has ended after 1 calls, and ranks 0, 2 wait in "
               f"`allreduce sum float64[3]`; {SAME}"),
    ("other_copy", "team 1: call 1 is `copy float64[4] as [Shard(0)] on Mesh(m0=3) -> float64[4] as "
                   "[Replicate()] on Mesh(m0=3)` on rank"),
])
def test_calls_that_differ_are_named(what: str, message: str) -> None:
    done = ran("wrong", 3, what)

    assert done.returncode == 1
    assert message in done.stderr
    assert SAME in done.stderr


def test_parts_that_do_not_fit_are_named_once() -> None:
    done = ran("wrong", 3, "parts")

    assert done.returncode == 1
    assert (
        "partition_of_parts: float64[2, 3] on rank 0 and float64[2, 4] on rank 1 are no parts along axis "
        "0 of one array; give arrays of one type that have the other extents in common"
    ) in done.stderr


def test_a_rank_may_leave_with_a_status_of_its_own() -> None:
    assert ran("wrong", 3, "exits").returncode == 3


def test_slow_ranks_are_waited_for() -> None:
    assert printed("wrong", 3, "is_slow") == ["patient"]
