"""Python functions run as kernels, to see what threads and memory the runtime gives them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tecomp.codegen.dispatch.process_runtime import process
from tecomp.codegen.runtime.runtime_structs import TABLE

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
    """What code has while it runs as a kernel: the state of its thread."""

    def __init__(self, thread: int, errors: list[BaseException]) -> None:
        self.thread = thread
        self._errors = errors

    def parallel(self, begin: int, extent: int, body: Body, least: int = 1) -> None:
        """Share iterations, `least` for each thread or more.

        `body` is called with the state of its thread and a range.
        """

        def run(thread: int, _captured: int | None, start: int, stop: int) -> None:
            try:
                body(Inside(thread, self._errors), start, stop)
            except BaseException as error:
                self._errors.append(error)

        self._call("parallel", _BODY(run), None, begin, extent, least)

    def allocate(self, size: int) -> int:
        """The address of so many bytes; 0 if there are none."""
        return int(self._call("allocate", size))

    def release(self, address: int) -> None:
        """Give back what was allocated last."""
        self._call("release", address)

    def _call(self, name: str, *arguments: Any) -> Any:
        table = ctypes.c_int64.from_address(self.thread).value
        function = ctypes.c_int64.from_address(table + TABLE.offset(name)).value
        return _FUNCTIONS[name](function)(self.thread, *arguments)


def as_kernel(function: Callable[[Inside], object]) -> None:
    """Run a function as the process runs the entry of a kernel."""
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
