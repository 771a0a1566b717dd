"""Functions, modules and their verifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tecomp.errors import ArrayTypeError, ArrayValueError, DeviceMismatchError, TeamMismatchError
from tecomp.ptensor.devices import results_on_device
from tecomp.ptensor.operation import AttributeOperand, PTensorOp, attribute_types, fits_type
from tecomp.ptensor.operations.base import CallOp
from tecomp.ptensor.types import COMPLEX, INTEGERS, NUMERIC, REAL, PTensorType, ValueType


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter of a function.

    Attributes:
        name: Name without the `%`.
        type: Type of a tensor, or name of a scalar type.
    """

    name: str
    type: ValueType

    def __str__(self) -> str:
        return f"%{self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class Apply:
    """Application of an operation to named values.

    Attributes:
        result: Name of the result without the `%`; None if the result is unused.
        op: Operation.
        operands: Names of the operands: tensors, or scalars for creation operations.
        types: Types of the operands.
        type: Type of the (first) result.
        more: Further results.

    Raises:
        ArrayTypeError: If the operation does not support the dtypes.
        ArrayValueError: If the shapes do not match, or the type of the result is wrong.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.
    """

    result: str | None
    op: PTensorOp
    operands: tuple[str, ...]
    types: tuple[ValueType, ...]
    type: ValueType
    more: tuple[Parameter, ...] = ()

    def __post_init__(self) -> None:
        self._check_count()
        self._check_kinds()
        operand_types: tuple[Any, ...] = self.types
        found = format_result_types(results_on_device(self.op, *operand_types))
        declared = format_result_types([self.type, *[result.type for result in self.more]])
        if found != declared:
            raise ArrayValueError(
                "{where}: the declared result type {declared} does not match the inferred type; "
                "declare {found}",
                kind="ptensor", where=self._where, declared=declared, found=found,
            )

    @property
    def _where(self) -> str:
        return f"%{self.result} = {self.op.dialect}.{self.op.name}"

    def _check_count(self) -> None:
        lower, upper = self.op.takes
        count, typed = len(self.operands), len(self.types)
        if count < lower or (upper is not None and count > upper) or typed != count:
            counts = f"{lower} or more" if upper is None else f"{lower} to {upper}"
            expected = f"{lower}" if upper == lower else counts
            raise ArrayValueError(
                "{where}: expected {expected} operands with one type each, got {count} operands "
                "and {typed} types",
                kind="ptensor", where=self._where, count=count, typed=typed, expected=expected,
            )

    def _check_kinds(self) -> None:
        """Reject scalars in place of tensors, and tensors in place of scalars."""
        accepted = self.op.scalars
        if accepted is None:
            return
        for name, ptype in zip(self.operands, self.types, strict=True):
            if ptype not in accepted if accepted else isinstance(ptype, str):
                expected = " or ".join(accepted) or "tensors"
                raise ArrayTypeError(
                    "{where}: %{name} has type {type}, expected {expected}",
                    kind="ptensor", where=self._where, name=name, type=ptype, expected=expected,
                )
            if self.op.counts and isinstance(ptype, PTensorType) and None in ptype.shape:
                raise ArrayValueError(
                    "{where}: %{name} has type {type}, but all extents must be static",
                    kind="ptensor", where=self._where, name=name, type=ptype,
                )
        for name, value in self.op.attributes:
            if isinstance(value, AttributeOperand) and name not in self.op.open:
                raise ArrayTypeError(
                    "{where}: {name} is {value}, but the result type depends on it; specify a "
                    "constant",
                    kind="ptensor", where=self._where, name=name, value=value,
                )

    @property
    def named_results(self) -> tuple[Parameter, ...]:
        """Named results, in order."""
        first = () if self.result is None else (Parameter(self.result, self.type),)
        return (*first, *self.more)

    def __str__(self) -> str:
        types = ", ".join(map(str, self.types))
        names = ", ".join(f"%{result.name}" for result in self.named_results)
        head = f"{names} = " if names else ""
        results = format_result_types([self.type, *[result.type for result in self.more]])
        return f"{head}{operation_text(self.op, self.operands)}: ({types}) -> {results}"


