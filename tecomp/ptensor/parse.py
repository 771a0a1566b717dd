"""Parser of printed functions and modules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

from tecomp.errors import ArrayValueError
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
    attribute_types,
    fits_type,
    type_text,
)
from tecomp.ptensor.operation_registry import operation_classes
from tecomp.ptensor.operations.base import CallOp
from tecomp.ptensor.operations.creation import (
    AsArray,
    Create,
    CreateLike,
    Creation,
    ImportOp,
)
from tecomp.ptensor.operations.elementwise import BINARY_TESTS
from tecomp.ptensor.scanner import (
    CONSTANTS,
    MAX_DIGITS,
    NAME,
    STRING,
    VALUE,
    Reader,
    literal,
    string,
)
from tecomp.ptensor.types import ALL, SCALARS, PTensorType, ValueType

_FUNCTION = re.compile(r"@\w+")
_SCALAR = re.compile("|".join(re.escape(name) + r"(?!\w)" for name in SCALARS))
_SHAPE = re.compile(r"(?:(?:[0-9]+|\?)x)*")
_DTYPE = re.compile(r"[a-z]+[0-9]*")
_ARROW = re.compile(r"->")
_EXAMPLE = "%x: ptensor<4xfloat32>"
_TYPE = "ptensor<4x5xfloat32, device='cpu'>"
_MARKS = ("device", "team", "gid")
_PLACES = ("device", "dist", "team")
_SPELLINGS: Mapping[tuple[str, str], tuple[str, str | None]] = {
    ("elementwise_binary_op", "sub"): ("elementwise_binary_op", "subtract"),
    **{
        ("elementwise_binary_op", kind): ("elementwise_binary_test", kind)
        for kind in BINARY_TESTS
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
_DTYPES: Mapping[str, str] = {
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)}, "bf16": "bfloat16", "i1": "bool",
    **{f"{sign}i{bits}": f"int{bits}" for sign in ("", "s") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
"""Names of dtypes in MLIR."""
_POSITIONS: Mapping[str, tuple[str, ...]] = {
    "create": ("dtype", "device", "team"),
    "linspace": ("start", "stop", "n", "dtype", "device", "team"),
    "reduce": ("axis", "correction"),
    "sort": ("descending", "stable"),
    "argsort": ("descending", "stable"),
}
"""Attribute order in the RFC, where it differs from the order of the fields."""
_LEFT_OUT: Mapping[str, Mapping[str, Any]] = {
    "sort": {"axis": -1}, "argsort": {"axis": -1}, "meshgrid": {"indexing": "xy"},
    "asarray": {"copy": None},
}
"""Defaults of the attributes that the document does not have."""
_ANY_SCALAR = ("anytype", "number")
"""Types that the document gives to scalars of several types."""
_WORDS = (*_ANY_SCALAR, "array", "list", "slice")
"""Types that the document gives to attributes by position, beside those of scalars."""

@dataclass(frozen=True, slots=True)
class _Item:
    """Item between the parentheses of an operation.

    Attributes:
        name: Name of an attribute; None for an operand.
        value: Value of the attribute, or name of the operand.
        start: Position in the text.
        value_start: Position of the value in the text.
        is_literal: Whether the item is a literal without a name.
        type: Type of an item without a name, if there is one in the signature.
    """

    name: str | None
    value: Any
    start: int
    value_start: int
    is_literal: bool = False
    type: ValueType | None = None


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
    parameters = reader.listed(lambda each: _parameter(each, name, known), ")")
    reader.expect(_ARROW, "`->` and the types of the results")
    declared = _types(reader)
    reader.need("{", "before the operations")
    body: list[Apply] = []
    while not _begins_return(reader):
        body += _apply(reader, name, known)
    returned = reader.position
    results = reader.listed(lambda each: each.expect(VALUE, "a result such as `%y`")[1:], "}")
    function = Function(name, tuple(parameters), tuple(body), tuple(results))
    with reader.located(returned):
        found = [function.type_of(each) for each in results]
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
    if reader.has("("):
        return reader.listed(_value_type, ")")
    return [_value_type(reader)]


def _value_type(reader: Reader) -> ValueType:
    match = reader.take(_SCALAR)
    return match[0] if match else _tensor_type(reader)


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
    dtype = _DTYPES.get(dtype, dtype)
    if dtype not in ALL:
        reader.refuse("expected one of the dtypes {all}", start, all=", ".join(ALL))
    marks: dict[str, Any] = {}
    while not reader.has(">"):
        reader.need(",", "or `>` after a component of a type")
        _mark(reader, marks)
    return PTensorType(shape, dtype, **marks)


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


def _mark(reader: Reader, marks: dict[str, Any]) -> None:
    start = reader.position
    name = reader.expect(NAME, "device=, team= or gid=")
    if name not in _MARKS:
        reader.refuse("unknown type attribute, expected device=, team= or gid=", start)
    if name in marks:
        reader.refuse("duplicate type attribute {name}=", start, name=name)
    reader.need("=", f"behind {name}")
    start = reader.position
    value = literal(reader)
    if name == "device" and not isinstance(value, str):
        reader.refuse("device must be a string", start)
    if name != "device" and (type(value) is not int or not 0 <= value < 2**63):
        reader.refuse("{name} must be a nonnegative integer", start, name=name)
    marks[name] = value


def _apply(reader: Reader, function: str, known: dict[str, ValueType]) -> list[Apply]:
    start = reader.position
    names = _names(reader)
    applied = [_parse_call(reader, names)] if reader.has("func.call") else _applied(
        reader, names, known)
    with reader.located(start):
        for each in applied:
            verify_apply(each, known, function)
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
    operands = reader.listed(lambda each: each.expect(VALUE, "an operand such as `%x`")[1:], ")")
    types, results = _signature(reader, names)
    with reader.located(start):
        return _create_apply(names, CallOp(callee, tuple(results)), operands, types, results)


def _create_apply(
    names: list[str], op: PTensorOp, operands: list[str], types: list[ValueType],
    results: list[ValueType],
) -> Apply:
    more = tuple(map(Parameter, names[1:], results[1:]))
    first = names[0] if names else None
    return Apply(first, op, tuple(operands), tuple(types), results[0], more)


def _applied(reader: Reader, names: list[str], known: Mapping[str, ValueType]) -> list[Apply]:
    reader.need("ptensor.", "or `func.call` or `return`, as in "
                "`%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`")
    start = reader.position
    kind, attributes = _operation(reader)
    reader.need("(", "after the operation name")
    items = reader.listed(_item, ")")
    types, results = _signature(reader, names)
    kind = _of_shape(kind, items, types)
    attributes |= _attributes(reader, kind, items)
    operands = [item for item in items if item.name is None]
    count = _operand_count(kind, operands, types)
    if count < len(operands):
        operands = _parse_typed_items(reader, operands, types, known)
        attributes = _positional(reader, kind, operands[count:], attributes, results[0])
        operands = operands[:count]
        types = [each.type for each in operands if each.type is not None]
    attributes = {
        **_LEFT_OUT.get(kind.name, {}),
        **_import_attributes(kind, results[0]),
        **attributes,
    }
    _check_complete(reader, kind, attributes, start)
    for place in ("device", "team", "shape"):
        if isinstance(value := attributes.get(place), AttributeOperand):
            # The name belongs to the caller; its value is in the type.
            attributes[place] = AttributeOperand(value.name, getattr(results[0], place, None))
    with reader.located(start):
        given = [item.value for item in operands]
        op = kind(**attributes)
        before = _tensor_of_number(reader, op, given, types, results[0])
        return [*before, _create_apply(names, op, given, types, results)]


def _import_attributes(kind: type[PTensorOp], result: ValueType) -> dict[str, Any]:
    """Return the attributes of an import that the type of its result implies.

    The RFC writes `from_dlpack(obj)` and `asarray(??)` without attributes.
    """
    if not issubclass(kind, ImportOp) or not isinstance(result, PTensorType):
        return {}
    names = {field.name for field in fields(kind)} & {"shape", "dtype", "device", "team"}
    return {name: getattr(result, name) for name in sorted(names)}


def _of_shape(
    kind: type[PTensorOp], items: list[_Item], types: list[ValueType]
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


def _operand_count(
    kind: type[PTensorOp], items: list[_Item], types: list[ValueType]
) -> int:
    """Return the number of operands; the items after these are positional attributes."""
    least, most = kind.takes
    tensors = 0
    for item, type in zip(items, types, strict=False):
        if item.is_literal or isinstance(type, str):
            break
        tensors += 1
    count = max(least, tensors if most is None else min(tensors, most))
    # More tensors than an operation takes are operands, whose number is refused.
    return len(items) if any(isinstance(each, PTensorType) for each in types[count:]) else count


def _tensor_of_number(
    reader: Reader, op: PTensorOp, operands: list[str], types: list[ValueType], result: ValueType
) -> list[Apply]:
    """Return an operation that creates a tensor of the number operand of a creation function.

    The tensor replaces the number in `operands` and `types`.
    """
    if not isinstance(op, Create | CreateLike) or not isinstance(result, PTensorType):
        return []
    if len(types) != len(operands) or not types or types[-1] not in ("bool", "float64", "int64"):
        return []
    name, value = f"{operands[-1]}_value", result.like(())
    while re.search(rf"%{name}\b", reader.text):
        name += "_"
    made = AsArray((), value.dtype, None, op.device, op.team)
    apply = Apply(name, made, (operands[-1],), (types[-1],), value)
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
        near = get_close_matches(name, classes, 1)
        hint = f", such as {near[0]}" if near else ""
        reader.refuse("expected the name of an operation{hint}", start, hint=hint)
    return classes[name], {} if kind is None else {"kind": kind}


def _kind(reader: Reader) -> str | None:
    if not reader.has("{"):
        return None
    start = reader.position
    kind = string(reader, reader.expect(STRING, "a kind such as 'add'"), start)
    reader.need("}", "after the kind of an operation")
    return kind


def _item(reader: Reader) -> _Item:
    """Parse an operand, an attribute with its name, or a positional literal."""
    start = reader.position
    if match := reader.take(VALUE):
        return _Item(None, match[0][1:], start, start)
    match = reader.take(NAME)
    if match is None or match[0] in CONSTANTS:
        reader.position = start
        if reader.text[start : start + 1] in (",", ")", ":", ""):
            reader.refuse("expected an operand such as `%x`, or `attribute=...`")
        return _Item(None, literal(reader), start, start, is_literal=True)
    name = match[0]
    if name in _PLACES and reader.text[reader.position : reader.position + 1] in (",", ")"):
        return _Item(None, name, start, start)  # the RFC omits the % of values here
    reader.need("=", f"after the attribute {name}")
    value_start = reader.position
    return _Item(name, literal(reader), start, value_start)


def _signature(reader: Reader, names: list[str]) -> tuple[list[ValueType], list[ValueType]]:
    """Parse operand and result types; results are named unless there is only one without a name."""
    reader.need(":", "and the types of the operands")
    reader.need("(", "before the types of the operands")
    types = reader.listed(_operand_type, ")")
    reader.expect(_ARROW, "`->` and the types of the results")
    start = reader.position
    results = _types(reader)
    if len(results) != max(len(names), 1):
        given = f"{len(names)} names for {len(results)} results"
        reader.refuse("{given}, expected one name per result", start, given=given)
    return types, results


def _attributes(
    reader: Reader, kind: type[PTensorOp], items: list[_Item]
) -> dict[str, Any]:
    """Return the named attributes, checked against their declared types."""
    hints = {name: hint for name, hint in attribute_types(kind).items() if name != "kind"}
    found: dict[str, Any] = {}
    for item in items:
        if item.name is None:
            continue
        if item.name == "dist" and "team" in hints:  # the spelling in this section of the RFC
            item = replace(item, name="team")
        if item.name == "dtype":
            item = replace(item, value=_DTYPES.get(item.value, item.value))
        if item.name not in hints:
            names = ", ".join(hints) or "none"
            reader.refuse(
                "{form} supports the attributes {names}",
                item.start, form=kind.name, names=names,
            )
        if item.name in found:
            reader.refuse("duplicate attribute {item}=", item.start, item=item.name)
        _check_value(reader, kind, str(item.name), item)
        found[str(item.name)] = item.value
    return found


def _check_value(reader: Reader, kind: type[PTensorOp], name: str, item: _Item) -> None:
    """Reject an attribute value of another type than declared."""
    hint = attribute_types(kind)[name]
    if isinstance(item.value, AttributeOperand):
        if name not in kind.open:
            reader.refuse(
                "{form}: {name} must be {hint}, because the result type depends on it",
                item.value_start, form=kind.name, name=name, hint=type_text(hint),
            )
    elif not fits_type(item.value, hint):
        reader.refuse(
            "{form}: {name} must be {hint}",
            item.value_start, form=kind.name, name=name, hint=type_text(hint),
        )


def _check_complete(
    reader: Reader, kind: type[PTensorOp], given: Mapping[str, Any], start: int
) -> None:
    hints = attribute_types(kind)
    missing = [name for name in hints if name not in given]
    if missing:
        reader.refuse(
            "{form}: missing attributes {missing}",
            start, form=kind.name, missing=", ".join(missing),
        )
    if "kind" in given and "kind" not in hints:
        reader.refuse(
            "{form} has no kinds, remove {{{given!r}}}",
            start, form=kind.name, given=given["kind"],
        )


def _parse_typed_items(
    reader: Reader, items: list[_Item], types: list[ValueType], known: Mapping[str, ValueType]
) -> list[_Item]:
    """Return positional items with their types, which are optional for literals.

    An item whose type differs from the type of its value is rejected.
    """
    values = [item for item in items if not item.is_literal]
    if len(types) == len(values):
        others = iter(types)
        items = [item if item.is_literal else replace(item, type=next(others)) for item in items]
    elif len(types) == len(items):
        items = [replace(item, type=type) for item, type in zip(items, types, strict=True)]
    else:
        reader.refuse(
            "{item_count} operands have {type_count} types, expected one type per operand",
            items[0].start, item_count=len(items), type_count=len(types),
        )
    found: list[_Item] = []
    for item in items:
        own = item.type if item.is_literal else known.get(item.value, item.type)
        if own in SCALARS and item.type in _ANY_SCALAR:
            item = replace(item, type=own)
        if own != item.type:
            reader.refuse(
                "%{item} is used as {type}, but it has type {own}",
                item.start, item=item.value, type=item.type, own=own,
            )
        found.append(item)
    return found


def _positional(
    reader: Reader, kind: type[PTensorOp], items: list[_Item], named: dict[str, Any],
    result: ValueType,
) -> dict[str, Any]:
    """Return the attributes of an operation from positional values in RFC order.

    A value of type `type` or `shape.shape` is the dtype or the shape of the result, given by the
    result type. The same holds for device and team, unless they are given.
    """
    own = tuple(field.name for field in fields(kind) if field.name != "kind")
    order = [*_POSITIONS.get(kind.name, own)]
    if kind is Create and items and (items[0].type == "shape.shape" or _is_tuple(items[0])):
        order.insert(0, "shape")
    found: dict[str, Any] = {}
    left = iter(order)
    for item in items:
        name = next(left, None)
        if name == "dtype" and issubclass(kind, Creation) and not _is_dtype(item):
            name = next(left, None)
        if name is None:
            names = ", ".join(each for each in order if each != "dtype") or "no attributes"
            reader.refuse(
                "too many positional attributes, {form} supports {names}",
                item.start, form=kind.name, names=names,
            )
        if name in named:
            reader.refuse(
                "attribute {name} is specified both by position and by name",
                item.start, name=name,
            )
        found[name] = _by_position(reader, kind, name, item, result)
    defaults = {
        field.name: field.default for field in fields(kind)
        if field.default is not MISSING
    }
    places = ("dtype", "device", "team") if issubclass(kind, Creation) else ()
    said = {name: getattr(result, name, None) for name in places if name in own}
    return {**defaults, **said, **found, **named}


def _is_tuple(item: _Item) -> bool:
    return item.is_literal and isinstance(item.value, tuple)


def _is_dtype(item: _Item) -> bool:
    """Return whether a positional item is a dtype; the examples of the RFC omit the dtype."""
    if item.is_literal and item.type is None:
        return isinstance(item.value, str)
    return item.type == "type"


def _by_position(
    reader: Reader, kind: type[PTensorOp], name: str, item: _Item, result: ValueType
) -> Any:
    """Return the value of one attribute."""
    if item.is_literal:
        value = item.value
        if name == "dtype" and isinstance(value, str):
            value = _DTYPES.get(value, value)
        elif not fits_type(value, hint := attribute_types(kind)[name]) and (
            fits_type((value,), hint)
        ):
            value = (value,)  # one axis, where there may be several
    elif (name, item.type) in (("dtype", "type"), ("shape", "shape.shape")):
        value = getattr(result, name, None)
        if name == "shape" and name in kind.open and value and set(value) == {None}:
            return AttributeOperand(item.value)
        if value is None or (name == "shape" and None in value):
            reader.refuse(
                "{form}: the result type must specify the {name} that %{item} represents",
                item.start, form=kind.name, name=name, item=item.value,
            )
        return value
    else:
        value = AttributeOperand(item.value)
    _check_value(reader, kind, name, replace(item, value=value))
    return value
