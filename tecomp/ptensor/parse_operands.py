"""Scanner of PTensor text, and parser of the operands and attributes of an operation."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from itertools import zip_longest
from typing import Any, NoReturn, TypeVar

from tecomp.errors import ParseError, TecompError
from tecomp.operations.element_types import MLIR_NAMES, SIGNED
from tecomp.ptensor.operation import (
    AttributeOperand,
    PTensorOp,
    attribute_types,
    fits_type,
    type_text,
)
from tecomp.ptensor.operations.creation import Create, Creation, ImportOp
from tecomp.ptensor.types import SCALARS, PTensorType, ValueType

VALUE = re.compile(r"%\w+")
NAME = re.compile(r"[A-Za-z_]\w*")
STRING = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
MAX_DIGITS = 400
"""Maximum digits of a number; the greatest float64 has 309."""

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(
    r"(?P<sign>[-+]?)\s*(?:(?P<digits>(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?)|(?P<word>inf|nan))"
    r"(?P<imaginary>j?)(?!\w)",
    re.ASCII,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
CONSTANTS = {"None": None, "True": True, "False": False}
_TOKEN = re.compile(r"->|[%@]?\w+|'[^'\n]*'|\"[^\"\n]*\"|\S|\Z")
_MAX_DEPTH = 8  # maximum nesting of literals; the slices of `extract_slice` need 2

_Part = TypeVar("_Part")


class Reader:
    """Text with the current position."""

    def __init__(self, text: str, caller: str) -> None:
        if not isinstance(text, str):
            raise ParseError(
                "{caller}: text must be a string, got {text!r}; pass str(function)",
                kind="ptensor", caller=caller, text=text,
            )
        self.text = text
        self.position = 0
        self._skip()

    @property
    def is_at_end(self) -> bool:
        """Whether the end of the text is reached."""
        return self.position == len(self.text)

    def refuse(
        self, template: str, position: int | None = None, /, **parameters: Any
    ) -> NoReturn:
        """Raise a ParseError about the token at a position."""
        position = self.position if position is None else position
        match = _TOKEN.match(self.text, position)
        token = match[0] if match else ""
        found = f"got `{token[:40]}`" if token else "got the end of the text"
        line, column = self.line_and_column(position)
        raise ParseError(
            "line {line}, column {column}: " + template + ", {found}",
            kind="ptensor", line=line, column=column, found=found, **parameters,
        )

    def line_and_column(self, position: int) -> tuple[int, int]:
        """Return line and column of a position, counted from 1."""
        start = self.text.rfind("\n", 0, position) + 1
        return self.text.count("\n", 0, position) + 1, position - start + 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read text that matches a pattern, and the whitespace after it."""
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
            self._skip()
        return match

    def expect(self, pattern: re.Pattern[str], description: str) -> str:
        """Read text that must match a pattern."""
        match = self.take(pattern)
        if match is None:
            self.refuse("expected {subject}", subject=description)
        return match[0]

    def has(self, token: str) -> bool:
        """Read a token if it is at the position."""
        if not self.text.startswith(token, self.position):
            return False
        self.position += len(token)
        self._skip()
        return True

    def need(self, token: str, context: str) -> None:
        """Read a token that must be at the position."""
        if not self.has(token):
            self.refuse("expected `{token}` {subject}", token=token, subject=context)

    def listed(self, part: Callable[[Reader], _Part], end: str) -> list[_Part]:
        """Read comma-separated items up to a token."""
        found: list[_Part] = []
        while not self.has(end):
            if found:
                self.need(",", f"or `{end}` after an item")
            found.append(part(self))
        return found

    def end(self) -> None:
        """Reject text after the parsed item."""
        if not self.is_at_end:
            self.refuse("expected the end of the text")

    @contextmanager
    def located(self, position: int) -> Iterator[None]:
        """Add line and column to errors that have none."""
        try:
            yield
        except ParseError:
            raise
        except TecompError as error:
            line, _ = self.line_and_column(position)
            raise type(error)(f"line {line}: {error.message}", kind=error.kind) from error

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()


