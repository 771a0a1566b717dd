"""Code generation from IR to machine code with LLVM; independent of tensors and schedules."""

from __future__ import annotations

import typing
from importlib import import_module

if typing.TYPE_CHECKING:
    from tecomp.codegen.dispatch.kernel import Kernel
    from tecomp.codegen.emit.compile import compile_function, emit_assembly
    from tecomp.codegen.llvm.compiled import Compiled

__all__ = ["Compiled", "Kernel", "compile_function", "emit_assembly"]

_MODULE_OF = {
    "Compiled": "llvm.compiled",
    "Kernel": "dispatch.kernel",
    "compile_function": "emit.compile",
    "emit_assembly": "emit.compile",
}


if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # Import lazily: code from a cache does not need the emitter.
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
