"""`compile_function` and `emit_assembly`: a lowered function to machine code, or to its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tecomp.codegen.functions.function import ModuleText, module_text, written_params
from tecomp.codegen.llvm.cached import machine_code
from tecomp.codegen.llvm.emit import Options
from tecomp.codegen.llvm.jit import Entry, Linked, Machine, assembly
from tecomp.codegen.llvm.source import Source
from tecomp.ir.language.expr import Var
from tecomp.ir.language.stmt import PrimFunc, SeqStmt
from tecomp.ir.outside.bind import Calls, bind
from tecomp.work import doing


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
            self._module = module_text(self.func, self.options)
        return self._module.source

    @property
    def entry(self) -> Entry:
        """Takes the address of the block of arguments; gives the kind of failure, 0 for none."""
        return self.linked.entry

    def assembly(self) -> str:
        """The machine code as text."""
        return assembly(self.source, Machine())


def compile_function(
    func: PrimFunc,
    *,
    check_bounds: bool = False,
    fast_math: bool = False,
    fp_contract: bool = True,
) -> Compiled:
    """Machine code of `func` for the machine at hand.

    `func` is flat: its buffers are accessed with one index for each physical axis.

    Args:
        func: the function.
        check_bounds: check each access against the shape of its buffer while it runs.
        fast_math: let sums be reordered, divisions become multiplications by a reciprocal, and
            `min` and `max` of NaN and a number be either.
        fp_contract: let `a * b + c` be rounded once (FMA) instead of twice.

    Raises:
        DefinitionError: a function that it calls is not registered, or takes something else.
        InternalError: `func` has something that should have been lowered.
    """
    options = Options(check_bounds, fast_math, fp_contract)
    with doing(f"make LLVM code of {func.name}"):
        module = module_text(func, options)
    linked = machine_code(module.source, module.entry, outside=bind(module.calls))
    return Compiled(interface_of(func, module), linked, options, lambda: func, module)


def interface_of(func: PrimFunc, module: ModuleText) -> Interface:
    """What a caller has to know of `func`, of which `module` was made."""
    head = PrimFunc(func.name, func.params, SeqStmt(()), func.sizes, sites=func.sites)
    written = tuple(written_params(func))
    return Interface(
        head, written, module.entry, module.sites, module.is_parallel, module.calls)


def emit_assembly(
    func: PrimFunc,
    *,
    triple: str = "",
    cpu: str = "",
    features: str = "",
    check_bounds: bool = False,
    fast_math: bool = False,
    fp_contract: bool = True,
) -> str:
    """Assembly text of `func` for any machine that LLVM knows; the one at hand without `triple`.

    Args:
        func: the function, flat.
        triple: the machine, such as `aarch64-linux-gnu`.
        cpu: the model, such as `neoverse-v2`.
        features: what it has besides, such as `+sve2`.
        check_bounds: as for `compile_function`.
        fast_math: as for `compile_function`.
        fp_contract: as for `compile_function`.
    """
    machine = Machine(triple, cpu, features)
    module = module_text(func, Options(check_bounds, fast_math, fp_contract), machine)
    return assembly(module.source, machine)
