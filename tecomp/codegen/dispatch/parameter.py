"""Array parameters and their per-call checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tecomp.codegen.dispatch.array_interop import Access, ArrayMemory, read_dlpack
from tecomp.errors import CallError
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr, Var, integer_range
from tecomp.ir.nodes.stmt import Buffer
from tecomp.layout.formats.layout_tags import LayoutTag

Shape: TypeAlias = "tuple[int | Expr, ...]"


@dataclass(frozen=True, slots=True)
class ArgumentStorage:
    """Layout of an argument.

    Attributes:
        mark: Layout tag of arrays in this layout.
        shape: Logical shape, if the layout moves elements; else None.
    """

    mark: LayoutTag
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """Array parameter of a kernel.

    Attributes:
        position: Position among the arguments, from 0.
        kernel: Name of the function.
        scalar: Dtype of one lane.
        buffer: Buffer as passed by the caller, with one axis for each output of its layout.
        physical: Flat buffer as accessed by the code, with one axis for each physical axis.
        is_written: Whether the kernel writes to the array.
        numpy: NumPy dtype of an element.
        shape: Shape of the array; the lanes of a vector dtype are an additional last axis.
        flat: Physical shape of the array, which is also accepted.
        strides: Strides in scalars; () for a contiguous array.
        fixed: `shape` if it is constant, else None.
        mark: Layout tag of accepted arrays; None accepts any tag.
        logical: Logical shape, if the parameter has a layout.
    """

    position: int
    kernel: str
    scalar: DType
    buffer: Buffer
    physical: Buffer
    is_written: bool
    numpy: np.dtype[np.generic]
    shape: Shape
    flat: Shape
    strides: Shape
    fixed: tuple[int, ...] | None
    mark: LayoutTag | None = None
    logical: Shape | None = None

    @property
    def where(self) -> str:
        """Description of the parameter in error messages."""
        return f"argument {self.position} ({self.buffer.name}) of {self.kernel}"

    @property
    def layout_note(self) -> str:
        """Layout and logical shape in the comments of C headers; empty without a layout."""
        if self.logical is None or self.mark is None:
            return ""
        return f"layout {self.mark.formula} of {array_text(str(self.scalar), self.logical)}"

    def describe(self) -> str:
        """Return dtype, shape and offset, as in `float32[n, 4]`."""
        text = array_text(str(self.scalar), self.shape)
        start = self.buffer.elem_offset
        return f"{text} at element {start} of an array" if self.buffer.has_offset else text


def make_parameter(
    position: int,
    kernel: str,
    buffer: Buffer,
    physical: Buffer,
    *,
    is_written: bool,
    stored: ArgumentStorage | None = None,
) -> KernelParameter:
    """Return the parameter for `buffer`, which the code accesses as `physical`."""
    lanes = () if buffer.dtype.lanes == 1 else (buffer.dtype.lanes,)
    shape = (*buffer.shape, *lanes)
    known = tuple([extent for extent in shape if isinstance(extent, int)])
    return KernelParameter(
        position,
        kernel,
        buffer.dtype.scalar,
        buffer,
        physical,
        is_written,
        buffer.dtype.numpy,
        shape,
        (*physical.shape, *lanes),
        _strides_of(buffer, lanes),
        known if len(known) == len(shape) else None,
        None if stored is None else stored.mark,
        None if stored is None else stored.shape,
    )


def _strides_of(buffer: Buffer, lanes: Sequence[int]) -> Shape:
    strides = buffer.strides or ()
    if not lanes or buffer.strides is None:
        return strides
    return (*(n * lanes[0] for n in strides), 1)


def array_text(dtype: str, shape: Sequence[int | Expr]) -> str:
    """Return dtype and shape of an array as text.

    >>> array_text("float32", (4, 8))
    'float32[4, 8]'
    """
    return f"{dtype}[{', '.join(str(extent) for extent in shape)}]"


def memory_of(parameter: KernelParameter, argument: Any) -> ArrayMemory:
    """Return the memory of an array argument after checking its dtype, strides and access.

    Raises:
        CallError: If the argument is not an array of the expected dtype, is not contiguous although
            the parameter declares no strides, is misaligned, or is an output without write access.
    """
    if isinstance(argument, np.ndarray):
        memory = _numpy_memory(parameter, argument)
    elif hasattr(argument, "__dlpack__") and not isinstance(argument, np.generic):
        memory = read_dlpack(parameter.where, argument)
    else:
        raise _no_array(parameter, argument)
    _check_memory(parameter, memory)
    return memory


def _numpy_memory(parameter: KernelParameter, array: np.ndarray[Any, Any]) -> ArrayMemory:
    dtype = array.dtype
    same_dtype = dtype == parameter.numpy
    if not same_dtype and not dtype.isnative:
        raise CallError(
            "{where}: expected native byte order of {scalar}, got {str}; convert it with "
            ".astype({parameter_scalar})",
            kind="unsupported-memory", where=parameter.where, scalar=parameter.scalar,
            str=dtype.str,
            parameter_scalar=_numpy_name(parameter.scalar),
        )
    strides = None
    if not array.flags.c_contiguous:
        if parameter.strides and same_dtype:
            _check_whole_steps(parameter, array)
        # The item size of a structured dtype need not divide its strides.
        strides = tuple(step // max(dtype.itemsize, 1) for step in array.strides)
    address = array.__array_interface__["data"][0]
    # The name of a NumPy dtype takes longer to compute than all other steps.
    name = str(parameter.scalar) if same_dtype else dtype.name
    access: Access = "writable" if array.flags.writeable else "read-only"
    return ArrayMemory(address, name, array.shape, strides, access, array)


def _check_whole_steps(parameter: KernelParameter, array: np.ndarray[Any, Any]) -> None:
    size = array.dtype.itemsize
    for axis, (extent, step) in enumerate(zip(array.shape, array.strides, strict=True)):
        if step % size and extent > 1 and array.size:
            raise CallError(
                "{where}: the stride of axis {axis} is {step} bytes, which is not a multiple of "
                "the {size} bytes of {scalar}; pass a copy of the array",
                kind="unsupported-memory", where=parameter.where, axis=axis, step=step, size=size,
                scalar=parameter.scalar,
            )


def _no_array(parameter: KernelParameter, argument: Any) -> CallError:
    got = "None" if argument is None else type(argument).__name__
    advice = "convert it with np.asarray(...)"
    if parameter.is_written:
        name = _numpy_name(parameter.scalar)
        shape = "shape" if parameter.fixed is None else parameter.fixed
        advice = f"pass np.empty({shape}, {name}) for the output"
    elif argument is None:
        advice = "pass the array that the kernel reads"
    return CallError(
        "{where}: expected an array of {parameter}, got {got}; {advice}",
        kind="argument-mismatch", where=parameter.where, parameter=parameter.describe(), got=got,
        advice=advice,
    )


def _numpy_name(dtype: DType) -> str:
    if dtype.is_bool:
        return "np.bool_"
    return f"{dtype.numpy_module}.{dtype}"


def _check_memory(parameter: KernelParameter, memory: ArrayMemory) -> None:
    scalar = parameter.scalar
    if memory.dtype != scalar:
        raise CallError(
            "{where}: expected {parameter}, got {shape}; convert it with .astype({scalar})",
            kind="argument-mismatch", where=parameter.where, parameter=parameter.describe(),
            shape=array_text(memory.dtype, memory.shape), scalar=_numpy_name(scalar),
        )
    if parameter.is_written and memory.access != "writable":
        raise _not_writable(parameter, memory)
    if parameter.buffer.strides is None and not _is_compact(memory.shape, memory.strides):
        remedy = "pass np.ascontiguousarray(...) of it"
        if parameter.is_written:
            remedy = "pass a new array, and copy the result from it"
        raise CallError(
            "{where}: expected contiguous row-major {parameter}, got strides of {strides} "
            "elements; {remedy}",
            kind="unsupported-memory", where=parameter.where, parameter=parameter.describe(),
            strides=memory.strides, remedy=remedy,
        )
    if memory.address % scalar.bytes and prod(memory.shape):
        raise CallError(
            "{where}: the address {address:#x} of its first element is not a multiple of the "
            "{bytes} bytes of {scalar}; pass a copy of the array",
            kind="unsupported-memory", where=parameter.where, address=memory.address,
            bytes=scalar.bytes, scalar=scalar,
        )


def _not_writable(parameter: KernelParameter, memory: ArrayMemory) -> CallError:
    reason = {
        "read-only": "the array is read-only",
        "a copy": "its __dlpack__ shares a copy, in which the result would be lost",
    }.get(memory.access, "its __dlpack__ does not say whether that is allowed")
    advice = "pass a copy of it"
    if not isinstance(memory.owner, np.ndarray):
        new = f"np.empty({memory.shape}, {_numpy_name(parameter.scalar)})"
        advice = f"pass {new} or a PyTorch tensor, and create the other array from it"
    return CallError(
        "{where}: the argument is written to, but {reason}; {advice}",
        kind="unsupported-memory", where=parameter.where, reason=reason, advice=advice,
    )


def compact_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous row-major array, in elements."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _is_compact(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    if strides is None or 0 in shape:
        return True
    # The stride of an axis of size 1 is irrelevant.
    dims = zip(shape, strides, compact_strides(shape), strict=True)
    return all(extent == 1 or step == expected for extent, step, expected in dims)


def check_scalar(where: str, var: Var, argument: Any) -> int | float:
    """Return the number passed for a scalar parameter.

    Raises:
        CallError: If the argument is not a number of the required kind or is out of range.
    """
    dtype = var.dtype
    if isinstance(argument, np.generic) and not isinstance(argument, np.number | np.bool_):
        argument = argument.item()  # scalars of ml_dtypes have no class of numbers
    if dtype.is_float:
        if isinstance(argument, bool | np.bool_) or not isinstance(
            argument, int | float | np.integer | np.floating
        ):
            raise _no_number(where, dtype, argument, "number")
        return float(argument)
    if dtype.is_bool:
        if not isinstance(argument, bool | np.bool_):
            raise _no_number(where, dtype, argument, "truth value")
        return int(argument)
    if isinstance(argument, bool | np.bool_) or not isinstance(argument, int | np.integer):
        raise _no_number(where, dtype, argument, "integer")
    value = int(argument)
    low, high = integer_range(dtype)
    if not low <= value <= high:
        raise CallError(
            "{where}: {value} is out of range for {dtype} ({low} to {high}); declare the variable "
            "with a wider dtype",
            kind="argument-mismatch", where=where, value=value, dtype=dtype, low=low, high=high,
        )
    return value


def _no_number(where: str, dtype: DType, argument: Any, noun: str) -> CallError:
    article = "an" if noun == "integer" else "a"
    shown = repr(argument) if isinstance(argument, float | np.floating | str) else (
        "None" if argument is None else type(argument).__name__)
    return CallError(
        "{where}: expected {article} {noun} ({dtype}), got {shown}; pass a Python or NumPy {noun}",
        kind="argument-mismatch", where=where, article=article, noun=noun, dtype=dtype, shown=shown,
    )
