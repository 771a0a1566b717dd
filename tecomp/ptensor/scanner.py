"""Scanner of printed functions: tokens, literals, and positions of errors."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from tecomp.errors import ParseError, TecompError
from tecomp.ptensor.operation import AttributeOperand

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
