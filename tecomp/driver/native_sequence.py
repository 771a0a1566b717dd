"""Machine code of a sequence of kernels."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.codegen.llvm.compiled import CompiledFunction, KernelInterface
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.codegen.llvm.jit import link
from tecomp.ir.extern.binding import bind
from tecomp.ir.nodes.stmt import Buffer


@dataclass(frozen=True, slots=True)
class SequenceCode:
    """Machine code of kernels that run in sequence, as one function.

    Attributes:
        face: Call interface of the function.
        params: Array parameters with their shapes in the program.
        images: Object code of the distinct kernels, followed by the function that calls them.
        has_places: Whether run-time errors can report the source location in user code.
    """

    face: KernelInterface
    params: tuple[Buffer, ...]
    images: tuple[bytes, ...]
    has_places: bool

    def linked(self) -> Kernel:
        """Link the code, and return a callable kernel."""
        head = self.face.head
        code = link(self.images, self.face.entry, bind(self.face.calls))
        return Kernel(CompiledFunction(self.face, code, Options(), lambda: head), self.params)
