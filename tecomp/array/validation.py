"""Validation of arguments of array functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import prod
from operator import index
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from tecomp.caches import memoize
from tecomp.errors import ArrayTypeError, ArrayValueError, safe_repr
from tecomp.ptensor.devices import check_dtype, default_dtype
from tecomp.ptensor.types import ALL, Shape, numpy_dtype

Extents: TypeAlias = SupportsIndex | Iterable[SupportsIndex]

MOST_BYTES = 2**47
"""Maximum size of an array in bytes: the address space of a process (47 bits)."""

MAX_AXES = 64
"""Maximum number of axes, the limit of NumPy."""


def dtype_name(dtype: Any, where: str) -> str:
    """Return the name of a dtype.

    Args:
        dtype: dtype argument of the user.
        where: Function name for error messages.

    Raises:
        ArrayTypeError: If `dtype` is not supported.

    >>> dtype_name(np.float32, "zeros")
    'float32'
    """
    if isinstance(dtype, str) and dtype in ALL:
        return str(dtype)
    if isinstance(dtype, np.dtype) and (known := _name_of(dtype)) in ALL:
        return known
    name = safe_repr(dtype)
    # `np.dtype` converts None to float64 and reads the `dtype` attribute of any object.
    if isinstance(dtype, np.dtype | type | str):
        with suppress(TypeError):
            name = np.dtype(dtype).name
    if name in ALL:
        return name
    raise ArrayTypeError(
        "{where}: {name} is not a supported dtype; supported dtypes: {all}",
        where=where, name=name, all=", ".join(ALL),
    )


def float64_of(value: float, where: str, arg_name: str) -> float:
    """Convert a Python int or float to a float.

    Raises:
        ArrayValueError: If `value` is an integer beyond the range of float64.

    >>> float64_of(3, "full", "the value")
    3.0
    """
    try:
        return float(value)
    except OverflowError:
        raise ArrayValueError(
            "{where}: {subject} is {value!r}, which exceeds the range of float64; pass a smaller "
            "number",
            where=where, subject=arg_name, value=value,
        ) from None


@memoize("array.dtype_names")
def _name_of(dtype: np.dtype[Any]) -> str:
    """Return the name of a NumPy dtype; cached, because NumPy builds the string on each access."""
    return str(dtype.name)


def dtype_at(dtype: Any, default: str, device: str, where: str) -> str:
    """Return the name of a dtype on a device; if None, the device's default for a 64-bit dtype.

    Raises:
        ArrayTypeError: If the device does not support the dtype.

    >>> dtype_at(None, "float64", "cpu", "zeros"), dtype_at(None, "float64", "stick128", "zeros")
    ('float64', 'float32')
    """
    if dtype is None:
        return default_dtype(default, device)
    name = dtype_name(dtype, where)
    check_dtype(name, device, where)
    return name


def integer(value: SupportsIndex, where: str, arg_name: str) -> int:
    """Convert an integer argument to an int.

    Raises:
        ArrayTypeError: If the value is not an integer.
    """
    try:
        return index(value)
    except TypeError:
        raise ArrayTypeError(
            "{where}: {subject} must be an integer, got {value!r} ({type})",
            where=where, subject=arg_name, value=value, type=type(value).__name__,
        ) from None


def diagonal_of(value: SupportsIndex, shape: Shape, where: str, arg_name: str) -> int:
    """Return the number of a matrix diagonal: 0 is the main one, diagonals above it are positive.

    Diagonals outside the matrix are clamped to the first diagonal outside.

    Raises:
        ArrayTypeError: If the value is not an integer.
    """
    number = integer(value, where, arg_name)
    if len(shape) < 2:
        return number
    rows, columns = shape[-2:]
    return max(-rows, min(number, columns))


def integers(value: SupportsIndex | Iterable[SupportsIndex], where: str, arg_name: str) -> Shape:
    """Convert one or several integers to a tuple.

    Raises:
        ArrayTypeError: If a value is not an integer.
    """
    if isinstance(value, Iterable) and not hasattr(value, "__index__"):
        return tuple([integer(part, where, arg_name) for part in value])
    if isinstance(value, tuple | list):
        return tuple([integer(part, where, arg_name) for part in value])
    return (integer(value, where, arg_name),)  # type: ignore[arg-type]


def shape_of(
    shape: SupportsIndex | Iterable[SupportsIndex], where: str, dtype: str = "bool"
) -> Shape:
    """Validate a shape argument.

    Raises:
        ArrayTypeError: If an extent is not an integer.
        ArrayValueError: If an extent is negative, or there are too many axes or elements.
    """
    extents = integers(shape, where, "shape")
    if any(extent < 0 for extent in extents):
        raise ArrayValueError(
            "{where}: sizes of a shape must be nonnegative, got {extents!r}",
            where=where, extents=extents,
        )
    if len(extents) > MAX_AXES:
        raise ArrayValueError(
            "{where}: shape has {extent_count} axes, but at most {most_axes} are supported",
            where=where, extent_count=len(extents), most_axes=MAX_AXES,
        )
    size = max(prod(extents), *extents, 0) * numpy_dtype(dtype).itemsize
    if size > MOST_BYTES:
        raise ArrayValueError(
            "{where}: shape {extents!r} requires {size!r} bytes, which exceeds the maximum of "
            "{most_bytes}",
            kind="limit-exceeded", where=where, extents=extents, size=size, most_bytes=MOST_BYTES,
        )
    return extents


def check_bool(value: Any, where: str, arg_name: str) -> bool:
    """Convert a flag argument to a bool.

    Raises:
        ArrayTypeError: If the value has no truth value, such as an array.

    >>> check_bool(1, "sum", "keepdims")
    True
    """
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise ArrayTypeError(
            "{where}: {subject} must be True or False, got {value!r} ({type})",
            where=where, subject=arg_name, value=value, type=type(value).__name__,
        ) from None


def check_copy(copy: Any, where: str) -> bool | None:
    """Convert a `copy` argument: True (always), False (never) or None (if necessary).

    Raises:
        ArrayTypeError: If the value has no truth value.
    """
    return None if copy is None else check_bool(copy, where, "copy")


def check_choice(value: Any, known: Sequence[str], where: str, arg_name: str) -> str:
    """Validate an argument that selects one of several names.

    Raises:
        ArrayValueError: If the value is not a known name.
    """
    if isinstance(value, str) and value in known:
        return value
    names = [repr(name) for name in known]
    raise ArrayValueError(
        "{where}: {subject} must be {name} or {other_name}, got {value!r}",
        where=where, subject=arg_name, value=value, name=", ".join(names[:-1]),
        other_name=names[-1],
    )


def check_of_one_process(layout: Any, where: str) -> None:
    """Reject a layout for a distributed array."""
    if layout is not None:
        raise ArrayValueError(
            "{where}: layout is not supported for an array of a team; omit it, or create the "
            "array from local parts with layouts: xp.from_local(part, team)",
            where=where,
        )


def need_team(placements: Any, where: str) -> None:
    """Reject placements for an array without a team."""
    if placements is not None:
        raise ArrayValueError(
            "{where}: placements require a team; pass team=dist.world() too",
            where=where,
        )
