"""What an operation is: attributes, without its operands; the types of its results follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar

from tecomp.ptensor import operations
from tecomp.ptensor.types import PTensorType


@dataclass(frozen=True)
class Operation:
    """An operation on parallel tensors.

    A value of a subclass is what the operation does: which function, which axes. It knows nothing
    of its operands, so that equal operations are one, and what follows from types is looked up.

    Attributes:
        name: as it is printed behind `ptensor.`.
        library: the function of a library that computes it; None if loops do.

    Source:
        RFC PTensor, "Operation details".
    """

    name: ClassVar[str]
    library: ClassVar[str | None] = None

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

    @property
    def attributes(self) -> tuple[tuple[str, Any], ...]:
        """Names and values of what is printed behind the operands."""
        return tuple([
            (f.name, getattr(self, f.name)) for f in fields(self) if f.name != "kind"
        ])


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


@cache
def operation_classes() -> Mapping[str, type[Operation]]:
    """The classes of operations, by the name that is printed."""
    for module in iter_modules(operations.__path__, f"{operations.__name__}."):
        import_module(module.name)
    return {kind.name: kind for kind in _below(Operation) if hasattr(kind, "name")}


def _below(kind: type[Operation]) -> Iterator[type[Operation]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _below(sub)
