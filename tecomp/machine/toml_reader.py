"""Read target descriptions from TOML."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from inspect import get_annotations
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from tecomp.errors import TargetError, safe_repr
from tecomp.machine.schema import (
    Above,
    AtLeast,
    AtMost,
    FromHost,
    KeyName,
    Matches,
    OneOf,
    PowerOfTwo,
    Required,
    TableName,
    TableReference,
    TomlPosition,
)

HOST = "host"
"""Text that represents the value of this host."""

_PLAIN = {
    str: ("a text", "texts"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "true or false"),
}
_INTEGERS = range(-(1 << 63), 1 << 63)
"""Range of integers in TOML."""
_UNITS = {
    "bytes_per_cycle": "bytes per cycle",
    "bytes_per_second": "bytes per second",
    "flops": "operations per second",
    "bytes": "bytes",
    "cycles": "cycles",
    "hz": "hertz",
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeySchema:
    """A key of a table: name, type and constraints."""

    field: str
    key: str
    kind: Any
    marks: tuple[Any, ...]
    is_needed: bool
    is_optional: bool
    has_default: bool

    def has(self, kind: type) -> bool:
        """Return whether the key has a marker of a class."""
        return any(isinstance(marker, kind) for marker in self.marks)


@cache
def keys_of_table(kind: Any) -> Mapping[str, KeySchema]:
    """Return the keys of the table of a class, in field order."""
    hints = get_annotations(kind, eval_str=True)
    return {
        found.key: found
        for field in fields(kind) if field.init for found
        in (_schema_of_field(field, hints[field.name]),)
    }


def _schema_of_field(field: Field[Any], hint: Any) -> KeySchema:
    kind, marks = _bare(hint)
    named = [mark.name for mark in marks if isinstance(mark, KeyName)]
    is_optional = NoneType in get_args(kind)
    if is_optional:
        inner = [part for part in get_args(kind) if part is not NoneType]
        kind, inner_marks = _bare(Union[tuple(inner)])  # noqa: UP007  (made of a list)
        marks += inner_marks
    is_required = any(isinstance(mark, Required) for mark in marks)
    has_default = (field.default, field.default_factory) != (MISSING, MISSING)
    return KeySchema(
        field.name, named[0] if named else field.name, kind, marks,
        is_required or not (is_optional or has_default), is_optional, has_default,
    )


@cache
def _bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(hint) is Annotated:
        kind, *marks = get_args(hint)
        return kind, tuple(marks)
    return hint, ()


def read_table(kind: type[T], table: object, position: TomlPosition) -> T:
    """Build an object of a class from a table.

    Args:
        kind: Dataclass whose field types specify the keys.
        table: Table of the file.
        position: Position of the table.

    Raises:
        TargetError: If a key is missing, unknown or of the wrong type; names file, line and table.
    """
    if not isinstance(table, Mapping):
        raise position.error("expected a table, got {table!r}", table=table)
    schemas = keys_of_table(cast(Hashable, kind))
    keys = {key: known for key, known in schemas.items() if not known.has(TableName)}
    values: dict[str, Any] = {
        known.field: position.path[-1] for known in schemas.values() if known.has(TableName)
    }
    for key in table:
        if key not in keys:
            raise position.error(
                "unknown key `{key}`; {hint_of_key}",
                key, key=key, hint_of_key=_hint(key, keys),
            )
    if missing := [key for key, known in keys.items() if known.is_needed and key not in table]:
        missing_text = ", ".join(f"`{key}` ({_describe_missing(keys[key])})" for key in missing)
        raise position.error(
            "missing {keys}; add {pronoun}",
            keys=missing_text, pronoun="it" if len(missing) == 1 else "them",
        )
    for key, value in table.items():
        known = keys[key]
        values[known.field] = _value(known.kind, known.marks, value, position, key)
    # An optional key that is absent is None if the class has no other default.
    omitted = (k.field for k in keys.values() if not k.has_default and not k.is_needed)
    values = dict.fromkeys(omitted) | values
    try:
        return kind(**values)
    except TargetError as error:
        raise position.error("{reason}", reason=error.message) from error


def _describe_missing(known: KeySchema) -> str:
    """Describe the expected value of a missing key."""
    if known.kind in _PLAIN or get_origin(known.kind) in (tuple, Literal):
        return _describe_expected(known.kind, known.marks, known.key)
    return f"a table [{known.key}]"


def _hint(key: str, known: Collection[str]) -> str:
    """Suggest the closest key, such as the key with another unit."""
    stem = key.rpartition("_")[0]
    same_stem = [name for name in known if stem and name.rpartition("_")[0] == stem]
    matches = same_stem or get_close_matches(key, known, n=1)
    return f"did you mean `{matches[0]}`?" if matches else f"the keys are {', '.join(known)}"


def _value(kind: Any, marks: tuple[Any, ...], value: Any, position: TomlPosition, key: str) -> Any:
    for mark in marks:
        if isinstance(mark, FromHost) and isinstance(value, str) and value == HOST:
            return mark.read()
    if kind in _PLAIN:
        return _read_plain(kind, marks, value, position, key)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _one_of_kinds(get_args(kind), value, position.nested(key))
    if is_dataclass(kind) and isinstance(kind, type):
        return read_table(kind, value, position.nested(key))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return _read_mapping(get_args(kind), value, position.nested(key))
    if origin is tuple and _is_table(get_args(kind)[0]):
        return _tables(get_args(kind)[0], value, position, key)
    read = _read_plain(kind, marks, value, position, key)
    if origin is tuple:
        return tuple(tuple(item) if isinstance(item, list) else item for item in read)
    return read


def _read_plain(
    kind: Any, marks: tuple[Any, ...], value: Any, position: TomlPosition, key: str
) -> Any:
    """Validate and return a value that is not a table."""
    if type(value) is int and value not in _INTEGERS:
        raise position.error(
            "`{key}` is {value!r}; integers have 64 bits",
            key, key=key, value=value,
        )
    if not _fits(kind, marks, value):
        raise position.error(
            "`{key}` is {value!r}; expected {expected}",
            key, key=key, value=value, expected=_describe_expected(kind, marks, key),
        )
    _check_names(kind, marks, value, position, key)
    return float(value) if kind is float else value


def _is_table(kind: Any) -> bool:
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return all(isinstance(cls, type) and is_dataclass(cls) for cls in kinds)


def _tables(kind: Any, value: Any, position: TomlPosition, key: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise position.error(
            "`{key}` is {value!r}; expected tables, each under [[{key}]]",
            key, key=key, value=value,
        )
    return tuple(
        _one_of_kinds(get_args(kind) or (kind,), entry, position.nested(key, k))
        for k, entry in enumerate(value)
    )


def _one_of_kinds(kinds: tuple[type, ...], value: Any, position: TomlPosition) -> Any:
    """Read a table whose key `kind` selects the class."""
    if len(kinds) == 1:
        return read_table(kinds[0], value, position)
    if not isinstance(value, Mapping):
        raise position.error("expected a table, got {value!r}", value=value)
    by_name = {get_args(keys_of_table(kind)["kind"].kind)[0]: kind for kind in kinds}
    if "kind" not in value:
        raise position.error("missing `kind`; the kinds are {by_name}", by_name=", ".join(by_name))
    chosen = value["kind"]
    if not isinstance(chosen, str) or chosen not in by_name:
        raise position.error(
            "`kind` is {chosen!r}; {suggestion}",
            'kind', chosen=chosen, suggestion=_suggest(chosen, by_name, "kinds"),
        )
    return read_table(by_name[chosen], value, position)


def _read_mapping(kinds: tuple[Any, ...], value: Any, position: TomlPosition) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise position.error("expected a table, got {value!r}", value=value)
    (key_kind, key_marks), (kind, marks) = map(_bare, kinds)
    if any(isinstance(mark, Matches) for mark in key_marks):
        value = dict(_join_keys(value))
    if not value:
        raise position.error("the table is empty; specify at least one entry, or remove the table")
    for name in value:
        if not _fits(key_kind, key_marks, name):
            raise position.error(
                "unknown key `{name}`; expected {key_marks}",
                name, name=name, key_marks=_similar_key(key_marks),
            )
        _check_names(key_kind, key_marks, name, position, name)
    return MappingProxyType(
        {name: _value(kind, marks, entry, position, name) for name, entry in value.items()}
    )


def _join_keys(table: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Join the keys of nested tables with dots, as TOML writes them."""
    found: list[tuple[str, Any]] = []
    for key, value in table.items():
        name = f"{before}{key}"
        found += _join_keys(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]
    return found


