"""The `Program` class: a compiled program that is called like a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from os.path import splitext
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tecomp.codegen.dispatch.kernel import Timing, time_call
from tecomp.compute.tensor import Tensor
from tecomp.drawing.drawable import Pictured, call_drawing_function
from tecomp.driver.program_api import CompiledProgram, compile
from tecomp.driver.static_shapes import check_sizes
from tecomp.errors import CallError, TecompError
from tecomp.fork_gate import no_fork
from tecomp.graph.compile_options import CompileRequest
from tecomp.graph.serialization import NativeProgram, save
from tecomp.graph.sizes import sizes_of, with_sizes
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.printer import format_count, identifier

if TYPE_CHECKING:
    # Details of a program are imported only when they are inspected.
    from tecomp.drawing.chrome_trace import ChromeTrace
    from tecomp.drawing.svg import Svg
    from tecomp.graph.kernels import KernelCall
    from tecomp.graph.layout_result import ProgramLayouts
    from tecomp.graph.memory_plan import ArenaPlan, SymbolicArenaPlan
    from tecomp.graph.report import ProgramDetails, ProgramReport
    from tecomp.layout.core.layout import Layout


def _again(spec: CompileRequest) -> CompiledProgram:
    return compile(
        spec.outputs, spec.inputs, spec.target, constants=spec.constants, name=spec.name,
        layouts=spec.layouts, hints=spec.hints, relayouts=spec.relayouts,
        packed=spec.packed,
    )


def _plain_layouts(request: CompileRequest) -> ProgramLayouts:
    """Compute the layouts on a target that has no layout rules: all are row-major."""
    from tecomp.graph.compilation_steps import layouts_of

    return layouts_of(request)


_COMPILED = 0.2
"""Compile time of a kernel in seconds."""
_CALLED = 2e-6
"""Overhead of a kernel call in seconds."""
_READ = 1e-10
"""Time per byte of constants and results in seconds."""
_MIN_CALLS = 16
_MAX_SPECIALIZATIONS = 2
_MAX_VALUES = 1000
"""Maximum number of values of a size that are counted."""


class SpecializedProgram:
    """Program with values of sizes built in, compiled by a background thread.

    Attributes:
        request: Compile request of the program for all sizes.
        sizes: Values that are built in, by name.
    """

    def __init__(self, request: CompileRequest, sizes: Mapping[str, int]) -> None:
        self.request, self.sizes = request, sizes
        self._program: Program | None = None
        self._is_done = Event()

    def start(self) -> None:
        """Start the thread."""
        started = Event()

        def run() -> None:
            started.set()
            try:
                # The program for all sizes serves these sizes too.
                with suppress(TecompError):
                    self._program = self._compiled()
            finally:
                self._is_done.set()

        # A fork waits until the thread ends, because a child process would wait forever for it.
        with no_fork:
            Thread(target=no_fork.guard_thread(run), name="tecomp-sizes").start()
            started.wait()

    def program(self) -> Program | None:
        """Wait for the program; None if the definitions cannot be specialized."""
        self._is_done.wait()
        return self._program

    def _compiled(self) -> Program | None:
        request = self.request
        variables = {
            extent: self.sizes[identifier(extent.name)] for x in request.inputs
            for extent in x.shape
            if isinstance(extent, Var) and identifier(extent.name) in self.sizes
        }
        tensors = with_sizes([*request.outputs, *request.inputs], variables)
        if tensors is None:
            return None
        found: Any = compile(
            [tensors[x] for x in request.outputs], [tensors[x] for x in request.inputs],
            request.target, name=request.name,
            constants={tensors[x]: v for x, v in request.constants.items() if x in tensors},
        )
        program: Program = found
        return program


class Specializer:
    """Policy that builds frequent values of sizes into a program.

    Compilation starts when the calls with a value have taken as long as a compilation, by an
    estimate that depends on the sizes and not on a clock. The specialized program is used after
    twice that time, so that equal sequences of calls give equal bits.

    Attributes:
        programs: Specialized programs by the values that are built in.
    """

    def __init__(self, request: CompileRequest, native: NativeProgram) -> None:
        self._request = request
        self._compile_time = _COMPILED * native.calls
        self._call_time = _CALLED * native.calls + _READ * native.constant_bytes
        self._spent: dict[str, dict[int, float]] = {}
        self.programs: dict[frozenset[tuple[str, int]], SpecializedProgram] = {}

    def program(self, sizes: Mapping[str, int], results: Sequence[Any]) -> Program | None:
        """Count a call, and return the program with the most sizes built in, if any."""
        moved = sum([getattr(result, "nbytes", 0) for result in results])
        seconds = min(self._call_time + _READ * moved, self._compile_time / _MIN_CALLS)
        times = {item: self._add(*item, seconds) for item in sizes.items()}
        frequent = [item for item, spent in times.items() if spent >= self._compile_time]
        if not frequent:
            return None
        key = frozenset(frequent)
        if key not in self.programs and len(self.programs) < _MAX_SPECIALIZATIONS:
            new = SpecializedProgram(self._request, dict(key))
            if self.programs.setdefault(key, new) is new:
                new.start()
        ready = {item for item in frequent if times[item] >= 2 * self._compile_time}
        fitting = [known for known in [*self.programs] if known <= ready]
        return self.programs[max(fitting, key=len)].program() if fitting else None

    def _add(self, name: str, size: int, seconds: float) -> float:
        spent = self._spent.setdefault(name, {})
        if size not in spent and len(spent) >= _MAX_VALUES:
            spent.clear()
        spent[size] = spent.get(size, 0.0) + seconds
        return spent[size]


class Program(Pictured):
    """A compiled program; call it with arrays for the inputs.

    Calls are thread-safe and allocate only the results.

    Attributes:
        inputs: Input tensors in call order.
        outputs: Output tensors in result order.
        target: Target.
    """

    _drawn_by: ClassVar[str] = "program:draw_program"

    __slots__ = (
        "_asked", "_constants", "_details", "_kernel", "_make", "_native", "_sizes",
        "_specializer", "inputs", "outputs", "target",
    )

    def __init__(
        self, request: CompileRequest, native: NativeProgram, details: Callable[[], ProgramDetails]
    ) -> None:
        """Create a program; `details` computes the inspection data on first use."""
        self._asked = request
        self._native = native
        self._kernel = native.run.linked()
        self._constants = native.constants([*request.constants.values()])
        self.inputs = request.inputs
        self.outputs = request.outputs
        self._make = details
        self._details: ProgramDetails | None = None
        self.target = request.target
        self._sizes = {
            identifier(extent.name): (k, axis) for k, x in reversed([*enumerate(request.inputs)])
            for axis, extent in enumerate(x.shape) if isinstance(extent, Var)
        }
        self._specializer = Specializer(request, native) if self._sizes else None

    @property
    def compile_request(self) -> CompileRequest:
        """Arguments of `tecomp.compile`."""
        return self._asked

    @property
    def details(self) -> ProgramDetails:
        """Inspection data; recomputed if the program was loaded from the cache or a file."""
        if self._details is None:
            self._details = self._make()
        return self._details

    @property
    def kernels(self) -> tuple[KernelCall, ...]:
        """Kernel calls in order."""
        return self.details.kernels

    @property
    def layouts(self) -> ProgramLayouts:
        """Layouts of values (`program.layouts[T]`), relayouts, hint outcomes and certificate."""
        found = self.details.layouts or _plain_layouts(self._asked)
        outcomes = self.details.division_outcomes
        return replace(found, wishes=(*found.wishes, *outcomes)) if outcomes else found

    @property
    def packed(self) -> Mapping[Tensor, Layout]:
        """Layouts of the inputs and outputs that are passed in device layout."""
        if not self._asked.packed:
            return {}
        # The layouts are stored with the machine code, so calls need not compute the details.
        import tecomp.graph.definition_keys as keys
        found = keys.definitions_from(self._native.packed_in)
        return dict(zip(self._asked.packed, found, strict=True))

    @property
    def memory(self) -> ArenaPlan | SymbolicArenaPlan:
        """Memory plan of the values between kernels; its method `at` takes symbolic sizes."""
        return self.details.memory

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the compile request; unpickling compiles the program again."""
        return _again, (self._asked,)

    def __copy__(self) -> Program:
        return self

    def __deepcopy__(self, memo: object) -> Program:
        return self

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Compute the outputs.

        Args:
            arrays: Input arrays in order.
            out: Arrays that receive the outputs, in order, or a single array if there is one
                output. Default: new arrays.

        Returns:
            The output array, or a tuple of arrays if there are several outputs.

        Raises:
            CallError: If an array does not match its tensor; no output is written in that case.
        """
        if len(arrays) != len(self.inputs):
            names = ", ".join(tensor.name for tensor in self.inputs)
            expected = format_count(len(self.inputs), "input")
            raise CallError(
                "{kernel}: expected {expected} ({names}), got {array_count}; pass outputs as "
                "`out`, and do not pass constants",
                kind="argument-mismatch", kernel=self._kernel.name, expected=expected, names=names,
                array_count=len(arrays),
            )
        sizes = {name: self._extent(arrays, k, axis) for name, (k, axis) in self._sizes.items()}
        results = self._results(sizes, out)
        program = self if self._specializer is None else (
            self._specializer.program(sizes, results) or self)
        program._kernel(*arrays, *results, program._constants)
        return results[0] if len(results) == 1 else tuple(results)

    def _results(self, sizes: Mapping[str, int], out: Any) -> Sequence[Any]:
        if out is None:
            buffers = self._native.run.params[len(self.inputs) : -1]
            return [np.empty(sizes_of(x, sizes), x.dtype.numpy) for x in buffers]
        results = list(out) if isinstance(out, list | tuple) else [out]
        if len(results) != len(self.outputs):
            names = ", ".join(tensor.name for tensor in self.outputs)
            raise CallError(
                "{kernel}: expected {arrays} in `out` ({names}), got {given_count}",
                kind="argument-count", kernel=self._kernel.name,
                arrays=format_count(len(self.outputs), "array"), names=names,
                given_count=len(results),
            )
        return results

    def _extent(self, arrays: Sequence[Any], number: int, axis: int) -> int:
        """Return an extent of an input array."""
        shape = arrays[number].shape if hasattr(arrays[number], "shape") else np.shape(
            arrays[number])
        tensor = self.inputs[number]
        if len(shape) != len(tensor.shape):
            raise CallError(
                "{kernel}: {tensor} has {rank} axes, got an array of shape {shape}",
                kind="argument-mismatch", kernel=self.name, tensor=tensor.name,
                rank=len(tensor.shape), shape=tuple(shape),
            )
        return int(shape[axis])

    def _checked_sizes(self, sizes: Mapping[str, int], method: str) -> Mapping[str, int]:
        """Check the values of size variables that a caller passes to a method."""
        return check_sizes(self._native.run.interface.head, sizes, f"{self.name}.{method}")

    def timeit(self, *arrays: Any, out: Any = None, seconds: float = 0.5) -> Timing:
        """Measure the time of a call, including argument checks.

        Args:
            arrays: Input arrays in order.
            out: Arrays that receive the outputs, as in a call. Default: new arrays, whose
                allocation is included in the time.
            seconds: Measuring time in seconds; at least five calls are made.

        Returns:
            The minimum and the median time in seconds, and the number of calls.

        Raises:
            CallError: If a call fails, or `seconds` is not a positive number.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> program = compile(te.compute((8,), lambda i: A[i] + 1, name="B"), [A])
        >>> timing = program.timeit(np.zeros(8, np.float32), seconds=0.01)
        >>> timing.min <= timing.median, timing.runs > 100
        (True, True)
        """
        return time_call(partial(self, out=out), arrays, seconds)

    def save(self, folder: str | PathLike[str]) -> None:
        """Save the program to a folder, from which `tecomp.load` reads it on the same machine.

        Args:
            folder: Path of a new or empty folder, or of a saved program, which is replaced. The
                folder appears under its name only when it is complete. A path `x.svg` or `x.html`
                saves the figure of the program instead.

        Raises:
            CacheError: If the folder has other contents or cannot be written.
            CallError: If the figure cannot be written.
        """
        if isinstance(folder, str | PathLike) and splitext(fspath(folder))[1] in (".svg", ".html"):
            super().save(folder)
            return
        save(self._asked, self._native, folder)

    def export(
        self, folder: str | PathLike[str], *, cpu: str | Sequence[str] | None = None,
        triple: str | None = None, name: str | None = None,
        formats: Sequence[str] = (".a", ".h"),
    ) -> None:
        """Write the program as one C function that needs no Python.

        The function takes inputs, outputs and size variables. Constants of at most 1 MiB are in
        the code. Larger constants are in the file `name.weights`, which the C function `name_open`
        maps.

        Args:
            folder: Path of a new or empty folder, or of an exported program, which is replaced. The
                folder appears under its name only when it is complete.
            cpu: CPU of the code, or several levels, as for kernels. Default: the CPU of the build.
            triple: Target triple. Default: this machine.
            name: Name of the function. Default: the name of the program.
            formats: Suffixes of the files: .o, .a, .so, .h, .ll, .s. Default: .a and .h.

        Raises:
            CallError: If an argument is invalid, the program calls Python functions or is for a
                simulated target, or a file cannot be written.

        >>> import os, tempfile
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> program = compile(te.compute((8,), lambda i: A[i] + 1, name="B"), [A], name="plus")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     program.export(folder, formats=[".o", ".h"])
        ...     print(sorted(os.listdir(folder)))
        ['plus.h', 'plus.o']
        """
        # Import lazily: calls need neither planning nor the export.
        from tecomp.export.program_export import export_program
        from tecomp.graph.compilation_steps import exported_program

        pool = self._constants[: self._native.constant_bytes]
        export_program(
            exported_program(self._asked, pool.tobytes()), folder, cpu=cpu, triple=triple,
            name=name, formats=formats)

    def report(self, *, measured: bool = False, **sizes: int) -> ProgramReport:
        """Report the structure of the program and the cost of its kernels.

        Args:
            sizes: Values of all size variables, by name.
            measured: Whether to time each kernel briefly on arrays of its own. The report then
                also states the share of the time for which the limiting resource was busy:
                compute units, or memory if the operands exceed all caches.

        Raises:
            CallError: If `measured` is not a bool, or a size is missing, negative or unknown.
            LowerError: If there are too many iterations to count.
        """
        known = self._checked_sizes(sizes, "report")
        check_kind(
            measured, bool, f"{self._kernel.name}: measured", "give True or False", CallError)
        head = self._kernel.name, self.target, self._native.constant_bytes
        return self.details.report(*head, known, measured=measured)

    def picture(self) -> Svg:
        """Draw a program of constant sizes as SVG: kernels, values, relayouts and memory use.

        Time runs downwards. A value is drawn as a line from its producer to its readers, and as a
        box at its addresses over its live range.

        Returns:
            SVG text; notebooks display it.
        """
        self._checked_sizes({}, "picture")
        svg: Svg = call_drawing_function(self._drawn_by, self)
        return svg

    @property
    def name(self) -> str:
        """Program name."""
        return self._kernel.name

    def timeline(self, *, measured: bool = False, **sizes: int) -> ChromeTrace:
        """Return a trace of kernels and live bytes for Perfetto and chrome://tracing.

        Args:
            measured: Whether to time each kernel briefly. Default: use the lower bounds of the cost
                model.
            sizes: Values of all size variables, by name.

        Returns:
            JSON text; notebooks display it as a figure.

        Raises:
            CallError: If `measured` is not a bool, or a size is missing, negative or unknown.
            LowerError: If there are too many iterations to count.
        """
        return self.details.timeline(self.report(measured=measured, **sizes), sizes)

    def __repr__(self) -> str:
        inputs = ", ".join(tensor.name for tensor in self.inputs)
        outputs = ", ".join(tensor.name for tensor in self.outputs)
        kernels = format_count(self._native.calls, "kernel")
        return f"<Program {self._kernel.name}({inputs}) -> {outputs}: {kernels}>"
