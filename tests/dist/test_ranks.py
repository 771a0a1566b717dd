"""Collectives on teams of processes, and error messages for diverging ranks."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.messages import Diagnostic
from tests.strategies.ranks import Pools, printed, ran

SAME = "all ranks must make the same calls in the same order"


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("n", [4, 1, 3, 2])
def test_copies_between_random_partitions(n: int, pools: Pools) -> None:
    assert pools.printed("copies", n) == ["copied 60"]


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("n", [4, 1, 3])
def test_halos_and_reductions(n: int, pools: Pools) -> None:
    assert pools.printed("halos", n) == ["all as on one"]


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("n", [4, 2])
def test_halos_of_several_arrays(n: int, pools: Pools) -> None:
    assert pools.printed("merged", n) == ["merged"]


@pytest.mark.exhaustive(most=2)
@pytest.mark.parametrize("n", [4, 1, 3, 2])
def test_lowered_functions(n: int, pools: Pools) -> None:
    """Runtime calls of the functions that `tests/ptensor/test_runtime_calls.py` prints."""
    assert pools.printed("lowered", n) == ["as with NumPy"]


def test_an_exception_on_one_rank_ends_all_with_its_traceback() -> None:
    start = time.monotonic()
    done = ran("wrong", 3, "raises")

    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.count("ValueError: one rank alone") == 1
    assert time.monotonic() - start < 60  # takes a second on an idle machine


@pytest.mark.exhaustive
def test_errors_of_all_ranks_are_reported_once() -> None:
    done = ran("wrong", 3, "all_raise")

    assert done.returncode == 1
    assert done.stderr.count("ValueError: on every rank") == 1


@pytest.mark.exhaustive
def test_an_exception_ends_all_without_the_runner_of_mpi4py() -> None:
    """The other ranks are terminated by tecomp; MPI alone would wait for them."""
    mpiexec = str(Path(sys.executable).parent / "mpiexec")
    done = ran("wrong", 3, "raises", started=(mpiexec, "-n", "3", sys.executable))

    assert done.returncode == 1
    assert done.stderr.count("ValueError: one rank alone") == 1


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("subject", "message"), [
    ("skips", "team 1: call 1 is `allreduce sum float64[3]` on rank 1 and `barrier` on rank"),
    ("shapes", "team 1: call 1 is `allreduce sum float64[3]` on rank"),
    ("leaves", "team 1: rank 1 has ended after 1 calls, and ranks 0, 2 wait in "
               f"`allreduce sum float64[3]`; {SAME}"),
    ("other_copy", "team 1: call 1 is `copy float64[4] as [Shard(0)] on Mesh(m0=3) -> float64[4] as "
                   "[Replicate()] on Mesh(m0=3)` on rank"),
])
def test_calls_that_differ_are_named(subject: str, message: str) -> None:
    done = ran("wrong", 3, subject)

    assert done.returncode == 1
    assert message in done.stderr
    assert SAME in done.stderr


@pytest.mark.exhaustive
def test_parts_that_do_not_fit_are_named_once() -> None:
    done = ran("wrong", 3, "parts")

    assert done.returncode == 1
    assert (
        "partition_of_parts: float64[2, 3] on rank 0 and float64[2, 4] on rank 1 are not parts of one "
        "array along axis 0; pass arrays of one dtype that have equal sizes along all other axes"
    ) in done.stderr


@pytest.mark.exhaustive
def test_a_part_that_does_not_fit_ends_all() -> None:
    done = ran("wrong", 3, "part_of_a_partition")

    assert done.returncode == 1
    assert (
        "redistribute: local is float64[3]; pass the local NumPy array of this rank, float64[2]"
    ) in done.stderr


def test_arrays_that_processes_compute_otherwise_are_named() -> None:
    """Every error names the diverging call."""
    done = ran("wrong", 3, "other_sum")

    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if "TeamError: " in line]
    assert errors
    assert all("call 1 is `all_reduce" in line and SAME in line for line in errors)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("subject", "message"), [
    ("other_operation", "call 1 is `add %0, 2.0 -> float64[6], "),
    ("other_constant", "call 1 is `multiply %0, 2.5 -> float64[6], "),
    ("other_operand", "call 1 is `add %0, %"),
    ("other_shape", "call 1 is `extract_slice %0 -> float64[5], "),
    ("long_ago", "is `add %"),
])
def test_recorded_operations_are_compared_across_ranks_on_request(
    subject: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Divergence is detected with TECOMP_DEBUG, because most recorded operations send nothing."""
    monkeypatch.setenv("TECOMP_DEBUG", "1")
    done = ran("wrong", 3, subject)

    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if "TeamError: " in line]
    assert errors
    assert all(message in line and SAME in line for line in errors), errors


def test_bad_input_is_refused_on_every_rank(pools: Pools) -> None:
    mesh = Diagnostic("team", mesh="Mesh(m0=5)", size=5, id=1, subject_size=4)

    def parts(first: list[int], other: list[int], dtype: str = "float64") -> Diagnostic:
        return Diagnostic(
            "team", name="float64", first=first, other=dtype, shape=other, rank=1, axis=0)

    source = "ptensor<3xfloat64, device='cpu', team={}>"
    assert pools.printed("bad_input", 4) == [*map(str, [
        mesh, mesh,
        Diagnostic("team", where="local_shape", dtensor_id="N", number="another", id=1),
        Diagnostic("array-value", type=source.format("another")),
        Diagnostic(
            "team-mismatch", where="add", first=source.format(1), k=1, other=source.format("another"),
        ),
        parts([2, 3], [2, 4]), parts([2], [2], "float32"), parts([2], [2, 2]),
    ])]


def test_a_rank_may_exit_with_a_status() -> None:
    assert ran("wrong", 3, "exits").returncode == 3


@pytest.mark.exhaustive
def test_slow_ranks_are_waited_for() -> None:
    assert printed("wrong", 3, "is_slow") == ["patient"]