def literal(reader: Reader, depth: int = 0) -> Any:
    """Parse a number, a string, a constant, a parameter, or a tuple of these."""
    if match := reader.take(VALUE):
        return AttributeOperand(match[0][1:])
    start = reader.position
    if match := reader.take(STRING):
        return string(reader, match[0], start)
    if match := reader.take(_NUMBER):
        return _number(reader, match, start)
    if reader.has("("):
        if depth == _MAX_DEPTH:
            reader.refuse(
                "literals must not be nested more than {max_depth} levels deep",
                start, max_depth=_MAX_DEPTH,
            )
        return _parse_parenthesized(reader, depth + 1)
    match = reader.take(NAME)
    if match is None or match[0] not in CONSTANTS:
        reader.refuse("expected a number, a string, True, False, None, %name or a tuple", start)
    return CONSTANTS[match[0]]


def _parse_parenthesized(reader: Reader, depth: int) -> Any:
    """Parse a complex number with both parts, or a tuple."""
    if reader.has(")"):
        return ()
    is_negative = reader.text.startswith("-", reader.position)
    first = literal(reader, depth)
    start = reader.position
    if reader.has(")"):
        return first
    if type(first) in (int, float) and (match := reader.take(_NUMBER)):
        second = _number(reader, match, start)
        if not match["sign"] or not isinstance(second, complex):
            reader.refuse("expected the imaginary part of a complex number", start)
        reader.need(")", "after a complex number")
        return complex(math.copysign(first, -1 if is_negative else 1), second.imag)
    found = [first]
    while reader.has(",") and not reader.text.startswith(")", reader.position):
        found.append(literal(reader, depth))
    reader.need(")", "or `,` after an item")
    return tuple(found)


def _number(reader: Reader, match: re.Match[str], start: int) -> complex:
    text = match["digits"] or match["word"]
    if len(text) > MAX_DIGITS:
        reader.refuse(
            "a number must have at most {max_digits} digits", start, max_digits=MAX_DIGITS
        )
    sign = -1 if match["sign"] == "-" else 1
    if match["imaginary"]:
        return complex(0.0, math.copysign(float(text), sign))
    if text.isdigit():
        return sign * int(text)
    return math.copysign(float(text), sign)


def string(reader: Reader, token: str, start: int) -> str:
    """Parse a string with the escape sequences of `repr`."""

    def decoded(match: re.Match[str]) -> str:
        *codes, letter = match.groups()
        code = next((int(digits, 16) for digits in codes if digits), None)
        if letter not in _ESCAPED if code is None else code > sys.maxunicode:
            reader.refuse("`{text}` is not a valid escape sequence", start, text=match[0])
        return _ESCAPED[letter] if code is None else chr(code)

    return _ESCAPE.sub(decoded, token[1:-1])


_PLACES = ("device", "dist", "team")
MLIR_DTYPES: Mapping[str, str] = {
    **{name: dtype for dtype, name in MLIR_NAMES.items()},
    **{f"s{MLIR_NAMES[dtype]}": dtype for dtype in SIGNED},
}
"""Dtypes by their names in MLIR."""
_POSITIONS: Mapping[str, tuple[str, ...]] = {
    "create": ("dtype", "device", "team"),
    "linspace": ("start", "stop", "n", "dtype", "device", "team"),
    "reduce": ("axis", "correction"),
    "sort": ("descending", "stable"),
    "argsort": ("descending", "stable"),
}
"""Attribute order in the RFC, where it differs from the order of the fields."""
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "sort": {"axis": -1}, "argsort": {"axis": -1}, "meshgrid": {"indexing": "xy"},
    "asarray": {"copy": None},
}
"""Defaults of the attributes that the RFC omits, by operation."""
ANY_SCALAR = ("anytype", "number")
"""Types that the RFC gives to scalars of several types."""


@dataclass(frozen=True, slots=True)
class OperationItem:
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


