"""Text scanner with error positions."""

from __future__ import annotations

import re
from typing import NoReturn

from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import check_kind

_SHOWN = 20
_MOST_DIGITS = 18


class Scanner:
    """A text and a place in it.

    >>> scanner = Scanner("<2x4>, x", "grid")
    >>> scanner.take("<"), scanner.number(), scanner.accept_letter("x"), scanner.accept(">")
    (None, 2, True, False)
    """

    def __init__(self, text: str, who: str) -> None:
        """Start at the front of `text`; errors begin with `who`.

        Raises:
            LayoutError: it is no text.
        """
        check_kind(text, str, f"{who}: the text", "give what `str(layout)` writes", LayoutError)
        self.text = text
        self.who = who
        self.at = 0

    def skip(self) -> int:
        """Go over blanks; the place after them."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at

    def accept(self, token: str) -> bool:
        """Go over `token` if it comes next; a word only if it ends there."""
        self.skip()
        if not self.text.startswith(token, self.at):
            return False
        end = self.at + len(token)
        if token[-1].isalnum() and re.match(r"\w", self.text[end : end + 1]):
            return False
        self.at = end
        return True

    def accept_letter(self, letter: str) -> bool:
        """Go over one letter, whatever comes after it, as the x between extents."""
        found = self.text.startswith(letter, self.at)
        self.at += found
        return found

    def take(self, token: str) -> None:
        """Go over `token`.

        Raises:
            LayoutError: something else comes next.
        """
        if not self.accept(token):
            self.fail(repr(token))

    def number_or_none(self) -> int | None:
        """The digits that come next."""
        self.skip()
        match = re.compile(r"\d+").match(self.text, self.at)
        if match is None:
            return None
        if len(match[0]) > _MOST_DIGITS:
            self.fail(f"a number of at most {_MOST_DIGITS} digits")
        self.at = match.end()
        return int(match[0])

    def number(self) -> int:
        """The number that comes next."""
        number = self.number_or_none()
        return self.fail("a number") if number is None else number

    def extents(self) -> tuple[int, ...]:
        """The numbers that come next, with an x between them.

        >>> Scanner("2x4>", "grid").extents()
        (2, 4)
        """
        found = [self.number()]
        while self.accept_letter("x"):
            found.append(self.number())
        return tuple(found)

    def word(self, what: str) -> str:
        """The word that comes next."""
        self.skip()
        match = re.compile(r"[A-Za-z_]\w*").match(self.text, self.at)
        if match is None:
            self.fail(what)
        self.at = match.end()
        return match[0]

    def end(self) -> None:
        """Nothing but blanks may follow."""
        if self.skip() < len(self.text):
            self.fail("the end")

    def fail(self, wanted: str, at: int | None = None) -> NoReturn:
        """Say what should stand at a place.

        Raises:
            LayoutError: always.
        """
        place = self.skip() if at is None else at
        line = self.text.count("\n", 0, place) + 1
        column = place - (self.text.rfind("\n", 0, place) + 1) + 1
        rest = self.text[place : place + _SHOWN].partition("\n")[0]
        dots = "..." if len(self.text) > place + len(rest) else ""
        found = f"found `{rest}{dots}`" if rest else "the text ends"
        raise LayoutError(
            f"{self.who}: expected {wanted} at position {place} (line {line}, column {column}), "
            f"but {found}; str() of a layout shows how it is written",
            kind="layout-text",
        )
