"""What the type of a field says about a key of a target description, beyond `int` or `str`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated, Any

from tecomp.ir.language.dtype import SCALARS


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Numbers from here on."""

    low: int


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
Alignment = Annotated[int, PowerOfTwo()]
Name = Annotated[str, TableName()]
Source = Annotated[str, Said()]
MemoryName = Annotated[str, Refers("memory")]
DTypeName = Annotated[str, OneOf("type", tuple(map(str, SCALARS)))]