def _fits(kind: Any, marks: tuple[Any, ...], value: Any) -> bool:
    if kind not in _PLAIN:
        return _fits_form(kind, value)
    # bool is a subclass of int, but a description must not use one for the other.
    if type(value) is not kind and not (kind is float and type(value) is int):
        return False
    if type(value) is int and value not in _INTEGERS:
        return False
    return value != "" and all(_holds(mark, value) for mark in marks)


def _fits_form(kind: Any, value: Any) -> bool:
    """Return whether a value matches a `Literal` or tuple type."""
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    parts = get_args(kind)
    if not isinstance(value, list | tuple) or not value:
        return False
    if parts[-1] is not Ellipsis and len(parts) != len(value):
        return False
    inner = [parts[0]] * len(value) if parts[-1] is Ellipsis else parts
    return all(_fits(*_bare(part), item) for part, item in zip(inner, value, strict=True))


def _holds(mark: Any, value: Any) -> bool:
    match mark:
        case AtLeast(low):
            return bool(value >= low)
        case AtMost(high):
            return bool(value <= high)
        case Above(low):
            return bool(low < value < float("inf"))
        case PowerOfTwo():
            return bool(value >= 1 and value & (value - 1) == 0)
        case Matches(pattern):
            return re.fullmatch(pattern, value) is not None
    return True


