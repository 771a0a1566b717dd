"""Per-process runtime library, thread pool and environment."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.codegen.dispatch.array_interop import SLOT, PackedArray
from tecomp.codegen.llvm.code_cache import machine_code
from tecomp.codegen.llvm.ir_builder import LlvmSource
from tecomp.codegen.llvm.jit import LoadedCode, host
from tecomp.codegen.runtime.fast_call_ir import call_text
from tecomp.codegen.runtime.runtime_structs import (
    API,
    ASKED_BYTES,
    MAX_PROCESSORS,
    MAX_WORKERS,
    PYTHON,
    VARIABLE,
    definitions,
    record_text,
)
from tecomp.codegen.runtime.scratch_allocator_ir import scratch_text
from tecomp.codegen.runtime.thread_pool_ir import pool_text
from tecomp.errors import CallError
from tecomp.fork_gate import WorkLock

HEAD = object.__basicsize__
"""Size of the Python object header in bytes; the last 8 bytes are the type pointer."""

_EXPORTS = ("run", "call", "serve", "configure", "begin", "asked")
# The entry receives the addresses of Python API functions and returns those of its exports.
_ENTRY = "\n".join([
    "define i32 @process(ptr %words) #0 {",
    "entry:",
    f"  call void @llvm.memcpy.p0.p0.i64(ptr @python, ptr %words, i64 {PYTHON.bytes}, i1 false)",
    *(f"  %at.{k} = getelementptr ptr, ptr %words, i64 {k}" for k in range(len(_EXPORTS))),
    *(f"  store ptr @{name}, ptr %at.{k}" for k, name in enumerate(_EXPORTS)),
    "  ret i32 0",
    "}",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "attributes #0 = { nounwind noinline }",
    "",
])


@dataclass(frozen=True, slots=True)
class RuntimeLibrary:
    """Linked runtime functions of this process.

    Attributes:
        linked: Machine code.
        run: Function that calls an entry with its argument block and returns the failure kind.
        call: Address of the body of the built-in fast call function.
        serve: Endless worker loop; takes worker number, thread id and pinned processor.
        configure: Function that sets the number of threads, the number of workers, the spin time
            before sleeping in nanoseconds, and the processor to which no worker is pinned.
        reset_workers: Function that resets the workers, as required in a forked process.
        environment: Environment text from which the number of threads was read.
    """

    linked: LoadedCode
    run: Callable[[Any, Any], int]
    call: int
    serve: Callable[[int, int, int], None]
    configure: Callable[[int, int, int, int], None]
    reset_workers: Callable[[], None]
    environment: ctypes.Array[ctypes.c_char]


def process_text(triple: str) -> str:
    """Return the LLVM IR of the runtime for a target triple."""
    parts = [pool_text(triple), scratch_text(triple), record_text(), call_text(HEAD, SLOT), _ENTRY]
    return "\n".join([definitions(), *parts])


@dataclass(slots=True)
class _Shared:
    """Per-process singleton, created under `lock`."""

    lock: WorkLock
    process: RuntimeLibrary | None = None


_SHARED = _Shared(WorkLock())


def process() -> RuntimeLibrary:
    """Return the runtime of this process; link it on first use."""
    if _SHARED.process is None:
        with _SHARED.lock:
            _SHARED.process = _SHARED.process or _link()
    return _SHARED.process


def _link() -> RuntimeLibrary:
    # Most runtime code runs once per call. Optimization would save 0.05 us per call, but delay the
    # first call in a process by 70 ms.
    linked = machine_code(LlvmSource(process_text(host().triple)), "process", effort=0)
    functions = [getattr(ctypes.pythonapi, name) for name in API]
    objects = (None, False, True, int, float, np.ndarray, PackedArray)
    words = (ctypes.c_int64 * max(len(PYTHON.fields), len(_EXPORTS)))(
        *(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions),
        *map(id, objects),
    )
    linked.entry(ctypes.addressof(words))
    run, call, serve, configure, begin, env_address = words[: len(_EXPORTS)]
    word, address = ctypes.c_int64, ctypes.c_void_p
    library = RuntimeLibrary(
        linked,
        ctypes.CFUNCTYPE(ctypes.c_int32, address, address)(run),
        call,
        ctypes.CFUNCTYPE(None, word, word, word)(serve),
        ctypes.CFUNCTYPE(None, word, word, word, word)(configure),
        ctypes.CFUNCTYPE(None)(begin),
        (ctypes.c_char * ASKED_BYTES).from_address(env_address),
    )
    library.reset_workers()
    return library


def _restart_process_after_fork() -> None:
    """Reset the workers in a forked child process, which has no other threads."""
    if _SHARED.process is not None:
        _SHARED.process.reset_workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_process_after_fork)


_SPIN_NANOSECONDS = 50_000
"""Spin time of a thread before it sleeps, in nanoseconds: about the cost of a wake-up."""


@dataclass(slots=True)
class _Workers:
    """Started workers; modified under `lock` only.

    Attributes:
        lock: Lock of the other fields.
        text: Environment text at the last configuration.
        processors: Processors to use; no worker is pinned to the first.
        started: Number of started workers.
    """

    lock: WorkLock
    text: str | None = None
    processors: tuple[int, ...] = ()
    started: int = 0


_WORKERS = _Workers(WorkLock())


def _forget_workers_after_fork() -> None:
    """Forget the workers in a forked child process, because threads are not inherited."""
    _WORKERS.text, _WORKERS.processors, _WORKERS.started = None, (), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers_after_fork)


def use_threads() -> None:
    """Configure the thread pool for the current value of TECOMP_NUM_THREADS.

    Raises:
        CallError: If TECOMP_NUM_THREADS is not a positive number.
    """
    text, workers = os.environ.get(VARIABLE, ""), _WORKERS
    if text == workers.text:
        return
    with workers.lock:
        workers.processors = workers.processors or _processors()
        count = _number(text) if text else len(workers.processors)
        num_workers = min(count - 1, MAX_WORKERS)
        while workers.started < num_workers and _start(workers):
            workers.started += 1
        # Oversubscribed threads must not spin.
        patience = _SPIN_NANOSECONDS if count <= len(workers.processors) else 0
        process().configure(
            min(count, MAX_WORKERS + 1), workers.started, patience, workers.processors[0]
        )
        # A truncated text never compares equal, so it is checked again at each call.
        process().environment.value = text.encode()[: ASKED_BYTES - 1]
        workers.text = text


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise CallError(
            "{variable}: expected a positive number of threads, got {text!r}; unset it to use "
            "every processor",
            kind="invalid-value", variable=VARIABLE, text=text,
        )
    return int(text)


def _processors() -> tuple[int, ...]:
    """Return the allowed processors, starting with the current processor of this thread."""
    try:
        allowed = sorted(os.sched_getaffinity(0))
        current = ctypes.CDLL(None).sched_getcpu()
    except AttributeError:
        # Systems without affinity control do not pin workers.
        return tuple([MAX_PROCESSORS] * (os.cpu_count() or 1))
    first = allowed.index(current) if current in allowed else 0
    return tuple(allowed[first:] + allowed[:first])


def _start(workers: _Workers) -> bool:
    """Start one more worker; return False if the system refuses the thread."""
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
        # The set of allowed processors may have changed in the meantime.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {processor})
            pinned = processor
    process().serve(index, threading.get_native_id(), pinned)
