"""User source locations in messages, and traceback trimming."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from types import CodeType, FrameType, TracebackType
from typing import Any
from unicodedata import east_asian_width

DEBUG = "TECOMP_DEBUG"
"""Environment variable that requests untrimmed tracebacks if it is set and not 0."""


def users_frame() -> FrameType | None:
    """Return the innermost frame of user code on the call stack, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _top(frame) in _BETWEEN:
        frame = frame.f_back
    return frame


# Frames of the standard library occur between frames of tecomp, e.g. in cached properties.
_BETWEEN = sys.stdlib_module_names | {"tecomp"}


def _top(frame: FrameType) -> str:
    # The module name is used because generated methods of dataclasses have no file.
    return str(frame.f_globals.get("__name__", "")).split(".")[0]


def trim_traceback(error: BaseException) -> None:
    """Remove the frames of tecomp from the tracebacks of an error and of its causes.

    Nothing is removed if `TECOMP_DEBUG` is set, or from an error with `ends_at_user` False.
    """
    if os.environ.get(DEBUG, "0") != "0":
        return
    known: set[int] = set()
    exc: BaseException | None = error
    while exc is not None and getattr(exc, "ends_at_user", True) and id(exc) not in known:
        known.add(id(exc))
        exc.__traceback__ = _users_part(exc.__traceback__)
        origin = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
        if origin is not None and _users_part(origin.__traceback__) is None:
            # The origin was raised and caught inside tecomp, and the message covers its content.
            exc.__cause__ = origin = None
        exc = origin


def _users_part(traceback: TracebackType | None) -> TracebackType | None:
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    while frames and _top(frames[-1].tb_frame) in _BETWEEN:
        frames.pop()
    trimmed: TracebackType | None = None
    for entry in reversed(frames):
        if _top(entry.tb_frame) != "tecomp":
            trimmed = TracebackType(trimmed, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return trimmed


@cache
def watch() -> None:
    """Install an excepthook, once, that ends tracebacks of uncaught tecomp errors in user code."""
    shown_by = sys.excepthook

    def shortened(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if getattr(error, "ends_at_user", False):
            trim_traceback(error)
            traceback = error.__traceback__
        shown_by(kind, error, traceback)

    sys.excepthook = shortened


LONGEST = 4000
"""Maximum length of a message in characters; quoted names, shapes and values are unbounded."""


@dataclass(frozen=True)
class Location:
    """Source location in user code, stored cheaply as code object and instruction offset."""

    code: CodeType
    instruction: int

    def __reduce__(self) -> tuple[Any, ...]:
        # Code objects cannot be pickled; another process can still show the line.
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
        """File name of the code; each notebook cell has its own file name."""
        return self.code.co_filename

    @property
    def line(self) -> int:
        """Line number, starting at 1."""
        return self._span[0] or self.code.co_firstlineno

    @property
    def text(self) -> str:
        """Source text of the expression, or its first line if it spans lines or has no columns."""
        first, last, start, stop = self._span
        if first is None:
            return ""
        line = linecache.getline(self.file, first)
        if first != last or start is None or stop is None:
            return line.strip()
        # Python counts columns in UTF-8 bytes.
        return line.encode()[start:stop].decode(errors="replace")

    @property
    def picture(self) -> str:
        """Source lines of the expression, underlined with carets; empty if there is no source."""
        first, last, start, stop = self._span
        if first is None or last is None:
            return ""
        lines = [linecache.getline(self.file, k).rstrip() for k in range(first, last + 1)]
        if not any(lines):
            return ""
        if start is None or stop is None:
            return _indent(lines[:1])
        ends = [*(len(line.encode()) for line in lines[:-1]), stop]
        begins = [start, *(len(line) - len(line.lstrip()) for line in lines[1:])]
        marked = [
            (line, _carets(line, *span))
            for line, *span in zip(lines, begins, ends, strict=True) if line
        ]
        if len(marked) > _MAX_LINES:
            half = _MAX_LINES // 2
            marked = [*marked[:half], ("...", ""), *marked[-half:]]
        return _indent([text for pair in marked for text in pair if text])

    def __str__(self) -> str:
        return _describe(self)


@dataclass(frozen=True)
class RemoteLocation:
    """Source location from another process, stored as text because its code is unavailable.

    Attributes:
        file: File name of the code.
        line: Line number, starting at 1.
        text: Source text of the expression.
        picture: Source lines of the expression, underlined with carets; may be empty.
    """

    file: str
    line: int
    text: str
    picture: str = ""

    def __str__(self) -> str:
        return _describe(self)


_MAX_LINES = 8
"""Maximum number of lines shown of an expression; beyond it, the middle is left out."""


def _carets(line: str, start: int, stop: int) -> str:
    """Return a line of carets below the UTF-8 bytes `start` to `stop` of `line`."""
    before, marked = line.encode()[:start].decode(errors="replace"), line.encode()[start:stop]
    blank = "".join("\t" if c == "\t" else " " * _width(c) for c in before)
    return blank + "^" * max(sum(map(_width, marked.decode(errors="replace"))), 1)


def _width(character: str) -> int:
    return 2 if east_asian_width(character) in "WF" else 1


def _indent(lines: list[str]) -> str:
    """Return the lines as one block whose leftmost line is indented by four spaces."""
    indent = min(
        (len(line) - len(line.lstrip()) for line in lines if line != "..."), default=0
    )
    return "\n".join(
        "    " + ends_of(line if line == "..." else line[indent:], 200) for line in lines
    )


def _describe(location: Location | RemoteLocation) -> str:
    where = f"{location.file}:{location.line}"
    return f"{where}: {ends_of(location.text, LONGEST)}" if location.text else where


def format_location(location: Location | RemoteLocation) -> str:
    """Return file and line of an expression and its source lines, as shown below a message."""
    where = f"{_cell(location.file) or location.file}:{location.line}"
    return f"{where}\n{location.picture}" if location.picture else where


def _cell(file: str) -> str | None:
    """Return the label of the notebook cell with this file name, such as `In[3]`, or None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    return found[1] if named is not None and (found := named(file)) is not None else None


_EMPTY_CODE = compile("0", "", "exec")


def _line_of(file: str, line: int) -> Location:
    code = _EMPTY_CODE.replace(co_filename=file, co_firstlineno=line, co_linetable=b"")
    return Location(code, 0)


def user_location() -> Location | None:
    """Return the innermost location of user code on the call stack, or None."""
    frame = users_frame()
    return Location(frame.f_code, frame.f_lasti) if frame is not None else None


def users_call() -> Location | None:
    """Return the location of the user's call of the calling method; None if tecomp called it.

    Every scheduling primitive calls this function, so it is cheap: it skips only the frames of the
    caller's own package.
    """
    package = (frame := sys._getframe(1)).f_globals["__package__"]
    while (caller := frame.f_back) is not None and caller.f_globals.get("__package__") == package:
        frame = caller
    if caller is None or str(caller.f_globals.get("__name__")).startswith("tecomp."):
        return None
    return Location(caller.f_code, caller.f_lasti)


def ends_of(text: str, limit: int) -> str:
    """Return `text`, with its middle left out if it is longer than `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 2 :]}"
