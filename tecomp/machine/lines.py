"""Where the keys and tables of a TOML text stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

Path: TypeAlias = "tuple[str | int, ...]"

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_KEY = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_LINE = re.compile(
    rf"[ \t]*(?:(?P<open>\[\[?)[ \t]*(?P<table>{_KEY})[ \t]*\]|(?P<key>{_KEY})[ \t]*=)"
)


def lines_of(text: str) -> Mapping[Path, int]:
    r"""The line of every key and table; tables of an array have its name and their number from 0.

    Keys inside of inline tables have none of their own.

    >>> lines_of('a = 1\n[b."c.d"]\ne = 2\n[[f]]\n[[f]]\ng = 3')[("f", 1, "g")]
    6
    """
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    closing = ""
    for number, line in enumerate(text.splitlines(), 1):
        if closing:
            closing = "" if closing in line else closing
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        if match["table"]:
            table = _parts(match["table"])
            if match["open"] == "[[":
                counts[table] = position = counts.get(table, -1) + 1
                table = (*table, position)
            for size in range(1, len(table) + 1):
                found.setdefault(table[:size], number)
            continue
        path = (*table, *_parts(match["key"]))
        for size in range(len(table) + 1, len(path) + 1):
            found.setdefault(path[:size], number)
        # Some tables take the parts of a key as one name.
        found.setdefault((*table, ".".join(map(str, path[len(table) :]))), number)
        value = line[match.end() :]
        closing = next((q for q in ('"""', "'''") if value.count(q) == 1), "")
    return found


def _parts(key: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_PART, key))
