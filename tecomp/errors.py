"""Exception classes and warnings, with error codes."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from reprlib import Repr
from typing import Any, ClassVar

from tecomp.source_locations import (
    LONGEST,
    Location,
    RemoteLocation,
    ends_of,
    format_location,
    trim_traceback,
    user_location,
    watch,
)

_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")
"""Address in the default `repr` of an object, which differs between processes."""

_LONGEST_LIST = 64
"""Length up to which a list or tuple is kept as a parameter of an error; else its text is."""
_LONGEST_INTEGER = 1024
"""Length in bits up to which an integer is kept as a parameter of an error."""

_LONG_TEXT = re.compile(r"`[^`]{500,}`|[^\s`]{500,}")


def _abridge(message: str) -> str:
    """Return a message of readable length, with the middle of long texts left out."""
    message = _LONG_TEXT.sub(lambda found: ends_of(found[0], 400), message)
    return ends_of(message, LONGEST)


class _Abbreviation(Repr):
    """Abbreviated `repr` of values that `repr` itself does not format."""

    def repr_int(self, x: int, level: int) -> str:
        """Return the digits of an integer, or their number of bits if Python refuses them."""
        try:
            return super().repr_int(x, level)
        except ValueError:  # more than `sys.get_int_max_str_digits()` digits
            return f"<int of {x.bit_length():,} bits>"

    def repr_instance(self, x: Any, level: int) -> str:
        """Return the `repr` of an object of any other type, or the name of its type."""
        try:
            return repr(x)
        except Exception:
            return f"<{type(x).__name__} object>"


_ABBREVIATION = _Abbreviation()


def safe_repr(value: object) -> str:
    """Return the `repr` of a value, abbreviated if `repr` raises an error.

    Messages of errors use it where the `repr` of a value fails: `repr` raises ValueError for
    integers of more than 4,300 digits and RecursionError for deeply nested containers, and an
    object of a user may raise anything.

    >>> safe_repr("x"), safe_repr((1 << 20000, 2))
    ("'x'", '(<int of 20,001 bits>, 2)')
    """
    try:
        return repr(value)
    except Exception:
        return _ABBREVIATION.repr(value)


def safe_str(value: object) -> str:
    """Return the `str` of a value, abbreviated if `str` raises an error; see `safe_repr`.

    >>> safe_str("x"), safe_str(1 << 20000)
    ('x', '<int of 20,001 bits>')
    """
    try:
        return str(value)
    except Exception:
        return _ABBREVIATION.repr(value)


class _Safe:
    """Value whose texts are abbreviated where its own `repr` or `str` raises an error."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return safe_repr(self.value)

    def __str__(self) -> str:
        return safe_str(self.value)

    def __format__(self, spec: str) -> str:
        return safe_str(self.value)


def _fill_template(template: str, parameters: Mapping[str, object]) -> str:
    """Return a template with its values; a template without values is a text."""
    try:
        return template.format(**parameters) if parameters else template
    except Exception:  # of an object of the user
        return template.format(**{name: _Safe(value) for name, value in parameters.items()})


def _is_number(value: object) -> bool:
    """Return whether a value is None, a short integer, or a finite number."""
    if type(value) is int:
        return value.bit_length() <= _LONGEST_INTEGER
    if type(value) is float:
        return isfinite(value)
    return value is None or type(value) is bool


def _plain(value: object) -> Any:
    """Return a value that neither refers to the program nor differs between processes."""
    if _is_number(value):
        return value
    if isinstance(value, tuple | list) and len(value) <= _LONGEST_LIST:
        parts = [part for part in value if type(part) is str or _is_number(part)]
        if len(parts) == len(value):
            return tuple(parts) if isinstance(value, tuple) else parts
    return _abridge(_ADDRESS.sub("", safe_str(value)))


