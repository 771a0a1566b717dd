"""Parser of printed functions and modules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from tecomp.errors import ArrayValueError
from tecomp.ptensor import operations
from tecomp.ptensor.function import (
    Apply,
    Function,
    Module,
    Parameter,
    declare,
    format_result_types,
    verify_apply,
    verify_module,
)
from tecomp.ptensor.operation import (
    AttributeOperand,
    PTensorOp,
)
from tecomp.ptensor.operations.base import CallOp
from tecomp.ptensor.operations.creation import (
    AsArray,
    Create,
    CreateLike,
)
from tecomp.ptensor.operations.elementwise import ElementwiseBinaryTest
from tecomp.ptensor.parse_operands import (
    ANY_SCALAR,
    DEFAULTS,
    MAX_DIGITS,
    MLIR_DTYPES,
    NAME,
    STRING,
    VALUE,
    OperationItem,
    Reader,
    check_complete,
    import_attributes,
    literal,
    named_attributes,
    operand_count,
    parse_item,
    parse_typed_items,
    positional_attributes,
    resolve_type,
    string,
)
from tecomp.ptensor.types import ALL, SCALARS, PTensorType, ValueType

_FUNCTION = re.compile(r"@\w+")
_SCALAR = re.compile("|".join(re.escape(name) + r"(?!\w)" for name in (*SCALARS, *MLIR_DTYPES)))
_SHAPE = re.compile(r"(?:(?:[0-9]+|\?)x)*")
_DTYPE = re.compile(r"[a-z]+[0-9]*")
_ARROW = re.compile(r"->")
_EXAMPLE = "%x: ptensor<4xfloat32>"
_TYPE = "ptensor<4x5xfloat32, device='cpu'>"
_MARKS = ("device", "team", "gid")
_SPELLINGS: Mapping[tuple[str, str], tuple[str, str | None]] = {
    ("elementwise_binary_op", "sub"): ("elementwise_binary_op", "subtract"),
    **{
        ("elementwise_binary_op", kind): ("elementwise_binary_test", kind)
        for kind in ElementwiseBinaryTest.functions
    },
    **{
        (name, kind): (name, None) for name in ("sort", "argsort")
        for kind in ("quicksort", "heapsort", "mergesort", "stable")
    },
}
"""Spellings of operations and kinds that differ between sections of the RFC.

