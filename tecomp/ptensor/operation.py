"""What an operation is: attributes, without its operands; the types of its results follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

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


def attribute_types(kind: type[Operation]) -> Mapping[str, Any]:
    """Return the declared types of the attributes of an operation, by name.

    Args:
        kind: class of the operation.
    """
    declared: Any = kind
    return _attribute_types(declared)


@cache
def _attribute_types(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def fits_type(value: object, declared: Any) -> bool:
    """Return whether a literal has the declared type of an attribute.

    Args:
        value: number, string, None or tuple of these. An integer fits a floating-point type.
        declared: type as `attribute_types` gives it.

    >>> fits_type((1, 2), tuple[int, ...]), fits_type(True, int), fits_type(2, float | None)
    (True, False, True)
    """
    origin, inner = get_origin(declared), get_args(declared)
    if origin is UnionType:
        return any(fits_type(value, each) for each in inner)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if inner[-1] is Ellipsis:
            return all(fits_type(each, inner[0]) for each in value)
        return len(value) == len(inner) and all(map(fits_type, value, inner))
    if type(value) is int:
        return declared in (int, float, complex) and -(2**63) <= value <= 2**64
    if type(value) is float:
        return declared in (float, complex)
    return type(value) is declared


def type_text(declared: Any) -> str:
    """Return the declared type of an attribute in words.

    Args:
        declared: type as `attribute_types` gives it.

    >>> type_text(str | None), type_text(tuple[int, ...])
    ('a string or None', 'a tuple')
    """
    if get_origin(declared) is UnionType:
        return " or ".join(dict.fromkeys(map(type_text, get_args(declared))))
    return "a tuple" if get_origin(declared) is tuple else _WORDS[declared]


_WORDS: Mapping[Any, str] = {
    int: "an integer of 64 bits", float: "a number", complex: "a number", bool: "True or False",
    str: "a string", NoneType: "None", Argument: "a parameter such as %n",
}  # fmt: skip