def format_result_types(types: Sequence[ValueType]) -> str:
    """Format the types of results: a single type as it is, several in parentheses.

    >>> format_result_types(["int64"]), format_result_types(["int64", "bool"])
    ('int64', '(int64, bool)')
    """
    return str(types[0]) if len(types) == 1 else f"({', '.join(map(str, types))})"


def operation_text(op: PTensorOp, operands: Sequence[str]) -> str:
    """Format an operation on values, without types.

    >>> from tecomp.ptensor.operations.elementwise import ElementwiseBinaryOp
    >>> operation_text(ElementwiseBinaryOp("add"), ["a", "b"])
    "ptensor.elementwise_binary_op{'add'}(%a, %b)"
    """
    inside = [f"%{name}" for name in operands]
    inside += [f"{name}={value!r}" for name, value in op.attributes]
    return f"{op.head}({', '.join(inside)})"


@dataclass(frozen=True, slots=True)
class Function:
    """Sequence of operations.

    Attributes:
        name: Name of the function.
        parameters: Parameters of the function.
        body: Operations; each reads parameters and results of earlier operations.
        results: Names of the results.

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
        """Return the type of a parameter or a result.

        Raises:
            ArrayValueError: If the name is not defined.
        """
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter.type
        for apply in self.body:
            for result in apply.named_results:
                if result.name == name:
                    return result.type
        raise ArrayValueError(
            "@{name}: %{value_name} is not defined",
            kind="ptensor", name=self.name, value_name=name,
        )

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.parameters))
        results = format_result_types([self.type_of(name) for name in self.results])
        lines = [f"func @{self.name}({parameters}) -> {results} {{"]
        lines += [f"  {apply}" for apply in self.body]
        lines += [f"  return {', '.join(f'%{name}' for name in self.results)}".rstrip(), "}"]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Module:
    """Functions that call each other.

    Attributes:
        functions: Functions in any order.
    """

    functions: tuple[Function, ...]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.functions))


_PLACES = {"device": ("str",), "shape": ("shape.shape",)}
"""Scalar types of attributes that are not numbers."""


def verify(function: Function) -> None:
    """Check that each name is defined once, and before its uses, with the type of its uses.

    Raises:
        ArrayValueError: If a name is defined twice, is undefined, or has another type than its use.
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
        apply: Operation with its operands.
        known: Types of the preceding values, by name; the results are added.
        function: Function name for error messages.

    Raises:
        ArrayValueError: If an operand is not known or has another type, or a result is known.
    """
    for name, ptype in zip(apply.operands, apply.types, strict=True):
        if name not in known:
            raise ArrayValueError(
                "@{function}: %{result} uses %{name} before its definition; define it earlier",
                kind="ptensor", function=function, result=apply.result, name=name,
            )
        if known[name] != ptype:
            raise ArrayValueError(
                "@{function}: %{result} uses %{name} as {type}, but it has type {known}",
                kind="ptensor", function=function, result=apply.result, name=name, type=ptype,
                known=known[name],
            )
    for name, value in apply.op.attributes:
        if isinstance(value, AttributeOperand):
            types = _PLACES.get(name) or _number_types(apply, name)
            _check_argument(f"@{function}: %{apply.result}", name, value, known, types)
    for result in apply.named_results:
        declare(known, result.name, result.type, function)


def _number_types(apply: Apply, name: str) -> tuple[str, ...]:
    """Return the scalar types of a numeric attribute."""
    declared = attribute_types(apply.op.__class__)[name]
    if not fits_type(0.5, declared):
        return INTEGERS
    is_complex = isinstance(apply.type, PTensorType) and apply.type.dtype in COMPLEX
    return NUMERIC if is_complex and fits_type(0.5j, declared) else REAL


def _check_argument(
    where: str, attribute: str, value: AttributeOperand, known: Mapping[str, ValueType],
    accepted: tuple[str, ...],
) -> None:
    found = known.get(value.name)
    if not isinstance(found, str):
        raise ArrayValueError(
            "{where} uses {value} as a number, but no such scalar parameter is defined",
            kind="ptensor", where=where, value=value,
        )
    if found not in accepted:
        raise ArrayValueError(
            "{where} uses {value} as {attribute}, but it has type {found}; expected {expected}",
            kind="ptensor", where=where, value=value, attribute=attribute, found=found,
            expected=" or ".join(accepted),
        )


def declare(known: dict[str, ValueType], name: str, ptype: ValueType, function: str) -> None:
    """Add a value to the known values.

    Args:
        known: Types by name.
        name: Name of the value.
        ptype: Type of the value.
        function: Function name for error messages.

    Raises:
        ArrayValueError: If the name is known.
    """
    if name in known:
        raise ArrayValueError(
            "@{function}: %{name} is defined more than once; rename one of the values",
            kind="ptensor", function=function, name=name,
        )
    known[name] = ptype


def verify_module(module: Module) -> None:
    """Check all functions, and that calls match the signatures of their callees.

    Raises:
        ArrayValueError: If a function is defined twice, undefined or recursive, or a call has other
            types.
        DeviceMismatchError: If a value is passed on another device than declared.
        TeamMismatchError: If a value is passed with another team than declared.
    """
    known: dict[str, Function] = {}
    for function in module.functions:
        verify(function)
        if function.name in known:
            raise ArrayValueError(
                "@{function} is defined more than once; rename one of the functions",
                kind="ptensor", function=function.name,
            )
        known[function.name] = function
    for function in module.functions:
        for apply in function.body:
            if isinstance(apply.op, CallOp):
                _check_call(function, apply, apply.op, known)
    callees_first(module)


def callees_first(module: Module) -> tuple[Function, ...]:
    """Return the functions in topological order of the call graph, callees first.

    Raises:
        ArrayValueError: If a function is directly or indirectly recursive.
    """
    known = {function.name: function for function in module.functions}
    pending = {
        name: {apply.op.function for apply in function.body if isinstance(apply.op, CallOp)}
        for name, function in known.items()
    }
    done: dict[str, Function] = {}
    while pending:
        ready = [name for name, callees in pending.items() if callees <= done.keys()]
        if not ready:
            names = ", ".join(f"@{name}" for name in pending)
            raise ArrayValueError(
                "{names}: recursive calls, direct or indirect, are not supported; inline one of "
                "the functions",
                kind="ptensor", names=names,
            )
        for name in ready:
            done[name] = known[name]
            del pending[name]
    return tuple(done.values())


def _check_call(
    function: Function, apply: Apply, op: CallOp, known: Mapping[str, Function]
) -> None:
    where = f"@{function.name}: call of @{op.function}"
    callee = known.get(op.function)
    if callee is None:
        raise ArrayValueError(
            "{where}: the callee is not defined; add it to the module",
            kind="ptensor", where=where,
        )
    results = [(name, callee.type_of(name)) for name in callee.results]
    counts = len(apply.types), len(op.result_types)
    if counts != (len(callee.parameters), len(results)):
        raise ArrayValueError(
            "{where}: expected {parameter_count} operands and {result_count} results, got {count} "
            "and {result_given}",
            kind="ptensor", where=where, parameter_count=len(callee.parameters),
            result_count=len(results), count=counts[0], result_given=counts[1],
        )
    for actual, parameter in zip(apply.types, callee.parameters, strict=True):
        _check_passed(f"{where}: parameter %{parameter.name}", parameter.type, actual)
    for expected, (name, ptype) in zip(op.result_types, results, strict=True):
        _check_passed(f"{where}: result %{name}", expected, ptype)


def _check_passed(where: str, declared: ValueType, actual: ValueType) -> None:
    """Reject a value of another type than declared; the tensor number may be unspecified."""
    if isinstance(declared, PTensorType) and isinstance(actual, PTensorType):
        prefix = f"{where} is declared as {declared}, but passed as {actual}; a value must keep its"
        if declared.device != actual.device:
            raise DeviceMismatchError(
                "{message} device across a call: transfer it to the declared device first",
                message=prefix,
            )
        if declared.team != actual.team:
            raise TeamMismatchError(
                "{message} team across a call: gather it first, or declare its team",
                message=prefix,
            )
        if declared.gid is None:
            actual = replace(actual, gid=None)
    if declared != actual:
        raise ArrayValueError(
            "{where} is declared as {declared}, but passed as {passed}; declare that type",
            kind="ptensor", where=where, declared=declared, passed=actual,
        )
