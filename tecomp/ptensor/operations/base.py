"""Base classes of attribute, call and library operations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from tecomp.errors import ArrayTypeError
from tecomp.ptensor.operation import PTensorOp, Several
from tecomp.ptensor.types import PTensorType, ValueType, check_same_device_and_team, promote_types


class Attribute(PTensorOp):
    """Operation whose result is a scalar, not a tensor.

    Attributes:
        result: Scalar type of the result.

    Source:
        RFC PTensor, "Operation details".
    """

    result: ClassVar[str]

    def results(self, *operands: PTensorType) -> tuple[str, ...]:
        """Return the scalar type."""
        return (self.result,)

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Raise an error, because the result is not a tensor."""
        raise ArrayTypeError(
            "{where}: the result has type {result}, which is not a tensor type; use results() "
            "instead of infer()",
            where=self.where, result=self.result,
        )


@dataclass(frozen=True)
class ShapeOf(Attribute):
    """Global shape of a tensor.

    >>> ShapeOf().results(PTensorType((4, 5), "int8"))
    ('shape.shape',)
    """

    name = "shape"
    result = "shape.shape"


@dataclass(frozen=True)
class RankOf(Attribute):
    """Number of axes of a tensor."""

    name = "rank"
    result = "int64"


@dataclass(frozen=True)
class SizeOf(Attribute):
    """Global number of elements of a tensor."""

    name = "size"
    result = "int64"


@dataclass(frozen=True)
class ResultType(Attribute):
    """Promoted dtype of tensors.

    >>> ResultType().promoted(PTensorType((4,), "int8"), PTensorType((), "uint8"))
    'int16'
    """

    name = "result_type"
    takes = (1, None)
    result = "type"

    def results(self, *operands: PTensorType) -> tuple[str, ...]:
        """Return the scalar type, if the operands have the same device and team."""
        check_same_device_and_team(operands, self.name)
        return (self.result,)

    def promoted(self, *operands: PTensorType) -> str:
        """Return the promoted dtype."""
        return promote_types([operand.dtype for operand in operands])


@dataclass(frozen=True)
class CallOp(PTensorOp):
    """Call of another function of the module.

    Attributes:
        function: Function name.
        result_types: Declared result types, which `verify_module` compares with the callee.

    Source:
        RFC PTensor, "Wrapper/generator functions".

    >>> print(*CallOp("g", (PTensorType((4,), "int8", device="cpu"),)).results())
    ptensor<4xint8, device='cpu'>
    """

    name = "call"
    dialect = "func"
    takes = (0, None)
    scalars = None

    function: str
    result_types: tuple[ValueType, ...]

    def results(self, *operands: Any) -> tuple[ValueType, ...]:
        """Return the declared result types."""
        return self.result_types

    def infer(self, *operands: Any) -> PTensorType:
        """Return the type of the only result, which must be a tensor."""
        if len(self.result_types) != 1 or not isinstance(self.result_types[0], PTensorType):
            raise ArrayTypeError(
                "@{function}: expected a single tensor result; use results() instead of infer()",
                function=self.function,
            )
        return self.result_types[0]

    @property
    def head(self) -> str:
        """Printed form before the operands."""
        return f"func.call @{self.function}"

    @property
    def attributes(self) -> tuple[tuple[str, Any], ...]:
        """Empty: everything is printed before and after the operands."""
        return ()


@dataclass(frozen=True)
class Kinded(PTensorOp):
    """Operation of several kinds; error messages name the kind.

    Attributes:
        kinds: Supported kinds.
        kind: Kind.

    Raises:
        ArrayTypeError: If the kind is unknown.
    """

    kinds: ClassVar[Collection[str]]

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in self.kinds:
            raise ArrayTypeError(
                "{name}: unknown kind {form!r}; valid kinds: {kinds}",
                name=self.name, form=self.kind, kinds=", ".join(self.kinds),
            )

    @property
    def where(self) -> str:
        """Name for error messages."""
        return self.kind


class LibraryOperation(Several):
    """Operation that a library function computes instead of generated loops.

    Data-dependent extents of a result are None before the computation.
    """

    library: ClassVar[str]
