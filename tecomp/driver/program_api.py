"""`compile`, `load`, the `CompiledProgram` protocol, `tune` and its results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tecomp.compute.tensor import Tensor
from tecomp.driver.auto_schedule import Knob, Value, use_database
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
    def compile_request(self) -> Any:
        """Validated arguments of `compile`, with which `tune` compiles the kernels."""

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


@dataclass(frozen=True, slots=True)
class TuningTrial:
    """Outcome of one candidate.

    Attributes:
        key: Digest of the definition.
        machine: Digest of the target and of the processor.
        choices: Values of knobs that differ from their default.
        outcome: "faster", "slower" or "same" than the best candidate before; "equal" if its code
            was tried before; or "failed".
        ratio: Time relative to the first candidate; None if it was not measured.
        message: Reason of a failure.
        author: User and host.
        time: Seconds since 1970.
    """

    key: str
    machine: str
    choices: Mapping[str, Value]
    outcome: str
    ratio: float | None
    message: str
    author: str
    time: float


@dataclass(frozen=True)
class TunedKernel:
    """Result of tuning one kernel.

    Attributes:
        name: Name of the kernel.
        choices: Values of knobs that differ from their default; none if the default is fastest.
        space: Knobs of all candidates.
        first: Time or modelled cycles of a call with the default choices.
        cost: Time or modelled cycles of a call with `choices`.
        unit: "seconds" or "cycles".
        trials: Candidates of this call, in order.
    """

    name: str
    choices: Mapping[str, Value]
    space: tuple[Knob, ...]
    first: float
    cost: float
    unit: str
    trials: tuple[TuningTrial, ...]

    @property
    def gain(self) -> float:
        """Speedup over the default choices; at least 1."""
        return self.first / self.cost

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        counts = {name: 0 for name in ("faster", "slower", "same", "equal", "failed")}
        for trial in self.trials:
            counts[trial.outcome] += 1
        return {
            "name": self.name, "gain": self.gain, "first": self.first, "cost": self.cost,
            "unit": self.unit, "choices": dict(self.choices), "candidates": counts,
            "space": {knob.name: [*knob.values] for knob in self.space},
        }


@dataclass(frozen=True)
class TuningResult:
    """Result of `tune`, which prints as a table.

    Attributes:
        kernels: Tuned kernels, in the order of the program.
        database: Path of the database with the records.
        is_interrupted: Whether Ctrl-C ended the search.
    """

    kernels: tuple[TunedKernel, ...]
    database: Path
    is_interrupted: bool = False

    @property
    def gain(self) -> float:
        """Speedup of one call of each kernel over the default choices."""
        before = math.fsum(one.first for one in self.kernels)
        return before / math.fsum(one.cost for one in self.kernels) if before else 1.0

    @property
    def choices(self) -> Mapping[str, Value]:
        """Values of knobs of the first kernel that differ from their default."""
        return self.kernels[0].choices

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "gain": self.gain, "interrupted": self.is_interrupted, "database": str(self.database),
            "kernels": [one.to_dict() for one in self.kernels],
        }

    def __str__(self) -> str:
        lines = []
        for one in self.kernels:
            changed = ", ".join(f"{name} = {value}" for name, value in one.choices.items())
            lines.append(
                f"{one.name}: {one.gain:.2f} times as fast, {cost_text(one.cost, one.unit)} "
                f"instead of {cost_text(one.first, one.unit)}, {len(one.trials)} candidates; "
                f"{changed or 'the default choices'}")
        return "\n".join(lines)


def cost_text(cost: float, unit: str) -> str:
    """Return a cost with its unit.

    >>> cost_text(1.25e-5, "seconds"), cost_text(1200.0, "cycles")
    ('12.5 us', '1,200 cycles')
    """
    if unit == "cycles":
        return f"{cost:,.0f} cycles"
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
    scale, name = next((unit for unit in units if cost >= unit[0]), (1e-9, "ns"))
    return f"{cost / scale:.3g} {name}"


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
    database: str | Path | None = None,
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
        database: Path of a tuning database, whose records schedule the kernels. Default: that of
            the environment variable `TECOMP_TUNING`, or of the user; it is not consulted if it does
            not exist.

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
        CacheError: If the tuning database is not found or damaged.

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
    with use_database(database, "compile"):
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


def tune(
    subject: Any,
    args: Sequence[object] | None = None,
    target: str | Path | Target = "cpu",
    seconds: float = 60.0,
    trials: int | None = None,
    database: str | Path | None = None,
    *,
    search: Literal["evolution", "random"] = "evolution",
    sizes: Mapping[str, int] = MappingProxyType({}),
    name: str = "main",
    seed: int = 0,
) -> TuningResult:
    """Search for a faster schedule than the default, and record it for later builds.

    Candidates are built in parallel, each in a process of its own with limits of time and memory.
    They are measured one at a time, alternating with the best one, which they replace only if a
    paired test is certain and their results agree. The first candidate has the default choices, so
    the result is never slower than these. For targets that cannot run here, the cost model takes
    the place of the clock. Ctrl-C ends the search and keeps what was found; another call resumes.

    Args:
        subject: What is tuned: output tensors; a function without parameters that returns a
            schedule, or a pair of a schedule and arguments, with `tecomp.knob`; a program of
            `tecomp.compile`; or a model of `tecomp.onnx.load`.
        args: Tensors and size variables in the parameter order of the kernel, as for
            `tecomp.build`; omitted for programs and models.
        target: Target of tensors and functions.
        seconds: Time of the search, which the kernels of a program share.
        trials: Maximum number of candidates per kernel. Default: no limit.
        database: Path of the tuning database, which is created if necessary. Default: that of the
            environment variable `TECOMP_TUNING`, or of the user.
        search: "evolution": change the best candidates, ranked by a model that is fitted to all
            measurements; or "random": choose all values at random.
        sizes: Values of symbolic sizes by name, for which candidates are measured.
        name: Name of the kernel.
        seed: Seed of the search.

    Returns:
        The result. `tecomp.build` and `tecomp.compile` find the records from then on.

    Raises:
        CallError: If an argument is invalid, or the value of a symbolic size is missing.
        ScheduleError: If a function does not return a schedule.
        CacheError: If the database is damaged.

    >>> import tempfile
    >>> from tecomp import te
    >>> A = te.placeholder((64, 64), name="A")
    >>> k = te.reduce_axis((0, 64), name="k")
    >>> B = te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="B")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = tune(B, [A, B], trials=2, database=f"{folder}/tuning.sqlite")
    >>> result.gain >= 1.0, len(result.kernels[0].trials)
    (True, 2)
    """
    found: TuningResult = load_upward("driver.tune")(
        subject, args, target, seconds, trials, database, search, sizes, name, seed)
    return found
