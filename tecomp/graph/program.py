"""`Program`: compiled operations that are called as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from os import PathLike, fspath
from os.path import splitext
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tecomp.codegen.dispatch.kernel import Timing, time_call
from tecomp.compute.tensor import Tensor
from tecomp.drawing.drawable import Pictured, drawn_by
from tecomp.driver.program_api import CompiledProgram, compile
from tecomp.errors import CallError
from tecomp.graph.compile_options import Asked
from tecomp.graph.native_program import Native
from tecomp.graph.serialization import save
from tecomp.graph.sizes import sizes_of
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.printer import counted

if TYPE_CHECKING:
    # What a program is made of is loaded by those who look at it.
    from tecomp.drawing.chrome_trace import Trace
    from tecomp.drawing.svg import Svg
    from tecomp.graph.kernels import Call
    from tecomp.graph.layout_result import Layouts
    from tecomp.graph.memory_plan import Plan
    from tecomp.graph.report import Details, ProgramReport
    from tecomp.ir.nodes.stmt import Buffer
    from tecomp.layout.core.layout import Layout


def _again(asked: Asked) -> CompiledProgram:
    return compile(
        asked.outputs, asked.inputs, asked.target, constants=asked.constants, name=asked.name,
        layouts=asked.layouts, hints=asked.hints, relayouts=asked.relayouts,
        packed=asked.packed,
    )


def _plain_layouts(asked: Asked) -> Layouts:
    """The layouts on a machine that does not care: all are in the order of NumPy."""
    made: Layouts = import_module("tecomp.graph.compilation_steps").layouts_of(asked)
    return made


class Program(Pictured):
    """Compiled operations; call it with arrays for the inputs.

    Calls from several threads at once are safe, and nothing is allocated but the results.

    Attributes:
        inputs: what it is called with, in order.
        outputs: what it gives, in order.
        target: the machine.
    """

    _drawn_by: ClassVar[str] = "program:draw_program"

    __slots__ = (
        "_asked", "_constants", "_details", "_kernel", "_make", "_native", "inputs", "outputs",
        "target",
    )

    def __init__(self, asked: Asked, native: Native, details: Callable[[], Details]) -> None:
        """`details` makes what only those need who look at the program."""
        self._asked = asked
        self._native = native
        self._kernel = native.run.linked()
        self._constants = native.constants([*asked.constants.values()])
        self.inputs = asked.inputs
        self.outputs = asked.outputs
        self._make = details
        self._details: Details | None = None
        self.target = asked.target

    @property
    def details(self) -> Details:
        """What it is made of; made again where the program was not compiled in this process."""
        if self._details is None:
            self._details = self._make()
        return self._details

    @property
    def kernels(self) -> tuple[Call, ...]:
        """The calls of kernels, in order."""
        return self.details.kernels

    @property
    def layouts(self) -> Layouts:
        """Where each value is: `program.layouts[T]`; with the relayouts, and a certificate."""
        found = self.details.layouts or _plain_layouts(self._asked)
        more = self.details.wishes
        return replace(found, wishes=(*found.wishes, *more)) if more else found

    @property
    def packed(self) -> Mapping[Tensor, Layout]:
        """The layouts of what it is called with, and gives, as it lies on the machine."""
        if not self._asked.packed:
            return {}
        # Known without what the program is made of, which is not made to call it.
        keys = import_module("tecomp.graph.definition_keys")
        found = keys.definitions_from(self._native.packed_in)
        return dict(zip(self._asked.packed, found, strict=True))

    @property
    def memory(self) -> Plan:
        """Where the values between kernels lie."""
        return self.details.memory

    def __reduce__(self) -> tuple[Any, ...]:
        """As what was asked for: it is compiled where it is loaded."""
        return _again, (self._asked,)

    def __copy__(self) -> Program:
        return self

    def __deepcopy__(self, memo: object) -> Program:
        return self

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The outputs for these inputs.

        Args:
            arrays: for the inputs, in order.
            out: arrays that the outputs are written to, in order, or the one for a single output;
                new ones without it.

        Returns:
            The array of the output, or a tuple of them where there are several.

        Raises:
            CallError: an array does not fit; nothing is written then.
        """
        if len(arrays) != len(self.inputs):
            names = ", ".join(tensor.name for tensor in self.inputs)
            wanted = counted(len(self.inputs), "input")
            raise CallError(
                f"{self._kernel.name}: expected {wanted} ({names}), got {len(arrays)}; outputs are "
                "passed as `out`, and constants are known",
                kind="other-array",
            )
        results = self._results(out)
        self._kernel(*arrays, *results, self._constants)
        return results[0] if len(results) == 1 else tuple(results)

    def _results(self, out: Any) -> Sequence[Any]:
        if out is None:
            return [_empty(buffer) for buffer in self._native.run.params[len(self.inputs) : -1]]
        given = list(out) if isinstance(out, list | tuple) else [out]
        if len(given) != len(self.outputs):
            names = ", ".join(tensor.name for tensor in self.outputs)
            raise CallError(
                f"{self._kernel.name}: expected {counted(len(self.outputs), 'array')} in `out` "
                f"({names}), got {len(given)}",
                kind="argument-count",
            )
        return given

    def timeit(self, *arrays: Any, out: Any = None, seconds: float = 0.5) -> Timing:
        """How long a call with these arrays takes, checks included.

        Args:
            arrays: for the inputs, in order.
            out: arrays that the outputs are written to, as for a call; without it the time for new
                ones is counted.
            seconds: how long to measure; five calls are made even if they take longer.

        Returns:
            The shortest time and the median, in seconds, and the number of calls.

        Raises:
            CallError: as a call does, or `seconds` is no positive number.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> program = compile(te.compute((8,), lambda i: A[i] + 1, name="B"), [A])
        >>> timing = program.timeit(np.zeros(8, np.float32), seconds=0.01)
        >>> timing.min <= timing.median, timing.runs > 100
        (True, True)
        """
        return time_call(partial(self, out=out), arrays, seconds)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the program to a folder, which `tecomp.load` reads on the same machine.

        Args:
            folder: a new one, an empty one, or one with a saved program, which is replaced. It is
                complete as soon as it is there under its name. A path `x.svg` or `x.html` is that
                of a picture.

        Raises:
            CacheError: there is something else, or nothing can be written.
            CallError: no picture can be written there.
        """
        if isinstance(folder, str | PathLike) and splitext(fspath(folder))[1] in (".svg", ".html"):
            super().save(folder)
            return
        save(self._asked, self._native, folder)

    def report(self, *, measured: bool = False) -> ProgramReport:
        """What the program is made of, and what its kernels cost.

        Args:
            measured: whether to run each kernel for a moment, on arrays of its own, and say how
                long it took, and for which part of that the resource that binds was busy: units
                that compute, or memory, if no cache has room for what it reads and writes.

        Raises:
            CallError: `measured` is no truth.
            LowerError: there is too much to count.
        """
        check_kind(
            measured, bool, f"{self._kernel.name}: measured", "give True or False", CallError)
        head = self._kernel.name, self.target, self._native.constant_bytes
        return self.details.report(*head, measured=measured)

    def picture(self) -> Svg:
        """The program as SVG: kernels, what goes between them, relayouts, and memory as time goes.

        Time runs downwards. A value is a line from the kernel that makes it to those that read it,
        and a box at its addresses for as long as it is needed.

        Returns:
            The text, which a notebook shows as the picture.
        """
        made: Svg = drawn_by(self._drawn_by, self)
        return made

    @property
    def name(self) -> str:
        """What it is called."""
        return self._kernel.name

    def timeline(self, *, measured: bool = False) -> Trace:
        """The program as a trace that Perfetto and chrome://tracing open: kernels, and bytes held.

        Args:
            measured: whether to run each kernel for a moment; else a kernel takes as long as it
                does at least, by the model.

        Returns:
            JSON, which a notebook shows as a picture.

        Raises:
            CallError: `measured` is no truth.
            LowerError: there is too much to count.
        """
        return self.details.timeline(self.report(measured=measured))

    def __repr__(self) -> str:
        inputs = ", ".join(tensor.name for tensor in self.inputs)
        outputs = ", ".join(tensor.name for tensor in self.outputs)
        kernels = counted(self._native.calls, "kernel")
        return f"<Program {self._kernel.name}({inputs}) -> {outputs}: {kernels}>"


def _empty(buffer: Buffer) -> np.ndarray[Any, Any]:
    return np.empty(sizes_of(buffer), buffer.dtype.numpy)
