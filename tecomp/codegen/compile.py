"""`compile_function` and `emit_assembly`: a lowered function to machine code, or to its text."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.codegen.emit import Options
from tecomp.codegen.function import ModuleText, module_text
from tecomp.codegen.jit import Entry, Linked, Machine, assembly, link, object_code
from tecomp.ir.stmt import PrimFunc


@dataclass(frozen=True, slots=True)
class Compiled:
    """A function in machine code.

    Attributes:
        func: what it was compiled from.
        module: its LLVM IR, as it was before LLVM's own passes.
        linked: the code; it lives as long as this object does.
    """

    func: PrimFunc
    module: ModuleText
    linked: Linked

    @property
    def llvm_ir(self) -> str:
        """The LLVM IR, as it was before LLVM's own passes."""
        return self.module.text

    @property
    def entry(self) -> Entry:
        """Takes the address of the block of arguments; gives the kind of failure, 0 for none."""
        return self.linked.entry

    def assembly(self) -> str:
        """The machine code as text."""
        return assembly(self.module.text, Machine())


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
        fast_math: let sums be reordered, and divisions become multiplications by a reciprocal.
        fp_contract: let `a * b + c` be rounded once (FMA) instead of twice.

    Raises:
        InternalError: `func` has something that should have been lowered.
    """
    module = module_text(func, Options(check_bounds, fast_math, fp_contract))
    return Compiled(func, module, link(object_code(module.text), module.entry))


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
    module = module_text(func, Options(check_bounds, fast_math, fp_contract))
    return assembly(module.text, Machine(triple, cpu, features))
