"""Where something stands in a target description, as error messages say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tecomp.errors import TargetError
from tecomp.machine.lines import Path, lines_of


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
