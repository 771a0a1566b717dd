"""`Kernel`: compiled code that Python calls with arrays, after everything about them is checked."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from tecomp.codegen.check import OUT_OF_BOUNDS
from tecomp.codegen.compile import Compiled, compile_function
from tecomp.codegen.dlpack import Memory
from tecomp.codegen.function import FIRST_ARGUMENT_WORD, RECORD_WORD, written_params
from tecomp.codegen.parameter import Parameter, Shape, check_scalar, make_parameter, memory_of
from tecomp.codegen.sizes import (
    Size,
    bind_sizes,
    bytes_spanned,
    check_findable,
    check_shape,
    check_strides,
    extent_value,
)
from tecomp.codegen.types import float_bits
from tecomp.errors import CallError
from tecomp.ir.expr import Var
from tecomp.ir.stmt import Buffer, PrimFunc

Signature: TypeAlias = "Sequence[Buffer | Var]"
_Plain: TypeAlias = "tuple[np.dtype[np.generic], tuple[int, ...] | None, Shape, bool]"


class Kernel:
    """A compiled function. Call it with its arguments in order; outputs are written in place.

    Arrays are NumPy arrays or anything that exports DLPack, compact and in the memory of the
    processor; they are not copied. All arguments are checked before anything is written. Calls
    from several threads at once are safe.

    Attributes:
        name: of the function.
        func: what was compiled: buffers have one axis for each index of an address.
        signature: the parameters as callers see them, one axis for each output of a layout.
        compiled: the code.

    Raises:
        CallError: when called with an argument that does not fit, or if an index that was
            computed from data leaves its axis; nothing outside of the arrays is touched then.
    """

    __slots__ = (
        "_block", "_parameters", "_plain", "_scalars", "_written", "compiled", "func", "name",
        "signature",
    )

    def __init__(
        self,
        func: PrimFunc,
        signature: Signature | None = None,
        *,
        check_bounds: bool = False,
        fast_math: bool = False,
        fp_contract: bool = True,
    ) -> None:
        """Compile `func`, which is flat; `signature` is its parameters before flattening."""
        self.name = func.name
        self.func = func
        self.signature = tuple(signature if signature is not None else func.params)
        written = written_params(func)
        parameters: list[Parameter] = []
        scalars: list[tuple[int, Var, Var]] = []
        for k, (seen, physical) in enumerate(zip(self.signature, func.params, strict=True)):
            if isinstance(seen, Buffer) and isinstance(physical, Buffer):
                parameters.append(
                    make_parameter(
                        k, func.name, seen, physical, is_written=physical.data in written
                    )
                )
            elif isinstance(seen, Var) and isinstance(physical, Var):
                scalars.append((k, seen, physical))
        self._parameters = tuple(parameters)
        self._scalars = tuple(scalars)
        self._plain = _plain_parameters(parameters) if not scalars else ()
        self._written = tuple(p.position for p in parameters if p.is_written)
        check_findable(func, parameters)
        words = FIRST_ARGUMENT_WORD + len(func.params) + len(func.sizes)
        self._block = ctypes.c_int64 * words
        self.compiled: Compiled = compile_function(
            func, check_bounds=check_bounds, fast_math=fast_math, fp_contract=fp_contract
        )

    @property
    def shapes(self) -> Mapping[str, tuple[Any, ...]]:
        """The shape that each array is passed in, by name; symbolic extents are expressions."""
        return MappingProxyType({p.buffer.name: p.shape for p in self._parameters})

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the arrays that are written to."""
        return tuple(p.buffer.name for p in self._parameters if p.is_written)

    def source(self, kind: Literal["ir", "llvm", "asm"] = "ir") -> str:
        """The function as text: its lowered IR, its LLVM IR, or its machine code.

        Raises:
            CallError: there is no such form.
        """
        if kind == "ir":
            return str(self.func)
        if kind == "llvm":
            return self.compiled.llvm_ir
        if kind == "asm":
            return self.compiled.assembly()
        raise CallError(f"source: {kind!r} is no form of a kernel; the forms are ir, llvm, asm")

    def __repr__(self) -> str:
        described = {p.position: f"{p.buffer.name}: {p.describe()}" for p in self._parameters}
        described.update({k: f"{seen.name}: {seen.dtype}" for k, seen, _ in self._scalars})
        written = ", ".join(self.outputs) or "nothing"
        arguments = ", ".join(described[k] for k in sorted(described))
        return f"<Kernel {self.name}({arguments}), writes {written}>"

    def __call__(self, *arguments: Any) -> None:
        """Run on these arguments."""
        if len(arguments) != len(self.signature):
            raise self._wrong_count(len(arguments))
        block = self._block()
        tables = None if self._quick(block, arguments) else self._careful(block, arguments)
        block[0] = thread_count() if self.compiled.module.is_parallel else 1
        status = self.compiled.entry(ctypes.addressof(block))
        # The code reads tables through addresses, which keep nothing alive.
        del tables
        if status:
            raise self._failure(block)

    def _quick(self, block: ctypes.Array[ctypes.c_int64], arguments: Sequence[Any]) -> bool:
        """Fill the block if all arguments are the plainest that fit; a few microseconds."""
        if not self._plain:
            return False
        spans: list[tuple[int, int]] = []
        sizes: dict[Var, int] = {}
        for array, (numpy, fixed, shape, is_written) in zip(arguments, self._plain, strict=True):
            if type(array) is not np.ndarray or array.dtype != numpy:
                return False
            if fixed != array.shape and (fixed or not _agrees(shape, array.shape, sizes)):
                return False
            flags = array.flags
            if not (flags.carray if is_written else flags.c_contiguous and flags.aligned):
                return False
            address = array.__array_interface__["data"][0]
            block[FIRST_ARGUMENT_WORD + len(spans)] = address
            spans.append((address, address + array.nbytes))
        for position in self._written:
            low, high = spans[position]
            for other, (start, stop) in enumerate(spans):
                if low < stop and start < high and other != position:
                    return False
        for word, var in enumerate(self.func.sizes, FIRST_ARGUMENT_WORD + len(spans)):
            block[word] = sizes[var]
        return True

    def _careful(
        self, block: ctypes.Array[ctypes.c_int64], arguments: Sequence[Any]
    ) -> list[Any]:
        """Check everything and fill the block; returns what must live as long as the call."""
        sizes: dict[Var, Size] = {}
        for k, seen, var in self._scalars:
            where = f"argument {k} ({seen.name}) of {self.name}"
            value = check_scalar(where, seen, arguments[k])
            if seen.dtype != var.dtype:
                # Code computes with 64 bits what was declared with fewer, or without a sign.
                value = check_scalar(where, var, value)
            block[FIRST_ARGUMENT_WORD + k] = (
                float_bits(value, var.dtype) if isinstance(value, float) else value
            )
            if isinstance(value, int):
                sizes[var] = Size(value, f"argument {k}")
        memories = [memory_of(p, arguments[p.position]) for p in self._parameters]
        bind_sizes(sizes, self._parameters, memories)
        for parameter, memory in zip(self._parameters, memories, strict=True):
            check_shape(parameter, memory, sizes)
            check_strides(parameter, memory, sizes)
        _check_overlap(self._parameters, memories)
        return [*self._fill(block, memories, sizes), memories]

    def _fill(
        self, block: ctypes.Array[ctypes.c_int64], memories: list[Memory], sizes: dict[Var, Size]
    ) -> list[Any]:
        tables = []
        for parameter, memory in zip(self._parameters, memories, strict=True):
            address = memory.address
            if len(parameter.physical.shape) > 1:
                table = _row_table(parameter, memory, sizes)
                tables.append(table)
                address = table.ctypes.data
            block[FIRST_ARGUMENT_WORD + parameter.position] = address
        first_size = FIRST_ARGUMENT_WORD + len(self.signature)
        for word, var in enumerate(self.func.sizes, first_size):
            block[word] = sizes[var].value
        return tables

    def _wrong_count(self, count: int) -> CallError:
        names = ", ".join(param.name for param in self.signature)
        outputs = ", ".join(self.outputs)
        note = f"; {outputs} is passed as well, and written in place" if outputs else ""
        return CallError(
            f"{self.name}: expected {len(self.signature)} arguments ({names}), got {count}{note}"
        )

    def _failure(self, block: ctypes.Array[ctypes.c_int64]) -> CallError:
        kind, site, value = (block[RECORD_WORD + k] for k in range(3))
        text = self.compiled.module.sites[site]
        if kind == OUT_OF_BOUNDS:
            return CallError(f"index {value} is out of bounds for {text}")
        return CallError(
            f"{self.name}: there is no memory for {text}, which takes {value} bytes; use smaller "
            "tiles, or compute it closer to where it is used"
        )


