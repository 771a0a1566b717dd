"""Calls of other functions: values go there and come back with device, team and number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tecomp.errors import ArrayTypeError
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.types import PTensorType, ValueType


@dataclass(frozen=True)
class Call(Operation):
    """A call of another function of the module.

    Attributes:
        function: its name.
        gives: the types of its results, which `verify_module` compares with those that it has.

    Source:
        RFC PTensor, "Wrapper/generator functions".

    >>> print(*Call("g", (PTensorType((4,), "int8", device="cpu"),)).results())
    ptensor<4xint8, device='cpu'>
    """

    name = "call"
    dialect = "func"
    takes = (0, None)
    scalars = None

    function: str
    gives: tuple[ValueType, ...]

    def results(self, *operands: Any) -> tuple[ValueType, ...]:
        """Those types."""
        return self.gives

    def infer(self, *operands: Any) -> PTensorType:
        """The type of the result, if there is one and it is a tensor."""
        if len(self.gives) != 1 or not isinstance(self.gives[0], PTensorType):
            raise ArrayTypeError(
                f"@{self.function}: it does not give one tensor; ask for the types of its results"
            )
        return self.gives[0]

    @property
    def head(self) -> str:
        """How it is printed before its operands."""
        return f"func.call @{self.function}"

    @property
    def attributes(self) -> tuple[tuple[str, Any], ...]:
        """None: all is printed before and behind the operands."""
        return ()