class TecompError(Exception):
    """Base class of all errors that tecomp raises deliberately.

    The message is a template, as for `str.format`, beside the values of its fields; a message
    without values is shown as it is. Programs distinguish errors by `kind` and `parameters`: the
    wording of messages changes between versions.

    Attributes:
        message: Problem with the offending values, and the remedy.
        parameters: Values that the message shows, by name: numbers, texts and tuples of these; any
            other value as its text.
        location: User expression that caused the error; None if it is unknown.
        kind: Kind of the error as a word, such as `unknown-loop`.

    >>> import tecomp
    >>> try:
    ...     tecomp.Layout.of((4, 4), "int8", lambda i, j: [i % 2, j])
    ... except tecomp.TecompError as error:
    ...     print(error.message.partition(": elements")[0])
    ...     print(type(error).__name__, error.kind, error.code, error.location is None)
    layout: lambda i, j: [i % 2, j] is not injective on int8[4, 4]
    LayoutError not-injective TE0301 False
    >>> error = tecomp.LayoutError("{where}: no axis {axis!r}", where="layout", axis="k")
    >>> error.message, error.parameters
    ("layout: no axis 'k'", {'where': 'layout', 'axis': 'k'})
    """

    usual: ClassVar[str] = "internal"
    """Kind of errors that are raised without an explicit kind."""
    ends_at_user: ClassVar[bool] = True
    """Whether tracebacks omit the frames of the compiler."""

    def __init__(
        self, template: str, /, location: Location | RemoteLocation | None = None, *,
        kind: str | None = None, **parameters: object,
    ) -> None:
        message = _abridge(_ADDRESS.sub("", _fill_template(template, parameters)))
        super().__init__(message)
        self.message = message
        self.parameters = {name: _plain(value) for name, value in parameters.items()}
        self.location: Location | RemoteLocation | None = location or user_location()
        self.kind = kind or self.usual
        watch()

    @property
    def code(self) -> str:
        """Error code, such as `TE0201`; `tecomp explain` prints its page."""
        return _code_of(self.kind)

    def _render_traceback_(self) -> list[str]:
        """Return the traceback lines that IPython displays; IPython calls this hook by name."""
        trim_traceback(self)
        shown_by = sys.modules["IPython"].get_ipython().InteractiveTB
        lines: list[str] = shown_by.structured_traceback(type(self), self, self.__traceback__)
        return lines

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the location as text: other processes do not have its code object."""
        at = self.location
        remote = RemoteLocation(at.file, at.line, at.text, at.picture) if at is not None else None
        return _again, (type(self), self.message, remote, self.kind, self.parameters)

    def __str__(self) -> str:
        where = f"\n  at {format_location(self.location)}" if self.location else ""
        return f"{self.message}{where}\n  {self.code}: `tecomp explain {self.code}` tells more"


def _again(
    type: type[TecompError], message: str, location: RemoteLocation | None, kind: str,
    parameters: dict[str, Any],
) -> TecompError:
    """Rebuild an error that was raised in another process."""
    error = type(message, location, kind=kind)
    error.location, error.parameters = location, parameters
    return error


class DefinitionError(TecompError, ValueError):
    """Error raised for an invalid definition of a computation.

    >>> from tecomp import te
    >>> try:
    ...     te.placeholder((-1,))
    ... except DefinitionError as error:
    ...     print(error.message)
    te.placeholder placeholder: axis 0 of the shape is -1; an extent must be at least 0
    """

    usual = "definition"


class TypeMismatchError(DefinitionError, TypeError):
    """Error raised for an expression or dtype that is not allowed in its context.

    >>> from tecomp import te
    >>> try:
    ...     te.placeholder((4,), "flot")
    ... except TypeMismatchError as error:
    ...     print(error.message.partition(";")[0])
    `flot` is not a valid dtype
    """

    usual = "dtype"


class ScheduleError(TecompError, ValueError):
    """Error raised for a scheduling primitive that cannot be applied as requested.

    >>> from tecomp import te
    >>> A = te.compute((8,), lambda i: i, name="A")
    >>> try:
    ...     te.create_schedule(A)[A].split(A.op.axis[0], factor=0)
    ... except ScheduleError as error:
    ...     print(error.message)
    s[A].split(i): factor must be a positive integer, got 0
    """

    usual = "schedule"


class LayoutError(TecompError, ValueError):
    """Error raised for an index map that does not describe a valid memory layout.

    >>> import tecomp
    >>> try:
    ...     tecomp.IndexMap.from_func(lambda i: [i % 4]).inverse([8])
    ... except LayoutError as error:
    ...     print(error.message.partition(": elements")[0])
    index map: lambda i: [i % 4] is not injective on [8]
    """

    usual = "layout"


class TargetError(TecompError, ValueError):
    """Error raised for a malformed target description, or of a feature that a target lacks.

    >>> import tecomp
    >>> try:
    ...     tecomp.Target.load("cpu").memory("globl")
    ... except TargetError as error:
    ...     print(error.message.partition(";")[0])
    target cpu has no memory `globl`
    """

    usual = "target"


class CapacityError(TargetError):
    """Error raised for a buffer that exceeds the capacity of its memory.

    >>> import tecomp
    >>> try:
    ...     tecomp.ShardLayout((64, 64), "float32", capacity_bytes=4096)
    ... except CapacityError as error:
    ...     print(error.message.partition(";")[0])
    shard layout: a shard of 64x64 float32 takes 16,384 B of l1, which has 4,096 B per core
    """

    usual = "capacity"


class LowerError(TecompError, ValueError):
    """Error raised for a schedule that cannot be lowered to code with the same semantics.

    >>> import tecomp
    >>> from tecomp import te
    >>> A = te.compute((8,), lambda i: i, name="A")
    >>> B = te.compute((8,), lambda i: A[i], name="B")
    >>> s = te.create_schedule(B)
    >>> s[A].double_buffer()
    >>> try:
    ...     tecomp.lower(s, [B])
    ... except LowerError as error:
    ...     print(error.message.partition(",")[0])
    s[A].double_buffer: A is not computed inside a loop
    """

    usual = "lower"


class ParseError(TecompError, ValueError):
    """Error raised for a text that cannot be parsed as a printed function.

    >>> import tecomp
    >>> try:
    ...     tecomp.parse("def main(")
    ... except ParseError as error:
    ...     print(error.message.partition(";")[0])
    line 1, column 9: '(' was never closed: `def main(`
    """

    usual = "text"


class CallError(TecompError, ValueError):
    """Error raised for a kernel call with invalid arguments or with an index out of bounds.

    >>> import numpy
    >>> import tecomp
    >>> from tecomp import te
    >>> A = te.placeholder((4,), "float32", "A")
    >>> B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    >>> kernel = tecomp.build(te.create_schedule(B), [A, B])
    >>> try:
    ...     kernel(numpy.zeros(5, "float32"), numpy.zeros(4, "float32"))
    ... except CallError as error:
    ...     print(error.message.partition(";")[0])
    argument 0 (A) of main: axis 0 is 5, expected 4
    """

    usual = "call"


class ModelError(TecompError, ValueError):
    """Error raised for a model that is malformed, or contains unsupported operators.

    >>> import tecomp.onnx
    >>> try:
    ...     tecomp.onnx.load(3)
    ... except ModelError as error:
    ...     print(error.message)
    onnx: expected a path, bytes or a ModelProto, got int
    """

    usual = "model"


class CacheError(TecompError, ValueError):
    """Error raised for an invalid cache setting, or of a saved program that cannot be used.

    >>> import tecomp
    >>> try:
    ...     tecomp.load("no-such-file.tec")
    ... except CacheError as error:
    ...     print(error.message.partition(";")[0])
    load: no-such-file.tec is not a saved program: program.json not found
    """

    usual = "cache"


class MissingError(TecompError, AttributeError):
    """Error raised for a TVM name that tecomp does not provide, or of a misspelled name.

    >>> from tecomp import te
    >>> try:
    ...     te.SpecializedCondition
    ... except MissingError as error:
    ...     print(error.message.partition(";")[0])
    te.SpecializedCondition: specialization conditions are not supported
    """

    usual = "unsupported-name"

    @staticmethod
    def of(module: str, called: str, name: str, instead: Mapping[str, str]) -> AttributeError:
        """Return the error for a name that a module does not provide.

        Args:
            module: Full name of the module.
            called: Name under which users import the module.
            name: Requested name.
            instead: Remedy for each TVM name that the module does not provide.

        >>> MissingError.of("tecomp.te", "te", "trace", {"trace": "write it"}).message
        'te.trace: write it'
        """
        if name in instead:
            return MissingError(
                "{called}.{name}: {remedy}",
                called=called, name=name, remedy=instead[name],
            )
        known = getattr(sys.modules.get(module), "__all__", ())
        return MissingError.near(called, name, known, f"module {module!r}")

    @staticmethod
    def near(called: str, name: str, known: Sequence[str], description: str) -> AttributeError:
        """Return the error for an unknown attribute, with the nearest known name if there is one.

        Args:
            called: Expression of the object in user code.
            name: Requested attribute.
            known: Attributes of the object.
            description: Description of the object in the message if no known name is close.

        >>> MissingError.near("s[C]", "vectorise", ["split", "vectorize"], "'Stage' object").message
        "s[C] has no 'vectorise'; did you mean s[C].vectorize?"
        >>> MissingError.near("s[C]", "quaternion", ["split"], "'Stage' object")
        AttributeError("'Stage' object has no attribute 'quaternion'")
        """
        nearest = _nearest(name, known)
        if nearest is None:
            return AttributeError(f"{description} has no attribute {name!r}")
        return MissingError(
            "{called} has no {name!r}; did you mean {called}.{suggestion}?",
            called=called, name=name, suggestion=nearest,
        )


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the closest public name or None; a name that differs in case only comes first."""
    if name.startswith("_"):
        return None
    named = [candidate for candidate in known if not candidate.startswith("_")]
    case_matches = [candidate for candidate in named if candidate.lower() == name.lower()]
    return next(iter([*case_matches, *get_close_matches(name, named, n=1)]), None)


