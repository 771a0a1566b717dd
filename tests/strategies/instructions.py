"""Machine instructions that kernels execute, from counters in their assembly code (x86-64).

Counts replace times in tests of performance: they do not depend on the load of the machine.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding
import pytest

from tecomp.array.kernels import execution_plan, kernel
from tecomp.caches import LRUCache
from tecomp.codegen import LlvmSource
from tecomp.codegen.llvm import code_cache, jit

# Code that was compiled with counters may be kept by caches, so the counter is never freed.
_COUNTER = ctypes.c_uint64()
_ADDED = """
\tleaq\t-128(%rsp), %rsp
\tpushfq
\tpushq\t%rax
\tmovabsq\t${place}, %rax
\taddq\t${count}, (%rax)
\tpopq\t%rax
\tpopfq
\tleaq\t128(%rsp), %rsp
"""
"""Code that changes neither registers nor flags, nor the memory below the stack pointer."""
_LABEL = re.compile(r"[\w.$]+:")
_JUMP = re.compile(r"\tj\w+\t")


class Counted:
    """Compilation with counters, and the number of instructions that kernels execute."""

    def code(self, source: LlvmSource, effort: int = 2) -> bytes:
        """Compile a module with a counter in each block."""
        with jit._tools(jit.host(), effort) as tools:
            machine = tools.target_machine
            text = counting(machine.emit_assembly(jit._optimize(source, tools)))
            return bytes(machine.emit_object(jit._parse(_as_module(text), machine)))

    def of(self, call: Callable[[], Any]) -> int:
        """Return the number of instructions that a call executes in kernels."""
        before = _COUNTER.value
        call()
        return _COUNTER.value - before


@contextmanager
def counted() -> Iterator[Counted]:
    """Compile kernels of arrays with counters, on one thread, without reusing earlier ones."""
    llvmlite.binding.initialize_native_asmparser()
    found = Counted()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TECOMP_NUM_THREADS", "1")
        patch.setattr(code_cache, "object_code", found.code)
        patch.setattr(kernel, "_kernels", LRUCache("array.kernels"))
        patch.setattr(execution_plan, "_recipes", LRUCache("array.recipes"))
        yield found


def counting(text: str) -> str:
    """Add the number of instructions of each basic block to the counter at its start.

    >>> text = "f:|testq %rax, %rax|je .L1|ret|.L1:|ret"
    >>> lines = [x if x.endswith(":") else chr(9) + x.replace(" ", chr(9), 1) for x in text.split("|")]
    >>> [x.split()[1] for x in counting(chr(10).join(lines)).splitlines() if "addq" in x]
    ['$2,', '$1,', '$1,']
    """
    results: list[str] = []
    block: list[str] = []
    for line in text.splitlines():
        if _LABEL.match(line):
            results += [*_with_counter(block), line]
            block = []
            continue
        block.append(line)
        if _JUMP.match(line):
            results += _with_counter(block)
            block = []
    return "\n".join([*results, *_with_counter(block)]) + "\n"


def _with_counter(block: list[str]) -> list[str]:
    count = sum(re.match(r"\t[a-z]", line) is not None for line in block)
    if not count:
        return block
    added = _ADDED.format(place=ctypes.addressof(_COUNTER), count=count)
    return [*added.strip("\n").splitlines(), *block]


def _as_module(text: str) -> str:
    """Return an LLVM module that consists of assembly code."""
    quoted = "".join(c if c.isprintable() and c not in '"\\\\' else f"\\{ord(c):02X}" for c in text)
    return f'module asm "{quoted}"\n'
