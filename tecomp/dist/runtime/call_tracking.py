"""Track collective calls, detect mismatches and measure wait times."""

from __future__ import annotations

import atexit
import sys
import threading
import time
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, TypeAlias
from zlib import crc32

import numpy as np

from tecomp.dist.runtime.mpi import abort_all
from tecomp.errors import TeamError


class SingleControllerState:
    """State of single-controller execution: whether this process may make collective calls.

    Attributes:
        is_serving: Whether the other processes wait for commands of this process. It is False while
            all processes execute a command.
    """

    def __init__(self) -> None:
        self.is_serving = False

    def __enter__(self) -> None:
        self.is_serving = False

    def __exit__(self, *_: object) -> None:
        self.is_serving = True

    def check(self, name: str) -> None:
        """Raise if a collective call is made while the other processes wait for commands.

        Raises:
            TeamError: If the other processes wait for commands.
        """
        if self.is_serving:
            raise TeamError(
                "{subject}: not supported with --controller, where one process runs the script and "
                "the others run only commands sent by tecomp.array; use functions of "
                "tecomp.array, or start without --controller",
                subject=name,
            )


alone = SingleControllerState()


KEPT_CALLS = 64
"""Number of recent calls whose names are kept."""

_MAX_NAME_BYTES = 160
"""Maximum number of bytes of a call's name in shared memory."""
_TEXT = f"S{_MAX_NAME_BYTES}"
_SLOT = np.dtype([
    ("calls", "i8"), ("ended", "i8"), ("sums", "i8", (KEPT_CALLS,)), ("waits", _TEXT),
    ("names", _TEXT, (KEPT_CALLS,)),
])

# The slot as 8-byte integers: a memoryview reads single numbers faster than NumPy.
_STRIDE, _SUMS = _SLOT.itemsize // 8, 2

_VISIBLE_AFTER_SECONDS = 0.01
"""Seconds after which writes of one process to shared memory are visible to all others."""

_DONE, _FAILED = 1, 2

SAME = "all ranks must make the same calls in the same order"


class CollectiveLog:
    """Log of the calls of all processes of a team that share memory.

    A process writes only to its own slot, before it waits for others; data read from the slots of
    others is therefore at worst outdated.

    Attributes:
        ranks: Ranks in the team of the processes on this node.
    """

    def __init__(self, comm: Any, mpi: Any) -> None:
        node = comm.Split_type(mpi.COMM_TYPE_SHARED, key=comm.rank)
        nbytes = _SLOT.itemsize * node.size if node.rank == 0 else 0
        self._window = mpi.Win.Allocate_shared(nbytes, 1, comm=node)
        memory, _ = self._window.Shared_query(0)
        slots = np.ndarray(node.size, _SLOT, buffer=memory)
        self.ranks: list[int] = node.allgather(comm.rank)
        self._own_calls = node.rank
        self._slots = slots
        self._numbers = memoryview(memory)[: slots.nbytes].cast("B").cast("q")
        self._calls, self._ended = slots["calls"], slots["ended"]
        self._waits, self._names = slots["waits"], slots["names"]
        slots[node.rank] = np.zeros((), _SLOT)
        node.Barrier()

    def began(self, name: str) -> bool:
        """Record a call of this process and return whether no other process made a different call.

        The last process to start the call sees the entries of all others, before MPI can match
        different calls.
        """
        text = name.encode()[:_MAX_NAME_BYTES]
        numbers, base, total = self._numbers, self._own_calls * _STRIDE, crc32(text)
        count = numbers[base]
        sum_index = _SUMS + count % KEPT_CALLS
        self._names[self._own_calls, count % KEPT_CALLS] = text
        numbers[base + sum_index] = total
        numbers[base] = count + 1
        if not self._is_other(count, sum_index, total):
            return True
        # Writes of another process may become visible out of order; look again once they settled.
        time.sleep(_VISIBLE_AFTER_SECONDS)
        return not self._is_other(count, sum_index, total)

    def _is_other(self, count: int, sum_index: int, total: int) -> bool:
        """Return whether a process has started a different call with the same number."""
        numbers = self._numbers
        for other in range(0, len(numbers), _STRIDE):
            if 0 < numbers[other] - count < KEPT_CALLS and numbers[other + sum_index] != total:
                return True
        return False

    def record_wait(self, name: str) -> None:
        """Record the call that this process waits in; an empty name means none."""
        self._waits[self._own_calls] = name.encode()

    def record_end(self, *, by_error: bool) -> None:
        """Record that this process makes no more calls, and whether an error is the reason."""
        self._ended[self._own_calls] = _FAILED if by_error else _DONE

    def failed_with(self, text: str) -> None:
        """Record the error that ends this process."""
        self._waits[self._own_calls] = text.encode()
        self.record_end(by_error=True)

    def is_told(self, text: str) -> bool:
        """Return whether a process with a lower node rank ends with the same error."""
        before = slice(self._own_calls)
        matches = self._waits[before] == text.encode()[:_MAX_NAME_BYTES]
        return bool(np.any(matches & (self._ended[before] == _FAILED)))

    @property
    def failed(self) -> bool:
        """Whether a process ends by an error, which ends all others too."""
        return bool(np.any(self._ended == _FAILED))

    @property
    def speaker(self) -> bool:
        """Whether this process is the first process on the node that has not ended."""
        return bool(np.argmin(self._ended != 0) == self._own_calls)

    def complaint(self) -> str | None:
        """Return a description of mismatched calls of the team, or None if none is known."""
        slots = self._slots.copy()
        if np.any(slots["ended"] == _FAILED):
            return None
        return self._differing(slots) or self._missing(slots)

    def last_call(self) -> str:
        """Describe the last call of this process, if others have replaced the names of theirs."""
        count = int(self._calls[self._own_calls])
        name = self._names[self._own_calls, (count - 1) % KEPT_CALLS].decode()
        rank = self.ranks[self._own_calls]
        return f"call {count} is `{name}` on rank {rank}, and another one on other ranks; {SAME}"

    def _differing(self, slots: Any) -> str | None:
        """Describe a call that differs between ranks."""
        last = int(slots["calls"].max())
        for number in range(max(last - KEPT_CALLS + 1, 0), last):
            started = slots["calls"] > number
            names = slots["names"][:, number % KEPT_CALLS]
            found = sorted(set(names[started].tolist()))
            if len(found) == 1:
                continue
            description = " and ".join(
                f"`{name.decode()}` on {_ranks(self._where(started & (names == name)))}"
                for name in found
            )
            return f"call {number + 1} is {description}; {SAME}"
        return None

    def _missing(self, slots: Any) -> str | None:
        """Describe ranks that ended before they made the calls in which other ranks wait."""
        waiting = (slots["waits"] != b"") & (slots["ended"] == 0)
        finished = slots["ended"] != 0
        if not (waiting.any() and finished.any()):
            return None
        num_calls = int(slots["calls"][finished].min())
        stuck = waiting & (slots["calls"] > num_calls)
        if not stuck.any():
            return None
        name = slots["waits"][np.flatnonzero(stuck)[0]].decode()
        ended = self._where(finished & (slots["calls"] == num_calls))
        have = "has" if len(ended) == 1 else "have"
        return (
            f"{_ranks(ended)} {have} ended after {num_calls} calls, and "
            f"{_ranks(self._where(stuck))} {'waits' if stuck.sum() == 1 else 'wait'} in `{name}`; "
            f"{SAME}"
        )

    def _where(self, flags: Any) -> list[int]:
        return [self.ranks[k] for k in np.flatnonzero(flags)]


