"""What type checkers are told of programs, whose class lies above, in `tecomp.graph.program`."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    # It is for type checkers alone, and nothing is loaded for it.
    from tecomp.codegen.calls.timing import Timing
    from tecomp.compute.tensor import Tensor
    from tecomp.drawing.svg import Svg
    from tecomp.drawing.trace import Trace
    from tecomp.layout.descriptions.layout import Layout
    from tecomp.machine.descriptor import Target


class CompiledProgram(Protocol):
    """Compiled operations that are called as one, as `tecomp.compile` gives them.

    What is made of rooms above is of any type here.
    """

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What it is called with, in order."""

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """What it gives, in order."""

    @property
    def target(self) -> Target:
        """The machine."""

    @property
    def packed(self) -> Mapping[Tensor, Layout]:
        """The layouts of what it is called with, and gives, as it lies on the machine."""

    @property
    def details(self) -> Any:
        """What it is made of."""

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The calls of kernels, in order."""

    @property
    def layouts(self) -> Any:
        """Where each value is."""

    @property
    def memory(self) -> Any:
        """Where the values between kernels lie."""

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The array of the output, or a tuple of them where there are several."""

    def timeit(self, *arrays: Any, out: Any = None, seconds: float = 0.5) -> Timing:
        """How long a call with these arrays takes, checks included."""

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the program to a folder, which `tecomp.load` reads on the same machine."""

    def report(self, *, measured: bool = False) -> Any:
        """What the program is made of, and what its kernels cost."""

    def timeline(self, *, measured: bool = False) -> Trace:
        """The program as a trace that Perfetto and chrome://tracing open."""

    def picture(self) -> Svg:
        """The program as SVG."""