def import_attributes(kind: type[PTensorOp], result: ValueType) -> dict[str, Any]:
    """Return the attributes of an import that the type of its result implies.

    The RFC writes `from_dlpack(obj)` and `asarray(??)` without attributes.
    """
    if not issubclass(kind, ImportOp) or not isinstance(result, PTensorType):
        return {}
    names = {field.name for field in fields(kind)} & {"shape", "dtype", "device", "team"}
    return {name: getattr(result, name) for name in sorted(names)}


def operand_count(
    kind: type[PTensorOp], items: list[OperationItem], types: list[ValueType]
) -> int:
    """Return the number of operands; the items after these are positional attributes."""
    lower, upper = kind.takes
    tensors = 0
    for item, ptype in zip(items, types, strict=False):
        if item.is_literal or isinstance(ptype, str):
            break
        tensors += 1
    count = max(lower, tensors if upper is None else min(tensors, upper))
    # Tensors beyond the operand count are operands too; the check of their number rejects them.
    return len(items) if any(isinstance(t, PTensorType) for t in types[count:]) else count


def parse_item(reader: Reader) -> OperationItem:
    """Parse an operand, an attribute with its name, or a positional literal."""
    start = reader.position
    if match := reader.take(VALUE):
        return OperationItem(None, match[0][1:], start, start)
    match = reader.take(NAME)
    if match is None or match[0] in CONSTANTS:
        reader.position = start
        if reader.text[start : start + 1] in (",", ")", ":", ""):
            reader.refuse("expected an operand such as `%x`, or `attribute=...`")
        return OperationItem(None, literal(reader), start, start, is_literal=True)
    name = match[0]
    if name in _PLACES and reader.text[reader.position : reader.position + 1] in (",", ")"):
        return OperationItem(None, name, start, start)  # the RFC omits the % of values here
    reader.need("=", f"after the attribute {name}")
    value_start = reader.position
    return OperationItem(name, literal(reader), start, value_start)


