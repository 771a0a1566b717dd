"""Code generation for programs: compile kernels in a background thread, and link sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import prod
from queue import Empty, SimpleQueue
from threading import Event, Thread
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from tecomp.codegen.dispatch.kernel import Kernel, SequenceCode
from tecomp.codegen.emit.compile import interface_of, module_text
from tecomp.codegen.emit.kernel_sequence import (
    ArenaValue,
    RowPitch,
    SequenceArgument,
    SequenceCall,
    SequenceSize,
    sequence_text,
)
from tecomp.codegen.llvm.code_cache import get_or_compile_object
from tecomp.codegen.llvm.compiled import CompiledFunction, KernelInterface, ModuleText
from tecomp.codegen.llvm.ir_builder import LlvmSource, Options
from tecomp.codegen.llvm.jit import link
from tecomp.compute.define import compute, placeholder
from tecomp.compute.tensor import Tensor
from tecomp.driver.auto_schedule import build_default_schedule
from tecomp.driver.build_cache import BuildRequest
from tecomp.driver.static_shapes import extent_at
from tecomp.fork_gate import no_fork
from tecomp.ir.extern.binding import bind
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import Buffer, Extent, PrimFunc, SeqStmt
from tecomp.lowering.pipeline import LoweringResult
from tecomp.lowering.storage.flatten_buffer import flatten_axis_groups
from tecomp.machine.descriptor import Target

if TYPE_CHECKING:
    from tecomp.cost_model.report import CostReport

@dataclass(slots=True, eq=False)
class _Task:
    """Compilation task of one module."""

    source: LlvmSource
    is_fresh: bool
    is_done: Event = field(default_factory=Event)
    image: bytes = b""
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.image = get_or_compile_object(self.source, is_fresh=self.is_fresh)
        except BaseException as error:
            self.error = error
        self.is_done.set()


# Do not use `concurrent.futures`: it imports `logging`, and both take locks before a fork.
@dataclass(frozen=True, slots=True)
class BackgroundCompiler:
    """Machine code of modules that a background thread compiles.

    Attributes:
        tasks: Queue of the compilation thread; None ends the thread. LLVM runs without the GIL, in
            parallel with Python. More threads would not help, because the LLVM binding admits one
            thread at a time.
        is_fresh: Whether object code from the cache is not used.
    """

    is_fresh: bool = False
    tasks: SimpleQueue[_Task | None] = field(default_factory=SimpleQueue)
    _found: dict[str, _Task] = field(default_factory=dict)

    def add(self, module: ModuleText) -> None:
        """Enqueue a module for compilation, unless it was added before."""
        if module.entry in self._found:
            return
        self._found[module.entry] = task = _Task(module.source, self.is_fresh)
        self.tasks.put(task)

    def image(self, module: ModuleText) -> bytes:
        """Wait for the object code of an added module, and return the code.

        Raises:
            InternalError: If LLVM rejects the module.
        """
        task = self._found[module.entry]
        task.is_done.wait()
        if task.error is not None:
            raise task.error
        return task.image

    def work(self) -> None:
        """Run tasks in order until None arrives."""
        while (task := self.tasks.get()) is not None:
            task.run()

    def end(self) -> None:
        """Discard all tasks that have not started, and end the thread."""
        with suppress(Empty):
            while True:
                self.tasks.get_nowait()
        self.tasks.put(None)


@contextmanager
def codes(*, is_fresh: bool = False) -> Iterator[BackgroundCompiler]:
    """Run a compilation thread; tasks that have not started when the block ends are discarded."""
    compiler = BackgroundCompiler(is_fresh)
    with no_fork:
        thread = Thread(target=no_fork.guard_thread(compiler.work), name="tecomp-code")
        thread.start()
        try:
            yield compiler
        finally:
            compiler.end()
            thread.join()


_MEASURE_SECONDS = 0.05
"""Measurement time of a kernel in seconds."""
_COPIED = 1 << 26
"""Size of the measured copy in bytes, larger than the caches of one core."""


@dataclass(frozen=True, slots=True)
class ProgramKernel:
    """Kernel of a sequence.

    Attributes:
        build: Build request.
        lowered: Function after each pass.
        module: LLVM IR of the kernel.
    """

    build: BuildRequest
    lowered: LoweringResult
    module: ModuleText

    def __repr__(self) -> str:
        return f"<Kernel {self.build.name}>"

    @property
    def is_parallel(self) -> bool:
        """Whether the kernel can use several threads."""
        return self.module.is_parallel

    @property
    def has_places(self) -> bool:
        """Whether run-time errors can report the source location in user code."""
        return bool(self.lowered.final.sites)

    @property
    def sizes(self) -> tuple[Var, ...]:
        """Size variables that a call passes after the arrays: scalar parameters, then extents."""
        func = self.lowered.final
        return (*(param for param in func.params if isinstance(param, Var)), *func.sizes)

    @property
    def rows(self) -> tuple[RowPitch | None, ...]:
        """Row layout of each array parameter with several physical axes; None for others."""
        params = (p for p in self.lowered.final.params if isinstance(p, Buffer))
        return tuple(_rows(p) if len(p.shape) > 1 else None for p in params)

    def report(self, sizes: Mapping[str, int] = MappingProxyType({})) -> CostReport:
        """Return the modelled cost of a call on the target for the given sizes.

        Raises:
            LowerError: If there are too many iterations to count.
        """
        known = {var.name: sizes[var.name] for var in self.sizes}
        assert self.build.target is not None
        import tecomp.driver.profiling as reporting
        report: CostReport = reporting.report_of(
            self.build.name, self.build.schedule.state, self.lowered, self.build.target, known
        )
        return report

    def measured(self, sizes: Mapping[str, int] = MappingProxyType({})) -> float:
        """Measure the minimum time of a call on arrays of zeros, in seconds."""
        image = get_or_compile_object(self.module.source)
        linked = link([image], self.module.entry, bind(self.module.calls))
        interface = interface_of(self.lowered.final, self.module)
        kernel = Kernel(
            CompiledFunction(interface, linked, self.build.options, lambda: self.lowered.final))
        params = [p for p in self.lowered.final.params if isinstance(p, Buffer)]
        # Write the zeros explicitly: untouched pages of `np.zeros` all map to one physical page,
        # which stays in the first-level cache.
        shapes = [[extent_at(n, sizes) or 0 for n in p.shape] for p in params]
        arrays = [np.full(n, 0, p.dtype.numpy) for n, p in zip(shapes, params, strict=True)]
        scalars = [sizes[var.name] for var in self.lowered.final.params if isinstance(var, Var)]
        return kernel.timeit(*arrays, *scalars, seconds=_MEASURE_SECONDS).min


def copy_rate(target: Target) -> float:
    """Measure the memory bandwidth of a copy by all threads, reads plus writes, in bytes/s."""
    source = placeholder((_COPIED // 4,), "float32", "source")
    result = compute(source.shape, lambda i: source[i], name="copy")
    assert isinstance(result, Tensor)
    build = BuildRequest(
        build_default_schedule(result, target), [source, result], "copy", target, Options()
    )
    return 2 * _COPIED / part_of(build).measured()


def _rows(buffer: Buffer) -> RowPitch:
    *outer, row = (extent for extent in buffer.shape if isinstance(extent, int))
    return RowPitch(prod(outer), row * buffer.dtype.bytes)


def part_of(build: BuildRequest, lowered: LoweringResult | None = None) -> ProgramKernel:
    """Lower a kernel, unless `lowered` is given, and generate its LLVM IR."""
    lowered = build.lowered() if lowered is None else lowered
    return ProgramKernel(build, lowered, module_text(lowered.final, build.options))


@dataclass(frozen=True, slots=True)
class ProgramSequence:
    """Function that calls kernels in sequence.

    Attributes:
        name: Name of the function.
        calls: Kernel calls in order, each with its arguments.
        params: Array parameters of the function; their symbolic extents are of dtype int64.
        outputs: Parameters that are written.
        slots: Bytes of each slot of the memory for intermediate values.
    """

    name: str
    calls: Sequence[tuple[ProgramKernel, Sequence[SequenceArgument | ArenaValue]]]
    params: Sequence[Buffer]
    outputs: Sequence[Buffer]
    slots: Sequence[Extent]

    @property
    def parts(self) -> list[ProgramKernel]:
        """Distinct kernels, in the order of their first call."""
        return list({id(part): part for part, _ in self.calls}.values())

    @property
    def head(self) -> PrimFunc:
        """Function without its statements."""
        extents = [
            extent for buffer in self.params for extent in buffer.shape if isinstance(extent, Var)
        ]
        sizes = tuple(dict.fromkeys(extents))
        return PrimFunc(self.name, tuple(map(flatten_axis_groups, self.params)), SeqStmt(()), sizes)

    @property
    def written(self) -> tuple[Var, ...]:
        """Data variables of the parameters that are written."""
        return tuple(buffer.data for buffer in self.params if buffer in self.outputs)

    @property
    def is_parallel(self) -> bool:
        """Whether a kernel can use several threads."""
        return any(part.is_parallel for part in self.parts)

    def module(self, suffixes: Mapping[str, str] = MappingProxyType({})) -> ModuleText:
        """Return the LLVM IR of the function.

        Args:
            suffixes: Suffix of the symbol of each kernel, by its entry. Default: none.
        """
        sizes = self.head.sizes
        positions = {var.name: SequenceSize(k) for k, var in enumerate(sizes)}
        steps = [
            SequenceCall(
                part.module.entry + suffixes.get(part.module.entry, ""),
                (*args, *(positions[var.name] for var in part.sizes)),
                part.module.sites, part.rows,
            )
            for part, args in self.calls
        ]
        return sequence_text(
            self.name, steps, len(self.params), self.slots, sizes, is_parallel=self.is_parallel)


def sequence_code(sequence: ProgramSequence, codes: BackgroundCompiler) -> SequenceCode:
    """Return the code of a function that calls kernels in sequence.

    Args:
        sequence: Function.
        codes: Compilation of the kernels.

    Raises:
        InternalError: If LLVM rejects a module.
    """
    parts, text = sequence.parts, sequence.module()
    sequence_image = get_or_compile_object(text.source, is_fresh=codes.is_fresh)
    images = (*(codes.image(part.module) for part in parts), sequence_image)
    outside = tuple(dict.fromkeys(call for part in parts for call in part.module.calls))
    interface = KernelInterface(
        sequence.head, sequence.written, text.entry, text.sites, sequence.is_parallel, outside)
    has_places = any(part.has_places for part in parts)
    return SequenceCode(interface, tuple(sequence.params), images, has_places)
