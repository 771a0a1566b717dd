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
    """Lower bound of a number, inclusive."""

    low: int


@dataclass(frozen=True, slots=True)
class AtMost:
    """Upper bound of a number, inclusive."""

    high: int


@dataclass(frozen=True, slots=True)
class Above:
    """Lower bound of a number, exclusive; the number must be finite."""

    low: int


@dataclass(frozen=True, slots=True)
class PowerOfTwo:
    """Requirement that a number is a power of two."""


@dataclass(frozen=True, slots=True)
class FromHost:
    """Marker: the text `host` represents the value of this host."""

    read: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class KeyName:
    """Name of the key, if it differs from the name of the field."""

    name: str


@dataclass(frozen=True, slots=True)
class TableName:
    """Marker: the field is not a key, but holds the name of the table."""


@dataclass(frozen=True, slots=True)
class Required:
    """Marker: the key is required in descriptions, even if the class has a default."""


@dataclass(frozen=True, slots=True)
class TableReference:
    """Reference to the name of a table under this key of the description."""

    table: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """Set of permitted texts."""

    what: str
    texts: Collection[str]


@dataclass(frozen=True, slots=True)
class Matches:
    """Pattern of permitted texts; `like` describes it in messages."""

    pattern: str
    like: str


Count = Annotated[int, AtLeast(1)]
Number = Annotated[int, AtLeast(0)]
Rate = Annotated[float, Above(0)]
# The limits bound the loops over cores, lanes, registers and axes.
MAX_CORES = 1 << 20
CoreCount = Annotated[int, AtLeast(1), AtMost(MAX_CORES)]
RegisterCount = Annotated[int, AtLeast(1), AtMost(1 << 12)]
VectorBytes = Annotated[int, AtLeast(1), AtMost(1 << 16)]
TileExtent = Annotated[int, AtLeast(1), AtMost(1 << 16)]
Rank = Annotated[int, AtLeast(1), AtMost(8)]
Alignment = Annotated[int, PowerOfTwo()]
Name = Annotated[str, TableName()]
Source = Annotated[str, Required()]
MemoryName = Annotated[str, TableReference("memory")]
DTypeName = Annotated[str, OneOf("type", tuple(map(str, SCALARS)))]


Path: TypeAlias = "tuple[str | int, ...]"

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_KEY = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_LINE = re.compile(
    rf"[ \t]*(?:(?P<open>\[\[?)[ \t]*(?P<table>{_KEY})[ \t]*\]|(?P<key>{_KEY})[ \t]*=)"
)


def lines_of(text: str) -> Mapping[Path, int]:
    r"""Return the line of every key and table; array tables have their name and index as path.

    Keys inside inline tables have no entries.

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
        # A table with dotted names, such as `grid`, takes a dotted key as a single name.
        found.setdefault((*table, ".".join(map(str, path[len(table) :]))), number)
        value = line[match.end() :]
        closing = next((q for q in ('"""', "'''") if value.count(q) == 1), "")
    return found


def _parts(key: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_PART, key))


@dataclass(frozen=True, slots=True)
class TomlPosition:
    """Position of a table in a description.

    Attributes:
        source: File name.
        root: Whole description.
        text: Text of the file, to find line numbers; empty if there is none.
        path: Path of the table.
    """

    source: str
    root: Mapping[str, Any]
    text: str = ""
    path: Path = ()

    def nested(self, *keys: str | int) -> TomlPosition:
        """Return the position of a nested table."""
        return TomlPosition(self.source, self.root, self.text, (*self.path, *keys))

    def error(
        self, template: str, key: str | int | None = None, /, **parameters: Any
    ) -> TargetError:
        """Return the error about a key of the table, or about the table itself."""
        path = self.path if key is None else (*self.path, key)
        lines = lines_of(self.text)
        while path and path not in lines:
            path = path[:-1]
        line = f":{lines[path]}" if path else ""
        return TargetError(
            "{source}{line}: {section}" + template,
            source=self.source, line=line, section=self._table(), **parameters,
        )

    def _table(self) -> str:
        if not self.path:
            return ""
        *names, last = self.path
        if isinstance(last, int):
            return f"[[{_dotted_key(names)}]] {last + 1}: "
        return f"[{_dotted_key(self.path)}]: "


def _dotted_key(names: Path | list[str | int]) -> str:
    return ".".join(f'"{n}"' if isinstance(n, str) and "." in n else str(n) for n in names)
