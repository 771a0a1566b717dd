"""Functions, modules and their verifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tecomp.errors import ArrayTypeError, ArrayValueError, DeviceMismatchError, TeamMismatchError
from tecomp.ptensor.devices import results_on_device
from tecomp.ptensor.operation import Argument, Operation, attribute_types
from tecomp.ptensor.operations.base import Call
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
        found = together(results_on_device(self.op, *given))
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


_PLACES = {"device": ("str",), "team": ("int64",), "shape": ("shape.shape",)}
"""What attributes are that are no numbers."""
_NUMBERS = {True: ("int64",), False: ("int64", "float64")}
"""What attributes are that are numbers, by whether they are integers."""


def verify(function: Function) -> None:
    """Check that each name has one meaning, and is read where it has one.

    Raises:
        ArrayValueError: a name has two, or none yet, or another type than where it is read.
    """
    known: dict[str, ValueType] = {}
    for parameter in function.parameters:
        declare(known, parameter.name, parameter.type, function.name)
    for apply in function.body:
        verify_apply(apply, known, function.name)
    for name in function.results:
        function.type_of(name)


def verify_apply(apply: Apply, known: dict[str, ValueType], function: str) -> None:
    """Check that an operation reads known values, and declare its results.

    Args:
        apply: the operation.
        known: types of the values before it, by name; its results are added.
        function: name of the function, for messages.

    Raises:
        ArrayValueError: If an operand is not known or has another type, or a result is known.
    """
    for name, type in zip(apply.operands, apply.types, strict=True):
        if name not in known:
            raise ArrayValueError(
                f"@{function}: %{apply.result} reads %{name}, which is not computed "
                "before it; move it up",
                kind="ptensor",
            )
        if known[name] != type:
            raise ArrayValueError(
                f"@{function}: %{apply.result} reads %{name} as {type}, and it is "
                f"{known[name]}",
                kind="ptensor",
            )
    for name, value in apply.op.attributes:
        if isinstance(value, Argument):
            taken = _PLACES.get(name) or _NUMBERS[attribute_types(apply.op.__class__)[name] is int]
            _check_argument(f"@{function}: %{apply.result}", name, value, known, taken)
    for made in apply.made:
        declare(known, made.name, made.type, function)


def _check_argument(
    where: str, attribute: str, value: Argument, known: Mapping[str, ValueType],
    taken: tuple[str, ...],
) -> None:
    found = known.get(value.name)
    if not isinstance(found, str):
        raise ArrayValueError(
            f"{where} takes {value} as a number, and there is no such parameter", kind="ptensor"
        )
    if found not in taken:
        raise ArrayValueError(
            f"{where} takes {value} as {attribute}, and it is {found}; give {' or '.join(taken)}",
            kind="ptensor",
        )


def declare(known: dict[str, ValueType], name: str, type: ValueType, function: str) -> None:
    """Add a value to the known ones.

    Args:
        known: types by name.
        name: of the value.
        type: of the value.
        function: name of the function, for messages.

    Raises:
        ArrayValueError: If the name is known.
    """
    if name in known:
        raise ArrayValueError(
            f"@{function}: %{name} is made twice; give one another name", kind="ptensor"
        )
    known[name] = type


def verify_module(module: Module) -> None:
    """Check functions, and that each call gives a function what it takes, and takes what it gives.

    Raises:
        ArrayValueError: a function is there twice or not at all, calls itself, or has other types.
        DeviceMismatchError: a value is taken on another device than it is given on.
        TeamMismatchError: a value is taken of another team than it is given of.
    """
    known: dict[str, Function] = {}
    for function in module.functions:
        verify(function)
        if function.name in known:
            raise ArrayValueError(
                f"@{function.name} is there twice; give one another name", kind="ptensor"
            )
        known[function.name] = function
    for function in module.functions:
        for apply in function.body:
            if isinstance(apply.op, Call):
                _check_call(function, apply, apply.op, known)
    callees_first(module)


def callees_first(module: Module) -> tuple[Function, ...]:
    """The functions, each behind those that it calls.

    Raises:
        ArrayValueError: a function calls itself, perhaps by others.
    """
    known = {function.name: function for function in module.functions}
    waiting = {name: _callees(function) for name, function in known.items()}
    done: dict[str, Function] = {}
    while waiting:
        ready = [name for name, callees in waiting.items() if callees <= done.keys()]
        if not ready:
            names = ", ".join(f"@{name}" for name in waiting)
            raise ArrayValueError(
                f"{names}: one of them calls itself, perhaps by others, and no call would end; "
                "write what it does in its place", kind="ptensor"
            )
        for name in ready:
            done[name] = known[name]
            del waiting[name]
    return tuple(done.values())


def _callees(function: Function) -> set[str]:
    return {apply.op.function for apply in function.body if isinstance(apply.op, Call)}


def _check_call(function: Function, apply: Apply, op: Call, known: Mapping[str, Function]) -> None:
    where = f"@{function.name}: call of @{op.function}"
    callee = known.get(op.function)
    if callee is None:
        raise ArrayValueError(
            f"{where}: there is no such function; add it to the module", kind="ptensor"
        )
    results = [(name, callee.type_of(name)) for name in callee.results]
    counts = len(apply.types), len(op.gives)
    if counts != (len(callee.parameters), len(results)):
        raise ArrayValueError(
            f"{where}: it has {len(callee.parameters)} parameters and {len(results)} results, and "
            f"there are {counts[0]} and {counts[1]}; give one for each", kind="ptensor"
        )
    for given, parameter in zip(apply.types, callee.parameters, strict=True):
        _check_passed(f"{where}: parameter %{parameter.name}", parameter.type, given)
    for wanted, (name, type) in zip(op.gives, results, strict=True):
        _check_passed(f"{where}: result %{name}", wanted, type)


def _check_passed(where: str, taken: ValueType, given: ValueType) -> None:
    """Refuse a value that is taken as of another type than it is; its number may be left open."""
    if isinstance(taken, PTensorType) and isinstance(given, PTensorType):
        places = f"{where} is taken as {taken}, and given as {given}; a value keeps its"
        if taken.device != given.device:
            raise DeviceMismatchError(f"{places} device: bring it there before")
        if taken.team != given.team:
            raise TeamMismatchError(f"{places} team: gather it before, or write that team")
        if taken.gid is None:
            given = replace(given, gid=None)
    if taken != given:
        raise ArrayValueError(
            f"{where} is taken as {taken}, and given as {given}; write that", kind="ptensor"
        )
