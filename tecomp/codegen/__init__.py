"""IR to machine code, through LLVM; knows no tensors and no schedules."""

from __future__ import annotations

from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.codegen.emit.compile import Compiled, compile_function, emit_assembly

__all__ = ["Compiled", "Kernel", "compile_function", "emit_assembly"]
