"""isl context and operation budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import islpy as isl

from tecomp.caches import LRUCache
from tecomp.errors import LowerError, TecompError
from tecomp.fork_gate import WorkLock
from tecomp.poly.sets.isl_expressions import NotAffine

BUDGET = 20_000_000
"""Default limit of isl operations for an outermost block; exhausting it takes seconds."""
SHARE = 250_000
"""Default limit of isl operations for one question; exhausting it takes 0.1 to 0.2 seconds."""
_PARTS = (64, 16, 4, 1)
"""Divisors of the share for successive attempts at one question."""
_SHARE_SECONDS = 0.1
"""Thread time in seconds, in which typical operations use two thirds of a share."""
CONTEXT = isl.Context()
_SIMPLER = "use simpler index expressions, fewer divisions or constant extents"
P = ParamSpec("P")
T = TypeVar("T")
_ENTERED = WorkLock()


class Undecided(Exception):  # noqa: N818  (an answer, as `NotAffine`)
    """Exception for an isl question that exceeds the operations or time its answer is worth."""


# This is a class because the frames of contextlib would be mistaken for user frames in errors.
class isl_work:  # noqa: N801  (used as a statement: `with isl_work(...):`)
    """Context manager that limits the isl operations of a block and converts isl errors.

    `NotAffine` and `Undecided` pass through nested blocks as answers; the outermost block converts
    them to errors. The outermost block also sets the budget. Only one thread at a time can be
    inside a block.

    >>> with isl_work("lower"):
    ...     isl.Set.read_from_str(CONTEXT, "{ [i] : 0 <= i < 3 }").is_empty()
    False
    """

    __slots__ = ("_budget", "_error", "_outermost", "_who")

    def __init__(
        self, caller: str, error: type[TecompError] = LowerError, budget: int = BUDGET
    ) -> None:
        """Initialize the block.

        Args:
            caller: Name of the caller, the first part of error messages.
            error: Class of the error to raise.
            budget: Maximum number of isl operations. The default takes seconds to exhaust.
        """
        self._who = caller
        self._error = error
        self._budget = budget
        self._outermost = False

    def __enter__(self) -> None:
        _ENTERED.__enter__()
        self._outermost = CONTEXT.get_max_operations() == 0
        if self._outermost:
            CONTEXT.reset_operations()
            _METER.lower_bound, _METER.budget = 0, self._budget
            CONTEXT.set_max_operations(self._budget)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._outermost:
            _ANSWERS.clear()
            CONTEXT.set_max_operations(0)
            CONTEXT.reset_operations()
        _ENTERED.__exit__()
        if isinstance(failure, isl.Error):
            raise self._error(
                f"{self._who}: {_reason(failure)}", kind="limit-exceeded"
            ) from failure
        if self._outermost and isinstance(failure, Undecided):
            raise self._error(
                f"{self._who}: the index sets take too long to decide; {_SIMPLER}",
                kind="limit-exceeded",
            ) from failure
        if self._outermost and isinstance(failure, NotAffine):
            raise self._error(
                f"{self._who}: `{failure.expr}` is not quasi-affine, which is "
                "required here; use only addition of indices, multiplication and division by "
                "constants, min and max",
                kind="limit-exceeded",
            ) from failure


def _reason(failure: isl.Error) -> str:
    if "operations exceeded" in str(failure):
        return f"the index sets take more than {_METER.budget} steps to decide; {_SIMPLER}"
    return f"isl cannot decide this ({failure}); use simpler index expressions"


_ANSWERS: dict[tuple[Any, ...], Any] = {}
_NONE = object()


def cached_question(question: Callable[P, T]) -> Callable[P, T]:
    """Memoize `question` until the outermost `isl_work` block ends; outside of blocks, call it.

    Stages that are computed at the same place ask the same questions about the same sets. isl
    compares the representations of two sets in 1 us; a typical question takes 100 us.
    """

    @wraps(question)
    def answered(*args: P.args, **kwargs: P.kwargs) -> T:
        if CONTEXT.get_max_operations() == 0:
            return question(*args, **kwargs)
        key = (question, *args, *kwargs.values())
        # Use a single lookup: isl may simplify a set when it computes the hash, which changes it.
        found = _ANSWERS.get(key, _NONE)
        if found is _NONE:
            found = _ANSWERS[key] = question(*args, **kwargs)
        answer: T = found
        return answer

    return answered


def cached_set_question(question: Callable[P, T]) -> Callable[P, T]:
    """Memoize `question` across programs; its arguments must be sets and numbers only.

    Equal sets recur for similar stages of one program, for repeated layers, and for programs that
    differ in a dtype only. None is not stored, because it may mean that a budget was exhausted.
    """
    answers: LRUCache[tuple[Any, ...], T] = LRUCache("poly.set_answers")

    @wraps(question)
    def answered(*args: P.args, **kwargs: P.kwargs) -> T:
        if CONTEXT.get_max_operations() == 0:
            return question(*args, **kwargs)
        key = (*args, *kwargs.values())
        found = answers.get(key, None)
        if found is None:
            found = question(*args, **kwargs)
            if found is not None:
                answers.keep(key, found)
        return found

    return answered


class _Meter:
    """Bounds of the isl operations done in the outermost block, as isl does not report the count.

    Attributes:
        lower_bound: Lower bound of the operations done.
        budget: Maximum number of operations.
    """

    lower_bound = 0
    budget = 0

    def upper_bound(self, share: int) -> int:
        """Return an upper bound of the operations done, at most `share` above the lower bound."""
        CONTEXT.set_max_operations(self.lower_bound + share)
        while _is_used_up():
            self.lower_bound += share
            CONTEXT.set_max_operations(self.lower_bound + share)
        return self.lower_bound + share


def _is_used_up() -> bool:
    """Return whether isl has reached its operation limit."""
    try:
        isl.Space.set_alloc(CONTEXT, 0, 0)
    except isl.Error:
        return True
    return False


_METER = _Meter()


def within_budget(work: Callable[[], T | None], share: int = SHARE) -> T | None:
    """Return the result of `work`, or None if `work` exceeds a share of the surrounding budget.

    This is for answers that may be approximate: some questions take isl minutes, which no answer
    is worth. The limit is between `share` and `2 * share` operations; the default share takes 0.1
    to 0.2 seconds.

    An operation on large numbers takes up to a hundred times as long as on small numbers.
    Therefore the first attempts get a fraction of the share, which is not charged to the budget,
    and no further attempt is made once they have taken `_SHARE_SECONDS` seconds.
    """
    if CONTEXT.get_max_operations() == 0:
        return work()
    begin = time.thread_time()
    for part in _PARTS:
        result = _run_within(work, share // part)
        if result is not None:
            return result[0]
        if part == 1 or time.thread_time() - begin > _SHARE_SECONDS:
            break
        CONTEXT.set_max_operations(CONTEXT.get_max_operations() + 2 * share // part)
    return None


def _run_within(work: Callable[[], T | None], share: int) -> tuple[T | None] | None:
    """Return the result of `work` in a tuple, or None if `work` exceeds `share` operations."""
    limit = CONTEXT.get_max_operations()
    allowed = _METER.upper_bound(share) + share
    if allowed >= limit:
        CONTEXT.set_max_operations(limit)
        return (work(),)
    CONTEXT.set_max_operations(allowed)
    try:
        return (work(),)
    except isl.Error:
        if not _is_used_up():
            raise
        return None
    finally:
        CONTEXT.set_max_operations(limit)
