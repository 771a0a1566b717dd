"""Schema and source positions of target descriptions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from tecomp.errors import TargetError
from tecomp.ir.nodes.dtype import SCALARS


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Numbers from here on."""

    low: int


@dataclass(frozen=True, slots=True)
class AtMost:
    """Numbers up to this."""

    high: int


@dataclass(frozen=True, slots=True)
class Above:
    """Numbers greater than this."""

    low: int


@dataclass(frozen=True, slots=True)
class PowerOfTwo:
    """1, 2, 4 and so on."""


@dataclass(frozen=True, slots=True)
class FromHost:
    """The text `host` may stand for what the machine at hand has."""

    read: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Key:
    """The key is called otherwise than the field."""

    name: str


@dataclass(frozen=True, slots=True)
class TableName:
    """No key: the name of the table."""


@dataclass(frozen=True, slots=True)
class Said:
    """A description has to say it, though a caller of the class need not."""


@dataclass(frozen=True, slots=True)
class Refers:
    """The name of a table that is described under this key of the description."""

    table: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these texts."""

    what: str
    texts: Collection[str]


@dataclass(frozen=True, slots=True)
class Matches:
    """A text of this form; `like` describes it."""

    pattern: str
    like: str


Count = Annotated[int, AtLeast(1)]
Number = Annotated[int, AtLeast(0)]
Rate = Annotated[float, Above(0)]
# Limits keep loops over cores, lanes, registers and axes short.
MOST_CORES = 1 << 20
CoreCount = Annotated[int, AtLeast(1), AtMost(MOST_CORES)]
RegisterCount = Annotated[int, AtLeast(1), AtMost(1 << 12)]
VectorBytes = Annotated[int, AtLeast(1), AtMost(1 << 16)]
TileExtent = Annotated[int, AtLeast(1), AtMost(1 << 16)]
Rank = Annotated[int, AtLeast(1), AtMost(8)]
Alignment = Annotated[int, PowerOfTwo()]
Name = Annotated[str, TableName()]
Source = Annotated[str, Said()]
MemoryName = Annotated[str, Refers("memory")]
DTypeName = Annotated[str, OneOf("type", tuple(map(str, SCALARS)))]


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


@dataclass(frozen=True, slots=True)
class Place:
    """A table of a description.

    Attributes:
        source: the file.
        root: the whole description.
        text: the file as it was read, to find lines in; empty if there is none.
        path: of the table.
    """

    source: str
    root: Mapping[str, Any]
    text: str = ""
    path: Path = ()

    def inside(self, *keys: str | int) -> Place:
        """The table under some keys of this one."""
        return Place(self.source, self.root, self.text, (*self.path, *keys))

    def error(self, what: str, key: str | int | None = None) -> TargetError:
        """The error that says `what` about a key of the table, or about the table."""
        path = self.path if key is None else (*self.path, key)
        lines = lines_of(self.text)
        while path and path not in lines:
            path = path[:-1]
        line = f":{lines[path]}" if path else ""
        return TargetError(f"{self.source}{line}: {self._table()}{what}")

    def _table(self) -> str:
        if not self.path:
            return ""
        *names, last = self.path
        if isinstance(last, int):
            return f"[[{_dotted(names)}]] {last + 1}: "
        return f"[{_dotted(self.path)}]: "


def _dotted(names: Path | list[str | int]) -> str:
    return ".".join(f'"{n}"' if isinstance(n, str) and "." in n else str(n) for n in names)
