"""What an operation is: attributes, without its operands; the types of its results follow."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from tecomp.errors import ArrayTypeError
from tecomp.ptensor.types import PTensorType, ValueType


@dataclass(frozen=True)
class Operation:
    """An operation on parallel tensors.

    A value of a subclass is what the operation does: which function, which axes. It knows nothing
    of its operands, so that equal operations are one, and what follows from types is looked up.

    Attributes:
        name: as it is printed behind the dialect.
        dialect: who has it, `ptensor` for all that the catalogue lists.
        library: the function of a library that computes it; None if loops do.
        takes: the least and the greatest number of operands; None if there is no greatest.
        scalars: the types of its operands, if they are no tensors; None if they may be anything.
        open: the attributes that may be an `Argument`, which only the call of a function says.
        counts: whether it has to know the extents of its operands before.

    Source:
        RFC PTensor, "Operation details".
    """

    name: ClassVar[str]
    dialect: ClassVar[str] = "ptensor"
    library: ClassVar[str | None] = None
    takes: ClassVar[tuple[int, int | None]] = (1, 1)
    scalars: ClassVar[tuple[str, ...] | None] = ()
    open: ClassVar[tuple[str, ...]] = ()
    counts: ClassVar[bool] = False

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The type of the result.

        Raises:
            ArrayTypeError: an operand has an element type that the operation does not take.
            ArrayValueError: shapes do not fit.
            DeviceMismatchError: operands live on different devices.
            TeamMismatchError: operands belong to different teams.
        """
        raise NotImplementedError

    def results(self, *operands: PTensorType) -> tuple[ValueType, ...]:
        """The types of all results, of which most operations have one; few give scalars.

        Raises:
            ArrayTypeError: an operand has an element type that the operation does not take.
            ArrayValueError: shapes do not fit.
            DeviceMismatchError: operands live on different devices.
            TeamMismatchError: operands belong to different teams.
        """
        return (self.infer(*operands),)

    def __reduce__(self) -> tuple[Any, ...]:
        # What is kept beside the fields is found again; a hash is another one in each process.
        return type(self), tuple([getattr(self, f.name) for f in fields(self)])

    @property
    def where(self) -> str:
        """What messages call it."""
        return self.name

    @property
    def head(self) -> str:
        """How it is printed before its operands."""
        kind = getattr(self, "kind", None)
        return f"{self.dialect}.{self.name}" + (f"{{{kind!r}}}" if kind is not None else "")

    @property
    def attributes(self) -> tuple[tuple[str, Any], ...]:
        """Names and values of what is printed behind the operands."""
        return tuple([
            (f.name, getattr(self, f.name)) for f in fields(self) if f.name != "kind"
        ])


def to_the_bit(op: Operation, other: object) -> bool:
    """Whether two operations are one, of those whose numbers count: -0.0 is not 0.0."""
    if op.__class__ is not other.__class__:
        return False
    assert isinstance(other, Operation)
    pairs = zip(op.attributes, other.attributes, strict=True)
    return all(a is b or (a == b and repr(a) == repr(b)) for (_, a), (_, b) in pairs)


class Several(Operation):
    """An operation that says the types of all of its results at once."""

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


@dataclass(frozen=True, slots=True)
class Argument:
    """What comes with the call of a function, in place of an attribute that is a number or a text.

    Attributes:
        name: of the function's parameter.
        value: what it is, where that is known before: the device of a tensor is.
    """

    name: str
    value: Any = None

    def __repr__(self) -> str:
        return f"%{self.name}"
