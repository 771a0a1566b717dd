"""Tensor types, dtype promotion and axis normalization."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from tecomp.errors import (
    ArrayIndexError,
    ArrayTypeError,
    ArrayValueError,
    DeviceMismatchError,
    TeamMismatchError,
)
from tecomp.ir.nodes.dtype import DType
from tecomp.operations.element_types import ALL as ALL
from tecomp.operations.element_types import BOOLEAN as BOOLEAN
from tecomp.operations.element_types import COMPLEX as COMPLEX
from tecomp.operations.element_types import FLOATING as FLOATING
from tecomp.operations.element_types import FLOATS as FLOATS
from tecomp.operations.element_types import INTEGERS as INTEGERS
from tecomp.operations.element_types import NUMERIC as NUMERIC
from tecomp.operations.element_types import PART as PART
from tecomp.operations.element_types import REAL as REAL
from tecomp.operations.element_types import SIGNED as SIGNED
from tecomp.operations.element_types import UNSIGNED as UNSIGNED
from tecomp.operations.element_types import WHOLE as WHOLE

Shape = tuple[int, ...]
SCALARS = (*ALL, "ptr", "shape.shape", "str", "type")
"""Types of values that are not tensors."""


@dataclass(frozen=True, slots=True)
class PTensorType:
    """Type of a tensor on a device, distributed over a team.

    Attributes:
        shape: Extents; None for an extent that the call of a function determines.
        dtype: Name of the dtype.
        device: Name of the device; None if unspecified.
        team: Number of the team over which the tensor is distributed; None for a single process.
        gid: Number of the tensor in its team, once known.

    Source:
        RFC PTensor, "ptensor Type".

    >>> print(PTensorType((4, 5), "float32", device="cpu"))
    ptensor<4x5xfloat32, device='cpu'>
    """

    shape: Shape
    dtype: str
    device: str | None = None
    team: int | None = None
    gid: int | None = None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        key = self.shape, self.dtype, self.device, self.team, self.gid
        object.__setattr__(self, "_hash", hash(key))

    def __hash__(self) -> int:
        # Cached, because each recorded operation looks up its types.
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Do not pickle the hash: string hashes differ per process.
        return PTensorType, (self.shape, self.dtype, self.device, self.team, self.gid)

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def like(self, shape: Shape, dtype: str | None = None) -> PTensorType:
        """Return the type of another value on the same device and team.

        >>> print(PTensorType((4,), "float32", team=1).like((), "bool"))
        ptensor<bool, team=1>
        """
        return PTensorType(shape, dtype or self.dtype, self.device, self.team)

    def __str__(self) -> str:
        extents = ["?" if extent is None else str(extent) for extent in self.shape]
        element = "x".join([*extents, self.dtype])
        attributes = [
            f"{name}={value!r}"
            for name in ("device", "team", "gid")
            if (value := getattr(self, name)) is not None
        ]
        return f"ptensor<{', '.join([element, *attributes])}>"


ValueType: TypeAlias = PTensorType | str
"""Type of a tensor, or name of a scalar type."""


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a name."""
    return np.dtype(name) if name in COMPLEX else DType(name).numpy


def float_limits(dtype: np.dtype[Any]) -> Any:
    """Return the limits of a floating-point dtype, including dtypes that NumPy lacks."""
    if dtype.name != "bfloat16":
        return np.finfo(dtype)
    import ml_dtypes  # Imported lazily: the import takes 150 ms, and few programs need it.

    info: Any = ml_dtypes.finfo
    return info(dtype)


def check_same_device_and_team(types: Sequence[PTensorType], where: str) -> None:
    """Check that the operands of an operation have the same device and team.

    Raises:
        DeviceMismatchError: If two operands are on different devices.
        TeamMismatchError: If two operands belong to different teams.

    Source:
        RFC PTensor, "--lower-ptensor".
    """
    first = types[0]
    for k, other in enumerate(types):
        if other.device != first.device:
            raise DeviceMismatchError(
                "{where}: operand 0 is {first}, but operand {k} is {other}; all operands must be "
                "on the same device: transfer one of them, x.to_device({device!r})",
                where=where, first=first, k=k, other=other, device=first.device,
            )
        if other.team != first.team:
            raise TeamMismatchError(
                "{where}: operand 0 is {first}, but operand {k} is {other}; operands must belong "
                "to the same team: gather one of them, and recreate it on the team of the other",
                where=where, first=first, k=k, other=other,
            )


