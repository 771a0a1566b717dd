"""Compiled functions: module text, interface and machine code.

A function that is found in a cache needs this file alone: the emitter is imported with the first
function that is compiled, or of which the text is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint

from tecomp.codegen.llvm.ir_builder import Options, Source
from tecomp.codegen.llvm.jit import Entry, Linked, Machine, assembly
from tecomp.ir.extern.binding import Calls
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import PrimFunc

# Referenced by name, as an entry point is, to avoid an upward import.
_EMITTER = EntryPoint("emitter", "tecomp.codegen.emit.compile:module_text", "tecomp.compilers")


@dataclass(frozen=True, slots=True)
class ModuleText:
    """LLVM IR for a function.

    Attributes:
        source: the module; but for dot products it is for no machine in particular.
        entry: name of the function that takes the block of arguments.
        sites: what the site number in the record of a failure stands for.
        is_parallel: whether it can use more than one thread.
        calls: the functions outside of the program that it calls.
    """

    source: Source
    entry: str
    sites: tuple[str, ...]
    is_parallel: bool
    calls: Calls = ()

    @property
    def text(self) -> str:
        """LLVM IR."""
        return self.source.text


@dataclass(frozen=True, slots=True)
class Interface:
    """What a caller has to know of a compiled function.

    Attributes:
        head: the function without its statements.
        written: `data` of the buffers that it writes to.
        entry: name of the native function that takes the block of arguments.
        sites: what the site number in the record of a failure stands for.
        is_parallel: whether it can use more than one thread.
        calls: the functions outside of the program that it calls.
    """

    head: PrimFunc
    written: tuple[Var, ...]
    entry: str
    sites: tuple[str, ...]
    is_parallel: bool
    calls: Calls = ()


class Compiled:
    """A function in machine code.

    Attributes:
        interface: what a caller has to know.
        linked: the code; it lives as long as this object does.
        options: how it was made.
    """

    __slots__ = ("_func", "_make", "_module", "interface", "linked", "options")

    def __init__(
        self,
        interface: Interface,
        linked: Linked,
        options: Options,
        make: Callable[[], PrimFunc],
        module: ModuleText | None = None,
    ) -> None:
        """`make` gives what was compiled; asked for only where somebody wants to see it."""
        self.interface = interface
        self.linked = linked
        self.options = options
        self._make = make
        self._func: PrimFunc | None = None
        self._module = module

    @property
    def func(self) -> PrimFunc:
        """What was compiled."""
        if self._func is None:
            self._func = self._make()
        return self._func

    @property
    def llvm_ir(self) -> str:
        """The LLVM IR, as it was before LLVM's own passes."""
        return self.source.text

    @property
    def source(self) -> Source:
        """The module, as it was before LLVM's own passes."""
        if self._module is None:
            self._module = _EMITTER.load()(self.func, self.options)
        return self._module.source

    @property
    def entry(self) -> Entry:
        """Takes the address of the block of arguments; gives the kind of failure, 0 for none."""
        return self.linked.entry

    def assembly(self) -> str:
        """The machine code as text."""
        return assembly(self.source, Machine())
