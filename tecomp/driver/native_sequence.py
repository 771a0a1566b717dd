"""Machine code of a kernel sequence."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.codegen.llvm.compiled import Compiled, Interface
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.codegen.llvm.jit import link
from tecomp.ir.extern.binding import bind
from tecomp.ir.nodes.stmt import Buffer


@dataclass(frozen=True, slots=True)
class Code:
    """Kernels that run one after another, as one function in machine code.

    Attributes:
        face: what a caller has to know.
        params: arrays that a caller passes, as they are seen in a program.
        images: the code of the kernels, each once, and of what calls them.
        has_places: whether an error at run time says where the user wrote what fails.
    """

    face: Interface
    params: tuple[Buffer, ...]
    images: tuple[bytes, ...]
    has_places: bool

    def linked(self) -> Kernel:
        """It, ready to be called."""
        head = self.face.head
        code = link(self.images, self.face.entry, bind(self.face.calls))
        return Kernel(Compiled(self.face, code, Options(), lambda: head), self.params)
