"""What an operation is: attributes, without its operands; the types of its results follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tecomp.ptensor.types import PTensorType


@dataclass(frozen=True)
class Operation:
    """An operation on parallel tensors.

    A value of a subclass is what the operation does: which function, which axes. It knows nothing
    of its operands, so that equal operations are one, and what follows from types is looked up.

    Attributes:
        name: as it is printed behind `ptensor.`.

    Source:
        RFC PTensor, "Operation details".
    """

    name: ClassVar[str]

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The type of the result.

        Raises:
            ArrayTypeError: an operand has an element type that the operation does not take.
            ArrayValueError: shapes do not fit.
            DeviceMismatchError: operands live on different devices.
            TeamMismatchError: operands belong to different teams.
        """
        raise NotImplementedError

    @property
    def where(self) -> str:
        """What messages call it."""
        return self.name