def named_attributes(
    reader: Reader, kind: type[PTensorOp], items: list[OperationItem]
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
            item = replace(item, value=MLIR_DTYPES.get(item.value, item.value))
        if item.name not in hints:
            names = ", ".join(hints) or "none"
            reader.refuse(
                "{op} supports the attributes {names}",
                item.start, op=kind.name, names=names,
            )
        if item.name in found:
            reader.refuse("duplicate attribute {item}=", item.start, item=item.name)
        _check_value(reader, kind, str(item.name), item)
        found[str(item.name)] = item.value
    return found


def _check_value(reader: Reader, kind: type[PTensorOp], name: str, item: OperationItem) -> None:
    """Reject an attribute value of another type than declared."""
    hint = attribute_types(kind)[name]
    if isinstance(item.value, AttributeOperand):
        if name not in kind.open:
            reader.refuse(
                "{op}: {name} must be {hint}, because the result type depends on it",
                item.value_start, op=kind.name, name=name, hint=type_text(hint),
            )
    elif not fits_type(item.value, hint):
        reader.refuse(
            "{op}: {name} must be {hint}",
            item.value_start, op=kind.name, name=name, hint=type_text(hint),
        )


def check_complete(
    reader: Reader, kind: type[PTensorOp], attributes: Mapping[str, Any], start: int
) -> None:
    """Reject an operation without all of its attributes, or with a kind that it does not have."""
    hints = attribute_types(kind)
    missing = [name for name in hints if name not in attributes]
    if missing:
        reader.refuse(
            "{op}: missing attributes {missing}",
            start, op=kind.name, missing=", ".join(missing),
        )
    if "kind" in attributes and "kind" not in hints:
        reader.refuse(
            "{op} has no kinds, remove {{{given!r}}}",
            start, op=kind.name, given=attributes["kind"],
        )


def parse_typed_items(
    reader: Reader, items: list[OperationItem], types: list[ValueType],
    known: Mapping[str, ValueType],
) -> list[OperationItem]:
    """Return positional items with their types, which are optional for literals.

    The RFC omits the type of the last literal of `reduce`. An item whose type differs from the type
    of its value is rejected.
    """
    values = [item for item in items if not item.is_literal]
    if len(types) == len(values):
        others = iter(types)
        items = [item if item.is_literal else replace(item, type=next(others)) for item in items]
    elif len(types) <= len(items) and all(item.is_literal for item in items[len(types) :]):
        items = [replace(item, type=ptype) for item, ptype in zip_longest(items, types)]
    else:
        reader.refuse(
            "{item_count} operands have {type_count} types, expected one type per operand",
            items[0].start, item_count=len(items), type_count=len(types),
        )
    found: list[OperationItem] = []
    for item in items:
        actual = item.type if item.is_literal else known.get(item.value, item.type)
        item = replace(item, type=resolve_type(item, item.type, known))
        if actual != item.type:
            reader.refuse(
                "%{item} is used as {type}, but it has type {declared_type}",
                item.start, item=item.value, type=item.type, declared_type=actual,
            )
        found.append(item)
    return found


def resolve_type(item: OperationItem, declared: Any, known: Mapping[str, ValueType]) -> Any:
    """Return the declared type of an operand, or its known type if any scalar type is declared."""
    actual = known.get(item.value) if declared in ANY_SCALAR and not item.is_literal else declared
    return actual if actual in SCALARS else declared


def positional_attributes(
    reader: Reader, kind: type[PTensorOp], items: list[OperationItem], named: dict[str, Any],
    result: ValueType,
) -> dict[str, Any]:
    """Return the attributes of an operation from positional values in RFC order.

    A value of type `type` or `shape.shape` is the dtype or the shape of the result, given by the
    result type. The same holds for device and team, unless they are given.
    """
    field_names = tuple(field.name for field in fields(kind) if field.name != "kind")
    order = [*_POSITIONS.get(kind.name, field_names)]
    if kind is Create and items and (items[0].type == "shape.shape" or _is_tuple(items[0])):
        order.insert(0, "shape")
    found: dict[str, Any] = {}
    remaining = iter(order)
    for item in items:
        name = next(remaining, None)
        if name == "dtype" and issubclass(kind, Creation) and not _is_dtype(item):
            name = next(remaining, None)
        if name is None:
            names = ", ".join(attr for attr in order if attr != "dtype") or "no attributes"
            reader.refuse(
                "too many positional attributes, {op} supports {names}",
                item.start, op=kind.name, names=names,
            )
        if name in named:
            reader.refuse(
                "attribute {name} is specified both by position and by name",
                item.start, name=name,
            )
        found[name] = _positional_value(reader, kind, name, item, result)
    defaults = {
        field.name: field.default for field in fields(kind)
        if field.default is not MISSING
    }
    type_fields = ("dtype", "device", "team") if issubclass(kind, Creation) else ()
    from_type = {name: getattr(result, name, None) for name in type_fields if name in field_names}
    return {**defaults, **from_type, **found, **named}


def _is_tuple(item: OperationItem) -> bool:
    return item.is_literal and isinstance(item.value, tuple)


def _is_dtype(item: OperationItem) -> bool:
    """Return whether a positional item is a dtype; the examples of the RFC omit the dtype."""
    if item.is_literal and item.type is None:
        return isinstance(item.value, str)
    return item.type == "type"


def _positional_value(
    reader: Reader, kind: type[PTensorOp], name: str, item: OperationItem, result: ValueType
) -> Any:
    """Return the value of one attribute."""
    if item.is_literal:
        value = item.value
        if name == "dtype" and isinstance(value, str):
            value = MLIR_DTYPES.get(value, value)
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
                "{op}: the result type must specify the {name} that %{item} represents",
                item.start, op=kind.name, name=name, item=item.value,
            )
        return value
    else:
        value = AttributeOperand(item.value)
    _check_value(reader, kind, name, replace(item, value=value))
    return value
