"""Base classes of operations: attributes without operands, and inference of result types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from tecomp.errors import ArrayTypeError
from tecomp.ptensor.types import PTensorType, ValueType


@dataclass(frozen=True)
class PTensorOp:
    """Operation on parallel tensors.

    An instance of a subclass specifies the function and its attributes, such as axes, but not its
    operands. Equal operations are therefore interchangeable, and inferred types are cached by
    operation.

    Attributes:
        name: Printed name after the dialect.
        dialect: Dialect, `ptensor` for all operations of the catalogue.
        library: Library function that computes the operation; None if loops compute it.
        takes: Minimum and maximum number of operands; None for no maximum.
        scalars: Types of operands that are not tensors; None if any types are accepted.
        open: Attributes that may be an `AttributeOperand`, whose value the call of the function
            gives.
        counts: Whether the extents of the operands must be known in advance.

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
        """Return the type of the result.

        Raises:
            ArrayTypeError: If the operation does not support the dtype of an operand.
            ArrayValueError: If the shapes do not match.
            DeviceMismatchError: If the operands are on different devices.
            TeamMismatchError: If the operands belong to different teams.
        """
        raise NotImplementedError

    def results(self, *operands: PTensorType) -> tuple[ValueType, ...]:
        """Return the types of all results; most operations have one result, and few return scalars.

        Raises:
            ArrayTypeError: If the operation does not support the dtype of an operand.
            ArrayValueError: If the shapes do not match.
            DeviceMismatchError: If the operands are on different devices.
            TeamMismatchError: If the operands belong to different teams.
        """
        return (self.infer(*operands),)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle only the fields: cached attributes are derived, and hashes differ per process.
        return type(self), tuple([getattr(self, f.name) for f in fields(self)])

    @property
    def where(self) -> str:
        """Name for error messages."""
        return self.name

    @property
    def head(self) -> str:
        """Printed form before the operands."""
        kind = getattr(self, "kind", None)
        return f"{self.dialect}.{self.name}" + (f"{{{kind!r}}}" if kind is not None else "")

    @property
    def attributes(self) -> tuple[tuple[str, Any], ...]:
        """Names and values of the attributes that are printed after the operands."""
        return tuple([
            (f.name, getattr(self, f.name)) for f in fields(self) if f.name != "kind"
        ])


def to_the_bit(op: PTensorOp, other: object) -> bool:
    """Return whether two operations are equal with bitwise equal numbers: -0.0 differs from 0.0."""
    if op.__class__ is not other.__class__:
        return False
    assert isinstance(other, PTensorOp)
    pairs = zip(op.attributes, other.attributes, strict=True)
    return all(a is b or (a == b and repr(a) == repr(b)) for (_, a), (_, b) in pairs)


class Several(PTensorOp):
    """Operation that infers the types of all results together."""

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the types of all results.

        Raises:
            ArrayTypeError: If the operation does not support the dtype of an operand.
            ArrayValueError: If the shapes do not match.
            DeviceMismatchError: If the operands are on different devices.
            TeamMismatchError: If the operands belong to different teams.
        """
        raise NotImplementedError

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type of the only result.

        Raises:
            ArrayTypeError: If the operation has several results.
        """
        found = self.results(*operands)
        if len(found) > 1:
            raise ArrayTypeError(
                "{where}: expected a single result, but the operation has {found_count}; use "
                "results() instead of infer()",
                where=self.where, found_count=len(found),
            )
        return found[0]


@dataclass(frozen=True, slots=True)
class AttributeOperand:
    """Function parameter that is used in place of an attribute.

    Attributes:
        name: Name of the function parameter.
        value: Value if known in advance, such as the device of a tensor.
    """

    name: str
    value: Any = None

    def __repr__(self) -> str:
        return f"%{self.name}"


def attribute_types(kind: type[PTensorOp]) -> Mapping[str, Any]:
    """Return the declared types of the attributes of an operation, by name.

    Args:
        kind: Class of the operation.
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
        value: Number, string, None or tuple of these. An integer matches a floating-point type.
        declared: Type as `attribute_types` returns it.

    >>> fits_type((1, 2), tuple[int, ...]), fits_type(True, int), fits_type(2, float | None)
    (True, False, True)
    """
    origin, inner = get_origin(declared), get_args(declared)
    if origin is UnionType:
        return any(fits_type(value, member) for member in inner)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if inner[-1] is Ellipsis:
            return all(fits_type(item, inner[0]) for item in value)
        return len(value) == len(inner) and all(map(fits_type, value, inner))
    if type(value) is int:
        return declared in (int, float, complex) and -(2**63) <= value <= 2**64
    if type(value) is float:
        return declared in (float, complex)
    return type(value) is declared


def type_text(declared: Any) -> str:
    """Return the declared type of an attribute in words.

    Args:
        declared: Type as `attribute_types` returns it.

    >>> type_text(str | None), type_text(tuple[int, ...])
    ('a string or None', 'a tuple')
    """
    if get_origin(declared) is UnionType:
        return " or ".join(dict.fromkeys(map(type_text, get_args(declared))))
    return "a tuple" if get_origin(declared) is tuple else _WORDS[declared]


_WORDS: Mapping[Any, str] = {
    int: "a 64-bit integer", float: "a number", complex: "a number", bool: "True or False",
    str: "a string", NoneType: "None", AttributeOperand: "a parameter such as %n",
}  # fmt: skip
