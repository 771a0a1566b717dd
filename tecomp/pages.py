"""A page for each kind of mistake, from `errors.md` beside this file, with its code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from os.path import dirname, join

_HEADING = re.compile(r"^## (TE\d{4}) ([a-z0-9-]+)\n+", re.MULTILINE)

_HEAD = """# Errors

Every error has a code for the kind of mistake: `error.code`. Its page says what is wrong, why it is
refused, and how to mend it, with an example that makes the mistake and one that does not.
`tecomp explain TE0201` prints the same.

What Python shows ends at your line; with `TECOMP_DEBUG=1` it also shows where in tecomp the error
was raised. What only `build` finds out is at the line of the primitive that asked for it.

| code | kind | what is wrong |
| --- | --- | --- |"""


@dataclass(frozen=True, slots=True)
class Page:
    """What a person finds who looks a code up.

    Attributes:
        code: `TE` and four digits; the first two are those of a chapter.
        kind: the same as a word, which is written where an error is raised.
        text: Markdown: what is wrong, why it is refused, an example, and how to mend it.
    """

    code: str
    kind: str
    text: str

    @property
    def title(self) -> str:
        """The first sentence."""
        return self.text.partition("\n")[0]

    def __str__(self) -> str:
        return f"{self.code} {self.kind}\n\n{self.text}"


@cache
def pages() -> dict[str, Page]:
    """All pages by kind, in the order of their codes."""
    with open(join(dirname(__file__), "errors.md"), encoding="utf-8") as file:
        _, *parts = _HEADING.split(file.read())
    found = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {kind: Page(code, kind, text.strip() + "\n") for code, kind, text in found}


def document() -> str:
    """All pages as one, `docs/errors.md`."""
    known = pages().values()
    rows = (f"| [{x.code}](#{x.code.lower()}-{x.kind}) | {x.kind} | {x.title} |" for x in known)
    parts = (f"## {page.code} {page.kind}\n\n{page.text}" for page in known)
    return "\n".join((_HEAD, *rows, "", *parts))


def page_of(asked: str) -> Page | None:
    """The page of a code in capitals or not, or of a kind; None if there is none."""
    by_code = {page.code: page for page in pages().values()}
    return by_code.get(asked.upper()) or pages().get(asked.lower())