class ArrayTypeError(TecompError, TypeError):
    """Error raised for an unsupported dtype or argument type in an array operation."""

    usual = "array-type"


class ArrayValueError(TecompError, ValueError):
    """Error raised for an invalid value or shape in an array operation."""

    usual = "array-value"


class ArrayIndexError(TecompError, IndexError):
    """Error raised for an axis or element index that is out of bounds."""

    usual = "array-index"


class ArrayBufferError(TecompError, BufferError):
    """Error raised for an array whose memory cannot be exported as requested."""

    usual = "array-memory"


class ArrayMemoryError(TecompError, MemoryError):
    """Error raised for a failed memory allocation for the elements of an array."""

    usual = "out-of-memory"


class DeviceMismatchError(ArrayValueError):
    """Error raised for operands of one operation that are on different devices."""

    usual = "device-mismatch"


class TeamMismatchError(ArrayValueError):
    """Error raised for operands of one operation that belong to different teams of processes."""

    usual = "team-mismatch"


class TeamError(TecompError, ValueError):
    """Error raised for an invalid request to a team of processes, or of ranks whose calls diverge.

    >>> from tecomp import dist
    >>> try:
    ...     dist.team_of(99)
    ... except TeamError as error:
    ...     print(error.message.partition(";")[0])
    unknown team 99
    """

    usual = "team"


