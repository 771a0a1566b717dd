"""The type of a value: shape, element type, and where it lives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from tecomp.errors import ArrayValueError, DeviceMismatchError, TeamMismatchError
from tecomp.ir.language.dtype import DType

Shape = tuple[int, ...]
SCALARS = ("bool", "float64", "int64", "ptr", "shape.shape", "str", "type")
"""The types of values that are no tensors."""
_COMPLEX = ("complex64", "complex128")


@dataclass(frozen=True, slots=True)
class PTensorType:
    """A tensor on a device, distributed over a team.

    Attributes:
        shape: the extents; None for one that only the call of a function says.
        dtype: of an element, by name.
        device: where it lives; None if nobody cares.
        team: the processes among which it is divided; None if there is one process.
        gid: which tensor of its team it is, once that is known.

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
        # Looked up with each operation that is recorded.
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # The hash of a text is another one in each process.
        return PTensorType, (self.shape, self.dtype, self.device, self.team, self.gid)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def like(self, shape: Shape, dtype: str | None = None) -> PTensorType:
        """Another value at the same place.

        >>> print(PTensorType((4,), "float32", team=1).like((), "bool"))
        ptensor<bool, team=1>
        """
        return PTensorType(shape, dtype or self.dtype, self.device, self.team)

    def __str__(self) -> str:
        extents = ["?" if extent is None else str(extent) for extent in self.shape]
        element = "x".join([*extents, self.dtype])
        marks = [
            f"{name}={value!r}"
            for name in ("device", "team", "gid")
            if (value := getattr(self, name)) is not None
        ]
        return f"ptensor<{', '.join([element, *marks])}>"


ValueType: TypeAlias = PTensorType | str
"""The type of a tensor, or the name of a scalar type."""


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The element type of NumPy's of this name."""
    return np.dtype(name) if name in _COMPLEX else DType(name).numpy


def float_limits(dtype: np.dtype[Any]) -> Any:
    """The limits of a floating-point type, as NumPy tells them of its own."""
    if dtype.name != "bfloat16":
        return np.finfo(dtype)
    import ml_dtypes  # Takes 150 ms, and few programs need it.

    info: Any = ml_dtypes.finfo
    return info(dtype)


def check_together(types: Sequence[PTensorType], where: str) -> None:
    """Refuse operands of one operation that live in different places.

    Raises:
        DeviceMismatchError: two are on different devices.
        TeamMismatchError: two belong to different teams.

    Source:
        RFC PTensor, "--lower-ptensor".
    """
    first = types[0]
    for k, other in enumerate(types):
        if other.device != first.device:
            raise DeviceMismatchError(
                f"{where}: operand 0 is {first} and operand {k} is {other}; an operation runs "
                "where its operands live: bring one to the other's device, "
                f"x.to_device({first.device!r})"
            )
        if other.team != first.team:
            raise TeamMismatchError(
                f"{where}: operand 0 is {first} and operand {k} is {other}; they are divided "
                "among different teams: gather one, and create it on the other's team"
            )


def broadcast_shapes(shapes: Sequence[Shape], where: str) -> Shape:
    """The shape that all of them broadcast to.

    Raises:
        ArrayValueError: there is none.

    >>> broadcast_shapes([(3, 1), (4,)], "add")
    (3, 4)
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        own = {shape[axis] for shape in shapes if len(shape) >= -axis}
        # One that is not known before may be 1, or else is what the others are.
        extents = own - {1, None}
        if not extents and None in own:
            extents = {None}  # type: ignore[arg-type]
        if len(extents) > 1:
            texts = " and ".join(map(str, shapes))
            raise ArrayValueError(
                f"{where}: shapes {texts} do not broadcast: axis {axis} has extents "
                f"{' and '.join(map(str, sorted(extents)))}; make them equal, or one of them 1",
                kind="array-shapes",
            )
        result.append(extents.pop() if extents else 1)
    return tuple(result)