def broadcast_shapes(shapes: Sequence[Shape], where: str) -> Shape:
    """Return the shape to which the given shapes broadcast.

    Raises:
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> broadcast_shapes([(3, 1), (4,)], "add")
    (3, 4)
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis}
        # An unknown extent is either 1 or equal to the others.
        extents = sizes - {1, None}
        if not extents and None in sizes:
            extents = {None}  # type: ignore[arg-type]
        if len(extents) > 1:
            texts = " and ".join(map(str, shapes))
            raise ArrayValueError(
                "{where}: cannot broadcast shapes {texts}: axis {axis} has sizes {extents}; sizes "
                "must be equal or 1",
                kind="array-shapes", where=where, texts=texts, axis=axis,
                extents=" and ".join(map(str, sorted(extents))),
            )
        result.append(extents.pop() if extents else 1)
    return tuple(result)


Axes: TypeAlias = int | Sequence[int] | None


def axis_of(axis: object, rank: int, where: str, subject: str = "axis") -> int:
    """Return a nonnegative axis.

    Args:
        axis: Axis; negative values count from the last axis.
        rank: Number of axes.
        where: Operation name for error messages.
        subject: Argument name for error messages.

    Raises:
        ArrayTypeError: If `axis` is not an integer.
        ArrayIndexError: If `axis` is out of bounds.

    >>> axis_of(-1, 3, "sum")
    2
    """
    try:
        number = operator.index(axis)  # type: ignore[arg-type]
    except TypeError:
        raise ArrayTypeError(
            "{where}: {subject} must be an integer, got {axis!r}",
            where=where, subject=subject, axis=axis,
        ) from None
    if -rank <= number < rank:
        return number % rank
    numbers = f"from {-rank} to {rank - 1}" if rank else "none (the array has no axes)"
    raise ArrayIndexError(
        "{where}: {subject} is {value!r}, which is out of bounds for an array with {rank} axes; "
        "valid axes: {numbers}",
        where=where, subject=subject, value=number, rank=rank, numbers=numbers,
    )


def axes_of(axis: Axes, rank: int, where: str) -> tuple[int, ...]:
    """Return nonnegative axes in their given order.

    Args:
        axis: Axis or axes; all axes if None.
        rank: Number of axes.
        where: Operation name for error messages.

    Raises:
        ArrayTypeError: If an axis is not an integer.
        ArrayIndexError: If an axis is out of bounds.
        ArrayValueError: If an axis occurs twice.

    >>> axes_of((-1, 0), 3, "sum"), axes_of(None, 2, "sum"), axes_of((), 2, "sum")
    ((0, 2), (0, 1), ())
    """
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, list | tuple) else (axis,)
    found = sorted([axis_of(k, rank, where) for k in axes])
    if len(set(found)) < len(found):
        raise ArrayValueError(
            "{where}: axis {axes} contains duplicate axes for an array with {rank} axes; pass "
            "each axis once",
            where=where, axes=tuple(axes), rank=rank,
        )
    return tuple(found)


def drop_axes(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """Return a shape with axes removed or set to size 1.

    >>> drop_axes((4, 5, 6), (0, 2), False), drop_axes((4, 5, 6), (0, 2), True)
    ((5,), (1, 5, 1))
    """
    return tuple([
        1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes
    ])


@cache
def promote_all(first: str, second: str) -> str:
    """Return the promoted dtype of two dtypes: by the standard, or by NumPy where it has no rule.

    >>> promote_all("int8", "uint8"), promote_all("float32", "complex128"), promote_all("int32",
    ...     "float32")
    ('int16', 'complex128', 'float64')
    """
    if first == second:
        return first
    if "bfloat16" in (first, second):
        return _with_bfloat16(*({first, second} - {"bfloat16"}))
    return np.result_type(numpy_dtype(first), numpy_dtype(second)).name


def _with_bfloat16(other: str) -> str:
    if other in (*BOOLEAN, *INTEGERS):
        return "bfloat16"
    return promote_all("float32", other)


def promote_types(dtypes: Sequence[str]) -> str:
    """Return the promoted dtype of several dtypes."""
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote_all(result, dtype)
    return result


def need_dtype(
    dtype: str, supported: Sequence[str], where: str, prefix: str = "the element dtype is"
) -> None:
    """Check that an operation supports a dtype.

    Args:
        dtype: dtype of the elements.
        supported: Supported dtypes.
        where: Operation name for error messages.
        prefix: Beginning of the error message.

    Raises:
        ArrayTypeError: If the dtype is not supported.
    """
    if dtype not in supported:
        raise ArrayTypeError(
            "{where}: {subject} {dtype}, expected one of {supported}; convert with xp.astype(x, "
            "dtype)",
            where=where, subject=prefix, dtype=dtype, supported=", ".join(supported),
        )


def of_scalar(value: bool | int | float | complex, dtype: str, where: str) -> str:
    """Return the dtype that a Python scalar takes next to an array.

    Args:
        value: Python scalar.
        dtype: dtype of the array.
        where: Operation name for error messages.

    Raises:
        ArrayTypeError: If an int is out of range for the dtype of the array.

    >>> [of_scalar(value, "float32", "add") for value in (2, 2.5, 1j)]
    ['float32', 'float32', 'complex64']
    """
    if isinstance(value, bool):
        return dtype if dtype == "bool" else "bool"
    if isinstance(value, int):
        dtype = "int64" if dtype == "bool" else dtype
        if dtype in INTEGERS and not _fits(value, dtype):
            lower, upper = np.iinfo(dtype).min, np.iinfo(dtype).max
            raise ArrayTypeError(
                "{where}: {value} is out of range for {dtype} ({minimum} to {maximum}); convert "
                "the array with astype, or pass an array of the desired dtype",
                where=where, value=value, dtype=dtype, minimum=lower, maximum=upper,
            )
        return dtype
    if isinstance(value, float):
        return dtype if dtype in FLOATING else "float64"
    return dtype if dtype in COMPLEX else WHOLE.get(dtype, "complex128")


def _fits(value: int, dtype: str) -> bool:
    info = np.iinfo(dtype)
    return bool(info.min <= value <= info.max)
