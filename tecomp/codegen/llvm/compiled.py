"""Compiled functions: module text, interface and machine code.

A function from the code cache needs this module only. The emitter is imported when the first
function is compiled or its text is requested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tecomp.codegen.llvm.ir_builder import LlvmSource, Options
from tecomp.codegen.llvm.jit import Entry, LlvmTarget, LoadedCode, assembly
from tecomp.ir.extern.binding import Calls
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import Buffer, Extent, PrimFunc
from tecomp.lazy_imports import load_upward

Signature = tuple[Buffer | Var, ...]
"""Parameters of a kernel, with the shapes that callers pass."""
LogicalShapes = tuple[tuple[Extent, ...] | None, ...]
"""Logical shape of each array parameter; None for scalars."""

@dataclass(frozen=True, slots=True)
class ModuleText:
    """LLVM IR of a function.

    Attributes:
        source: LLVM module; independent of the target except for probed CPU features.
        entry: Name of the function that takes the argument block.
        sites: Texts of the site numbers in failure records.
        is_parallel: Whether the function can use more than one thread.
        calls: External functions that the function calls.
    """

    source: LlvmSource
    entry: str
    sites: tuple[str, ...]
    is_parallel: bool
    calls: Calls = ()

    @property
    def text(self) -> str:
        """LLVM IR."""
        return self.source.text


@dataclass(frozen=True, slots=True)
class KernelInterface:
    """Interface of a compiled function.

    Attributes:
        head: Function without its statements.
        written: Data variables of the buffers that the function writes.
        entry: Name of the native function that takes the argument block.
        sites: Texts of the site numbers in failure records.
        is_parallel: Whether the function can use more than one thread.
        calls: External functions that the function calls.
    """

    head: PrimFunc
    written: tuple[Var, ...]
    entry: str
    sites: tuple[str, ...]
    is_parallel: bool
    calls: Calls = ()


class CompiledFunction:
    """Function in machine code.

    Attributes:
        interface: Interface of the function.
        linked: Machine code, kept in memory by this object.
        options: Code generation options.
        signature: Parameters with the shapes that callers pass; those of the function by default.
        logical: Logical shapes of array parameters in the same variables; None for scalars.
    """

    __slots__ = (
        "_func", "_make", "_module", "interface", "linked", "logical", "options", "signature",
    )

    def __init__(
        self,
        interface: KernelInterface,
        linked: LoadedCode,
        options: Options,
        make: Callable[[], PrimFunc],
        module: ModuleText | None = None,
        signature: Signature | None = None,
        logical: LogicalShapes = (),
    ) -> None:
        """Wrap linked code; `make` returns the compiled function and is called on demand."""
        self.signature: Signature = interface.head.params if signature is None else signature
        self.logical = logical
        self.interface = interface
        self.linked = linked
        self.options = options
        self._make = make
        self._func: PrimFunc | None = None
        self._module = module

    @property
    def func(self) -> PrimFunc:
        """Compiled function."""
        if self._func is None:
            self._func = self._make()
        return self._func

    @property
    def llvm_ir(self) -> str:
        """LLVM IR before the passes of LLVM."""
        return self.source.text

    @property
    def source(self) -> LlvmSource:
        """LLVM module before the passes of LLVM."""
        if self._module is None:
            self._module = load_upward("codegen.emitter")(self.func, self.options)
        return self._module.source

    @property
    def entry(self) -> Entry:
        """Native function of the argument block address; it returns the failure kind, or 0."""
        return self.linked.entry

    def assembly(self) -> str:
        """Return the assembly text for the host."""
        return assembly(self.source, LlvmTarget())
