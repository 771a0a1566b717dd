"""Data type functions and namespace inspection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.array.array_object import Array, node_of
from tecomp.array.functions.conversion import asarray
from tecomp.array.validation import Scalar, dtype_name, flag
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
    meet,
    need_dtype,
    numpy_dtype,
    of_scalar,
    promoted,
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
"""The element types of each kind."""


@dataclass(frozen=True)
class FloatInfo:
    """What floating-point numbers of a type are like; of complex ones, their parts.

    Attributes:
        bits: that one takes.
        eps: the distance from 1 to the next greater number.
        max: the greatest finite number.
        min: the least finite number.
        smallest_normal: the least positive number of full precision.
        dtype: the type.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class IntegerInfo:
    """What integers of a type are like.

    Attributes:
        bits: that one takes.
        max: the greatest.
        min: the least.
        dtype: the type.
    """

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def astype(
    x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None
) -> Array:
    """The elements in another type.

    A float that an integer type cannot hold becomes the nearest integer that it can, and NaN 0;
    integers wrap; everything but zero becomes True.

    Args:
        x: Input array.
        dtype: the type; no real one for complex elements.
        copy: False gives `x` itself where nothing changes.
        device: where the result lives; where `x` lives if None.

    Raises:
        ArrayTypeError: elements are complex and the type is real, or there is no such type.
        ArrayValueError: If the device is unknown.

    >>> import tecomp.array as xp
    >>> xp.astype(xp.asarray([1.5, -2.5]), xp.int8)
    Array([ 1, -2], dtype=int8)
    """
    node_of(x, "astype")
    name = dtype_name(dtype, "astype")
    place = None if device is None else device_name(device, "astype")
    is_copied = flag(copy, "astype", "copy") or None
    return asarray(x, dtype=numpy_dtype(name), device=place, copy=is_copied)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether arrays of one type and of another meet in that other one.

    Args:
        from_: an array or a type.
        to: a type.

    Raises:
        ArrayTypeError: there are no such types.

    >>> import tecomp.array as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    target = dtype_name(to, "can_cast")
    return promoted(_type_of(from_, "can_cast"), target) == target


def finfo(type: Any, /) -> FloatInfo:
    """What floating-point numbers are like.

    Args:
        type: an array or a type.

    Raises:
        ArrayTypeError: it has no floating-point numbers.

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
    """What integers are like.

    Args:
        type: an array or a type.

    Raises:
        ArrayTypeError: it has no integers.

    >>> import tecomp.array as xp
    >>> xp.iinfo(xp.uint8).max
    255
    """
    name = _type_of(type, "iinfo")
    need_dtype(name, INTEGERS, "iinfo")
    info = np.iinfo(name)
    return IntegerInfo(info.bits, int(info.max), int(info.min), info.dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a type is another one, or of a kind.

    Args:
        dtype: a type.
        kind: a type, `"bool"`, `"signed integer"`, `"unsigned integer"`, `"integral"`,
            `"real floating"`, `"complex floating"` or `"numeric"`, or a tuple of these.

    Raises:
        ArrayTypeError: there are no such types.
        ArrayValueError: there is no such kind.

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
        f"isdtype: there is no kind {kind!r} of types; these are {', '.join(map(repr, KINDS))}",
        kind="unknown-choice",
    )


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The type in which arrays, types and numbers of Python meet.

    Args:
        arrays_and_dtypes: of these one at least is an array or a type.

    Raises:
        ArrayTypeError: one is none of these, or an int is out of the range of the type.
        ArrayValueError: there are no arrays and types.

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
            f"{where}: there is no array and no type; give one at least", kind="nothing-given"
        )
    dtype = meet(types)
    return numpy_dtype(meet([dtype, *(of_scalar(number, dtype, where) for number in numbers)]))


def _type_of(given: Any, where: str) -> str:
    """The name of a type, or of that of an array."""
    if isinstance(given, Array):
        return node_of(given, where).type.dtype
    return dtype_name(given, where)


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
    """Answers to questions about the namespace.

    Source:
        The Python array API standard, "inspection".
    """

    def capabilities(self) -> dict[str, Any]:
        """What not every library can, and how many axes an array has at most.

        >>> Info().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where arrays are made if nobody says where.

        >>> Info().default_device()
        'cpu'
        """
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The element types of arrays if nobody says which.

        Raises:
            ArrayValueError: If the device is unknown.

        >>> Info().default_dtypes()["real floating"]
        dtype('float64')
        """
        place = device_name(device, "default_dtypes")
        names = {"real floating": "float64", "complex floating": "complex128",
                 "integral": "int64", "indexing": "int64"}
        return {
            kind: numpy_dtype(default_dtype(name, place)) for kind, name in names.items()
        }

    def devices(self) -> list[str]:
        """Where arrays can be.

        >>> "cpu" in Info().devices()
        True
        """
        return list(known_devices())

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The element types of the standard that a device stores, by name.

        Args:
            device: which; the processor if None.
            kind: only those of this kind, or of one of several.

        Raises:
            ArrayValueError: there is no such device or kind.

        >>> list(Info().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        several = ("bool", "numeric") if kind is None else kind
        known = several if isinstance(several, list | tuple) else [several]
        for one in known:
            if not isinstance(one, str) or one not in _KINDS:
                raise ArrayValueError(
                    f"dtypes: there is no kind {one!r}; these are {', '.join(_KINDS)}"
                )
        place = device_name(device, "dtypes")
        names = dict.fromkeys(name for one in known for name in _KINDS[one])
        taken = dtypes_of(place)
        return {name: numpy_dtype(name) for name in names if name in taken}


def __array_namespace_info__() -> Info:  # noqa: N807  the standard's name
    """What there is in the namespace.

    >>> __array_namespace_info__().default_device()
    'cpu'
    """
    return Info()
