"""Functions: operations in order, each with a name for its result, and their printed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operation import Argument, Operation
from tecomp.ptensor.types import PTensorType, ValueType


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a function is called with.

    Attributes:
        name: without the `%`.
        type: of a tensor, or the name of a scalar type.
    """

    name: str
    type: ValueType

    def __str__(self) -> str:
        return f"%{self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation on values that have names.

    Attributes:
        result: the name of the result, without the `%`; None if nobody reads it.
        op: the operation.
        operands: the names of the tensors that it is applied to; of scalars, to make tensors.
        types: their types.
        type: of the result; of the first of several.
        more: the other results.

    Raises:
        ArrayTypeError: the operation does not take such elements.
        ArrayValueError: shapes do not fit, or the type of the result is another one.
        DeviceMismatchError: operands live on different devices.
        TeamMismatchError: operands belong to different teams.
    """

    result: str | None
    op: Operation
    operands: tuple[str, ...]
    types: tuple[ValueType, ...]
    type: ValueType
    more: tuple[Parameter, ...] = ()

    def __post_init__(self) -> None:
        self._check_count()
        self._check_kinds()
        given: tuple[Any, ...] = self.types
        found = together(self.op.results(*given))
        declared = together([self.type, *[each.type for each in self.more]])
        if found != declared:
            raise ArrayValueError(
                f"{self._where}: the result is declared as "
                f"{declared}, and follows as {found}; write that",
                kind="ptensor",
            )

    @property
    def _where(self) -> str:
        return f"%{self.result} = {self.op.dialect}.{self.op.name}"

    def _check_count(self) -> None:
        least, most = self.op.takes
        count, typed = len(self.operands), len(self.types)
        if count < least or (most is not None and count > most) or typed != count:
            several = f"{least} or more" if most is None else f"{least} to {most}"
            wanted = f"{least}" if most == least else several
            raise ArrayValueError(
                f"{self._where}: there are {count} operands with {typed} "
                f"types; it takes {wanted}, and a type for each",
                kind="ptensor",
            )

    def _check_kinds(self) -> None:
        """Refuse scalars in place of tensors, and tensors in place of scalars."""
        taken = self.op.scalars
        if taken is None:
            return
        for name, type in zip(self.operands, self.types, strict=True):
            if type not in taken if taken else isinstance(type, str):
                wanted = " or ".join(taken) or "tensors"
                raise ArrayTypeError(
                    f"{self._where}: %{name} is {type}; it takes {wanted}", kind="ptensor"
                )
            if self.op.counts and isinstance(type, PTensorType) and None in type.shape:
                raise ArrayValueError(
                    f"{self._where}: %{name} is {type}; it takes tensors whose extents are known "
                    "before",
                    kind="ptensor",
                )
        for name, value in self.op.attributes:
            if isinstance(value, Argument) and name not in self.op.open:
                raise ArrayTypeError(
                    f"{self._where}: {name} is {value}; write the value "
                    "itself, which the type of the result follows from",
                    kind="ptensor",
                )

    @property
    def made(self) -> tuple[Parameter, ...]:
        """The results that have names, in order."""
        first = () if self.result is None else (Parameter(self.result, self.type),)
        return (*first, *self.more)

    def __str__(self) -> str:
        types = ", ".join(map(str, self.types))
        names = ", ".join(f"%{each.name}" for each in self.made)
        head = f"{names} = " if names else ""
        results = together([self.type, *[each.type for each in self.more]])
        return f"{head}{operation_text(self.op, self.operands)}: ({types}) -> {results}"


def together(types: Sequence[ValueType]) -> str:
    """Types of results as they are printed: one alone, others in parentheses.

    >>> together(["int64"]), together(["int64", "bool"])
    ('int64', '(int64, bool)')
    """
    return str(types[0]) if len(types) == 1 else f"({', '.join(map(str, types))})"


def operation_text(op: Operation, operands: Sequence[str]) -> str:
    """An operation on values, without types.

    >>> from tecomp.ptensor.operations.elementwise import ElementwiseBinaryOp
    >>> operation_text(ElementwiseBinaryOp("add"), ["a", "b"])
    "ptensor.elementwise_binary_op{'add'}(%a, %b)"
    """
    inside = [f"%{name}" for name in operands]
    inside += [f"{name}={value!r}" for name, value in op.attributes]
    return f"{op.head}({', '.join(inside)})"


@dataclass(frozen=True, slots=True)
class Function:
    """Operations in order.

    Attributes:
        name: of the function.
        parameters: what it is called with.
        body: the operations; each reads parameters and results of earlier ones.
        results: the names of what it gives.

    >>> from tecomp.ptensor.operations.elementwise import ElementwiseUnaryOp
    >>> from tecomp.ptensor.types import PTensorType
    >>> t = PTensorType((4,), "int8")
    >>> absolute = Apply("y", ElementwiseUnaryOp("abs"), ("x",), (t,), t)
    >>> print(Function("f", (Parameter("x", t),), (absolute,), ("y",)))
    func @f(%x: ptensor<4xint8>) -> ptensor<4xint8> {
      %y = ptensor.elementwise_unary_op{'abs'}(%x): (ptensor<4xint8>) -> ptensor<4xint8>
      return %y
    }
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Apply, ...]
    results: tuple[str, ...]

    def type_of(self, name: str) -> ValueType:
        """The type of a parameter or a result.

        Raises:
            ArrayValueError: there is none of this name.
        """
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter.type
        for apply in self.body:
            for made in apply.made:
                if made.name == name:
                    return made.type
        raise ArrayValueError(f"@{self.name}: there is no %{name}", kind="ptensor")

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.parameters))
        results = together([self.type_of(name) for name in self.results])
        lines = [f"func @{self.name}({parameters}) -> {results} {{"]
        lines += [f"  {apply}" for apply in self.body]
        lines += [f"  return {', '.join(f'%{name}' for name in self.results)}".rstrip(), "}"]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Module:
    """Functions that call each other.

    Attributes:
        functions: in any order.
    """

    functions: tuple[Function, ...]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.functions))
