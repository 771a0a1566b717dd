"""Parser of printed functions and modules."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

from tecomp.errors import ArrayValueError, ParseError, TecompError
from tecomp.ptensor.function import (
    Apply,
    Function,
    Module,
    Parameter,
    declare,
    together,
    verify_apply,
    verify_module,
)
from tecomp.ptensor.operation import (
    Argument,
    Operation,
    attribute_types,
    fits_type,
    type_text,
)
from tecomp.ptensor.operation_registry import operation_classes
from tecomp.ptensor.operations.base import Call
from tecomp.ptensor.operations.creation import Creation
from tecomp.ptensor.types import ALL, SCALARS, PTensorType, ValueType

_SPACE = re.compile(r"\s*")
_VALUE = re.compile(r"%\w+")
_FUNCTION = re.compile(r"@\w+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_SCALAR = re.compile("|".join(re.escape(name) + r"(?!\w)" for name in SCALARS))
_SHAPE = re.compile(r"(?:(?:[0-9]+|\?)x)*")
_DTYPE = re.compile(r"[a-z]+[0-9]*")
_ARROW = re.compile(r"->")
_NUMBER = re.compile(
    r"(?P<sign>[-+]?)\s*(?:(?P<digits>(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?)|(?P<word>inf|nan))"
    r"(?P<imaginary>j?)(?!\w)",
    re.ASCII,
)
_STRING = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_CONSTANTS = {"None": None, "True": True, "False": False}
_TOKEN = re.compile(r"->|[%@]?\w+|'[^'\n]*'|\"[^\"\n]*\"|\S|\Z")
_EXAMPLE = "%x: ptensor<4xfloat32>"
_TYPE = "ptensor<4x5xfloat32, device='cpu'>"
_MARKS = ("device", "team", "gid")
_MAX_DEPTH = 8  # nesting of literals; the slices of `extract_slice` need 2
_MAX_DIGITS = 400  # of a number; the greatest float64 has 309
_SPELLINGS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("elementwise_binary_op", "sub"): ("elementwise_binary_op", "subtract"),
    **{
        ("elementwise_binary_op", kind): ("elementwise_binary_test", kind)
        for kind in ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
    },
}
"""Operations and kinds that the document writes otherwise than its other parts do."""

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class _Item:
    """Item between the parentheses of an operation.

    Attributes:
        name: Name of an attribute; None for an operand.
        value: Value of the attribute, or name of the operand.
        start: Position in the text.
        value_start: Position of the value in the text.
    """

    name: str | None
    value: Any
    start: int
    value_start: int


def parse(text: str) -> Function:
    """Parse the printed form of one function.

    Args:
        text: the function. Line breaks and spaces between tokens are free.

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
    reader = _Reader(text, "parse")
    function = _function(reader)
    reader.end()
    return function


def parse_module(text: str) -> Module:
    """Parse the printed form of a module: functions that may call each other.

    Args:
        text: the functions, in any order.

    Raises:
        ParseError: If the text is malformed; the message begins with its line and column.
        ArrayTypeError, ArrayValueError: If operations or functions do not fit together.
    """
    reader = _Reader(text, "parse_module")
    functions = [_function(reader)]
    while not reader.is_at_end:
        functions.append(_function(reader))
    module = Module(tuple(functions))
    verify_module(module)
    return module


def parse_type(text: str) -> PTensorType:
    """Parse the printed form of the type of a tensor.

    Args:
        text: the type.

    Raises:
        ParseError: If the text is malformed; the message begins with its line and column.

    >>> parse_type("ptensor<4x5xfloat32, device='cpu', team=1>").team
    1
    """
    reader = _Reader(text, "parse_type")
    found = _tensor_type(reader)
    reader.end()
    return found