def _ranks(ranks: Sequence[int]) -> str:
    numbers = ", ".join(map(str, ranks))
    return f"rank {numbers}" if len(ranks) == 1 else f"ranks {numbers}"


KEPT_WAITS = 10_000
"""Number of recent waits that are kept; older waits count in the totals only."""


class WaitInterval(NamedTuple):
    """One timed wait.

    Attributes:
        name: Call, or the purpose of the call.
        start: Start time in seconds of `time.perf_counter`.
        end: End time in seconds of `time.perf_counter`.
    """

    name: str
    start: float
    end: float


@dataclass(slots=True)
class WaitLog:
    """Log of the waits of this process.

    Attributes:
        reason: Purpose of the next calls; if empty, the name of the call is used.
        seconds: Total seconds spent in calls, by purpose.
        spans: Most recent waits.
    """

    reason: str = ""
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    spans: deque[WaitInterval] = field(default_factory=lambda: deque(maxlen=KEPT_WAITS))

    def note(self, name: str, start: float) -> None:
        """Record a wait that started at `start` and ends now."""
        span = WaitInterval(self.reason or name, start, perf_counter())
        self.seconds[span.name] += span.end - start
        self.spans.append(span)

    def clear(self) -> None:
        """Clear the log."""
        self.seconds.clear()
        self.spans.clear()


waits = WaitLog()
"""Log of the waits of this process."""


_CHECK_INTERVAL_SECONDS = 0.25
"""Seconds between two checks; a complaint that two checks agree on is reported."""

_AGREED = 0.2
"""Seconds within which an error that is common to all processes occurs on all of them."""

Hook: TypeAlias = "Callable[[type[BaseException], BaseException, TracebackType | None], object]"

_WATCHED: dict[int, tuple[CollectiveLog, int]] = {}


def watch(team: int, calls: CollectiveLog, rank: int) -> None:
    """Start to monitor the calls of a team.

    Args:
        team: Number of the team, for messages.
        calls: Call log of the team.
        rank: Rank of this process in the team.
    """
    if not _WATCHED:
        threading.Thread(target=_run, name="tecomp-watchdog", daemon=True).start()
        atexit.register(_ended)
        sys.excepthook = _told_once(sys.excepthook)
    _WATCHED[team] = calls, rank


def _run() -> None:
    before: dict[int, str | None] = {}
    pause = threading.Event()
    while True:
        pause.wait(_CHECK_INTERVAL_SECONDS)
        for team, (calls, rank) in list(_WATCHED.items()):
            complaint = calls.complaint()
            if complaint is not None and complaint == before.get(team) and calls.speaker:
                _end(f"team {team}: {complaint}", rank)
            before[team] = complaint


def _end(message: str, rank: int) -> NoReturn:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
    abort_all(f"rank {rank} is here:\n{stack}tecomp.TeamError: {message}\n")


def _told_once(show: Hook) -> Hook:
    """Return an excepthook that shows an error unless a lower rank ends with the same error."""
    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        text = f"{kind.__name__}: {error}"
        for calls, _ in _WATCHED.values():
            calls.failed_with(text)
        time.sleep(_AGREED)
        if not any(calls.is_told(text) for calls, _ in _WATCHED.values()):
            show(kind, error, trace)

    return hook


def _ended() -> None:
    by_error = getattr(sys, "last_value", None) is not None
    for calls, _ in _WATCHED.values():
        calls.record_end(by_error=by_error)
    if by_error:  # the other processes would wait for this one forever
        abort_all("")
