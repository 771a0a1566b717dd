"""The callable `Kernel`, timing of its calls, and the code of kernels that run in sequence."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from math import prod
from os import PathLike
from struct import unpack
from time import perf_counter_ns
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from tecomp.codegen.dispatch.array_interop import ArrayMemory
from tecomp.codegen.dispatch.fast_call import Quick, quick_call
from tecomp.codegen.dispatch.parameter import (
    ArgumentStorage,
    KernelParameter,
    check_scalar,
    make_parameter,
    memory_of,
)
from tecomp.codegen.dispatch.process_runtime import process, use_threads
from tecomp.codegen.dispatch.shape_binding import (
    Size,
    are_interleaved,
    bind_sizes,
    bytes_spanned,
    check_bounds,
    check_findable,
    check_mark,
    check_shape,
    check_strides,
    extent_value,
    part_at_offset,
)
from tecomp.codegen.llvm.compiled import CompiledFunction, KernelInterface
from tecomp.codegen.llvm.ir_builder import Options, float_bits
from tecomp.codegen.llvm.jit import link
from tecomp.codegen.runtime.runtime_structs import (
    FIRST_ARGUMENT_WORD,
    OUT_OF_BOUNDS,
    RAISED,
    RECORD_WORD,
)
from tecomp.drawing.drawable import Pictured
from tecomp.errors import CallError
from tecomp.ir.extern.binding import RAISED as EXCEPTIONS
from tecomp.ir.extern.binding import bind
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import Buffer, PrimFunc
from tecomp.lazy_imports import load_upward

_WARM_UP_SHARE = 20
_MIN_BATCH_NANOSECONDS = 20_000
"""Nanoseconds; shorter calls are timed in batches, to amortize the clock overhead."""
_MIN_BATCHES = 5


@dataclass(frozen=True, slots=True)
class Timing:
    """Measured duration of a call in seconds.

    Attributes:
        min: Minimum, which is least affected by other load on the machine.
        median: Median of the measurements.
        runs: Number of measured calls.
    """

    min: float
    median: float
    runs: int


def time_call(call: Callable[..., object], arguments: Sequence[Any], seconds: float) -> Timing:
    """Time repeated calls for about `seconds`: at least five after at least two warm-up calls.

    Calls shorter than 20 microseconds are timed in batches, and each batch counts as its average.

    Raises:
        CallError: If `seconds` is not a positive number below 1e9.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e9:
        raise CallError(
            "timeit: seconds must be a positive number, got {seconds!r}",
            seconds=seconds,
        )
    budget = int(seconds * 1e9)
    start = perf_counter_ns()
    call(*arguments)
    warm = _span(call, arguments, 1)
    while perf_counter_ns() < start + budget // _WARM_UP_SHARE:
        warm = min(warm, _span(call, arguments, 1))
    batch_size = max(_MIN_BATCH_NANOSECONDS // max(warm, 1), 1)
    start = perf_counter_ns()
    spans: list[int] = []
    while len(spans) < _MIN_BATCHES or perf_counter_ns() < start + budget:
        spans.append(_span(call, arguments, batch_size))
    scale = 1e9 * batch_size
    return Timing(min(spans) / scale, float(np.median(spans)) / scale, batch_size * len(spans))


def _span(call: Callable[..., object], arguments: Sequence[Any], count: int) -> int:
    """Return the duration of `count` calls in nanoseconds."""
    start = perf_counter_ns()
    for _ in repeat(None, count):
        call(*arguments)
    return perf_counter_ns() - start


Signature: TypeAlias = "Sequence[Buffer | Var]"


def _compile(
    func: PrimFunc, signature: Signature, options: Mapping[str, bool],
    stored: Mapping[int, ArgumentStorage]
) -> Kernel:
    return Kernel(func, signature, stored=stored, **options)


class Kernel(Pictured):
    """Compiled function. Calls take the arguments in order; outputs are written in place.

    Arrays are NumPy arrays or objects that export DLPack, contiguous and in host memory; they are
    not copied. Output arrays must declare write access, which DLPack supports from version 1 on.
    All arguments are checked before any output is written. Calls are thread-safe.

    Attributes:
        name: Name of the function.
        signature: Parameters as callers see them, with one axis for each output of a layout.
        compiled: Compiled code.

    Raises:
        CallError: If a call has an invalid argument, or if a data-dependent index is out of bounds;
            memory outside the arrays is never accessed.

    >>> import tecomp
    >>> from tecomp import te
    >>> A = te.placeholder((6,), name="A")
    >>> B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
    >>> kernel = tecomp.build(te.create_schedule(B), [A, B], name="double")
    >>> kernel.name, [buffer.name for buffer in kernel.signature], kernel.outputs
    ('double', ['A', 'B'], ('B',))
    >>> dict(kernel.shapes)
    {'A': (6,), 'B': (6,)}
    >>> print(kernel.func)
    def double(A: Buffer("float32", (6,)), B: Buffer("float32", (6,))):
        for i in range(6):
            B[i] = A[i] * float32(2.0)
    >>> out = np.empty(6, "float32")
    >>> kernel(np.arange(6, dtype="float32"), out)
    >>> out
    array([ 0.,  2.,  4.,  6.,  8., 10.], dtype=float32)
    >>> kernel.compiled is not None
    True
    """

    __slots__ = (
        "_block",
        "_fast_call",
        "_head",
        "_parameters",
        "_scalars",
        "_stored",
        "compiled",
        "name",
        "signature",
    )
    _drawn_by: ClassVar[str] = "loop_nest:draw_kernel"

    def __init__(
        self,
        func: PrimFunc | CompiledFunction,
        signature: Signature | None = None,
        *,
        check_bounds: bool = False,
        fast_math: bool = False,
        fp_contract: bool = True,
        stored: Mapping[int, ArgumentStorage] = MappingProxyType({}),
    ) -> None:
        """Compile `func`, which must be flat, or wrap compiled code.

        Args:
            func: Flat function, or its compiled code.
            signature: Parameters before flattening. Default: the parameters of `func`.
            check_bounds: See `compile_function`.
            fast_math: See `compile_function`.
            fp_contract: See `compile_function`.
            stored: Layouts of parameters by position.
        """
        if isinstance(func, PrimFunc):
            # Import lazily: code from a cache does not need the emitter.
            import tecomp.codegen.emit.compile as compiler
            func = compiler.compile_function(
                func, check_bounds=check_bounds, fast_math=fast_math, fp_contract=fp_contract
            )
        assert isinstance(func, CompiledFunction)
        self.compiled: CompiledFunction = func
        self._head = head = func.interface.head
        self.name = head.name
        self.signature = tuple(signature if signature is not None else func.signature)
        written = set(func.interface.written)
        parameters: list[KernelParameter] = []
        scalars: list[tuple[int, Var, Var]] = []
        for k, (logical, physical) in enumerate(zip(self.signature, head.params, strict=True)):
            if isinstance(logical, Buffer) and isinstance(physical, Buffer):
                parameters.append(
                    make_parameter(
                        k, head.name, logical, physical, is_written=physical.data in written,
                        stored=stored.get(k),
                    )
                )
            elif isinstance(logical, Var) and isinstance(physical, Var):
                scalars.append((k, logical, physical))
        self._parameters = tuple(parameters)
        self._scalars = tuple(scalars)
        self._stored = stored
        self._fast_call: Quick | None = None
        check_findable(head, parameters)
        words = FIRST_ARGUMENT_WORD + len(head.params) + len(head.sizes)
        self._block = ctypes.c_int64 * words

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the function and options; unpickling compiles or finds the code in the cache."""
        options = asdict(self.compiled.options)
        return _compile, (self.func, self.signature, options, dict(self._stored))

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: object) -> Kernel:
        return self

    @property
    def func(self) -> PrimFunc:
        """Compiled function, with flat buffers."""
        return self.compiled.func

    @property
    def shapes(self) -> Mapping[str, tuple[Any, ...]]:
        """Shapes of the array arguments by name; symbolic extents are expressions."""
        return MappingProxyType({p.buffer.name: p.shape for p in self._parameters})

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output arrays."""
        return tuple(p.buffer.name for p in self._parameters if p.is_written)

    def source(self, kind: Literal["ir", "llvm", "asm"] = "ir") -> str:
        """Return the function as text: lowered IR, LLVM IR or assembly.

        Args:
            kind: "ir", "llvm" or "asm". Default: "ir".

        Raises:
            CallError: If `kind` is unknown.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((6,), name="A")
        >>> B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
        >>> kernel = tecomp.build(te.create_schedule(B), [A, B], name="double")
        >>> print(kernel.source())
        def double(A: Buffer("float32", (6,)), B: Buffer("float32", (6,))):
            for i in range(6):
                B[i] = A[i] * float32(2.0)
        >>> "define" in kernel.source("llvm")
        True
        """
        if kind == "ir":
            return str(self.func)
        if kind == "llvm":
            return self.compiled.llvm_ir
        if kind == "asm":
            return self.compiled.assembly()
        raise CallError(
            "source: unknown form {form!r}; supported forms: ir, llvm, asm",
            kind="unknown-choice", form=kind,
        )

    def export(
        self, path: str | PathLike[str], *, cpu: str | Sequence[str] | None = None,
        triple: str | None = None, name: str | None = None,
    ) -> None:
        """Write the kernel as a C function that needs no Python; the suffix selects the format.

        Args:
            path: Path of a .o, .a, .so, .h, .ll or .s file; an existing file is replaced.
            cpu: CPU of the code: a name of LLVM, "native", a level such as "x86-64-v3", or a list
                of levels, between which the function chooses. Default: the CPU of the kernel.
            triple: Target triple, such as "aarch64-linux-gnu". Default: this machine.
            name: Name of the function. Default: the name of the kernel.

        Raises:
            CallError: If an argument is invalid, the kernel needs Python or is for a simulated
                target, no linker is installed, or the file cannot be written.

        >>> import pathlib, tecomp, tempfile
        >>> from tecomp import te
        >>> A = te.placeholder((6,), name="A")
        >>> B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "twice.h")
        ...     tecomp.build(B, [A, B], name="twice").export(path)
        ...     print("int twice(const float *A, float *B);" in path.read_text())
        True
        """
        notes = {p.position: p.layout_note for p in self._parameters}
        load_upward("export.kernel")(self, path, notes=notes, cpu=cpu, triple=triple, name=name)

    def __repr__(self) -> str:
        described = {p.position: f"{p.buffer.name}: {p.describe()}" for p in self._parameters}
        described.update({k: f"{logical.name}: {logical.dtype}" for k, logical, _ in self._scalars})
        written = ", ".join(self.outputs) or "nothing"
        arguments = ", ".join(described[k] for k in sorted(described))
        return f"<Kernel {self.name}({arguments}), writes {written}>"

    def __call__(self, *arguments: Any, layouts: str | None = None) -> None:
        """Run the kernel.

        Args:
            arguments: Arguments in the order of `signature`.
            layouts: "physical" if arrays are in the layouts of the kernel; "logical" if arrays are
                in the shapes of the computation and must be copied to and from the layouts.
                Default: "physical".
        """
        if layouts is not None:
            self._call_in(layouts, arguments)
            return
        outcome = (self._fast_call or self._first_call())(*arguments)
        if outcome is False:
            outcome = self._run(arguments)
        if outcome is not None:
            raise self._failure(bytes(outcome))

    def _call_in(self, layouts: str, arguments: Sequence[Any]) -> None:
        if layouts == "physical":
            self(*arguments)
            return
        if layouts != "logical":
            raise CallError(
                "{name}: layouts must be 'physical' (arrays in the layouts of the kernel) or "
                "'logical' (arrays in the shapes of the computation), got {layouts!r}",
                kind="unknown-choice", name=self.name, layouts=layouts,
            )
        self._call_logical(arguments)

    def _call_logical(self, arguments: Sequence[Any]) -> None:
        """Run on arrays in logical shapes; without layouts these are the physical shapes."""
        self(*arguments)

    def timeit(self, *arguments: Any, seconds: float = 0.5) -> Timing:
        """Measure the duration of a call with these arguments, including checks.

        The kernel runs repeatedly on the same arrays: inputs are unchanged, outputs are
        overwritten, and arrays that are both read and written keep changing. Warm-up calls, which
        load code and fill caches, are not counted.

        Args:
            arguments: Arguments as for a call.
            seconds: Duration of the measurement; at least five calls are timed. Default: 0.5.

        Returns:
            Minimum and median in seconds, and the number of timed calls.

        Raises:
            CallError: If a call fails, or if `seconds` is not a positive number.

        >>> from tecomp.ir.parser.func_parser import parse
        >>> kernel = Kernel(parse('''def double(A: Buffer("float32", (4,))):
        ...     for i in range(4):
        ...         A[i] = A[i] * float32(2.0)
        ... '''))
        >>> timing = kernel.timeit(np.zeros(4, np.float32), seconds=0.01)
        >>> timing.min <= timing.median, timing.runs > 100
        (True, True)
        """
        return time_call(self, arguments, seconds)

    def _first_call(self) -> Quick:
        quick = quick_call(
            self._head, self._parameters, self._scalars, self.compiled.entry,
            is_parallel=self.compiled.interface.is_parallel,
        )
        self._fast_call = quick = quick or _decline
        return quick

    def _run(self, arguments: Sequence[Any]) -> bytes | None:
        """Check all arguments and run; return the failure record, or None."""
        if len(arguments) != len(self.signature):
            raise self._wrong_count(len(arguments))
        block = self._block()
        references = self._careful(block, arguments)
        if self.compiled.interface.is_parallel:
            use_threads()
        status = process().run(self.compiled.entry, ctypes.addressof(block))
        # The code accesses arrays and tables by address, so references are held until here.
        del references
        return bytes(block)[8 * RECORD_WORD : 8 * FIRST_ARGUMENT_WORD] if status else None

    def _careful(
        self, block: ctypes.Array[ctypes.c_int64], arguments: Sequence[Any]
    ) -> list[Any]:
        """Check all arguments and fill the block; return objects to keep alive during the call."""
        sizes = self._numbers(block, arguments)
        memories = _checked_arrays(self._parameters, arguments, sizes)
        check_bounds(self.name, sizes)
        return [*self._fill(block, memories, sizes), memories]

    def _numbers(
        self, block: ctypes.Array[ctypes.c_int64], arguments: Sequence[Any]
    ) -> dict[Var, Size]:
        """Check the scalars and store them in the block; return the sizes among them."""
        sizes: dict[Var, Size] = {}
        for k, logical, var in self._scalars:
            where = f"argument {k} ({logical.name}) of {self.name}"
            value = check_scalar(where, logical, arguments[k])
            if logical.dtype != var.dtype:
                # The code uses int64 for sizes that were declared narrower or unsigned.
                value = check_scalar(where, var, value)
            block[FIRST_ARGUMENT_WORD + k] = (
                float_bits(value, var.dtype) if isinstance(value, float) else value
            )
            if isinstance(value, int):
                sizes[var] = Size(value, f"argument {k}")
        return sizes

    def _checked(
        self, parameters: Sequence[KernelParameter], arguments: Sequence[Any]
    ) -> dict[Var, Size]:
        """Check arguments against other parameters and return the sizes of the call.

        Raises:
            CallError: If an argument is invalid.
        """
        if len(arguments) != len(self.signature):
            raise self._wrong_count(len(arguments))
        sizes = self._numbers(self._block(), arguments)
        _checked_arrays(parameters, arguments, sizes)
        check_bounds(self.name, sizes)
        return sizes

    def sizes_of(self, arguments: Sequence[Any]) -> dict[str, int]:
        """Return the values of the size variables for these arguments, by name.

        Raises:
            CallError: If the number of arguments is wrong, or if an array is invalid.

        >>> import tecomp
        >>> from tecomp import te
        >>> n = te.var("n")
        >>> A = te.placeholder((n,), name="A")
        >>> B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
        >>> kernel = tecomp.build(te.create_schedule(B), [A, B])
        >>> kernel.sizes_of([np.zeros(5, "float32"), np.zeros(5, "float32")])
        {'n': 5}
        """
        if len(arguments) != len(self.signature):
            raise self._wrong_count(len(arguments))
        sizes = {
            var: Size(int(arguments[k]), f"argument {k}") for k, _, var in self._scalars
            if isinstance(arguments[k], int | np.integer)
        }
        memories = [memory_of(p, arguments[p.position]) for p in self._parameters]
        bind_sizes(sizes, self._parameters, memories)
        return {var.name: size.value for var, size in sizes.items()}

    def _fill(
        self, block: ctypes.Array[ctypes.c_int64], memories: list[ArrayMemory],
        sizes: dict[Var, Size]
    ) -> list[Any]:
        tables = []
        for parameter, memory in zip(self._parameters, memories, strict=True):
            address = memory.address
            if parameter.physical.index_count > 1:
                table = _row_table(parameter, memory, sizes)
                tables.append(table)
                address = table.ctypes.data
            block[FIRST_ARGUMENT_WORD + parameter.position] = address
        first_size = FIRST_ARGUMENT_WORD + len(self.signature)
        for word, var in enumerate(self._head.sizes, first_size):
            block[word] = sizes[var].value
        return tables

    def _wrong_count(self, count: int) -> CallError:
        names = ", ".join(param.name for param in self.signature)
        outputs = ", ".join(self.outputs)
        note = f"; {outputs} must also be passed, to be written in place" if outputs else ""
        return CallError(
            "{name}: expected {signature_count} arguments ({names}), got {count}{note}",
            kind="argument-count", name=self.name, signature_count=len(self.signature),
            names=names, count=count, note=note,
        )

    def _failure(self, record: bytes) -> BaseException:
        kind, site, value, _ = unpack("4q", record)
        text = self.compiled.interface.sites[site]
        if kind == RAISED:
            return EXCEPTIONS.take(value) or CallError(
                "{name}: {text} failed",
                kind="out-of-memory", name=self.name, text=text,
            )
        if kind == OUT_OF_BOUNDS:
            return CallError(
                "index {value} is out of bounds for {text}",
                kind="out-of-bounds", value=value, text=text,
            )
        size = f"{value} bytes{' or more' if value == 2**63 - 1 else ''}"
        return CallError(
            "{name}: out of memory for {text}, which needs {size}; use smaller tiles, or compute "
            "it closer to where it is used",
            kind="out-of-memory", name=self.name, text=text, size=size,
        )


def _checked_arrays(
    parameters: Sequence[KernelParameter], arguments: Sequence[Any], sizes: dict[Var, Size]
) -> list[ArrayMemory]:
    """Return the checked memory of each array; sizes bound by the arrays are added to `sizes`."""
    memories = [memory_of(p, arguments[p.position]) for p in parameters]
    bind_sizes(sizes, parameters, memories)
    memories = [
        part_at_offset(p, memory, sizes) if p.buffer.has_offset else memory
        for p, memory in zip(parameters, memories, strict=True)
    ]
    for parameter, memory in zip(parameters, memories, strict=True):
        check_mark(parameter, arguments[parameter.position], sizes)
        check_shape(parameter, memory, sizes)
        check_strides(parameter, memory, sizes)
    _check_overlap(parameters, memories)
    return memories


def _decline(*_arguments: Any) -> bool:
    """Decline every call; the substitute for kernels without a fast call."""
    return False


def _row_table(
    parameter: KernelParameter, memory: ArrayMemory, sizes: Mapping[Var, Size]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the row addresses of an array, which code takes for several physical axes."""
    shape = [n if isinstance(n, int) else extent_value(n, sizes) for n in parameter.physical.shape]
    row_bytes = shape[-1] * parameter.buffer.dtype.bytes
    return memory.address + np.arange(prod(shape[:-1]), dtype=np.int64) * row_bytes


def _check_overlap(parameters: Sequence[KernelParameter], memories: Sequence[ArrayMemory]) -> None:
    """Check that no output array shares memory with another argument.

    Raises:
        CallError: If an output shares memory with another argument.
    """
    ranges = [
        (memory, *bytes_spanned(parameter, memory))
        for parameter, memory in zip(parameters, memories, strict=True)
    ]
    for parameter, (memory, low, high) in zip(parameters, ranges, strict=True):
        if not parameter.is_written:
            continue
        for other, (other_memory, start, stop) in zip(parameters, ranges, strict=True):
            overlaps = other is not parameter and low < stop and start < high and low < high
            if overlaps and not are_interleaved(parameter, memory, other, other_memory):
                raise CallError(
                    "{where}: the argument is written to and shares memory with argument "
                    "{position} ({buffer}); pass a copy of one of them",
                    kind="unsupported-memory", where=parameter.where, position=other.position,
                    buffer=other.buffer.name,
                )


@dataclass(frozen=True, slots=True)
class SequenceCode:
    """Machine code of kernels that run in sequence, as one function.

    Attributes:
        interface: Call interface of the function.
        params: Array parameters with their shapes in the program.
        images: Object code of the distinct kernels, followed by the function that calls them.
        has_places: Whether run-time errors can report the source location in user code.
    """

    interface: KernelInterface
    params: tuple[Buffer, ...]
    images: tuple[bytes, ...]
    has_places: bool

    def linked(self) -> Kernel:
        """Link the code, and return a callable kernel."""
        head = self.interface.head
        code = link(self.images, self.interface.entry, bind(self.interface.calls))
        return Kernel(CompiledFunction(self.interface, code, Options(), lambda: head), self.params)
