"""What is known of tensors besides their elements: numbers and shapes, which have no place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tecomp.errors import ArrayTypeError
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.promotion import meet
from tecomp.ptensor.types import PTensorType, check_together


class Attribute(Operation):
    """An operation whose result is no tensor: the type of it is that of a scalar.

    Attributes:
        result: that type.

    Source:
        RFC PTensor, "Operation details".
    """

    result: ClassVar[str]

    def results(self, *operands: PTensorType) -> tuple[str, ...]:
        """The type of the scalar."""
        return (self.result,)

    def infer(self, *operands: PTensorType) -> PTensorType:
        """None: the result is no tensor."""
        raise ArrayTypeError(
            f"{self.where}: the result is {self.result}, and a tensor is asked for; ask for the "
            "types of its results"
        )


@dataclass(frozen=True)
class ShapeOf(Attribute):
    """The extents of a tensor: of all of it, however it is divided.

    >>> ShapeOf().results(PTensorType((4, 5), "int8"))
    ('shape.shape',)
    """

    name = "shape"
    result = "shape.shape"


@dataclass(frozen=True)
class RankOf(Attribute):
    """The number of axes."""

    name = "rank"
    result = "int64"


@dataclass(frozen=True)
class SizeOf(Attribute):
    """The number of elements: of all of a tensor, however it is divided."""

    name = "size"
    result = "int64"


@dataclass(frozen=True)
class ResultType(Attribute):
    """The element type that tensors meet in.

    >>> ResultType().met(PTensorType((4,), "int8"), PTensorType((), "uint8"))
    'int16'
    """

    name = "result_type"
    takes = (1, None)
    result = "type"

    def results(self, *operands: PTensorType) -> tuple[str, ...]:
        """The type of the scalar, if the operands live in one place."""
        check_together(operands, self.name)
        return (self.result,)

    def met(self, *operands: PTensorType) -> str:
        """That element type."""
        return meet([operand.dtype for operand in operands])
