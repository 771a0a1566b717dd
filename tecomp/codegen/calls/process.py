"""What all kernels of a process share, linked once: the pool, memory that is kept, native calls.

That happens when a kernel is called for the first time. The code stays until the process ends,
because workers are inside it for as long.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from tecomp.codegen.calls.packed import SLOT, PackedArray
from tecomp.codegen.llvm.cached import machine_code
from tecomp.codegen.llvm.jit import Linked, host
from tecomp.codegen.llvm.source import Source
from tecomp.codegen.runtime.call_text import call_text
from tecomp.codegen.runtime.pool_text import pool_text
from tecomp.codegen.runtime.scratch_text import scratch_text
from tecomp.codegen.runtime.structures import API, ASKED_BYTES, PYTHON, definitions
from tecomp.codegen.runtime.table import record_text

HEAD = object.__basicsize__
"""Bytes of the head that all objects have; the last 8 are their type."""

_EXPORTS = ("run", "call", "serve", "configure", "begin", "asked")
# The first function hands out the addresses of all others, and takes those of Python's.
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
class Process:
    """Functions that were linked.

    Attributes:
        run: calls an entry with its block of arguments; gives the kind of failure.
        call: address of the body of a built-in function, which takes plain arguments and runs.
        serve: what a worker does, for ever: its number, its thread, the processor it is pinned to.
        configure: sets the number of threads, of workers, the nanoseconds they look for work
            before they sleep, and the processor that no worker is pinned to.
        begin: forgets workers, as a process that was forked off another has to.
        asked: the text that said how many threads there are.
    """

    linked: Linked
    run: Callable[[Any, Any], int]
    call: int
    serve: Callable[[int, int, int], None]
    configure: Callable[[int, int, int, int], None]
    begin: Callable[[], None]
    asked: ctypes.Array[ctypes.c_char]


def process_text(triple: str) -> str:
    """The module for a machine, in LLVM's name for it."""
    parts = [pool_text(triple), scratch_text(triple), record_text(), call_text(HEAD, SLOT), _ENTRY]
    return "\n".join([definitions(), *parts])


@dataclass(slots=True)
class _Shared:
    """What there is once in a process, made under `lock`."""

    lock: Any
    process: Process | None = None


_SHARED = _Shared(Lock())


def process() -> Process:
    """What this process shares."""
    if _SHARED.process is None:
        with _SHARED.lock:
            _SHARED.process = _SHARED.process or _linked()
    return _SHARED.process


def _linked() -> Process:
    # Most of this runs once in a call: well made code would gain 0.05 us there, and would make the
    # first call in a process wait for 70 ms more.
    linked = machine_code(Source(process_text(host().triple)), "process", effort=0)
    functions = [getattr(ctypes.pythonapi, name) for name in API]
    objects = (None, False, True, int, float, np.ndarray, PackedArray)
    words = (ctypes.c_int64 * max(len(PYTHON.fields), len(_EXPORTS)))(
        *(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions),
        *map(id, objects),
    )
    linked.entry(ctypes.addressof(words))
    run, call, serve, configure, begin, asked = words[: len(_EXPORTS)]
    word, address = ctypes.c_int64, ctypes.c_void_p
    made = Process(
        linked,
        ctypes.CFUNCTYPE(ctypes.c_int32, address, address)(run),
        call,
        ctypes.CFUNCTYPE(None, word, word, word)(serve),
        ctypes.CFUNCTYPE(None, word, word, word, word)(configure),
        ctypes.CFUNCTYPE(None)(begin),
        (ctypes.c_char * ASKED_BYTES).from_address(asked),
    )
    made.begin()
    return made


def _forked() -> None:
    """In a process that was forked off: nobody else is here."""
    _SHARED.lock = Lock()
    if _SHARED.process is not None:
        _SHARED.process.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