class _Reader:
    """Text with the position reached."""

    def __init__(self, text: str, caller: str) -> None:
        if not isinstance(text, str):
            raise ParseError(
                f"{caller}: text must be a string, got {text!r}; pass str(function)",
                kind="ptensor",
            )
        self.text = text
        self.position = 0
        self._skip()

    @property
    def is_at_end(self) -> bool:
        """Whether all of the text is read."""
        return self.position == len(self.text)

    def refuse(self, why: str, position: int | None = None) -> NoReturn:
        """Raise a ParseError about the token at a position."""
        position = self.position if position is None else position
        match = _TOKEN.match(self.text, position)
        token = match[0] if match else ""
        found = f"got `{token[:40]}`" if token else "got the end of the text"
        line, column = self.place(position)
        raise ParseError(f"line {line}, column {column}: {why}, {found}", kind="ptensor")

    def place(self, position: int) -> tuple[int, int]:
        """Line and column of a position, counted from 1."""
        start = self.text.rfind("\n", 0, position) + 1
        return self.text.count("\n", 0, position) + 1, position - start + 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what matches at the position, and the space behind it."""
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
            self._skip()
        return match

    def expect(self, pattern: re.Pattern[str], what: str) -> str:
        """Read what has to match at the position."""
        match = self.take(pattern)
        if match is None:
            self.refuse(f"expected {what}")
        return match[0]

    def has(self, token: str) -> bool:
        """Read a token if it stands at the position."""
        if not self.text.startswith(token, self.position):
            return False
        self.position += len(token)
        self._skip()
        return True

    def need(self, token: str, what: str) -> None:
        """Read a token that has to stand at the position."""
        if not self.has(token):
            self.refuse(f"expected `{token}` {what}")

    def listed(self, part: Callable[[_Reader], _Part], end: str) -> list[_Part]:
        """Read items between commas up to a token."""
        found: list[_Part] = []
        while not self.has(end):
            if found:
                self.need(",", f"or `{end}` behind an item")
            found.append(part(self))
        return found

    def end(self) -> None:
        """Refuse text behind what was read."""
        if not self.is_at_end:
            self.refuse("expected the end of the text")

    @contextmanager
    def located(self, position: int) -> Iterator[None]:
        """Add the line of a position to errors that have none."""
        try:
            yield
        except ParseError:
            raise
        except TecompError as error:
            line, _ = self.place(position)
            raise type(error)(f"line {line}: {error.message}", kind=error.kind) from error

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()


def _function(reader: _Reader) -> Function:
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
        body.append(_apply(reader, name, known))
    returned = reader.position
    results = reader.listed(lambda each: each.expect(_VALUE, "a result such as `%y`")[1:], "}")
    function = Function(name, tuple(parameters), tuple(body), tuple(results))
    with reader.located(returned):
        found = [function.type_of(each) for each in results]
        if declared != found:
            raise ArrayValueError(
                f"@{name}: the results are declared as {together(declared)}, and are "
                f"{together(found)}; write that",
                kind="ptensor",
            )
    return function


def _begins_return(reader: _Reader) -> bool:
    position = reader.position
    if (match := reader.take(_NAME)) and match[0] == "return":
        return True
    reader.position = position
    return False


def _parameter(reader: _Reader, function: str, known: dict[str, ValueType]) -> Parameter:
    start = reader.position
    name = reader.expect(_VALUE, f"a parameter such as `{_EXAMPLE}`")[1:]
    reader.need(":", "and a type behind the name of a parameter")
    parameter = Parameter(name, _value_type(reader))
    with reader.located(start):
        declare(known, name, parameter.type, function)
    return parameter


def _types(reader: _Reader) -> list[ValueType]:
    if reader.has("("):
        return reader.listed(_value_type, ")")
    return [_value_type(reader)]


def _value_type(reader: _Reader) -> ValueType:
    match = reader.take(_SCALAR)
    return match[0] if match else _tensor_type(reader)


def _tensor_type(reader: _Reader) -> PTensorType:
    if not (reader.has("ptensor.ptensor") or reader.has("ptensor")):
        reader.refuse(f"expected a type, `{_TYPE}` or one of {', '.join(SCALARS)}")
    reader.need("<", f"behind `ptensor`, as in `{_TYPE}`")
    shape = _extents(reader)
    start = reader.position
    dtype = reader.expect(_DTYPE, "extents and a dtype, such as `4x5xfloat32`")
    if dtype not in ALL:
        reader.refuse(f"expected one of the dtypes {', '.join(ALL)}", start)
    marks: dict[str, Any] = {}
    while not reader.has(">"):
        reader.need(",", "or `>` behind a part of a type")
        _mark(reader, marks)
    return PTensorType(shape, dtype, **marks)


def _extents(reader: _Reader) -> Any:
    """The extents of a type; None for one that only the call says."""
    start = reader.position
    match = reader.take(_SHAPE)
    texts = match[0].split("x")[:-1] if match else []
    found: list[int | None] = []
    for text in texts:
        if len(text) > _MAX_DIGITS or (text != "?" and int(text) >= 2**63):
            reader.refuse("an extent must be less than 2**63", start)
        found.append(None if text == "?" else int(text))
    return tuple(found)


def _mark(reader: _Reader, marks: dict[str, Any]) -> None:
    start = reader.position
    name = reader.expect(_NAME, "device=, team= or gid=")
    if name not in _MARKS:
        reader.refuse("a type has only device=, team= and gid=", start)
    if name in marks:
        reader.refuse(f"{name}= stands twice in a type", start)
    reader.need("=", f"behind {name}")
    start = reader.position
    value = _literal(reader)
    if name == "device" and not isinstance(value, str):
        reader.refuse("device must be a string", start)
    if name != "device" and (type(value) is not int or not 0 <= value < 2**63):
        reader.refuse(f"{name} must be an integer from 0", start)
    marks[name] = value


def _apply(reader: _Reader, function: str, known: dict[str, ValueType]) -> Apply:
    start = reader.position
    names = _names(reader)
    apply = _called(reader, names) if reader.has("func.call") else _applied(reader, names, known)
    with reader.located(start):
        verify_apply(apply, known, function)
    return apply


def _names(reader: _Reader) -> list[str]:
    """The names of the results, which stand before `=`."""
    found: list[str] = []
    while match := reader.take(_VALUE):
        found.append(match[0][1:])
        if not reader.has(","):
            reader.need("=", "or `,` behind the name of a result")
            break
    return found


def _called(reader: _Reader, names: list[str]) -> Apply:
    start = reader.position
    callee = reader.expect(_FUNCTION, "the name of a function, such as `@f`")[1:]
    reader.need("(", "behind the name of a function")
    operands = reader.listed(lambda each: each.expect(_VALUE, "an operand such as `%x`")[1:], ")")
    types, results = _signature(reader, names)
    with reader.located(start):
        return _made(names, Call(callee, tuple(results)), operands, types, results)


def _made(
    names: list[str], op: Operation, operands: list[str], types: list[ValueType],
    results: list[ValueType],
) -> Apply:
    more = tuple(map(Parameter, names[1:], results[1:]))
    first = names[0] if names else None
    return Apply(first, op, tuple(operands), tuple(types), results[0], more)


def _applied(reader: _Reader, names: list[str], known: Mapping[str, ValueType]) -> Apply:
    reader.need("ptensor.", "or `func.call` or `return`, as in "
                "`%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`")
    start = reader.position
    kind, attributes = _operation(reader)
    reader.need("(", "behind an operation")
    items = reader.listed(_item, ")")
    types, results = _signature(reader, names)
    attributes |= _attributes(reader, kind, items)
    operands = [item for item in items if item.name is None]
    if issubclass(kind, Creation) and kind.takes == (0, 0) and operands:
        _check_positional(reader, operands, types, known)
        attributes = _positional(reader, kind, operands, attributes, results[0])
        operands, types = [], []
    _check_complete(reader, kind, attributes, start)
    for place in ("device", "team"):
        if isinstance(value := attributes.get(place), Argument):
            # The name is the caller's; what it stands for is in the type.
            attributes[place] = Argument(value.name, getattr(results[0], place, None))
    with reader.located(start):
        given = [item.value for item in operands]
        return _made(names, kind(**attributes), given, types, results)


def _operation(reader: _Reader) -> tuple[type[Operation], dict[str, Any]]:
    """The class of an operation, and its kind if it has one."""
    start = reader.position
    name = reader.expect(_NAME, "the name of an operation")
    kind = _kind(reader)
    if kind is not None:
        name, kind = _SPELLINGS.get((name, kind), (name, kind))
    classes = operation_classes()
    if name not in classes:
        near = get_close_matches(name, classes, 1)
        hint = f", such as {near[0]}" if near else ""
        reader.refuse(f"expected the name of an operation{hint}", start)
    return classes[name], {} if kind is None else {"kind": kind}


def _kind(reader: _Reader) -> str | None:
    if not reader.has("{"):
        return None
    start = reader.position
    kind = _string(reader, reader.expect(_STRING, "a kind such as 'add'"), start)
    reader.need("}", "behind the kind of an operation")
    return kind


def _item(reader: _Reader) -> _Item:
    """An operand, or an attribute with its name."""
    start = reader.position
    if match := reader.take(_VALUE):
        return _Item(None, match[0][1:], start, start)
    name = reader.expect(_NAME, "an operand such as `%x`, or `attribute=...`")
    reader.need("=", f"behind the attribute {name}")
    value_start = reader.position
    return _Item(name, _literal(reader), start, value_start)


def _signature(reader: _Reader, names: list[str]) -> tuple[list[ValueType], list[ValueType]]:
    """The types of operands and results; each result has a name, or the only one has none."""
    reader.need(":", "and the types of the operands")
    reader.need("(", "before the types of the operands")
    types = reader.listed(_value_type, ")")
    reader.expect(_ARROW, "`->` and the types of the results")
    start = reader.position
    results = _types(reader)
    if len(results) != max(len(names), 1):
        given = f"{len(names)} names for {len(results)} results"
        reader.refuse(f"there are {given}: give one to each", start)
    return types, results


def _attributes(
    reader: _Reader, kind: type[Operation], items: list[_Item]
) -> dict[str, Any]:
    """The attributes with names; each has the type that its operation declares."""
    hints = {name: hint for name, hint in attribute_types(kind).items() if name != "kind"}
    found: dict[str, Any] = {}
    for item in items:
        if item.name is None:
            continue
        if item.name not in hints:
            names = ", ".join(hints) or "none"
            reader.refuse(f"{kind.name} has the attributes {names}", item.start)
        if item.name in found:
            reader.refuse(f"{item.name}= stands twice", item.start)
        _check_value(reader, kind, item.name, item)
        found[item.name] = item.value
    return found


def _check_value(reader: _Reader, kind: type[Operation], name: str, item: _Item) -> None:
    """Refuse an attribute of another type than its operation declares."""
    hint = attribute_types(kind)[name]
    if isinstance(item.value, Argument):
        if name not in kind.open:
            reader.refuse(
                f"{kind.name}: {name} must be {type_text(hint)}, as the type of the result "
                "follows from it", item.value_start)
    elif not fits_type(item.value, hint):
        reader.refuse(f"{kind.name}: {name} must be {type_text(hint)}", item.value_start)


def _check_complete(
    reader: _Reader, kind: type[Operation], given: Mapping[str, Any], start: int
) -> None:
    hints = attribute_types(kind)
    missing = [name for name in hints if name not in given]
    if missing:
        reader.refuse(f"{kind.name} needs {', '.join(missing)} too", start)
    if "kind" in given and "kind" not in hints:
        reader.refuse(f"{kind.name} has no kinds: leave {{{given['kind']!r}}} out", start)


def _check_positional(
    reader: _Reader, operands: list[_Item], types: list[ValueType],
    known: Mapping[str, ValueType],
) -> None:
    """Refuse attributes given by position whose types are not those of their values."""
    if len(operands) != len(types):
        reader.refuse(
            f"there are {len(operands)} operands with {len(types)} types: give a type for each",
            operands[0].start)
    for item, type in zip(operands, types, strict=True):
        if (found := known.get(item.value, type)) != type:
            reader.refuse(f"%{item.value} is read as {type}, and it is {found}", item.start)


def _positional(
    reader: _Reader, kind: type[Operation], operands: list[_Item], named: dict[str, Any],
    result: ValueType,
) -> dict[str, Any]:
    """The attributes of a creation function whose values stand in the order of the document.

    The dtype is that of the result. So are the device and the team, unless they are given.
    """
    taken = [field for field in fields(kind) if field.name not in ("dtype", "endpoint")]
    if len(operands) > len(taken):
        names = ", ".join(field.name for field in taken)
        reader.refuse(f"{kind.name} takes {names} by position", operands[len(taken)].start)
    found = {}
    for field, item in zip(taken, operands, strict=False):
        if field.name in named:
            reader.refuse(f"{field.name} is given by position and by name", item.start)
        found[field.name] = Argument(item.value)
        _check_value(reader, kind, field.name, replace(item, value=found[field.name]))
    defaults = {
        field.name: field.default for field in fields(kind)
        if field.default is not MISSING
    }
    places = {name: getattr(result, name, None) for name in ("dtype", "device", "team")}
    return {**defaults, **places, **found, **named}


def _literal(reader: _Reader, depth: int = 0) -> Any:
    """A number, a string, a constant, a parameter, or a tuple of these."""
    if match := reader.take(_VALUE):
        return Argument(match[0][1:])
    start = reader.position
    if match := reader.take(_STRING):
        return _string(reader, match[0], start)
    if match := reader.take(_NUMBER):
        return _number(reader, match, start)
    if reader.has("("):
        if depth == _MAX_DEPTH:
            reader.refuse(f"literals are nested at most {_MAX_DEPTH} deep", start)
        return _parenthesized(reader, depth + 1)
    match = reader.take(_NAME)
    if match is None or match[0] not in _CONSTANTS:
        reader.refuse("expected a number, a string, True, False, None, %name or a tuple", start)
    return _CONSTANTS[match[0]]


def _parenthesized(reader: _Reader, depth: int) -> Any:
    """A complex number with both of its parts, or a tuple."""
    if reader.has(")"):
        return ()
    is_negative = reader.text.startswith("-", reader.position)
    first = _literal(reader, depth)
    start = reader.position
    if reader.has(")"):
        return first
    if type(first) in (int, float) and (match := reader.take(_NUMBER)):
        second = _number(reader, match, start)
        if not match["sign"] or not isinstance(second, complex):
            reader.refuse("expected the imaginary part of a complex number", start)
        reader.need(")", "behind a complex number")
        return complex(math.copysign(first, -1 if is_negative else 1), second.imag)
    found = [first]
    while reader.has(",") and not reader.text.startswith(")", reader.position):
        found.append(_literal(reader, depth))
    reader.need(")", "or `,` behind an item")
    return tuple(found)


def _number(reader: _Reader, match: re.Match[str], start: int) -> complex:
    text = match["digits"] or match["word"]
    if len(text) > _MAX_DIGITS:
        reader.refuse(f"a number has at most {_MAX_DIGITS} digits", start)
    sign = -1 if match["sign"] == "-" else 1
    if match["imaginary"]:
        return complex(0.0, math.copysign(float(text), sign))
    if text.isdigit():
        return sign * int(text)
    return math.copysign(float(text), sign)


def _string(reader: _Reader, token: str, start: int) -> str:
    """The value of a string, whose escape sequences are those of `repr`."""

    def decoded(match: re.Match[str]) -> str:
        *codes, letter = match.groups()
        code = next((int(each, 16) for each in codes if each), None)
        if letter not in _ESCAPED if code is None else code > sys.maxunicode:
            reader.refuse(f"`{match[0]}` is no escape sequence of a string", start)
        return _ESCAPED[letter] if code is None else chr(code)

    return _ESCAPE.sub(decoded, token[1:-1])