class MissingLibraryError(TecompError, ImportError):
    """Error raised for an optional dependency that is not installed or not usable.

    >>> issubclass(MissingLibraryError, ImportError)
    True
    """

    usual = "missing-library"


class InternalError(TecompError, RuntimeError):
    """Error raised for a violated internal invariant: a bug in tecomp, not in the user's program.

    >>> issubclass(InternalError, TecompError), issubclass(InternalError, RuntimeError)
    (True, True)
    """

    usual = "internal"
    ends_at_user = False


class TecompWarning(UserWarning):
    """Warning about a valid schedule whose effect is probably unintended.

    Attributes:
        message: Effect of the schedule with the values, and the remedy.
        parameters: Values that the message shows, by name.
        location: User call that caused the warning; None if it is unknown.
        kind: Kind of the error, a hyphenated name.

    >>> warning = TecompWarning("{where}: stride 64", None, kind="large-stride", where="s[B]")
    >>> print(warning)
    s[B]: stride 64 (TE1102)
    >>> warning.message, warning.kind, warning.code, warning.location
    ('s[B]: stride 64', 'large-stride', 'TE1102', None)
    """

    def __init__(
        self, template: str, /, location: Location | None, *, kind: str, **parameters: object
    ) -> None:
        self.message = _fill_template(template, parameters)
        super().__init__(self.message)
        self.location, self.kind = location, kind
        self.parameters = {name: _plain(value) for name, value in parameters.items()}

    @property
    def code(self) -> str:
        """Error code, such as `TE1100`; `tecomp explain` prints its page."""
        return _code_of(self.kind)

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


_WARNED: dict[Any, Any] = {}
"""Registry of issued warnings: Python's filters issue each line and text once."""


def warn(template: str, /, location: Location, *, kind: str, **parameters: object) -> None:
    """Issue a warning at a line of user code, once per line and message."""
    warning = TecompWarning(template, location, kind=kind, **parameters)
    warnings.warn_explicit(
        warning, TecompWarning, location.file, location.line, registry=_WARNED
    )


def _code_of(kind: str) -> str:
    """Return the code of an error kind."""
    # Pages are loaded on the first access to a code: a process without errors needs none.
    from tecomp.error_pages import error_pages

    return str(error_pages()[kind].code)
