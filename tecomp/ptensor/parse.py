"""Printed functions read back."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tecomp.errors import ArrayValueError, ParseError
from tecomp.ptensor.function import (
    Apply,
    Function,
    Module,
    Parameter,
    together,
    verify,
    verify_module,
)
from tecomp.ptensor.operation import Argument, Operation
from tecomp.ptensor.operation_registry import operation_classes
from tecomp.ptensor.operations.base import Call
from tecomp.ptensor.types import ALL, SCALARS, PTensorType, ValueType

_HEAD = re.compile(r"func @(?P<name>\w+)\((?P<parameters>.*)\) -> (?P<results>.*) \{")
_APPLY = re.compile(
    r"(?:(?P<names>%\w+(?:, %\w+)*) = )?ptensor\.(?P<name>\w+)(\{'(?P<kind>\w+)'\})?"
    r"\((?P<inside>.*?)\) ?: \((?P<types>.*?)\) +-> (?P<type>.*)"
)
_CALL = re.compile(
    r"(?:(?P<names>%\w+(?:, %\w+)*) = )?func\.call @(?P<function>\w+)"
    r"\((?P<inside>.*?)\) ?: \((?P<types>.*?)\) +-> (?P<type>.+)"
)
_TYPE = re.compile(
    r"ptensor(?:\.ptensor)?<(?P<shape>(?:(?:\d+|\?)x)*)(?P<dtype>[a-z]+\d*)"
    r"(?P<marks>(?:, \w+=[^,>]+)*)>"
)
_PLACES = ("device", "team", "gid")


def parse(text: str) -> Function:
    """The function that a text is the printed form of.

    Raises:
        ParseError: a line is not of that form; with the line.
        ArrayTypeError, ArrayValueError: its operations do not fit together.

    >>> from tecomp.ptensor.operations.elementwise import ElementwiseUnaryOp
    >>> f = parse('''func @f(%x: ptensor<4xint8>) -> ptensor<4xint8> {
    ...   %y = ptensor.elementwise_unary_op{'abs'}(%x): (ptensor<4xint8>) -> ptensor<4xint8>
    ...   return %y
    ... }''')
    >>> f.body[0].op
    ElementwiseUnaryOp(kind='abs')
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None or lines[-1] != "}" or len(lines) < 3:
        raise ParseError(
            "a function is `func @name(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {`, its "
            f"operations, `return %y` and `}}`; the text begins with {lines[:1]}",
            kind="ptensor",
        )
    parameters = tuple(_parameter(part) for part in _split(head["parameters"]))
    body = tuple(_apply(line) for line in lines[1:-2])
    results = _results(lines[-2])
    function = Function(head["name"], parameters, body, results)
    verify(function)
    _check_results(function, head["results"])
    return function


def parse_module(text: str) -> Module:
    """The functions that a text has, one after the other; they may call each other.

    Raises:
        ParseError: a line is not of its form; with the line.
        ArrayTypeError, ArrayValueError: operations or functions do not fit together.
    """
    parts = re.split(r"(?m)^(?=[ \t]*func @)", text.strip())
    module = Module(tuple([parse(part) for part in parts if part.strip()]))
    verify_module(module)
    return module


def _check_results(function: Function, text: str) -> None:
    inside = _split(text[1:-1]) if text.startswith("(") else [text]
    declared = together([_value_type(part) for part in inside])
    found = together([function.type_of(name) for name in function.results])
    if declared != found:
        raise ArrayValueError(
            f"@{function.name}: the results are declared as {declared}, and are {found}; "
            "write that",
            kind="ptensor",
        )


def _parameter(text: str) -> Parameter:
    name, _, type = text.partition(": ")
    if not re.fullmatch(r"%\w+", name):
        raise ParseError(
            f"a parameter is `%x: ptensor<4xfloat32>`, and this is `{text}`", kind="ptensor"
        )
    return Parameter(name[1:], _value_type(type))


def _value_type(text: str) -> ValueType:
    return text if text in SCALARS else parse_type(text)


def parse_type(text: str) -> PTensorType:
    """The type that a text is the printed form of.

    Raises:
        ParseError: it is none.

    >>> parse_type("ptensor<4x5xfloat32, device='cpu', team=1>").team
    1
    """
    match = _TYPE.fullmatch(text.strip())
    if match is None:
        raise ParseError(
            f"a type is `ptensor<4x5xfloat32, device='cpu'>`, and this is `{text}`", kind="ptensor"
        )
    shape = [None if extent == "?" else int(extent) for extent in match["shape"].split("x")[:-1]]
    marks = dict(part.split("=", 1) for part in _split(match["marks"].removeprefix(", ")))
    if match["dtype"] not in ALL:
        raise ParseError(
            f"`{text}`: there are no elements {match['dtype']}; these are {ALL}", kind="ptensor"
        )
    unknown = sorted(set(marks) - {*_PLACES})
    if unknown:
        raise ParseError(
            f"`{text}`: {unknown[0]} is no mark of a type; these are {_PLACES}", kind="ptensor"
        )
    places = {name: ast.literal_eval(value) for name, value in marks.items()}
    return PTensorType(tuple(shape), match["dtype"], **places)  # type: ignore[arg-type]


