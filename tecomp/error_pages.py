"""Pages of error codes, read from `errors.md`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from os.path import dirname, join

_HEADING = re.compile(r"^## (TE\d{4}) ([a-z0-9-]+)\n+", re.MULTILINE)

_HEAD = """# Errors

Every error has a code that identifies its kind: `error.code`. The page of a code describes the
error, its cause and the remedy, with one example that causes the error and one that avoids it.
`tecomp explain TE0201` prints the same page.

Programs distinguish errors by `error.kind` and by `error.parameters`, the values that the message
shows, by name: the wording of messages changes between versions.

Tracebacks end at your source line. With `TECOMP_DEBUG=1` they also show where tecomp raised the
error. Errors that only `build` detects refer to the line of the primitive that caused them.

| code | kind | description |
| --- | --- | --- |"""


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """Page of an error code.

    Attributes:
        code: `TE` and four digits; the first two number the chapter.
        kind: Kind of the error as a word, which the raising code passes.
        text: Markdown text: problem, reason, example and remedy.
    """

    code: str
    kind: str
    text: str

    @property
    def title(self) -> str:
        """First line of the text."""
        return self.text.partition("\n")[0]

    def __str__(self) -> str:
        return f"{self.code} {self.kind}\n\n{self.text}"


@cache
def error_pages() -> dict[str, ErrorPage]:
    """Return all pages by kind, in the order of `errors.md`."""
    with open(join(dirname(__file__), "errors.md"), encoding="utf-8") as file:
        _, *parts = _HEADING.split(file.read())
    found = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {kind: ErrorPage(code, kind, text.strip() + "\n") for code, kind, text in found}


def document() -> str:
    """Return all pages as one document, `docs/errors.md`."""
    known = error_pages().values()
    rows = (f"| [{x.code}](#{x.code.lower()}-{x.kind}) | {x.kind} | {x.title} |" for x in known)
    parts = (f"## {page.code} {page.kind}\n\n{page.text}" for page in known)
    return "\n".join((_HEAD, *rows, "", *parts))


def page_of(code_or_kind: str) -> ErrorPage | None:
    """Return the page of a code or kind (case-insensitive), or None."""
    by_code = {page.code: page for page in error_pages().values()}
    return by_code.get(code_or_kind.upper()) or error_pages().get(code_or_kind.lower())
