"""Import from Python numbers, sequences, buffers, DLPack and other array libraries."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, empty, materialized_node, record
from tecomp.array.indexing.setitem import borrow, copy_as_stored, is_constant
from tecomp.array.validation import MAX_AXES, dtype_name
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operations.elementwise import CastOp
from tecomp.ptensor.types import ALL, PTensorType, numpy_dtype

MAX_NUMBERS = 2**32
"""Maximum number of elements in nested sequences, each of which is a Python object."""


class _Memory(NamedTuple):
    """Elements of a foreign object.

    Attributes:
        data: Elements.
        is_constant: Whether the memory cannot be written through any known reference.
    """

    data: Buffer
    is_constant: bool


def as_node(
    obj: Any, dtype: str | None, device: str, copy: bool | None, where: str, *,
    is_read_now: bool = False,
) -> Node:
    """Return the node of an object that is not an array of this namespace.

    Args:
        obj: Numbers, nested sequences of numbers, or an object with elements in memory.
        dtype: dtype of the array. Default: the dtype of the elements.
        device: Device of the array.
        copy: True to copy the elements, False to borrow the memory of `obj`, None to copy memory
            that can be written and to borrow constant memory.
        where: Function name for error messages.
        is_read_now: If True, the caller reads all elements before it returns to user code, so
            writable memory can be borrowed too.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If `copy` is False and a copy is necessary, or rows differ in length.
    """
    shared = _memory_of(obj, where)
    if shared is None:
        if copy is False:
            raise ArrayValueError(
                "{where}: copy=False is not possible, because {type} does not expose memory that "
                "can be shared; pass copy=None",
                kind="copy-needed", where=where, type=type(obj).__name__,
            )
        data = _gather(obj, dtype, where)
        return materialized_node(
            data, PTensorType(data.shape, dtype_name(data.dtype, where), device)
        )
    borrows = copy is False or (copy is None and (is_read_now or shared.is_constant))
    return _node_of_memory(shared.data, dtype, device, copy, borrows, where)


def is_of_numbers(obj: Any) -> bool:
    """Return whether an object consists of Python numbers, which are weakly typed."""
    return isinstance(obj, bool | int | float | complex | list | tuple) and not isinstance(
        obj, np.generic
    )


def _memory_of(obj: Any, where: str) -> _Memory | None:
    """Return the memory of an object; None for numbers and sequences."""
    if isinstance(obj, np.ndarray):
        return _Memory(obj, is_constant(obj))
    if isinstance(obj, bool | int | float | complex | list | tuple | np.generic | str):
        return None
    if _has_protocol(obj, "__dlpack__", where):
        return _memory_from_dlpack(obj, where)
    if _has_protocol(obj, "__array_interface__", where) or _has_protocol(obj, "__array__", where):
        try:
            data = np.asarray(obj)
        except Exception as error:  # foreign code can raise anything
            raise _has_no_protocol(obj, "NumPy", error, where) from error
        return _Memory(data, is_constant(data))
    try:
        data = np.asarray(memoryview(obj))
    except TypeError:
        return None
    return _Memory(data, is_constant(data))


def _has_protocol(obj: Any, name: str, where: str) -> bool:
    try:
        return hasattr(obj, name)
    except Exception as error:
        raise _has_no_protocol(obj, name, error, where) from error


def _has_no_protocol(obj: Any, protocol: str, error: Exception, where: str) -> ArrayValueError:
    return ArrayValueError(
        "{where}: {subject} does not provide host-readable elements of {type} ({reason}); convert "
        "it to a host array with its own library first",
        where=where, subject=protocol, type=type(obj).__name__, reason=error,
    )


class _Exporter:
    """DLPack exporter that records whether its capsule is versioned.

    Only versioned capsules distinguish read-only memory from writable memory; NumPy marks all other
    memory as read-only.
    """

    def __init__(self, source: Any) -> None:
        self.source = source
        self.is_versioned = False

    def __dlpack__(self, **kwargs: Any) -> Any:
        capsule = self.source.__dlpack__(**kwargs)
        self.is_versioned = "dltensor_versioned" in repr(capsule)
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.source.__dlpack_device__()


def _memory_from_dlpack(obj: Any, where: str) -> _Memory:
    """Return the memory of an object that exports it by DLPack.

    Raises:
        ArrayValueError: If the CPU or NumPy cannot read the memory.
    """
    exporter = _Exporter(obj)
    try:
        data = np.from_dlpack(exporter)
    except Exception as error:
        raise _has_no_protocol(obj, "DLPack", error, where) from None
    return _Memory(data, exporter.is_versioned and not data.flags.writeable)


def _node_of_memory(
    shared: Buffer, dtype: str | None, device: str, copy: bool | None, borrows: bool, where: str
) -> Node:
    source_dtype = dtype_name(shared.dtype.newbyteorder("="), where)
    is_usable = (
        shared.dtype.isnative and shared.flags.aligned
        and not any(stride % shared.itemsize for stride in shared.strides)
    )
    if copy is False and not (is_usable and dtype in (None, source_dtype)):
        raise ArrayValueError(
            "{where}: copy=False is not possible, because converting elements of dtype {dtype} "
            "with strides {strides} to {expected_dtype} requires a copy; pass copy=None",
            kind="copy-needed", where=where, dtype=shared.dtype, strides=shared.strides,
            expected_dtype=dtype or source_dtype,
        )
    ptype = PTensorType(shared.shape, source_dtype, device)
    name = dtype or source_dtype
    if is_usable and (borrows or (name != source_dtype and not copy)):
        node = materialized_node(borrow(shared), ptype)
    elif is_usable and copy is None:
        node = materialized_node(copy_as_stored(shared), ptype)
    else:
        data = empty(ptype)
        data[...] = shared
        node = materialized_node(data, ptype)
    if name == source_dtype:
        return node
    # The conversion is evaluated here, because the owner of the memory can write it afterwards.
    result = record(CastOp(name), node)
    data_of(result)
    return result


def _gather(obj: Any, dtype: str | None, where: str) -> Buffer:
    """Return numbers and sequences as a new array."""
    _check_extents(obj, where)
    try:
        with np.errstate(over="ignore"):  # a float32 of 1e300 is inf
            data = np.array(obj, None if dtype is None else numpy_dtype(dtype), order="C")
    except OverflowError as error:
        raise ArrayValueError(
            "{where}: {reason}; pass another dtype",
            where=where, reason=error,
        ) from None
    except MemoryError:
        raise ArrayValueError(
            "{where}: not enough memory for the elements of {type}; pass fewer elements",
            where=where, type=type(obj).__name__,
        ) from None
    except (TypeError, ValueError) as error:
        if dtype is not None and (natural := _gather(obj, None, where)).dtype.name != dtype:
            raise ArrayValueError(
                "{where}: cannot convert all elements of dtype {dtype} to {expected_dtype} "
                "({reason}); pass another dtype",
                where=where, dtype=natural.dtype, expected_dtype=dtype, reason=error,
            ) from None
        raise ArrayValueError(
            "{where}: sequences are ragged or contain elements that are not numbers; pass nested "
            "sequences of numbers with equal lengths",
            kind="array-shapes", where=where,
        ) from None
    if data.dtype.name not in ALL:
        raise ArrayTypeError(
            "{where}: {type} converts to unsupported dtype {dtype}; pass numbers, nested "
            "sequences of numbers, or an object that exports array memory",
            where=where, type=type(obj).__name__, dtype=data.dtype,
        )
    return data


def _check_extents(obj: Any, where: str) -> None:
    """Reject sequences of unbounded nesting, such as a list that contains itself.

    NumPy visits all elements, including repeated references to one sequence. The extents are read
    from the first element at each depth.
    """
    extents: list[int] = []
    while (count := _length(obj)) is not None:
        extents.append(count)
        if prod(extents) > MAX_NUMBERS or len(extents) > MAX_AXES:
            raise ArrayValueError(
                "{where}: nested sequences have shape {extents}, which exceeds the maximum of "
                "{most_axes} axes and {most_numbers} elements; pass a smaller sequence that does "
                "not contain itself",
                where=where, extents=_format_object(extents), most_axes=MAX_AXES,
                most_numbers=MAX_NUMBERS,
            )
        if not count:
            return
        try:
            obj = obj[0]
        except Exception:  # foreign code: NumPy finds no elements either
            return


def _length(obj: Any) -> int | None:
    """Return the length of a sequence; None for other objects."""
    if isinstance(obj, str | bytes | dict | np.generic) or hasattr(obj, "__array__"):
        return None
    try:
        return len(obj) if hasattr(obj, "__getitem__") else None
    except Exception:  # foreign code can raise anything
        return None


def _format_object(extents: list[int]) -> str:
    text = ", ".join(map(str, extents[:4]))
    return f"({text}, ...)" if len(extents) > 4 else f"({text})"