def _plain_parameters(parameters: Sequence[Parameter]) -> tuple[_Plain, ...]:
    """What the quick path compares, if it can serve the kernel at all; else nothing."""
    if any(
        p.buffer.strides is not None
        or len(p.physical.shape) > 1
        or any(not isinstance(extent, int | Var) for extent in p.shape)
        for p in parameters
    ):
        return ()
    return tuple((p.numpy, p.fixed, p.shape, p.is_written) for p in parameters)


def _agrees(shape: Shape, got: tuple[int, ...], sizes: dict[Var, int]) -> bool:
    """Whether an array fits a shape of sizes, the first use of which gives them their values."""
    if len(shape) != len(got):
        return False
    for extent, actual in zip(shape, got, strict=True):
        wanted = sizes.setdefault(extent, actual) if isinstance(extent, Var) else extent
        if wanted != actual:
            return False
    return True


def thread_count() -> int:
    """How many threads a parallel loop may use: TECOMP_NUM_THREADS, else one for each processor.

    Raises:
        CallError: the variable is no positive number.
    """
    text = os.environ.get("TECOMP_NUM_THREADS", "")
    if not text:
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:
            # Not every system restricts processes to some processors.
            return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise CallError(
            f"TECOMP_NUM_THREADS: expected a positive number of threads, got {text!r}; unset it "
            "to use every processor"
        )
    return min(int(text), 1024)


def _row_table(
    parameter: Parameter, memory: Memory, sizes: Mapping[Var, Size]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Addresses of the rows of an array: what the code takes for several physical axes."""
    shape = [n if isinstance(n, int) else extent_value(n, sizes) for n in parameter.physical.shape]
    row_bytes = shape[-1] * parameter.buffer.dtype.bytes
    return memory.address + np.arange(prod(shape[:-1]), dtype=np.int64) * row_bytes


def _check_overlap(parameters: Sequence[Parameter], memories: Sequence[Memory]) -> None:
    """No array that is written to shares memory with another.

    Raises:
        CallError: one does.
    """
    ranges = [
        (memory.address, memory.address + bytes_spanned(parameter, memory))
        for parameter, memory in zip(parameters, memories, strict=True)
    ]
    for parameter, (low, high) in zip(parameters, ranges, strict=True):
        if not parameter.is_written:
            continue
        for other, (start, stop) in zip(parameters, ranges, strict=True):
            if other is not parameter and low < stop and start < high and low < high:
                raise CallError(
                    f"{parameter.where}: it is written to, and shares memory with argument "
                    f"{other.position} ({other.buffer.name}); pass a copy of one of them"
                )
