"""Data type functions and namespace inspection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.array.array_object import Array, node_of
from tecomp.array.functions.conversion import asarray
from tecomp.array.validation import check_bool, dtype_name
from tecomp.array.weak_scalars import Scalar
from tecomp.errors import ArrayValueError
from tecomp.ptensor.devices import CPU, default_dtype, device_name, dtypes_of, known_devices
from tecomp.ptensor.types import (
    BOOLEAN,
    COMPLEX,
    FLOATING,
    FLOATS,
    INTEGERS,
    NUMERIC,
    PART,
    SIGNED,
    UNSIGNED,
    float_limits,
    need_dtype,
    numpy_dtype,
    of_scalar,
    promote_all,
    promote_types,
)

KINDS: Mapping[str, Sequence[str]] = {
    "bool": BOOLEAN,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGERS,
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "numeric": NUMERIC,
}
"""Dtype names of each dtype kind."""


@dataclass(frozen=True)
class FloatInfo:
    """Machine limits of a floating-point dtype; for a complex dtype, the limits of its parts.

    Attributes:
        bits: Bits per number.
        eps: Distance from 1 to the next greater number.
        max: Greatest finite number.
        min: Least finite number.
        smallest_normal: Least positive normal number.
        dtype: dtype of the numbers.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class IntegerInfo:
    """Machine limits of an integer dtype.

    Attributes:
        bits: Bits per number.
        max: Greatest number.
        min: Least number.
        dtype: dtype of the numbers.
    """

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def astype(
    x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None
) -> Array:
    """Cast an array to a dtype.

    A float that is out of range for an integer dtype saturates, and NaN becomes 0. Integers wrap
    around. Every nonzero value becomes True.

    Args:
        x: Input array.
        dtype: Target dtype; complex if `x` is complex.
        copy: If False, return `x` itself where dtype and device are unchanged.
        device: Device of the result. Default: the device of `x`.

    Raises:
        ArrayTypeError: If `x` is complex and the dtype is real, or the dtype is unsupported.
        ArrayValueError: If the device is unknown.

    >>> import tecomp.array as xp
    >>> xp.astype(xp.asarray([1.5, -2.5]), xp.int8)
    Array([ 1, -2], dtype=int8)
    """
    node_of(x, "astype")
    name = dtype_name(dtype, "astype")
    target_device = None if device is None else device_name(device, "astype")
    is_copied = check_bool(copy, "astype", "copy") or None
    return asarray(x, dtype=numpy_dtype(name), device=target_device, copy=is_copied)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether type promotion allows the cast between two dtypes.

    Args:
        from_: Array or dtype to cast from.
        to: Target dtype.

    Raises:
        ArrayTypeError: If a dtype is unsupported.

    >>> import tecomp.array as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    target = dtype_name(to, "can_cast")
    return promote_all(_type_of(from_, "can_cast"), target) == target


