"""isl context and operation budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import islpy as isl

from tecomp.errors import LowerError, TecompError
from tecomp.fork_gate import WorkLock
from tecomp.poly.sets.isl_expressions import NotAffine

BUDGET = 20_000_000
SHARE = 250_000
_PARTS = (64, 16, 4, 1)
_PATIENCE = 0.1
"""Seconds of this thread, in which common operations do two thirds of a share."""
CONTEXT = isl.Context()
_SIMPLER = "use simpler index expressions, fewer divisions or constant extents"
P = ParamSpec("P")
T = TypeVar("T")
_ENTERED = WorkLock()


class Undecided(Exception):  # noqa: N818  (an answer, as `NotAffine`)
    """A question takes isl more steps or time than its answer is worth."""


# A class, because the frames of contextlib would pass for the user's own in an error.
class isl_work:  # noqa: N801  (used as a statement: `with isl_work(...):`)
    """Bound the isl operations of a block, and turn isl's errors into ours.

    That something is not affine, or undecided, is an answer inside of the outermost block, and an
    error of ours outside of it. The outermost of nested blocks sets the budget. One thread is
    inside at a time.

    >>> with isl_work("lower"):
    ...     isl.Set.read_from_str(CONTEXT, "{ [i] : 0 <= i < 3 }").is_empty()
    False
    """

    __slots__ = ("_budget", "_error", "_outermost", "_who")

    def __init__(
        self, who: str, error: type[TecompError] = LowerError, budget: int = BUDGET
    ) -> None:
        """Prepare the block.

        Args:
            who: where, as the first part of a message.
            error: class of error to raise.
            budget: how many isl operations may be done; the default takes seconds to use up.
        """
        self._who = who
        self._error = error
        self._budget = budget
        self._outermost = False

    def __enter__(self) -> None:
        _ENTERED.__enter__()
        self._outermost = CONTEXT.get_max_operations() == 0
        if self._outermost:
            CONTEXT.reset_operations()
            _METER.least, _METER.budget = 0, self._budget
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
            raise self._error(f"{self._who}: {_reason(failure)}", kind="too-much") from failure
        if self._outermost and isinstance(failure, Undecided):
            raise self._error(
                f"{self._who}: the index sets take too long to decide; {_SIMPLER}",
                kind="too-much",
            ) from failure
        if self._outermost and isinstance(failure, NotAffine):
            raise self._error(
                f"{self._who}: `{failure.expr}` is more than index sets can decide, and they have "
                "to here; add indices, multiply and divide them by numbers, take min and max",
                kind="too-much",
            ) from failure


def _reason(failure: isl.Error) -> str:
    if "operations exceeded" in str(failure):
        return f"the index sets take more than {_METER.budget} steps to decide; {_SIMPLER}"
    return f"isl cannot decide this ({failure}); use simpler index expressions"


_ANSWERS: dict[tuple[Any, ...], Any] = {}
_NONE = object()


def asked_once(question: Callable[P, T]) -> Callable[P, T]:
    """`question`, whose answer for the same arguments is kept until the outermost block ends.

    Stages that are computed in one place ask the same of the same sets. isl tells whether two sets
    are written alike in a microsecond, and takes a hundred for most that is asked of them.
    """

    @wraps(question)
    def answered(*args: P.args, **kwargs: P.kwargs) -> T:
        if CONTEXT.get_max_operations() == 0:
            return question(*args, **kwargs)
        key = (question, *args, *kwargs.values())
        # Looked up once: isl tidies sets up when it makes their hashes, and the next may differ.
        found = _ANSWERS.get(key, _NONE)
        if found is _NONE:
            found = _ANSWERS[key] = question(*args, **kwargs)
        answer: T = found
        return answer

    return answered


_MOST_ANSWERS = 1000


def asked_of_sets(question: Callable[P, T]) -> Callable[P, T]:
    """As `asked_once`, of sets and numbers alone: the answers stay for the programs that come.

    Equal sets come again wherever stages are alike: of one program, of layers that are repeated,
    of programs that differ in a type. None is no answer: a budget may have been used up.
    """
    answers: dict[tuple[Any, ...], T] = {}

    @wraps(question)
    def answered(*args: P.args, **kwargs: P.kwargs) -> T:
        if CONTEXT.get_max_operations() == 0:
            return question(*args, **kwargs)
        key = (*args, *kwargs.values())
        found = answers.get(key)
        if found is None:
            found = question(*args, **kwargs)
            if len(answers) >= _MOST_ANSWERS:
                answers.clear()
            if found is not None:
                answers[key] = found
        return found

    return answered


class _Meter:
    """How many operations were done in the outermost block: isl only says when they are too many.

    Attributes:
        least: so many at least.
        budget: how many may be done.
    """

    least = 0
    budget = 0

    def most(self, share: int) -> int:
        """So many at most, and `share` fewer at least."""
        CONTEXT.set_max_operations(self.least + share)
        while _is_used_up():
            self.least += share
            CONTEXT.set_max_operations(self.least + share)
        return self.least + share


def _is_used_up() -> bool:
    """Whether isl refuses to do anything more."""
    try:
        isl.Space.set_alloc(CONTEXT, 0, 0)
    except isl.Error:
        return True
    return False


_METER = _Meter()


def within_share(work: Callable[[], T | None], share: int = SHARE) -> T | None:
    """What `work` gives, or None if that takes more than a share of the budget around it.

    For answers that may be rough: some sets take isl minutes that are not worth waiting for. The
    least share is `share` operations, a tenth of a second or two; it may be twice as many.

    One operation on large numbers takes a hundred times as long as on small ones. So the first
    tries have a part of the share that is not counted, and if they took long they are the last.
    """
    if CONTEXT.get_max_operations() == 0:
        return work()
    begin = time.thread_time()
    for part in _PARTS:
        tried = _within(work, share // part)
        if tried is not None:
            return tried[0]
        if part == 1 or time.thread_time() - begin > _PATIENCE:
            break
        CONTEXT.set_max_operations(CONTEXT.get_max_operations() + 2 * share // part)
    return None


def _within(work: Callable[[], T | None], share: int) -> tuple[T | None] | None:
    """What `work` gives in `share` operations; None if it takes more."""
    limit = CONTEXT.get_max_operations()
    allowed = _METER.most(share) + share
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
