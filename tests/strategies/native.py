"""Run Python functions as kernels, to test the threads and memory of the runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tecomp.codegen import TABLE, process

_WORD, _ADDRESS = ctypes.c_int64, ctypes.c_void_p
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, _ADDRESS)
_BODY = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS, _WORD, _WORD)
_FUNCTIONS: dict[str, Any] = {
    "parallel": ctypes.CFUNCTYPE(None, _ADDRESS, _BODY, _ADDRESS, _WORD, _WORD, _WORD),
    "allocate": ctypes.CFUNCTYPE(_WORD, _ADDRESS, _WORD),
    "release": ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS),
}

Body = Callable[["Inside", int, int], object]


class Inside:
    """Runtime functions of code that runs as a kernel, called with its thread state."""

    def __init__(self, thread: int, errors: list[BaseException]) -> None:
        self.thread = thread
        self._errors = errors

    def parallel(self, begin: int, extent: int, body: Body, least: int = 1) -> None:
        """Run iterations in parallel, at least `least` per thread.

        Args:
            begin: First iteration.
            extent: Number of iterations.
            body: Function that is called with the thread state and a range of iterations.
            least: Minimum number of iterations per thread. Default: 1.
        """

        def run(thread: int, _captured: int | None, start: int, stop: int) -> None:
            try:
                body(Inside(thread, self._errors), start, stop)
            except BaseException as error:
                self._errors.append(error)

        self._call("parallel", _BODY(run), None, begin, extent, least)

    def allocate(self, size: int) -> int:
        """Allocate `size` bytes and return their address, or 0 if the memory is exhausted."""
        return int(self._call("allocate", size))

    def release(self, address: int) -> None:
        """Release the most recent allocation."""
        self._call("release", address)

    def _call(self, name: str, *arguments: Any) -> Any:
        table = ctypes.c_int64.from_address(self.thread).value
        function = ctypes.c_int64.from_address(table + TABLE.offset(name)).value
        return _FUNCTIONS[name](function)(self.thread, *arguments)


def as_kernel(function: Callable[[Inside], object]) -> None:
    """Run a function in the way in which the process runs a kernel entry; reraise its error."""
    errors: list[BaseException] = []

    def entry(block: int) -> int:
        try:
            function(Inside(ctypes.c_int64.from_address(block).value, errors))
        except BaseException as error:
            errors.append(error)
        return 0

    block = (ctypes.c_int64 * 8)()
    process().run(_ENTRY(entry), ctypes.addressof(block))
    if errors:
        raise errors[0]
