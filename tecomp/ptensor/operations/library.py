"""Operations that a function of a library computes."""

from __future__ import annotations

from typing import ClassVar

from tecomp.errors import ArrayTypeError
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.types import PTensorType


class LibraryOperation(Operation):
    """An operation that no loops are made for: a library has better ones.

    Where the shape of a result depends on values, its extents are None before they are known.
    """

    library: ClassVar[str]

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """The types of all results.

        Raises:
            ArrayTypeError: an operand has an element type that the operation does not take.
            ArrayValueError: shapes do not fit.
            DeviceMismatchError: operands live on different devices.
            TeamMismatchError: operands belong to different teams.
        """
        raise NotImplementedError

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The type of the result, if there is one."""
        found = self.results(*operands)
        if len(found) > 1:
            raise ArrayTypeError(
                f"{self.where}: it has {len(found)} results, and one type is asked for; ask for "
                "the types of its results"
            )
        return found[0]
