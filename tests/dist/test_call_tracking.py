"""Messages about diverging collective calls, from shared slots that other processes filled."""

from __future__ import annotations

from tecomp.dist.runtime import KEPT_CALLS, SAME, CollectiveLog


class Node:
    """Communicator of one process with the operations that the slots need."""

    def __init__(self, size: int) -> None:
        self.size, self.rank = size, 0

    def Split_type(self, kind: object, key: int) -> Node:
        del kind, key
        return self

    def allgather(self, value: int) -> list[int]:
        del value
        return list(range(self.size))

    def Barrier(self) -> None:
        return None


class Window:
    """Shared-memory window in the memory of this process."""

    COMM_TYPE_SHARED = 0

    def __init__(self) -> None:
        self.Win, self.memory = self, bytearray()

    def Allocate_shared(self, size: int, unit: int, comm: Node) -> Window:
        del unit, comm
        self.memory = bytearray(size)
        return self

    def Shared_query(self, rank: int) -> tuple[bytearray, int]:
        del rank
        return self.memory, 1


def calls_of(*result: list[str], ended: tuple[int, ...] = (), waits: dict[int, str] | None = None) -> CollectiveLog:
    calls = CollectiveLog(Node(len(result)), Window())
    for rank, names in enumerate(result):
        calls._own_calls = rank
        for name in names:
            calls.began(name)
        if rank in ended:
            calls.record_end(by_error=False)
        calls.record_wait((waits or {}).get(rank, ""))
    return calls


def test_equal_calls_are_accepted_at_any_distance() -> None:
    assert calls_of(["a", "b"], ["a"], []).complaint() is None
    assert calls_of(["a"] * 200, ["a"] * 3).complaint() is None


def test_different_calls_are_named_with_their_ranks() -> None:
    calls = calls_of(["a", "b"], ["a", "c"], ["a", "b"])

    assert calls.complaint() == f"call 2 is `b` on ranks 0, 2 and `c` on rank 1; {SAME}"


def test_the_last_rank_to_start_sees_the_calls_of_all() -> None:
    calls = calls_of(["a", "b"], ["a"])
    assert not calls.began("c")

    assert calls.complaint() == f"call 2 is `b` on rank 0 and `c` on rank 1; {SAME}"


def test_names_that_were_written_over_are_not_compared() -> None:
    calls = calls_of(["a", *["b"] * (KEPT_CALLS + 5)], ["a"])

    assert calls.began("b")
    assert calls.complaint() is None


def test_an_exited_rank_fails_only_dependent_calls() -> None:
    result = (["a", "b"], ["a"], ["a", "b"])

    assert calls_of(*result, ended=(1,)).complaint() is None
    assert calls_of(*result, ended=(1,), waits={0: "b", 2: "b"}).complaint() == (
        f"rank 1 has ended after 1 calls, and ranks 0, 2 wait in `b`; {SAME}")
    assert calls_of(["a"], ["a"], ended=(1,), waits={0: "a"}).complaint() is None


def test_an_error_is_not_commented_on() -> None:
    calls = calls_of(["a"], ["b"])
    calls.record_end(by_error=True)

    assert calls.failed
    assert calls.complaint() is None


def test_errors_are_reported_by_the_first_rank() -> None:
    calls = calls_of([], [], [])
    for rank, message in enumerate(("one", "other", "one")):
        calls._own_calls = rank
        calls.failed_with(message)

    reported = []
    for rank, message in enumerate(("one", "other", "one")):
        calls._own_calls = rank
        reported.append(calls.is_told(message))
    assert reported == [False, False, True]


def test_the_last_call_is_described_if_others_are_far_ahead() -> None:
    """A call that differed when it began may be out of the log when it is described."""
    calls = calls_of(["a"] * 200, ["b"])

    assert calls.complaint() is None
    assert calls.last_call() == f"call 1 is `b` on rank 1, and another one on other ranks; {SAME}"
