"""Read arguments through DLPack; arrays tagged with a layout."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from tecomp.errors import CallError
from tecomp.layout.addressing.layout_tags import Mark, agree

_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_READ_ONLY, _IS_COPY = 1, 2
# Memory that the processor can reach: its own, and pinned for a CUDA or ROCm device.
_HOST_DEVICES = (1, 3, 11)


Access: TypeAlias = Literal["writable", "read-only", "a copy", "unknown"]
"""What the owner says about writing to the memory; a capsule from before DLPack 1 is silent."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of an array.

    Attributes:
        address: of the first element.
        dtype: name of the element type.
        shape: extents.
        strides: elements from one index of an axis to the next; None where compact.
        access: whether it may be written to, and its owner will see it.
        owner: what keeps it alive.
    """

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    access: Access
    owner: Any


def read_dlpack(where: str, array: Any) -> Memory:
    """The memory of any object that exports DLPack; `where` names it in messages.

    The capsule is left to its destructor: nothing is taken over, and the memory is free for its
    owner again when the result is dropped.

    Raises:
        CallError: the memory is not the processor's, its owner does not share it, or it holds
            other numbers than the array.
    """
    if _is_negated(array):
        raise CallError(
            f"{where}: PyTorch has negated it without changing its memory; pass .resolve_neg() of "
            "it",
            kind="memory-of-array",
        )
    capsule = _capsule(where, array)
    tensor, access = _tensor(where, capsule)
    if access == "unknown" and _is_writable(array):
        access = "writable"
    if tensor.device_type not in _HOST_DEVICES:
        raise CallError(
            f"{where}: expected an array in the memory of the processor, got one on device "
            f"{tensor.device_type}:{tensor.device_id}; copy it to the host first",
            kind="memory-of-array",
        )
    axes = range(tensor.ndim)
    shape = tuple(tensor.shape[k] for k in axes)
    strides = tuple(tensor.strides[k] for k in axes) if tensor.strides else None
    kind = _CODES.get(tensor.code)
    dtype = "bool" if kind == "bool" else f"{kind or f'type {tensor.code}:'}{tensor.bits}"
    if tensor.lanes != 1:
        dtype += f"x{tensor.lanes}"
    address = (tensor.data or 0) + tensor.byte_offset
    return Memory(address, dtype, shape, strides, access, capsule)


def _is_writable(array: Any) -> bool:
    """Whether an array of no version of DLPack says elsewhere that it may be written to."""
    if _torch_of(array) is not None:
        return True  # there are no others
    try:
        return not memoryview(array).readonly
    except (BufferError, TypeError, ValueError):
        return False


def _is_negated(array: Any) -> bool:
    """Whether PyTorch would negate what is in memory when it reads it: DLPack cannot say that."""
    torch = _torch_of(array)
    return torch is not None and bool(torch.is_neg(array))


def _torch_of(array: Any) -> Any:
    """PyTorch, if it is loaded and the array is one of its tensors."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else None


def _capsule(where: str, array: Any) -> object:
    try:
        try:
            return array.__dlpack__(max_version=(1, 0))
        except TypeError:
            # Exporters from before version 1 do not know the argument.
            return array.__dlpack__()
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise CallError(
            f"{where}: its memory cannot be shared ({error}); pass it as an array that owns "
            "plain memory",
            kind="memory-of-array",
        ) from error


def _tensor(where: str, capsule: object) -> tuple[_Tensor, Access]:
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_IsValid", ctypes.pythonapi)
    )
    if valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
        if versioned.flags & _IS_COPY:
            return versioned.tensor, "a copy"
        return versioned.tensor, "read-only" if versioned.flags & _READ_ONLY else "writable"
    if valid(capsule, b"dltensor"):
        return _Tensor.from_address(pointer(capsule, b"dltensor")), "unknown"
    raise CallError(
        f"{where}: __dlpack__ gave {type(capsule).__name__}, which is no DLPack capsule or a used "
        "one; pass an array whose __dlpack__ makes a new capsule at each call",
        kind="memory-of-array",
    )


Array: TypeAlias = np.ndarray[Any, Any]


def is_in_layout(
    array: Any, wanted: Mark, shape: tuple[int, ...], stored: tuple[int, ...]
) -> bool:
    """Whether an array may be in a layout: it has no mark, or one that says the same.

    An argument without a layout takes any array of its shape that is no tensor of this shape in
    another layout: the program may be about places instead of elements.

    Args:
        array: what is passed.
        wanted: the layout.
        shape: of the tensor.
        stored: of arrays in the layout.
    """
    found = mark_of(array)
    return found is None or found.formula == wanted.formula or agree(
        found, tuple(array.shape), wanted, shape, stored
    )


class PackedArray(np.ndarray[Any, Any]):
    """An array that `mark_of` knows the layout of; it looks and counts as a plain one."""

    __slots__ = ("_mark",)

    _mark: Mark

    def __repr__(self) -> str:
        return repr(np.asarray(self))


SLOT = np.ndarray.__basicsize__
"""Where the mark of an array is: after all that NumPy keeps."""


def as_array(given: Any, where: str) -> np.ndarray[Any, Any]:
    """What a caller gave as an array of NumPy.

    Raises:
        CallError: NumPy makes none of it.
    """
    try:
        return np.asarray(given)
    except (ValueError, OverflowError, RecursionError) as error:
        raise CallError(
            f"{where}: the array is a {type(given).__name__} of which NumPy makes no array; pass "
            "lists whose parts have equal lengths, or an array",
            kind="other-array",
        ) from error


def mark_of(array: object) -> Mark | None:
    """The layout that an array is known to be in."""
    return getattr(array, "_mark", None) if isinstance(array, PackedArray) else None


def empty(shape: tuple[int, ...], dtype: Any, layout: Mark) -> Array:
    """A new array in a layout, contents undefined."""
    made = PackedArray(shape, dtype)
    made._mark = layout
    return made


def marked(array: Array, layout: Mark) -> Array:
    """The same memory, known to be in a layout."""
    seen = array.view(PackedArray)
    seen._mark = layout
    return seen
