"""How many threads parallel loops use, and the workers, which are threads of Python.

The environment variable TECOMP_NUM_THREADS counts as it is at each call. Without it there is one
thread for each processor that the caller might use when the first parallel kernel of the process
ran. Workers are started when they are first needed, each pinned to a processor of its own unless
more threads are asked for than there are processors; the caller is never pinned.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from dataclasses import dataclass
from typing import Any

from tecomp.codegen.calls.process import process
from tecomp.codegen.runtime.structures import ASKED_BYTES, MAX_PROCESSORS, MAX_WORKERS, VARIABLE
from tecomp.errors import CallError

_PATIENCE = 50_000
"""Nanoseconds for which a thread looks at memory before it sleeps: about what waking it takes."""


@dataclass(slots=True)
class _Workers:
    """The workers there are; changed under `lock` only.

    Attributes:
        text: what the environment asked for when that was last looked at.
        processors: numbers of the processors to use; first the one that no worker is pinned to.
    """

    lock: Any
    text: str | None = None
    processors: tuple[int, ...] = ()
    started: int = 0


_WORKERS = _Workers(threading.Lock())


def _forked() -> None:
    """In a process that was forked off: threads stay behind."""
    _WORKERS.lock, _WORKERS.text = threading.Lock(), None
    _WORKERS.processors, _WORKERS.started = (), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def use_threads() -> None:
    """Bring the pool to the number of threads that is asked for at the moment.

    Raises:
        CallError: TECOMP_NUM_THREADS is no positive number.
    """
    text, workers = os.environ.get(VARIABLE, ""), _WORKERS
    if text == workers.text:
        return
    with workers.lock:
        workers.processors = workers.processors or _processors()
        count = _number(text) if text else len(workers.processors)
        wanted = min(count - 1, MAX_WORKERS)
        while workers.started < wanted and _start(workers):
            workers.started += 1
        # Threads that share a processor must not wait by keeping it busy.
        patience = _PATIENCE if count <= len(workers.processors) else 0
        process().configure(
            min(count, MAX_WORKERS + 1), workers.started, patience, workers.processors[0]
        )
        # What is cut off is compared again at each call.
        process().asked.value = text.encode()[: ASKED_BYTES - 1]
        workers.text = text


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise CallError(
            f"{VARIABLE}: expected a positive number of threads, got {text!r}; unset it to use "
            "every processor",
            kind="wrong-number",
        )
    return int(text)


def _processors() -> tuple[int, ...]:
    """The processors that this thread may use, from the one where it is."""
    try:
        allowed = sorted(os.sched_getaffinity(0))
        here = ctypes.CDLL(None).sched_getcpu()
    except AttributeError:
        # Not every system lets processes choose; nothing is pinned there.
        return tuple([MAX_PROCESSORS] * (os.cpu_count() or 1))
    first = allowed.index(here) if here in allowed else 0
    return tuple(allowed[first:] + allowed[:first])


def _start(workers: _Workers) -> bool:
    """Start one more worker, if the system lets us."""
    index, processor = workers.started, MAX_PROCESSORS
    if index + 1 < len(workers.processors):
        processor = workers.processors[index + 1]
    worker = threading.Thread(
        target=_serve, args=(index, processor), daemon=True, name=f"tecomp-{index + 1}"
    )
    try:
        worker.start()
    except RuntimeError:
        return False
    return True


def _serve(index: int, processor: int) -> None:
    pinned = MAX_PROCESSORS
    if processor < MAX_PROCESSORS:
        # The set of allowed processors may have changed meanwhile.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {processor})
            pinned = processor
    process().serve(index, threading.get_native_id(), pinned)
