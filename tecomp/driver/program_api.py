"""`compile` and `load`, and the `CompiledProgram` protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from tecomp.compute.tensor import Tensor
from tecomp.machine.descriptor import Target

if TYPE_CHECKING:
    # It is for type checkers alone, and nothing is loaded for it.
    from tecomp.codegen.dispatch.kernel import Timing
    from tecomp.drawing.chrome_trace import Trace
    from tecomp.drawing.svg import Svg
    from tecomp.layout.core.layout import Layout


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


_COMPILER = EntryPoint("compile", "tecomp.graph.compile:compile_program", "tecomp.compilers")
_LOADER = EntryPoint("load", "tecomp.graph.compile:load_program", "tecomp.compilers")


def compile(
    outputs: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor],
    target: str | Path | Target = "cpu",
    *,
    constants: Mapping[Tensor, Any] = MappingProxyType({}),
    layouts: Mapping[Tensor, Any] = MappingProxyType({}),
    hints: Sequence[Any] = (),
    relayouts: bool = True,
    packed: Sequence[Tensor] = (),
    name: str = "program",
) -> CompiledProgram:
    """A program that computes tensors from others, all of its operations compiled as one.

    Args:
        outputs: what it computes: a tensor, or several.
        inputs: placeholders, in the order in which it is called with arrays.
        target: the machine: its name, a description, or a path to one.
        constants: the values of placeholders that are the same in every call. What follows from
            them alone is computed now. A program that is saved or pickled reads the arrays again:
            leave them as they are.
        layouts: of values on the machine: a layout, `"default"` for the one that the machine has
            for such a tensor, or a list of those to choose from. Other inputs come in the default,
            everything else lies where relayouts cost least; callers have arrays of NumPy anyhow.
        hints: wishes about layouts and divisions among cores, of `tecomp.hint`.
        relayouts: whether values are brought to other layouts where their readers want that.
            Without, layouts follow from those of the inputs.
        packed: inputs and outputs that it is called with as they lie on the machine, so that no
            kernel copies them from the host or to it. An input needs its layout in `layouts`; an
            output lies where the program makes it, as `program.packed` says.
        name: of it.

    Returns:
        The `tecomp.graph.program.Program`; call it with arrays: `y = program(x)`.

    Raises:
        DefinitionError: an output needs what is neither computed nor given, something is given
            twice, or a size is no number.
        CallError: a constant has another shape or type than its placeholder.
        LayoutError: the machine allows an operation no layouts, or none that go together, or a
            hint that has to be kept cannot be.
        LowerError: an operation has no code.

    >>> import numpy as np
    >>> from tecomp import te
    >>> X, W = te.placeholder((2, 3), name="X"), te.placeholder((3, 4), name="W")
    >>> k = te.reduce_axis((0, 3), name="k")
    >>> Y = te.compute((2, 4), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="Y")
    >>> Z = te.compute((2, 4), lambda i, j: te.max(Y[i, j], 0.0), name="Z")
    >>> program = compile(Z, [X], constants={W: np.ones((3, 4), "float32")})
    >>> program(np.arange(6, dtype="float32").reshape(2, 3) - 3)
    array([[0., 0., 0., 0.],
           [3., 3., 3., 3.]], dtype=float32)
    """
    program: CompiledProgram = _COMPILER.load()(
        outputs, inputs, target, constants=constants, name=name, layouts=layouts,
        hints=hints, relayouts=relayouts, packed=packed,
    )
    return program


def load(folder: str | PathLike[str]) -> CompiledProgram:
    """A program that `program.save` wrote: nothing is compiled, its machine code is run as it is.

    Args:
        folder: that it was saved to, by the same compiler for the same machine. Its code can do
            what you can: load what you trust.

    Returns:
        The `tecomp.graph.program.Program`, with tensors of its own.

    Raises:
        CacheError: it is for another processor, from another compiler, cut short or damaged.

    >>> import tempfile
    >>> import numpy as np
    >>> from tecomp import te
    >>> X = te.placeholder((3,), name="X")
    >>> Y = te.compute((3,), lambda i: X[i] * 2.0, name="Y")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     compile(Y, [X], name="twice").save(folder)
    ...     program = load(folder)
    >>> program, program(np.arange(3, dtype="float32"))
    (<Program twice(X) -> Y: 1 kernel>, array([0., 2., 4.], dtype=float32))
    """
    program: CompiledProgram = _LOADER.load()(folder)
    return program
