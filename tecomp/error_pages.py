"""Pages of error codes, read from `errors.md`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from os.path import dirname, join

_HEADING = re.compile(r"^## (TE\d{4}) ([a-z0-9-]+)(?:, formerly ([a-z-]+))?\n+", re.MULTILINE)

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
        former_kind: Kind in earlier versions, which `tecomp explain` accepts as well.
    """

    code: str
    kind: str
    text: str
    former_kind: str | None = None

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
    found = zip(parts[::4], parts[1::4], parts[3::4], parts[2::4], strict=True)
    pages = (ErrorPage(code, kind, text.strip() + "\n", old) for code, kind, text, old in found)
    return {page.kind: page for page in pages}


def document() -> str:
    """Return all pages as one document, `docs/errors.md`."""
    known = error_pages().values()
    rows = (f"| [{x.code}](#{x.code.lower()}-{x.kind}) | {x.kind} | {x.title} |" for x in known)
    parts = (f"## {page.code} {page.kind}\n\n{page.text}" for page in known)
    return "\n".join((_HEAD, *rows, "", *parts))


def page_of(key: str) -> ErrorPage | None:
    """Return the page of a code (case-insensitive), kind or former kind, or None."""
    for page in error_pages().values():
        if key.lower() in (page.code.lower(), page.kind, page.former_kind):
            return page
    return None
