"""`compile`, `load`, and the `CompiledProgram` protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from tecomp.compute.tensor import Tensor
from tecomp.lazy_imports import load_upward
from tecomp.machine.descriptor import Target

if TYPE_CHECKING:
    # Imported for type checkers only.
    from tecomp.codegen.dispatch.kernel import Timing
    from tecomp.drawing.chrome_trace import ChromeTrace
    from tecomp.drawing.svg import Svg
    from tecomp.layout.core.layout import Layout


class CompiledProgram(Protocol):
    """Interface of a compiled program, as returned by `tecomp.compile`.

    Attributes with types from packages above this one are declared as Any.
    """

    @property
    def name(self) -> str:
        """Name of the program."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Input tensors, in call order."""

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Output tensors, in order."""

    @property
    def target(self) -> Target:
        """Target of the program."""

    @property
    def packed(self) -> Mapping[Tensor, Layout]:
        """Layouts of the inputs and outputs that are passed in their device layout."""

    @property
    def details(self) -> Any:
        """Internal structure of the program."""

    @property
    def kernels(self) -> tuple[Any, ...]:
        """Kernel calls, in execution order."""

    @property
    def layouts(self) -> Any:
        """Layout of each value."""

    @property
    def memory(self) -> Any:
        """Memory plan of the intermediate values."""

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Run the program; return the output array, or a tuple if there are several outputs."""

    def timeit(self, *arrays: Any, out: Any = None, seconds: float = 0.5) -> Timing:
        """Measure the time of a call with these arrays, including argument checks."""

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the program to a folder that `tecomp.load` can read on the same machine."""

    def export(
        self, folder: str | PathLike[str], *, cpu: str | Sequence[str] | None = None,
        triple: str | None = None, name: str | None = None,
        formats: Sequence[str] = (".a", ".h"),
    ) -> None:
        """Write the program to a folder as a C function that needs no Python."""

    def report(self, *, measured: bool = False, **sizes: int) -> Any:
        """Return the structure of the program and the cost of its kernels."""

    def timeline(self, *, measured: bool = False, **sizes: int) -> ChromeTrace:
        """Return the timeline of the program as a trace for Perfetto and chrome://tracing."""

    def picture(self) -> Svg:
        """Draw the program as SVG."""



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
    """Compile the operations between input and output tensors into one program.

    Args:
        outputs: Output tensor, or a list of output tensors.
        inputs: Placeholders, in call order.
        target: Target: its name, a description, or a path to a description.
        constants: Values of placeholders that are the same in every call. Values that depend on
            constants only are computed at compile time. Saving or pickling the program reads the
            arrays again, so do not modify them.
        layouts: Device layouts of values: a layout, `"default"` for the default layout of the
            target, or a list of candidates. Inputs without an entry have the default layout. All
            other values get the layouts with the lowest relayout cost. Callers pass and receive
            NumPy arrays in any case.
        hints: Hints about layouts and work division among cores, from `tecomp.hint`.
        relayouts: If True, insert relayouts where consumers need other layouts. If False, all
            layouts follow from the layouts of the inputs.
        packed: Inputs and outputs that the caller passes in their device layout, so that no kernel
            copies them between host and device. An input needs its layout in `layouts`; the layout
            of an output is in `program.packed`.
        name: Name of the program.

    Sizes may be symbolic (`te.var`) on processors: one compilation serves all sizes, which each
    call takes from the shapes of its arrays. Targets with device layouts, and layouts and hints of
    the caller, require constant sizes.

    Returns:
        The `tecomp.graph.program.Program`; call it with arrays: `y = program(x)`.

    Raises:
        DefinitionError: If an output depends on a placeholder that is neither an input nor a
            constant, a tensor is given twice, or a size variable is no extent of an input.
        CallError: If a constant differs in shape or dtype from its placeholder.
        LayoutError: If the target supports no layouts for an operation or no consistent
            combination, or a required hint cannot be satisfied.
        LowerError: If an operation cannot be lowered.

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
    program: CompiledProgram = load_upward("graph.compile")(
        outputs, inputs, target, constants=constants, name=name, layouts=layouts,
        hints=hints, relayouts=relayouts, packed=packed,
    )
    return program


def load(folder: str | PathLike[str]) -> CompiledProgram:
    """Load a program written by `program.save`, without compilation.

    Args:
        folder: Folder written by the same compiler for the same machine. The machine code runs with
            the permissions of the user, so load trusted folders only.

    Returns:
        The `tecomp.graph.program.Program`, with new tensor objects.

    Raises:
        CacheError: If the program is for another processor, from another compiler version,
            truncated or corrupt.

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
    program: CompiledProgram = load_upward("graph.load")(folder)
    return program