def _describe_expected(kind: Any, marks: tuple[Any, ...], key: str) -> str:
    """Describe the expected value of a key."""
    unit = next((f" of {text}" for end, text in _UNITS.items() if key.endswith(end)), "")
    other = f', or "{HOST}"' if any(isinstance(mark, FromHost) for mark in marks) else ""
    if get_origin(kind) is tuple:
        return f"a list of {_plural(kind, unit)}{other}"
    if get_origin(kind) is Literal:
        return _any_of(kind)
    return f"{_PLAIN[kind][0]}{unit}{_bounds(marks)}{other}"


def _plural(list_type: Any, unit: str) -> str:
    parts = get_args(list_type)
    kind, marks = _bare(parts[0])
    count = "" if parts[-1] is Ellipsis else f"{len(parts)} "
    if get_origin(kind) is Literal:
        return f"{count}{_any_of(kind)}"
    if get_origin(kind) is tuple:
        return f"{count}lists of {_plural(kind, unit)}"
    return f"{count}{_PLAIN[kind][1]}{unit}{_bounds(marks)}"


def _any_of(kind: Any) -> str:
    *first, last = map(repr, get_args(kind))
    return f"{', '.join(first)} or {last}" if first else last


def _bounds(marks: tuple[Any, ...]) -> str:
    high = next((mark.high for mark in marks if isinstance(mark, AtMost)), None)
    for mark in marks:
        match mark:
            case AtLeast(low) if high is not None:
                return f", from {low} to {high}"
            case AtLeast(low):
                return f", at least {low}"
            case Above(low):
                return f", above {low}"
            case PowerOfTwo():
                return ", a power of two"
            case Matches(like=like):
                return f": {like}"
    return ""


def _similar_key(marks: tuple[Any, ...]) -> str:
    return next(mark.like for mark in marks if isinstance(mark, Matches))


