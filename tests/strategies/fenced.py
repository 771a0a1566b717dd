"""Arrays before a protected page, and kernels compiled for older processors."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

from tecomp.codegen import (
    CompiledFunction,
    Kernel,
    LlvmTarget,
    Options,
    host,
    interface_of,
    link,
    module_text,
    object_code,
)
from tecomp.ir import PrimFunc
from tests.strategies.arrays import GUARD, PATTERN, Array

# Host and older processors, whose code the host runs too; the older ones have no mask registers.
PROCESSORS = ("", "haswell", "ivybridge")


class Fenced:
    """Copy of an array that ends directly before an inaccessible page."""

    def __init__(self, array: Array) -> None:
        page = mmap.PAGESIZE
        size = -(-(array.nbytes + GUARD) // page) * page
        self._map = mmap.mmap(-1, size + page)
        self._memory = np.frombuffer(self._map, np.uint8)
        self._memory[:size] = PATTERN
        libc = ctypes.CDLL(None, use_errno=True)
        fence = ctypes.c_void_p(self._memory.ctypes.data + size)
        if libc.mprotect(fence, ctypes.c_size_t(page), 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
        self._start = size - array.nbytes
        self.array: Any = self._memory[self._start : size].view(array.dtype).reshape(array.shape)
        self.array[...] = array

    def check(self) -> None:
        """Check that nothing was written before the array."""
        before = self._memory[self._start - GUARD : self._start]
        assert (before == PATTERN).all(), "written in front of an array"


def call_fenced(kernel: Kernel, *arguments: Any) -> None:
    """Call a kernel on copies of its arrays before protected pages, and copy the results back.

    An access after the end of an array ends the process, and the failing test is reported.
    """
    fenced = [Fenced(item) if isinstance(item, np.ndarray) else item for item in arguments]
    kernel(*(item.array if isinstance(item, Fenced) else item for item in fenced))
    for source, item in zip(arguments, fenced, strict=True):
        if isinstance(item, Fenced):
            item.check()
            source[...] = item.array


def kernel_for(func: PrimFunc, cpu: str) -> Kernel:
    """Return a kernel compiled for a processor that runs on the host; `""` is the host itself."""
    if not cpu:
        return Kernel(func)
    machine, options = LlvmTarget(host().triple, cpu), Options()
    module = module_text(func, options, machine)
    linked = link([object_code(module.source, machine=machine)], module.entry)
    return Kernel(CompiledFunction(interface_of(func, module), linked, options, lambda: func, module))
