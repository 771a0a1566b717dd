"""Delay `fork` until no other thread compiles, evaluates arrays or holds a lock of the package.

A forked process has only the thread that forked. A lock that another thread held at that moment
stays locked there for ever, and data that it was changing stays half changed. So work that a fork
must not interrupt runs inside of `no_fork`, or holds a `WorkLock`, which is inside; locks that are
held for a moment come from `leaf_lock`. The order of acquisition is the gate, then locks of work,
then leaf locks. A fork closes the gate and then takes the leaf locks.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import warnings
from collections.abc import Callable
from threading import Condition, RLock, get_ident
from typing import Any, ParamSpec, TypeVar
from weakref import ref

P = ParamSpec("P")
R = TypeVar("R")

_PATIENCE = 60.0
"""Seconds that a fork waits: more than a program takes to compile, less than a deadlock lasts."""
_LEAF_PATIENCE = 0.05
"""Seconds that a fork waits for leaf locks before it opens the gate again for their holders."""
_PAUSE = 0.005
"""Seconds for which the gate is open between two tries, so that threads that wait get in."""
_PACKAGES = ("tecomp", "llvmlite", "islpy", "numpy")


class ForkGate:
    """Regions of threads that a fork waits for; regions may be nested.

    >>> with no_fork, no_fork:
    ...     no_fork.is_inside
    True
    """

    def __init__(self) -> None:
        self._depths: dict[int, int] = {}
        self._forking = 0  # identifier of the thread that forks
        self._changed = Condition()

    def __enter__(self) -> None:
        me = get_ident()
        depth = self._depths.get(me, 0)
        # First entered, then looked: a fork does it the other way round, so one sees the other.
        self._depths[me] = depth + 1
        if self._forking and not depth and self._forking != me:
            self._wait(me)

    def __exit__(self, *_: object) -> None:
        me = get_ident()
        depth = self._depths[me] - 1
        if depth:
            self._depths[me] = depth
            return
        del self._depths[me]
        if self._forking:
            with self._changed:
                self._changed.notify_all()

    @property
    def is_closed_by_me(self) -> bool:
        """Whether this thread forks now."""
        return self._forking == get_ident()

    @property
    def is_inside(self) -> bool:
        """Whether this thread is inside of a region."""
        return get_ident() in self._depths

    def joined(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return `function` for another thread that a thread inside of a region waits for."""

        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            me = get_ident()
            self._depths[me] = self._depths.get(me, 0) + 1
            with self:
                try:
                    return function(*args, **kwargs)
                finally:
                    self._depths[me] -= 1

        return run

    def close(self, limit: float) -> bool:
        """Wait until no other thread is inside, and let none enter.

        Args:
            limit: time of `time.monotonic` until which to wait.

        Returns:
            Whether no other thread is inside.
        """
        me = get_ident()
        with self._changed:
            # Two threads inside that both fork must not wait for each other.
            depth = self._depths.pop(me, 0)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._forking, limit - time.monotonic())
            self._forking = me
            if depth:
                self._depths[me] = depth
            return self._changed.wait_for(self._is_quiet, limit - time.monotonic())

    def open(self) -> None:
        """Let threads enter again."""
        with self._changed:
            self._forking = 0
            self._changed.notify_all()

    def restart(self) -> None:
        """Forget the other threads, in a forked process."""
        me = get_ident()
        self._depths = {me: self._depths[me]} if me in self._depths else {}
        self._forking, self._changed = 0, Condition()

    def _wait(self, me: int) -> None:
        del self._depths[me]
        with self._changed:
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._forking)
            self._depths[me] = 1

    def _is_quiet(self) -> bool:
        return not self._depths.keys() - {self._forking}


no_fork = ForkGate()
"""The gate of this process."""

class WorkLock:
    """A re-entrant lock for work that a fork must not interrupt."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        no_fork.__enter__()
        try:
            self._lock.acquire()
        except BaseException:  # an interrupt while it waits
            no_fork.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        no_fork.__exit__()


_leaves: list[Callable[[], Any]] = []
_taken: list[Any] = []


def leaf_lock() -> Any:
    """Return a re-entrant lock that is free, or held by the forking thread, at each fork.

    Threads hold such a lock for a moment, and enter `no_fork` before they take it, not after.
    """
    lock = RLock()
    add_leaf(ref(lock))
    return lock


def add_leaf(given: Callable[[], Any]) -> None:
    """Take the lock that `given()` returns before each fork; None if it no longer exists."""
    _leaves[:] = [each for each in _leaves if each() is not None]
    _leaves.append(given)


def wait_first() -> None:
    """Let forks wait for other threads before the hooks that are registered by now run.

    Hooks run in reverse order. That of `logging` takes a lock that a thread inside of the gate may
    need before it can leave.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_prepare_fork, after_in_parent=_continue_parent, after_in_child=_start_child
        )


def _prepare_fork() -> None:
    if no_fork.is_closed_by_me:  # registered more than once
        return
    limit = time.monotonic() + _PATIENCE
    while no_fork.close(limit):
        if not _is_importing() and _take_leaves():
            return
        if time.monotonic() > limit:
            break
        no_fork.open()
        time.sleep(_PAUSE)
    warnings.warn(
        f"fork: another thread has compiled or evaluated for {_PATIENCE:g} seconds, and the child "
        "process may hang where it does the same; fork before such threads start",
        RuntimeWarning, stacklevel=2,
    )


def _take_leaves() -> bool:
    """Take all leaf locks, or none where that takes long: their holders may wait for the gate."""
    limit = time.monotonic() + _LEAF_PATIENCE
    for each in tuple(_leaves):
        lock = each()
        if lock is None:
            continue
        if not lock.acquire(timeout=max(limit - time.monotonic(), 0)):
            _release()
            return False
        _taken.append(lock)
    return True


def _is_importing() -> bool:
    """Whether another thread imports a module of the compiler, which is locked until then."""
    locks: dict[str, Any] = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
    for name, given in tuple(locks.items()):
        if name.startswith(_PACKAGES):
            owner = getattr(given(), "owner", None)
            if owner is not None and owner != get_ident():
                return True
    return False


def _release() -> None:
    while _taken:
        _taken.pop().release()


def _continue_parent() -> None:
    if not no_fork.is_closed_by_me:
        return
    _release()
    no_fork.open()


def _start_child() -> None:
    if not no_fork.is_closed_by_me:
        return
    _release()
    no_fork.restart()
    if sys.version_info < (3, 12):
        _replace_locks_of_properties()


def _replace_locks_of_properties() -> None:
    """Give cached properties new locks: another thread may have held one to compute a value."""
    for name, module in tuple(sys.modules.items()):
        if not name.startswith("tecomp"):
            continue
        for value in tuple(vars(module).values()):
            if isinstance(value, type) and value.__module__ == name:
                for each in vars(value).values():
                    if isinstance(each, functools.cached_property):
                        each.lock = RLock()  # type: ignore[attr-defined]


wait_first()