def _check_names(
    kind: Any, marks: tuple[Any, ...], value: Any, position: TomlPosition, key: str
) -> None:
    """Check texts that must name something: permitted texts and references to tables."""
    if kind not in _PLAIN and get_origin(kind) is tuple:
        inner, inner_marks = _bare(get_args(kind)[0])
        for item in value:
            _check_names(inner, inner_marks, item, position, key)
        return
    for mark in marks:
        if isinstance(mark, OneOf) and value not in mark.texts:
            hint = _suggest(value, mark.texts, f"{mark.what}s")
            raise position.error(
                "`{key}`: unknown {subject} `{value}`; {hint}",
                key, key=key, subject=mark.what, value=value, hint=hint,
            )
        if isinstance(mark, TableReference):
            described = position.root.get(mark.table, {})
            if value not in described:
                hint = _suggest(value, described, "described ones")
                raise position.error(
                    "`{key}`: unknown {table} `{value}`; {hint}",
                    key, key=key, table=mark.table, value=value, hint=hint,
                )


def _suggest(value: Any, texts: Collection[str], noun: str) -> str:
    matches = get_close_matches(value if isinstance(value, str) else safe_repr(value), texts, n=1)
    return f"did you mean `{matches[0]}`?" if matches else f"the {noun} are {', '.join(texts)}"


def check_fields(record: Any) -> None:
    """Check the field types of an object, whether read from a file or constructed in Python.

    Raises:
        TargetError: If a field has the wrong type or value.
    """
    for known in keys_of_table(cast(Hashable, type(record))).values():
        value = getattr(record, known.field)
        if (value is None and known.is_optional) or _is_of(known.kind, known.marks, value):
            continue
        is_table = known.kind not in _PLAIN and not _is_list(known.kind)
        text = f"what a description has under `{known.key}`" if is_table else _describe_expected(
            known.kind, tuple(m for m in known.marks if not isinstance(m, FromHost)), known.key)
        raise TargetError(
            "{type}: {field} is {value!r}; expected {expected}",
            type=type(record).__name__, field=known.field, value=value, expected=text,
        )


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is tuple and not _is_table(get_args(kind)[0])


def _is_of(kind: Any, marks: tuple[Any, ...], value: Any) -> bool:
    """Return whether a value has the type of a field; unlike in files, texts may be empty."""
    if kind in _PLAIN:
        texts = [mark.texts for mark in marks if isinstance(mark, OneOf)]
        is_named = all(isinstance(value, str) and value in names for names in texts)
        return is_named and (_is_empty(kind, value) or _fits(kind, marks, value))
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _fits_form(kind, value)
    if origin in (Union, UnionType):
        return any(_is_of(*_bare(part), value) for part in parts)
    if origin is tuple:
        is_any = parts[-1] is Ellipsis
        return isinstance(value, tuple) and (is_any or len(value) == len(parts)) and all(
            _is_of(*_bare(parts[0] if is_any else parts[k]), item) for k, item in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _is_of(*_bare(part), entry)
            for item in value.items() for part, entry in zip(parts, item, strict=True))
    return isinstance(value, kind)


def _is_empty(kind: Any, value: Any) -> bool:
    return kind is str and isinstance(value, str) and not value


def table_of(value: Any) -> Any:
    """Return the table from which `read_table` builds an equal object.

    >>> from tecomp.machine.components import Memory
    >>> table_of(Memory("lx", "core", 1, 128, None, "assumed", latency_cycles=8))["latency_cycles"]
    8
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {
            key: table_of(getattr(value, known.field))
            for key, known in keys_of_table(type(value)).items()
            if not known.has(TableName) and getattr(value, known.field) is not None
            and getattr(value, known.field) not in ((), {})
        }
    if isinstance(value, Mapping):
        return {key: table_of(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [table_of(item) for item in value]
    # An object constructed in Python may have empty texts, which descriptions do not allow.
    return "not said" if value == "" else value
