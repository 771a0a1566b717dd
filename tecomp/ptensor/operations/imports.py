"""Tensors of elements that come from outside: memory of other libraries, and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tecomp.errors import ArrayValueError
from tecomp.ptensor.operation import Argument
from tecomp.ptensor.operations.creation import Creation
from tecomp.ptensor.types import PTensorType, Shape


@dataclass(frozen=True)
class Import(Creation):
    """A tensor of what a function is called with, which is no tensor yet.

    Attributes:
        shape: the extents, which the operand has to have.
        dtype: the element type.
    """

    shape: Shape
    dtype: str

    def infer(self, *operands: Any) -> PTensorType:
        """That shape."""
        return self._made(
            self.shape, self.dtype, getattr(self, "device", None), getattr(self, "team", None)
        )


@dataclass(frozen=True)
class AsArray(Import):
    """The elements of a buffer, or a number; of a team, each process gives all and keeps a part.

    Attributes:
        shape: the extents; none for a number.
        dtype: the element type, which elements are converted to.
        copy: True for memory of its own, False for that of the buffer, None for what is needed.
        device: where the tensor lives.
        team: the processes among which it is divided.

    >>> print(AsArray((4, 5), "float32", team=1).results("ptr")[0])
    ptensor<4x5xfloat32, team=1>
    """

    name = "asarray"
    scalars: ClassVar[tuple[str, ...] | None] = ("ptr", "bool", "float64", "int64")

    copy: bool | None = None
    device: str | Argument | None = None
    team: int | Argument | None = None

    def infer(self, *operands: Any) -> PTensorType:
        """That shape."""
        (given,) = operands
        if given != "ptr" and self.shape:
            raise ArrayValueError(
                f"asarray: the shape is {self.shape}, and a number is given; a number has no axes: "
                "broadcast it",
                kind="array-shapes",
            )
        return super().infer(given)


@dataclass(frozen=True)
class FromDlpack(Import):
    """The elements that another library offers, where they lie: the memory is shared.

    Attributes:
        shape: the extents.
        dtype: the element type, which elements have.
        device: where the memory is.

    >>> print(FromDlpack((4,), "int8").results("ptr")[0])
    ptensor<4xint8>
    """

    name = "from_dlpack"
    scalars: ClassVar[tuple[str, ...] | None] = ("ptr",)

    device: str | Argument | None = None