The RFC gives `sort` kinds without naming them: the parser accepts the kinds of NumPy, and one
stable algorithm implements all of them.
"""
_WORDS = (*ANY_SCALAR, "array", "list", "slice")
"""Types that the RFC gives to positional attributes, in addition to those of scalars."""


def parse(text: str) -> Function:
    """Parse the printed form of one function.

    Args:
        text: Printed function. Whitespace between tokens is ignored.

    Raises:
        ParseError: If the text is malformed; the message begins with its line and column.
        ArrayTypeError, ArrayValueError: If operations do not fit together; with the line.

    >>> from tecomp.ptensor.operations.elementwise import ElementwiseUnaryOp
    >>> f = parse('''func @f(%x: ptensor<4xint8>) -> ptensor<4xint8> {
    ...   %y = ptensor.elementwise_unary_op{'abs'}(%x): (ptensor<4xint8>) -> ptensor<4xint8>
    ...   return %y
    ... }''')
    >>> f.body[0].op
    ElementwiseUnaryOp(kind='abs')
    """
    reader = Reader(text, "parse")
    function = _function(reader)
    reader.end()
    return function


def parse_module(text: str) -> Module:
    """Parse the printed form of a module: functions that may call each other.

    Args:
        text: Printed functions, in any order.

    Raises:
        ParseError: If the text is malformed; the message begins with its line and column.
        ArrayTypeError, ArrayValueError: If operations or functions do not fit together.
    """
    reader = Reader(text, "parse_module")
    functions = [_function(reader)]
    while not reader.is_at_end:
        functions.append(_function(reader))
    module = Module(tuple(functions))
    verify_module(module)
    return module


def parse_type(text: str) -> PTensorType:
    """Parse the printed form of the type of a tensor.

    Args:
        text: Printed type.

    Raises:
        ParseError: If the text is malformed; the message begins with its line and column.

    >>> parse_type("ptensor<4x5xfloat32, device='cpu', team=1>").team
    1
    """
    reader = Reader(text, "parse_type")
    found = _tensor_type(reader)
    reader.end()
    return found


def _function(reader: Reader) -> Function:
    reader.need("func", f"at the beginning of a function, `func @name({_EXAMPLE}) -> ...`")
    name = reader.expect(_FUNCTION, "the name of the function, such as `@f`")[1:]
    reader.need("(", "before the parameters")
    known: dict[str, ValueType] = {}
    parameters = reader.listed(lambda r: _parameter(r, name, known), ")")
    reader.expect(_ARROW, "`->` and the types of the results")
    declared = _types(reader)
    reader.need("{", "before the operations")
    body: list[Apply] = []
    while not _begins_return(reader):
        body += _apply(reader, name, known)
    returned = reader.position
    results = reader.listed(lambda r: r.expect(VALUE, "a result such as `%y`")[1:], "}")
    function = Function(name, tuple(parameters), tuple(body), tuple(results))
    with reader.located(returned):
        found = [function.type_of(result) for result in results]
        if declared != found:
            raise ArrayValueError(
                "@{name}: the declared result types {declared} do not match the inferred types; "
                "declare {found}",
                kind="ptensor", name=name, declared=format_result_types(declared),
                found=format_result_types(found),
            )
    return function


def _begins_return(reader: Reader) -> bool:
    position = reader.position
    if (match := reader.take(NAME)) and match[0] == "return":
        return True
    reader.position = position
    return False


def _parameter(reader: Reader, function: str, known: dict[str, ValueType]) -> Parameter:
    start = reader.position
    name = reader.expect(VALUE, f"a parameter such as `{_EXAMPLE}`")[1:]
    reader.need(":", "and a type after the parameter name")
    parameter = Parameter(name, _value_type(reader))
    with reader.located(start):
        declare(known, name, parameter.type, function)
    return parameter


def _types(reader: Reader) -> list[ValueType]:
    for start, end in ("()", "[]"):
        if reader.has(start):
            return reader.listed(_value_type, end)
    return [_value_type(reader)]


def _value_type(reader: Reader) -> ValueType:
    if match := reader.take(_SCALAR):
        return MLIR_DTYPES.get(match[0], match[0])
    start = reader.position
    if (match := reader.take(NAME)) and match[0] in _WORDS:
        reader.refuse(
            "{word} is a type of operands only; declare the type of the value, one of {scalars}",
            start, word=match[0], scalars=", ".join(SCALARS),
        )
    reader.position = start
    return _tensor_type(reader)


def _operand_type(reader: Reader) -> ValueType:
    """Return the type of an operand or of a positional attribute."""
    start = reader.position
    match = reader.take(NAME)
    if match and match[0] in _WORDS:
        return match[0]
    reader.position = start
    return _value_type(reader)


def _tensor_type(reader: Reader) -> PTensorType:
    if not (reader.has("ptensor.ptensor") or reader.has("ptensor")):
        reader.refuse(
            "expected a type, `{type}` or one of {scalars}",
            type=_TYPE, scalars=", ".join(SCALARS),
        )
    reader.need("<", f"after `ptensor`, as in `{_TYPE}`")
    shape = _extents(reader)
    start = reader.position
    dtype = reader.expect(_DTYPE, "extents and a dtype, such as `4x5xfloat32`")
    dtype = MLIR_DTYPES.get(dtype, dtype)
    if dtype not in ALL:
        reader.refuse("expected one of the dtypes {all}", start, all=", ".join(ALL))
    attributes: dict[str, Any] = {}
    while not reader.has(">"):
        reader.need(",", "or `>` after a component of a type")
        _mark(reader, attributes)
    return PTensorType(shape, dtype, **attributes)


def _extents(reader: Reader) -> Any:
    """Parse the extents of a type; None for an extent known only at run time."""
    start = reader.position
    match = reader.take(_SHAPE)
    texts = match[0].split("x")[:-1] if match else []
    found: list[int | None] = []
    for text in texts:
        if len(text) > MAX_DIGITS or (text != "?" and int(text) >= 2**63):
            reader.refuse("an extent must be less than 2**63", start)
        found.append(None if text == "?" else int(text))
    return tuple(found)


def _mark(reader: Reader, attributes: dict[str, Any]) -> None:
    start = reader.position
    name = reader.expect(NAME, "device=, team= or gid=")
    if name not in _MARKS:
        reader.refuse("unknown type attribute, expected device=, team= or gid=", start)
    if name in attributes:
        reader.refuse("duplicate type attribute {name}=", start, name=name)
    reader.need("=", f"behind {name}")
    start = reader.position
    value = literal(reader)
    if name == "device" and not isinstance(value, str):
        reader.refuse("device must be a string", start)
    if name != "device" and (type(value) is not int or not 0 <= value < 2**63):
        reader.refuse("{name} must be a nonnegative integer", start, name=name)
    attributes[name] = value


def _apply(reader: Reader, function: str, known: dict[str, ValueType]) -> list[Apply]:
    start = reader.position
    names = _names(reader)
    applied = [_parse_call(reader, names)] if reader.has("func.call") else _applied(
        reader, names, known)
    with reader.located(start):
        for apply in applied:
            verify_apply(apply, known, function)
    return applied


def _names(reader: Reader) -> list[str]:
    """Parse the names of the results, before `=`."""
    found: list[str] = []
    while match := reader.take(VALUE):
        found.append(match[0][1:])
        if not reader.has(","):
            reader.need("=", "or `,` after a result name")
            break
    return found


def _parse_call(reader: Reader, names: list[str]) -> Apply:
    start = reader.position
    callee = reader.expect(_FUNCTION, "the name of a function, such as `@f`")[1:]
    reader.need("(", "after a function name")
    operands = reader.listed(lambda r: r.expect(VALUE, "an operand such as `%x`")[1:], ")")
    types, results = _signature(reader, names)
    with reader.located(start):
        return _create_apply(names, CallOp(callee, tuple(results)), operands, types, results)


def _create_apply(
    names: list[str], op: PTensorOp, operands: list[str], types: list[ValueType],
    results: list[ValueType],
) -> Apply:
    extra_results = tuple(map(Parameter, names[1:], results[1:]))
    first = names[0] if names else None
    return Apply(first, op, tuple(operands), tuple(types), results[0], extra_results)


def _applied(reader: Reader, names: list[str], known: Mapping[str, ValueType]) -> list[Apply]:
    reader.need("ptensor.", "or `func.call` or `return`, as in "
                "`%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`")
    start = reader.position
    kind, attributes = _operation(reader)
    reader.need("(", "after the operation name")
    items = reader.listed(parse_item, ")")
    types, results = _signature(reader, names)
    kind = _of_shape(kind, items, types)
    attributes |= named_attributes(reader, kind, items)
    operands = [item for item in items if item.name is None]
    count = operand_count(kind, operands, types)
    if count < len(operands):
        operands = parse_typed_items(reader, operands, types, known)
        attributes = positional_attributes(reader, kind, operands[count:], attributes, results[0])
        operands = operands[:count]
        types = [operand.type for operand in operands if operand.type is not None]
    elif len(types) == len(operands):
        types = [resolve_type(item, ptype, known)
                 for item, ptype in zip(operands, types, strict=True)]
    for operand in operands:
        if operand.is_literal:
            reader.refuse(
                "{op}: expected an operand such as `%x`; declare a parameter for the number",
                operand.start, op=kind.name,
            )
    attributes = {
        **DEFAULTS.get(kind.name, {}),
        **import_attributes(kind, results[0]),
        **attributes,
    }
    check_complete(reader, kind, attributes, start)
    for name in ("device", "team", "shape"):
        if isinstance(value := attributes.get(name), AttributeOperand):
            # The name belongs to the caller; its value is in the type.
            attributes[name] = AttributeOperand(value.name, getattr(results[0], name, None))
    with reader.located(start):
        values = [item.value for item in operands]
        op = kind(**attributes)
        before = _tensor_of_number(reader, op, values, types, results[0])
        return [*before, _create_apply(names, op, values, types, results)]


def _of_shape(
    kind: type[PTensorOp], items: list[OperationItem], types: list[ValueType]
) -> type[PTensorOp]:
    """Return `Create` for a `create_like` with a shape operand, with the shape after the value.

    In the RFC, the shape is the first operand. The `create_like` of a tensor is a different
    operation.
    """
    if kind not in (Create, CreateLike) or len(items) < 2 or items[0].name is not None:
        return kind
    if items[0].is_literal or (types and types[0] == "shape.shape"):
        items[:2] = reversed(items[:2])
        if len(types) > 1 and types[0] == "shape.shape":
            types[:2] = reversed(types[:2])
        return Create
    return kind


def _tensor_of_number(
    reader: Reader, op: PTensorOp, operands: list[str], types: list[ValueType], result: ValueType
) -> list[Apply]:
    """Return an operation that creates a tensor of the number operand of a creation function.

    The tensor replaces the number in `operands` and `types`.
    """
    if not isinstance(op, Create | CreateLike) or not isinstance(result, PTensorType):
        return []
    if len(types) != len(operands) or not types or types[-1] not in ALL:
        return []
    name, value = f"{operands[-1]}_value", result.like(())
    while re.search(rf"%{name}\b", reader.text):
        name += "_"
    create_op = AsArray((), value.dtype, None, op.device, op.team)
    apply = Apply(name, create_op, (operands[-1],), (types[-1],), value)
    operands[-1], types[-1] = name, value
    return [apply]


def _operation(reader: Reader) -> tuple[type[PTensorOp], dict[str, Any]]:
    """Return the operation class, and its kind if it has kinds."""
    start = reader.position
    name = reader.expect(NAME, "the name of an operation")
    kind = _kind(reader)
    if kind is not None:
        name, kind = _SPELLINGS.get((name, kind), (name, kind))
    classes = operation_classes()
    if name not in classes:
        matches = get_close_matches(name, classes, 1)
        hint = f", such as {matches[0]}" if matches else ""
        reader.refuse("expected the name of an operation{hint}", start, hint=hint)
    return classes[name], {} if kind is None else {"kind": kind}


def _kind(reader: Reader) -> str | None:
    if not reader.has("{"):
        return None
    start = reader.position
    kind = string(reader, reader.expect(STRING, "a kind such as 'add'"), start)
    reader.need("}", "after the kind of an operation")
    return kind


def _signature(reader: Reader, names: list[str]) -> tuple[list[ValueType], list[ValueType]]:
    """Parse operand and result types; results are named unless there is only one without a name."""
    reader.need(":", "and the types of the operands")
    reader.need("(", "before the types of the operands")
    types = reader.listed(_operand_type, ")")
    reader.expect(_ARROW, "`->` and the types of the results")
    start = reader.position
    results = _types(reader)
    if len(results) != max(len(names), 1):
        actual = f"{len(names)} names for {len(results)} results"
        reader.refuse("{counts}, expected one name per result", start, counts=actual)
    return types, results


@cache
def operation_classes() -> Mapping[str, type[PTensorOp]]:
    """Return the classes of operations on parallel tensors, by printed name."""
    for module in iter_modules(operations.__path__, f"{operations.__name__}."):
        import_module(module.name)
    return {
        kind.name: kind for kind in _below(PTensorOp)
        if hasattr(kind, "name") and kind.dialect == PTensorOp.dialect
        and kind.__module__.startswith(operations.__name__)  # excludes operations defined elsewhere
    }


def _below(kind: type[PTensorOp]) -> Iterator[type[PTensorOp]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _below(sub)