def finfo(type: Any, /) -> FloatInfo:
    """Return the machine limits of a floating-point dtype.

    Args:
        type: Array or dtype.

    Raises:
        ArrayTypeError: If the dtype is not a floating-point dtype.

    >>> import tecomp.array as xp
    >>> xp.finfo(xp.complex64).eps == 2.0**-23
    True
    """
    name = _type_of(type, "finfo")
    need_dtype(name, FLOATING, "finfo")
    part = PART.get(name, name)
    dtype = numpy_dtype(part)
    info = float_limits(dtype)
    return FloatInfo(
        dtype.itemsize * 8, float(info.eps), float(info.max), float(info.min),
        float(info.smallest_normal), dtype,
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the machine limits of an integer dtype.

    Args:
        type: Array or dtype.

    Raises:
        ArrayTypeError: If the dtype is not an integer dtype.

    >>> import tecomp.array as xp
    >>> xp.iinfo(xp.uint8).max
    255
    """
    name = _type_of(type, "iinfo")
    need_dtype(name, INTEGERS, "iinfo")
    info = np.iinfo(name)
    return IntegerInfo(info.bits, int(info.max), int(info.min), info.dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype equals another dtype or belongs to a dtype kind.

    Args:
        dtype: dtype to test.
        kind: dtype, `"bool"`, `"signed integer"`, `"unsigned integer"`, `"integral"`, `"real
            floating"`, `"complex floating"` or `"numeric"`, or a tuple of these.

    Raises:
        ArrayTypeError: If a dtype is unsupported.
        ArrayValueError: If the kind is unknown.

    >>> import tecomp.array as xp
    >>> xp.isdtype(xp.int8, "integral"), xp.isdtype(xp.int8, (xp.int16, "real floating"))
    (True, False)
    """
    name = dtype_name(dtype, "isdtype")
    parts = kind if isinstance(kind, tuple) else (kind,)
    return any([name in _kind(part) for part in parts])


def _kind(kind: Any) -> Sequence[str]:
    if not isinstance(kind, str):
        return (dtype_name(kind, "isdtype"),)
    if kind in KINDS:
        return KINDS[kind]
    raise ArrayValueError(
        "isdtype: unknown dtype kind {name!r}; valid kinds: {kinds}",
        kind="unknown-choice", name=kind, kinds=", ".join(map(repr, KINDS)),
    )


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype that type promotion gives for the arguments.

    Args:
        arrays_and_dtypes: Arrays, dtypes and Python scalars, with at least one array or dtype.

    Raises:
        ArrayTypeError: If an argument is of another type, or an int is out of range for the dtype.
        ArrayValueError: If there is neither an array nor a dtype.

    >>> import tecomp.array as xp
    >>> xp.result_type(xp.int8, xp.asarray([1], dtype=xp.uint8), 2)
    dtype('int16')
    """
    where = "result_type"
    numbers = [part for part in arrays_and_dtypes if isinstance(part, Scalar)]
    types = [
        _type_of(part, where) for part in arrays_and_dtypes if not isinstance(part, Scalar)
    ]
    if not types:
        raise ArrayValueError(
            "{where}: expected at least one array or dtype",
            kind="missing-input", where=where,
        )
    dtype = promote_types(types)
    return numpy_dtype(
        promote_types([dtype, *(of_scalar(number, dtype, where) for number in numbers)]))


def _type_of(obj: Any, where: str) -> str:
    """Return the dtype name of an array or a dtype."""
    if isinstance(obj, Array):
        return node_of(obj, where).type.dtype
    return dtype_name(obj, where)


_FLOATS = tuple([name for name in FLOATS if name in ("float32", "float64")])

_KINDS = {
    "bool": BOOLEAN,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": (*SIGNED, *UNSIGNED),
    "real floating": _FLOATS,
    "complex floating": COMPLEX,
    "numeric": (*SIGNED, *UNSIGNED, *_FLOATS, *COMPLEX),
}


class Info:
    """Namespace inspection object.

    Source:
        The Python array API standard, "inspection".
    """

    def capabilities(self) -> dict[str, Any]:
        """Return the optional capabilities of the namespace and the maximum number of axes.

        >>> Info().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the default device.

        >>> Info().default_device()
        'cpu'
        """
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the default dtypes per kind.

        Args:
            device: Device. Default: the CPU.

        Raises:
            ArrayValueError: If the device is unknown.

        >>> Info().default_dtypes()["real floating"]
        dtype('float64')
        """
        target_device = device_name(device, "default_dtypes")
        names = {"real floating": "float64", "complex floating": "complex128",
                 "integral": "int64", "indexing": "int64"}
        return {
            kind: numpy_dtype(default_dtype(name, target_device)) for kind, name in names.items()
        }

    def devices(self) -> list[str]:
        """Return the available devices.

        >>> "cpu" in Info().devices()
        True
        """
        return list(known_devices())

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """Return the standard dtypes that a device supports, by name.

        Args:
            device: Device. Default: the CPU.
            kind: dtype kind, or a tuple of kinds, to which the result is limited.

        Raises:
            ArrayValueError: If the device or the kind is unknown.

        >>> list(Info().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        requested = ("bool", "numeric") if kind is None else kind
        kinds = requested if isinstance(requested, list | tuple) else [requested]
        for kind_name in kinds:
            if not isinstance(kind_name, str) or kind_name not in _KINDS:
                raise ArrayValueError(
                    "dtypes: unknown dtype kind {name!r}; valid kinds: {kinds}",
                    name=kind_name, kinds=", ".join(_KINDS),
                )
        target_device = device_name(device, "dtypes")
        names = dict.fromkeys(name for kind_name in kinds for name in _KINDS[kind_name])
        supported = dtypes_of(target_device)
        return {name: numpy_dtype(name) for name in names if name in supported}


def __array_namespace_info__() -> Info:  # noqa: N807  the standard's name
    """Return the namespace inspection object.

    >>> __array_namespace_info__().default_device()
    'cpu'
    """
    return Info()
