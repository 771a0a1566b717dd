"""Every error a user can cause: one class per kind of mistake, and where in the user's code it is.

A message says where, what (with the values), and what to do instead. `message` is the sentence
alone; `str(error)` adds the user's own line and the expression in it that was refused.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from types import CodeType, FrameType
from typing import Any


@dataclass(frozen=True)
class Location:
    """A place in the user's source, kept cheaply as code object and instruction offset."""

    code: CodeType
    instruction: int

    def __reduce__(self) -> tuple[Any, ...]:
        # Code objects stay in their process; the line is what another one can show.
        return _line_of, (self.file, self.line)

    def __deepcopy__(self, memo: object) -> Location:
        return self

    @cached_property
    def _span(self) -> tuple[int | None, int | None, int | None, int | None]:
        return next(
            islice(self.code.co_positions(), self.instruction // 2, None),
            (self.code.co_firstlineno, None, None, None),
        )

    @property
    def file(self) -> str:
        """File that the code came from (a notebook cell has a name of its own)."""
        return self.code.co_filename

    @property
    def line(self) -> int:
        """Line number, counted from 1."""
        return self._span[0] or self.code.co_firstlineno

    @property
    def text(self) -> str:
        """The expression itself, or its whole line where Python kept no columns."""
        first, last, start, stop = self._span
        if first is None:
            return ""
        line = linecache.getline(self.file, first)
        if first != last or start is None or stop is None:
            return line.strip()
        # Python counts columns in UTF-8 bytes.
        return line.encode()[start:stop].decode(errors="replace")

    def __str__(self) -> str:
        return _described(self)


@dataclass(frozen=True)
class Described:
    """A place in the source of another process, whose code is not here."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return _described(self)


def _described(place: Location | Described) -> str:
    where = f"{place.file}:{place.line}"
    return f"{where}: {_ends(place.text, _MOST)}" if place.text else where


_ANYWHERE = compile("0", "", "exec")


def _line_of(file: str, line: int) -> Location:
    code = _ANYWHERE.replace(co_filename=file, co_firstlineno=line, co_linetable=b"")
    return Location(code, 0)


def user_location() -> Location | None:
    """The innermost place on the call stack that is the user's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    return Location(frame.f_code, frame.f_lasti) if frame is not None else None


def _is_ours(frame: FrameType) -> bool:
    # By module name: a dataclass's generated methods have no file. The standard library is
    # between two of our own frames where a cached property computes its value.
    top = str(frame.f_globals.get("__name__", "")).split(".")[0]
    return top == "tecomp" or top in sys.stdlib_module_names


_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")
"""Where in memory an object without a text of its own is: another place in each process."""

_LONG = re.compile(r"`[^`]{500,}`|[^\s`]{500,}")
_MOST = 4000
"""Characters of a message; it may quote names, shapes or values of any length."""


def _abridged(message: str) -> str:
    """A message that can be read: of long texts in it, the two ends."""
    message = _LONG.sub(lambda found: _ends(found[0], 400), message)
    return _ends(message, _MOST)


def _ends(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


class TecompError(Exception):
    """Base of all errors raised on purpose by tecomp.

    Attributes:
        message: what is wrong, with the values, and what to do instead.
        location: the user's expression that asked for it.
    """

    def __init__(self, message: str, location: Location | Described | None = None) -> None:
        message = _abridged(_ADDRESS.sub("", message))
        super().__init__(message)
        self.message = message
        self.location: Location | Described | None = location or user_location()

    def __reduce__(self) -> tuple[Any, ...]:
        """For processes that hand their errors to others, who have not the code."""
        at = self.location
        known = Described(at.file, at.line, at.text) if at is not None else None
        return _again, (type(self), self.message, known)

    def __str__(self) -> str:
        return f"{self.message}\n  at {self.location}" if self.location else self.message


def _again(kind: type[TecompError], message: str, location: Described | None) -> TecompError:
    """An error that was raised in another process."""
    error = kind(message, location)
    error.location = location
    return error


class DefinitionError(TecompError, ValueError):
    """A computation is written in a way that has no meaning."""


class TypeMismatchError(DefinitionError, TypeError):
    """An expression has a type that cannot be used there."""


class ScheduleError(TecompError, ValueError):
    """A scheduling primitive was asked for something it cannot do."""


class LayoutError(TecompError, ValueError):
    """An index map does not describe a usable memory layout."""


class TargetError(TecompError, ValueError):
    """A target description is malformed, or a target lacks what was asked of it."""


class CapacityError(TargetError):
    """A buffer does not fit into the memory that it was given."""


class LowerError(TecompError, ValueError):
    """A schedule cannot be turned into code that keeps the meaning."""


class ParseError(TecompError, ValueError):
    """A text is not a printed function."""


class CallError(TecompError, ValueError):
    """A kernel was called with arguments that it cannot take, or met an index out of bounds."""


class CacheError(TecompError, ValueError):
    """What is said about the cache has no meaning, or a saved program cannot be used."""


class MissingError(TecompError, AttributeError):
    """A name of TVM's is not here."""

    @staticmethod
    def of(module: str, called: str, name: str, instead: Mapping[str, str]) -> AttributeError:
        """What is said of a name that a module has not, be it TVM's or anybody's.

        Args:
            module: the full name of the module.
            called: how users write it.
            name: what was asked for.
            instead: what takes the place of names of TVM's.

        >>> MissingError.of("tecomp.te", "te", "gradient", {"gradient": "write it"}).message
        'te.gradient: write it'
        """
        if name not in instead:
            near = () if name.startswith("_") else get_close_matches(
                name, getattr(sys.modules.get(module), "__all__", ()), n=1)
            hint = f"; did you mean {called}.{near[0]}?" if near else ""
            return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")
        return MissingError(f"{called}.{name}: {instead[name]}")


class ArrayTypeError(TecompError, TypeError):
    """An array operation does not take elements or arguments of such a type."""


class ArrayValueError(TecompError, ValueError):
    """An array operation was given a value or a shape that has no meaning there."""


class ArrayIndexError(TecompError, IndexError):
    """There is no such axis or element."""


class ArrayBufferError(TecompError, BufferError):
    """The memory of an array cannot be handed to another library in this way."""


class DeviceMismatchError(ArrayValueError):
    """The operands of one operation live on different devices."""


class TeamMismatchError(ArrayValueError):
    """The operands of one operation belong to different teams of processes."""


class TeamError(TecompError, ValueError):
    """A team of processes was asked for what it cannot do, or its processes do different things."""


class MissingLibraryError(TecompError, ImportError):
    """A library that only a part of tecomp needs is not installed, or not usable."""


class InternalError(TecompError, RuntimeError):
    """The compiler contradicts itself: a mistake of ours, not of the user."""
