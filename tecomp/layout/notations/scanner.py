"""Text scanner with error positions."""

from __future__ import annotations

import re
from typing import NoReturn

from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import check_kind

_SHOWN = 20
_MAX_DIGITS = 18


class Scanner:
    """A text and a position in it.

    >>> scanner = Scanner("<2x4>, x", "grid")
    >>> scanner.take("<"), scanner.number(), scanner.accept_letter("x"), scanner.accept(">")
    (None, 2, True, False)
    """

    def __init__(self, text: str, caller: str) -> None:
        """Start at the beginning of `text`; `caller` is the prefix of error messages.

        Raises:
            LayoutError: If `text` is not a string.
        """
        check_kind(
            text, str, f"{caller}: the text", "pass the output of `str(layout)`", LayoutError
        )
        self.text = text
        self.caller = caller
        self.position = 0

    def skip(self) -> int:
        """Skip whitespace and return the position."""
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1
        return self.position

    def at(self, prefix: str) -> bool:
        """Return whether the remaining text starts with a prefix."""
        return self.text.startswith(prefix, self.skip())

    def accept(self, token: str) -> bool:
        """Consume `token` if it is next; an alphanumeric token must end at a word boundary."""
        self.skip()
        if not self.text.startswith(token, self.position):
            return False
        end = self.position + len(token)
        if token[-1].isalnum() and re.match(r"\w", self.text[end : end + 1]):
            return False
        self.position = end
        return True

    def accept_letter(self, letter: str) -> bool:
        """Consume one letter regardless of what follows, such as the x between extents."""
        found = self.text.startswith(letter, self.position)
        self.position += found
        return found

    def take(self, token: str) -> None:
        """Consume `token`.

        Raises:
            LayoutError: If another token is next.
        """
        if not self.accept(token):
            self.fail(repr(token))

    def number_or_none(self) -> int | None:
        """Consume a number and return it; None if no digits are next."""
        self.skip()
        match = re.compile(r"\d+").match(self.text, self.position)
        if match is None:
            return None
        if len(match[0]) > _MAX_DIGITS:
            self.fail(f"a number of at most {_MAX_DIGITS} digits")
        self.position = match.end()
        return int(match[0])

    def number(self) -> int:
        """Consume a number and return it."""
        number = self.number_or_none()
        return self.fail("a number") if number is None else number

    def extents(self) -> tuple[int, ...]:
        """Consume extents such as `2x4` and return them.

        >>> Scanner("2x4>", "grid").extents()
        (2, 4)
        """
        found = [self.number()]
        while self.accept_letter("x"):
            found.append(self.number())
        return tuple(found)

    def word(self, expected: str) -> str:
        """Consume a word and return it."""
        self.skip()
        match = re.compile(r"[A-Za-z_]\w*").match(self.text, self.position)
        if match is None:
            self.fail(expected)
        self.position = match.end()
        return match[0]

    def end(self) -> None:
        """Check that only whitespace follows."""
        if self.skip() < len(self.text):
            self.fail("the end")

    def fail(self, expected: str, position: int | None = None) -> NoReturn:
        """Raise a syntax error at a position.

        Raises:
            LayoutError: Always.
        """
        offset = self.skip() if position is None else position
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        snippet = self.text[offset : offset + _SHOWN].partition("\n")[0]
        dots = "..." if len(self.text) > offset + len(snippet) else ""
        found = f"found `{snippet}{dots}`" if snippet else "the text ends"
        raise LayoutError(
            "{caller}: expected {expected} at position {position} (line {line}, column {column}), "
            "but {found}; see str() of a layout for the syntax",
            kind="layout-text", caller=self.caller, expected=expected, position=offset, line=line,
            column=column, found=found,
        )
