"""Delay `fork` until no other thread compiles, evaluates arrays or holds a lock of the package.

A forked process has only the thread that forked. A lock that another thread held at the fork stays
locked in the child forever, and data that the thread was modifying stays inconsistent. Work that a
fork must not interrupt therefore runs inside `no_fork`, or holds a `WorkLock`, which enters
`no_fork`. Locks that are held only briefly come from `leaf_lock`. The order of acquisition is the
gate, then work locks, then leaf locks. A fork closes the gate and then acquires the leaf locks.
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

_MAX_WAIT_SECONDS = 60.0
"""Maximum seconds that a fork waits: longer than a compilation takes; it bounds deadlocks."""
_LEAF_WAIT_SECONDS = 0.05
"""Seconds that a fork waits for leaf locks before it reopens the gate for their holders."""
_REOPEN_SECONDS = 0.005
"""Seconds for which the gate is open between two attempts, so that waiting threads can enter."""
_PACKAGES = ("tecomp", "llvmlite", "islpy", "numpy")
"""Packages whose imports in other threads delay a fork."""


class ForkGate:
    """Context manager of regions that a fork waits for; regions may be nested.

    >>> with no_fork, no_fork:
    ...     no_fork.is_inside
    True
    """

    def __init__(self) -> None:
        self._depths: dict[int, int] = {}
        self._forking = 0  # identifier of the forking thread; 0 while no thread forks
        self._changed = Condition()

    def __enter__(self) -> None:
        me = get_ident()
        depth = self._depths.get(me, 0)
        # Enter before reading `_forking`: a fork sets `_forking` before it reads `_depths`, so at
        # least one of the two threads sees the other.
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
        """Whether the current thread is forking."""
        return self._forking == get_ident()

    @property
    def is_inside(self) -> bool:
        """Whether the current thread is inside a region."""
        return get_ident() in self._depths

    def guard_thread(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wrap `function` for a thread that another thread waits for inside a region.

        The wrapper enters a nested region, so that it does not wait for a pending fork: the fork
        waits for the other thread, which waits for this one.
        """

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
        """Close the gate to other threads and wait until none of them is inside a region.

        Args:
            limit: Deadline as a value of `time.monotonic`.

        Returns:
            Whether all other threads left their regions before the deadline.
        """
        me = get_ident()
        with self._changed:
            # Leave the region meanwhile: two forking threads inside must not wait for each other.
            depth = self._depths.pop(me, 0)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._forking, limit - time.monotonic())
            self._forking = me
            if depth:
                self._depths[me] = depth
            return self._changed.wait_for(self._is_quiet, limit - time.monotonic())

    def open(self) -> None:
        """Reopen the gate to all threads."""
        with self._changed:
            self._forking = 0
            self._changed.notify_all()

    def restart(self) -> None:
        """Reset the gate in a forked process, which has none of the other threads."""
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
"""Gate of this process."""

class WorkLock:
    """Re-entrant lock for work that a fork must not interrupt."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        no_fork.__enter__()
        try:
            self._lock.acquire()
        except BaseException:  # for example KeyboardInterrupt during the wait
            no_fork.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        no_fork.__exit__()


_leaves: list[Callable[[], Any]] = []
_taken: list[Any] = []


def leaf_lock() -> Any:
    """Return a re-entrant lock that no other thread holds at a fork.

    Threads must hold the lock only briefly, and must not enter `no_fork` while they hold it.
    """
    lock = RLock()
    add_leaf(ref(lock))
    return lock


def add_leaf(get_lock: Callable[[], Any]) -> None:
    """Register a lock that each fork acquires.

    Args:
        get_lock: Function that returns the lock, or None if the lock no longer exists.
    """
    _leaves[:] = [leaf for leaf in _leaves if leaf() is not None]
    _leaves.append(get_lock)


def wait_first() -> None:
    """Register the fork hooks so that they run before all hooks registered so far.

    Hooks before a fork run in reverse order of registration. The hook of `logging` acquires a lock
    that a thread inside the gate may need before it can leave.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_prepare_fork, after_in_parent=_continue_parent, after_in_child=_start_child
        )


def _prepare_fork() -> None:
    if no_fork.is_closed_by_me:  # the hook is registered more than once
        return
    limit = time.monotonic() + _MAX_WAIT_SECONDS
    while no_fork.close(limit):
        if not _is_importing() and _take_leaves():
            return
        if time.monotonic() > limit:
            break
        no_fork.open()
        time.sleep(_REOPEN_SECONDS)
    warnings.warn(
        f"fork: another thread has been compiling or evaluating for {_MAX_WAIT_SECONDS:g} seconds, "
        "and the child process may hang if it does the same; fork before such threads start",
        RuntimeWarning, stacklevel=2,
    )


def _take_leaves() -> bool:
    """Acquire all leaf locks; return False with none held after `_LEAF_WAIT_SECONDS` seconds.

    A holder of a leaf lock may be waiting for the gate.
    """
    limit = time.monotonic() + _LEAF_WAIT_SECONDS
    for leaf in tuple(_leaves):
        lock = leaf()
        if lock is None:
            continue
        if not lock.acquire(timeout=max(limit - time.monotonic(), 0)):
            _release()
            return False
        _taken.append(lock)
    return True


def _is_importing() -> bool:
    """Return whether another thread holds the import lock of a module of `_PACKAGES`."""
    locks: dict[str, Any] = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
    for name, reference in tuple(locks.items()):
        if name.startswith(_PACKAGES):
            owner = getattr(reference(), "owner", None)
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
    """Replace the locks of cached properties: another thread may have held one at the fork.

    `functools.cached_property` has a lock before Python 3.12 only.
    """
    for name, module in tuple(sys.modules.items()):
        if not name.startswith("tecomp"):
            continue
        for value in tuple(vars(module).values()):
            if isinstance(value, type) and value.__module__ == name:
                for attribute in vars(value).values():
                    if isinstance(attribute, functools.cached_property):
                        attribute.lock = RLock()  # type: ignore[attr-defined]


wait_first()
