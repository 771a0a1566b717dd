"""Flatten frozen objects to plain data and back.

The flat form serves as a cache key and as a file format. It represents a value completely: two
values have the same list only if they are equal up to object identity. `json` can write and read
the list. Each value follows its parts. The words are

* `null`, `true`, `1`: themselves;
* `"'text"`, `"dfloat32"`: a string, a dtype; `"f..."`: the bits of a float;
* `"(2"`, `"[2"`, `"{2"`: a tuple, list or mapping of the last values (two for each item);
* `"=tecomp.ir.nodes.operators.BinOp.ADD"`: a member of an enumeration;
* `"@For"`: an object that is constructed from the last values;
* `"#3"`: a reference to the fourth object.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias

from tecomp.ir.nodes.dtype import DType

Word: TypeAlias = "str | int | bool | None"


class _Plain(dict[type, bool]):
    """Cache by type of whether its values are encoded as one word."""

    def __missing__(self, kind: type) -> bool:
        is_plain = kind in (str, int, bool, type(None), float, DType) or issubclass(kind, Enum)
        self[kind] = is_plain
        return is_plain


_PLAIN = _Plain()
_CONTAINER_MARKS: Mapping[type, str] = {tuple: "(", list: "[", dict: "{", MappingProxyType: "{"}


_OPEN = -1


class NotSerializableError(Exception):
    """Error for a value that cannot be encoded; the argument is the type of the value."""


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True, slots=True)
class _Form:
    """Encoding of the objects of a class.

    Attributes:
        mark: Word for the class.
        field_names: Names of the encoded fields.
        is_whole: If True, the fields are restored directly; otherwise the class is called with
            them.
        empty: Factories of the fields that are not encoded, if `is_whole`.
    """

    mark: str
    field_names: tuple[str, ...]
    is_whole: bool
    empty: Mapping[str, Callable[[], Any]]

    def object(self, kind: type, values: Sequence[Any]) -> Any:
        """Return the object of the class with the given values of the encoded fields."""
        parts = dict(zip(self.field_names, values, strict=True))
        if not self.is_whole:
            return kind(**parts)
        instance: Any = object.__new__(kind)
        for name, value in (*parts.items(), *((n, make()) for n, make in self.empty.items())):
            object.__setattr__(instance, name, value)
        return instance


class _Forms(dict[type, _Form]):
    """Cache of the encoding by class.

    Objects are encoded as the arguments of their constructor. If the class defines its own
    constructor, or has a field with the metadata `is_kept`, the fields are encoded and restored
    directly.
    """

    def __missing__(self, kind: type) -> _Form:
        if not is_dataclass(kind):
            raise NotSerializableError(kind)
        all_fields = fields(kind)
        # Every dataclass has this attribute, but the stub of `type` does not declare it.
        is_called_otherwise = not kind.__dataclass_params__.init  # type: ignore[attr-defined]
        retained = [f for f in all_fields if is_called_otherwise or f.metadata.get("is_kept")]
        encoded = [f for f in all_fields if f.init or f in retained]
        empty = {
            f.name: f.default_factory for f in all_fields
            if f not in encoded and f.default_factory is not MISSING
        }
        names = tuple(f.name for f in encoded)
        self[kind] = found = _Form(f"@{_name(kind)}", names, bool(retained), empty)
        return found


_FORMS = _Forms()


def encode(
    root: object, special: Mapping[type, Callable[[Any], Word]] | None = None,
    kinds: Container[type] | None = None,
) -> list[Word]:
    """Return the words of a value.

    Args:
        root: Value to encode.
        special: Functions that encode values of given types as one word.
        kinds: Classes of objects and enumerations that may occur. Default: all.

    Raises:
        NotPlainError: If the class of an object is not a dataclass or not in `kinds`, or an object
            contains itself.

    >>> from tecomp.ir.nodes.expr import Var
    >>> i = Var("i")
    >>> encode((i, i))
    ["'i", 'dint64', None, '@tecomp.ir.nodes.expr_nodes.Var', '#0', '(2']
    """
    words: list[Word] = []
    numbers: dict[int, int] = {}
    count = 0
    rules = special or {}
    worklist: list[tuple[Any, str | None]] = [(root, None)]
    while worklist:
        value, end = worklist.pop()
        kind = type(value)
        if end is not None:
            words.append(end)
            if end[0] == "@":
                numbers[id(value)] = count
                count += 1
        elif _PLAIN[kind]:
            words.append(_encode_word(value, kind, kinds))
        elif kind in _CONTAINER_MARKS:
            end, parts = _parts(value, kind)
            worklist.append((value, end))
            worklist += [(part, None) for part in reversed(parts)]
        elif (number := numbers.get(id(value))) is not None:
            if number == _OPEN:
                raise NotSerializableError(kind)
            words.append(f"#{number}")
        elif kind in rules:
            words.append(rules[kind](value))
        else:
            form = _FORMS[_check_allowed(kind, kinds)]
            numbers[id(value)] = _OPEN
            worklist.append((value, form.mark))
            worklist += [(getattr(value, field), None) for field in reversed(form.field_names)]
    return words


def _parts(value: Any, kind: type) -> tuple[str, Sequence[Any]]:
    mark = _CONTAINER_MARKS[kind]
    if mark == "{":
        return f"{{{len(value)}", [part for item in value.items() for part in item]
    return f"{mark}{len(value)}", value


def _check_allowed(kind: type, kinds: Container[type] | None) -> type:
    """Return `kind` if values of this class may be encoded.

    Raises:
        NotPlainError: If `kinds` does not contain the class.
    """
    if kinds is not None and kind not in kinds:
        raise NotSerializableError(kind)
    return kind


def _encode_word(value: Any, kind: Any, kinds: Container[type] | None) -> Word:
    if kind is str:
        return f"'{value}"
    if kind is DType:
        return f"d{value}"
    if kind is float:
        return f"f{struct.pack('>d', value).hex()}"
    if issubclass(kind, Enum):
        return f"={_name(_check_allowed(kind, kinds))}.{value.name}"
    word: Word = value
    return word


def decode(words: Sequence[Word], kinds: Sequence[type]) -> Any:
    """Return the value that `encode` encoded; mappings become read-only.

    Args:
        words: Result of `encode`.
        kinds: Classes of objects and enumerations that may be constructed.

    Raises:
        ValueError: If the words do not encode a value, or a class is not in `kinds`.
    """
    known: dict[str, Any] = {_name(kind): kind for kind in kinds}
    objects: list[Any] = []
    stack: list[Any] = []

    def take(count: int) -> list[Any]:
        if count > len(stack):
            raise ValueError("words are missing")
        popped = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        return popped

    for word in words:
        payload: Any
        mark, payload = (word[:1], word[1:]) if isinstance(word, str) else ("", word)
        if mark == "(":
            stack.append(tuple(take(int(payload))))
        elif mark == "[":
            stack.append(take(int(payload)))
        elif mark == "{":
            items = take(2 * int(payload))
            stack.append(MappingProxyType(dict(zip(items[::2], items[1::2], strict=True))))
        elif mark == "#":
            stack.append(objects[int(payload)])
        elif mark == "@" and payload in known:
            form = _FORMS[known[payload]]
            objects.append(form.object(known[payload], take(len(form.field_names))))
            stack.append(objects[-1])
        else:
            stack.append(_value(mark, payload, known))
    (value,) = stack
    return value


def _value(mark: str, payload: Any, known: Mapping[str, Any]) -> object:
    """Return the value of a single word."""
    match mark:
        case "" | "'":
            return payload
        case "d":
            return DType(payload)
        case "f":
            return struct.unpack(">d", bytes.fromhex(payload))[0]
        case "=":
            name, _, member = payload.rpartition(".")
            return known[name].__members__[member]
    raise ValueError(f"there is no meaning in {mark + payload!r}")
