"""Array interoperability: import through DLPack, and NumPy arrays tagged with a layout."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from tecomp.errors import CallError
from tecomp.layout.formats.layout_tags import LayoutTag, compatible_tags

_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_MINIFLOAT_CODES = {
    7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn",
    11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz", 14: "float8_e8m0fnu",
    15: "float6_e2m3fn", 16: "float6_e3m2fn", 17: "float4_e2m1fn",
}
_READ_ONLY, _IS_COPY, _IS_PADDED = 1, 2, 4
# DLPack devices with host-accessible memory: CPU, CUDA-pinned and ROCm-pinned.
_HOST_DEVICES = (1, 3, 11)


Access: TypeAlias = Literal["writable", "read-only", "a copy", "unknown"]
"""Write access that the exporter declares; capsules before DLPack 1 give "unknown"."""


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
class ArrayMemory:
    """Memory of an array.

    Attributes:
        address: Address of the first element.
        dtype: Name of the dtype.
        shape: Shape.
        strides: Strides in elements. None: the array is contiguous.
        access: Whether writes are allowed and visible to the owner.
        owner: Object that keeps the memory alive.
    """

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    access: Access
    owner: Any


def read_dlpack(where: str, array: Any) -> ArrayMemory:
    """Return the memory of an object that exports DLPack; `where` names it in error messages.

    The capsule is not consumed: its destructor releases the memory when the result is dropped.

    Raises:
        CallError: If the memory is not host-accessible, if the object does not share its memory, or
            if the memory holds other values than the array (lazy negation of PyTorch).
    """
    if _is_negated(array):
        raise CallError(
            "{where}: the array is a lazily negated PyTorch tensor; pass x.resolve_neg()",
            kind="unsupported-memory", where=where,
        )
    capsule = _capsule(where, array)
    tensor, access, is_padded = _tensor(where, capsule)
    if access == "unknown" and _is_writable(array):
        access = "writable"
    if tensor.device_type not in _HOST_DEVICES:
        raise CallError(
            "{where}: expected an array in host memory, got one on device "
            "{device_type}:{device_id}; copy it to the host first",
            kind="unsupported-memory", where=where, device_type=tensor.device_type,
            device_id=tensor.device_id,
        )
    axes = range(tensor.ndim)
    shape = tuple(tensor.shape[k] for k in axes)
    strides = tuple(tensor.strides[k] for k in axes) if tensor.strides else None
    dtype = _dtype_text(tensor, is_padded=is_padded)
    address = (tensor.data or 0) + tensor.byte_offset
    return ArrayMemory(address, dtype, shape, strides, access, capsule)


def _dtype_text(tensor: _Tensor, *, is_padded: bool) -> str:
    """Return the dtype of a tensor: its name, or a description if it is unsupported."""
    if tensor.code in _MINIFLOAT_CODES:
        dtype = _MINIFLOAT_CODES[tensor.code]
    elif _CODES.get(tensor.code) == "bool":
        return "bool" if tensor.lanes == 1 else f"boolx{tensor.lanes}"
    else:
        dtype = f"{_CODES.get(tensor.code) or f'type {tensor.code}:'}{tensor.bits}"
    if tensor.lanes != 1:
        dtype += f"x{tensor.lanes}"
    # Several elements share a byte, unless the exporter declares one byte per element.
    return dtype if tensor.bits >= 8 or is_padded else f"packed {dtype}"


def _is_writable(array: Any) -> bool:
    """Return whether an unversioned array declares write access in another way."""
    if _torch_of(array) is not None:
        return True  # PyTorch tensors are always writable
    try:
        return not memoryview(array).readonly
    except (BufferError, TypeError, ValueError):
        return False


def _is_negated(array: Any) -> bool:
    """Return whether PyTorch negates the array lazily, which DLPack cannot express."""
    torch = _torch_of(array)
    return torch is not None and bool(torch.is_neg(array))


def _torch_of(array: Any) -> Any:
    """Return the PyTorch module if it is loaded and `array` is a tensor, else None."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else None


def _capsule(where: str, array: Any) -> object:
    try:
        try:
            return array.__dlpack__(max_version=(1, 0))
        except TypeError:
            # Exporters before DLPack 1 do not accept `max_version`.
            return array.__dlpack__()
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise CallError(
            "{where}: its memory cannot be shared ({reason}); pass an array that owns plain host "
            "memory",
            kind="unsupported-memory", where=where, reason=error,
        ) from error


def _tensor(where: str, capsule: object) -> tuple[_Tensor, Access, bool]:
    """Return the tensor, its write access, and whether elements are padded to bytes."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_IsValid", ctypes.pythonapi)
    )
    if valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
        is_padded = bool(versioned.flags & _IS_PADDED)
        if versioned.flags & _IS_COPY:
            return versioned.tensor, "a copy", is_padded
        is_read_only = versioned.flags & _READ_ONLY
        return versioned.tensor, "read-only" if is_read_only else "writable", is_padded
    if valid(capsule, b"dltensor"):
        return _Tensor.from_address(pointer(capsule, b"dltensor")), "unknown", False
    raise CallError(
        "{where}: __dlpack__ returned {type}, which is not an unused DLPack capsule; pass an array "
        "whose __dlpack__ returns a new capsule at each call",
        kind="unsupported-memory", where=where, type=type(capsule).__name__,
    )


Array: TypeAlias = np.ndarray[Any, Any]


def is_in_layout(
    array: Any, required: LayoutTag, shape: tuple[int, ...], stored: tuple[int, ...]
) -> bool:
    """Return whether an array is untagged, or tagged with an equivalent layout.

    A parameter without a layout accepts any array of its shape, except a tensor of the same logical
    shape in another layout: the program may address physical positions instead of elements.

    Args:
        array: Array argument.
        required: Required layout.
        shape: Logical shape of the tensor.
        stored: Physical shape of arrays in the layout.
    """
    found = layout_tag_of(array)
    return found is None or found.formula == required.formula or compatible_tags(
        found, tuple(array.shape), required, shape, stored
    )


class PackedArray(np.ndarray[Any, Any]):
    """NumPy array with a layout tag for `layout_tag_of`; otherwise it behaves as a plain array."""

    __slots__ = ("_mark",)

    _mark: LayoutTag

    def __repr__(self) -> str:
        return repr(np.asarray(self))


SLOT = np.ndarray.__basicsize__
"""Byte offset of the layout tag in an array object, after all fields of NumPy."""


def as_array(argument: Any, where: str) -> np.ndarray[Any, Any]:
    """Convert an argument to a NumPy array.

    Raises:
        CallError: If NumPy cannot convert the argument.
    """
    try:
        return np.asarray(argument)
    except (ValueError, OverflowError, RecursionError) as error:
        raise CallError(
            "{where}: got a {type} that NumPy cannot convert to an array; pass nested lists of "
            "equal lengths, or an array",
            kind="argument-mismatch", where=where, type=type(argument).__name__,
        ) from error


def layout_tag_of(array: object) -> LayoutTag | None:
    """Return the layout tag of an array, or None."""
    return getattr(array, "_mark", None) if isinstance(array, PackedArray) else None


def empty(shape: tuple[int, ...], dtype: Any, layout: LayoutTag) -> Array:
    """Return a new uninitialized array that is tagged with a layout."""
    result = PackedArray(shape, dtype)
    result._mark = layout
    return result


def with_layout_tag(array: Array, layout: LayoutTag) -> Array:
    """Return a view of an array that is tagged with a layout."""
    tagged = array.view(PackedArray)
    tagged._mark = layout
    return tagged
