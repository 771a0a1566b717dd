"""Attribute, call and library operation base classes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from tecomp.errors import ArrayTypeError
from tecomp.ptensor.operation import Operation, Several
from tecomp.ptensor.types import PTensorType, ValueType, check_together, meet


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


@dataclass(frozen=True)
class Kinded(Operation):
    """An operation of several kinds, which messages call by the kind.

    Attributes:
        kinds: that there are.
        kind: which one.

    Raises:
        ArrayTypeError: there is no such kind.
    """

    kinds: ClassVar[Collection[str]]

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in self.kinds:
            raise ArrayTypeError(
                f"{self.name}: {self.kind!r} is no such kind; these are {', '.join(self.kinds)}"
            )

    @property
    def where(self) -> str:
        """What messages call it."""
        return self.kind


class LibraryOperation(Several):
    """An operation that no loops are made for: a library has better ones.

    Where the shape of a result depends on values, its extents are None before they are known.
    """

    library: ClassVar[str]