def _apply(line: str) -> Apply:
    called = _CALL.fullmatch(line)
    if called is not None:
        return _called(called, line)
    match = _APPLY.fullmatch(line)
    if match is None:
        raise ParseError(
            "an operation is `%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`, and "
            f"this is `{line}`",
            kind="ptensor",
        )
    inside = _split(match["inside"])
    operands = [part[1:] for part in inside if part[0] == "%"]
    texts = dict(part.split("=", 1) for part in inside if part[0] != "%")
    attributes: dict[str, Any] = {name: _literal(value) for name, value in texts.items()}
    if match["kind"] is not None:
        attributes["kind"] = match["kind"]
    types = tuple(_value_type(part) for part in _split(match["types"]))
    names, (result, *others) = _made(match, line)
    for place in ("device", "team"):
        if isinstance(given := attributes.get(place), Argument):
            # The name is the caller's, what it stands for is in the type.
            attributes[place] = Argument(given.name, getattr(result, place))
    op = _operation(match["name"], attributes, line)
    more = tuple(map(Parameter, names[1:], others))
    return Apply(names[0] if names else None, op, tuple(operands), types, result, more)


def _called(match: re.Match[str], line: str) -> Apply:
    operands = tuple([part.removeprefix("%") for part in _split(match["inside"])])
    types = tuple(_value_type(part) for part in _split(match["types"]))
    names, results = _made(match, line)
    op = Call(match["function"], tuple(results))
    more = tuple(map(Parameter, names[1:], results[1:]))
    return Apply(names[0] if names else None, op, operands, types, results[0], more)


def _made(match: re.Match[str], line: str) -> tuple[list[str], list[ValueType]]:
    """The names and types of an operation's results; one that nobody reads has no name."""
    names = [name.removeprefix("%") for name in _split(match["names"] or "")]
    text = match["type"]
    inside = _split(text[1:-1]) if text.startswith("(") and text.endswith(")") else [text]
    if len(inside) != max(len(names), 1):
        raise ParseError(
            f"`{line}`: there are {len(names)} names for {len(inside)} results; give one to each",
            kind="ptensor",
        )
    return names, [_value_type(part) for part in inside]


def _operation(name: str, attributes: dict[str, Any], line: str) -> Operation:
    kind = operation_classes().get(name)
    if kind is None:
        raise ParseError(f"`{line}`: there is no operation {name}", kind="ptensor")
    names = {field.name for field in fields(kind)}
    if names != set(attributes):
        raise ParseError(
            f"`{line}`: {name} has the attributes {sorted(names)}, and given are "
            f"{sorted(attributes)}",
            kind="ptensor",
        )
    return kind(**attributes)


def _literal(text: str) -> Any:
    if text.startswith("%"):
        return Argument(text[1:])
    try:
        return ast.literal_eval(_Numbers().visit(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError) as error:
        raise ParseError(f"`{text}` is no value of an attribute", kind="ptensor") from error


class _Numbers(ast.NodeTransformer):
    """What numbers without a literal are printed as, alone or as parts of complex ones."""

    _known: Mapping[str, complex] = {
        "inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf),
        "nanj": complex(0, math.nan),
    }  # fmt: skip

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The number of this name."""
        return ast.Constant(self._known[node.id]) if node.id in self._known else node


def _results(line: str) -> tuple[str, ...]:
    if line.split(" ")[0] != "return":
        raise ParseError(
            f"a function ends with `return %y`, and this one with `{line}`", kind="ptensor"
        )
    return tuple(part.removeprefix("%") for part in _split(line.removeprefix("return")))


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets or quotes."""
    parts, depth, start, quoted = [], 0, 0, ""
    for k, letter in enumerate(text):
        if quoted:
            quoted = "" if letter == quoted else quoted
        elif letter in "'\"":
            quoted = letter
        elif letter in "([{<":
            depth += 1
        elif letter in ")]}>":
            depth -= text[k - 1] != "-" or letter != ">"
        elif letter == "," and depth == 0:
            parts.append(text[start:k].strip())
            start = k + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts
