"""Flatten frozen objects to plain data and back.

Made for keys and files: the list of a value says everything that the value is made of, two values
have the same list only if they are the same up to the identity of their objects, and `json` writes
and reads it. A value comes after its parts. The words are

* `null`, `true`, `1`: themselves; `"'text"`, `"dfloat32"`: a text, a type; `"f..."`: the bits of
  a float;
* `"(2"`, `"[2"`, `"{2"`: a tuple, list or mapping of the last values (two for each item);
* `"=tecomp.ir.nodes.operators.BinOp.ADD"`: a member of an enumeration;
* `"@For"`: an object that is made from the last values; `"#3"`: the fourth object again.
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
    """Whether values of a type are one word."""

    def __missing__(self, kind: type) -> bool:
        plain = kind in (str, int, bool, type(None), float, DType) or issubclass(kind, Enum)
        self[kind] = plain
        return plain


_PLAIN = _Plain()
_MANY: Mapping[type, str] = {tuple: "(", list: "[", dict: "{", MappingProxyType: "{"}


_OPEN = -1


class NotPlainError(Exception):
    """There is something in a value that is not made of plain parts; its type is the argument."""


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True, slots=True)
class _Form:
    """How objects of a class are written.

    Attributes:
        mark: the word that stands for the class.
        made: the fields that are written.
        is_whole: whether an object is these fields as they are; else its class is called with them.
        empty: what makes the other fields of a whole one.
    """

    mark: str
    made: tuple[str, ...]
    is_whole: bool
    empty: Mapping[str, Callable[[], Any]]

    def object(self, kind: type, values: Sequence[Any]) -> Any:
        """The object of the class with these values in its fields."""
        parts = dict(zip(self.made, values, strict=True))
        if not self.is_whole:
            return kind(**parts)
        made: Any = object.__new__(kind)
        for name, value in (*parts.items(), *((n, make()) for n, make in self.empty.items())):
            object.__setattr__(made, name, value)
        return made


class _Forms(dict[type, _Form]):
    """How objects are written of classes that were asked for.

    They are written as what their classes are called with. Where a class is called with something
    else, or has state besides (a field that is marked so), they are all of their fields.
    """

    def __missing__(self, kind: type) -> _Form:
        if not is_dataclass(kind):
            raise NotPlainError(kind)
        every = fields(kind)
        # Dataclasses have it, which `type` does not say.
        is_called_otherwise = not kind.__dataclass_params__.init  # type: ignore[attr-defined]
        kept = [f for f in every if is_called_otherwise or f.metadata.get("is_kept")]
        made = [f for f in every if f.init or f in kept]
        empty = {
            f.name: f.default_factory for f in every
            if f not in made and f.default_factory is not MISSING
        }
        names = tuple(f.name for f in made)
        self[kind] = found = _Form(f"@{_name(kind)}", names, bool(kept), empty)
        return found


_FORMS = _Forms()


def encode(
    root: object, special: Mapping[type, Callable[[Any], Word]] | None = None,
    kinds: Container[type] | None = None,
) -> list[Word]:
    """The words of a value.

    Args:
        root: the value.
        special: the words of types that are not to be looked into.
        kinds: the classes of objects and enumerations that may be in it; any without.

    Raises:
        NotPlainError: an object in it is of a class that is no dataclass or none of these, or
            contains itself.

    >>> from tecomp.ir.nodes.expr import Var
    >>> i = Var("i")
    >>> encode((i, i))
    ["'i", 'dint64', '@tecomp.ir.nodes.expr_nodes.Var', '#0', '(2']
    """
    words: list[Word] = []
    numbers: dict[int, int] = {}
    count = 0
    rules = special or {}
    todo: list[tuple[Any, str | None]] = [(root, None)]
    while todo:
        value, end = todo.pop()
        kind = type(value)
        if end is not None:
            words.append(end)
            if end[0] == "@":
                numbers[id(value)] = count
                count += 1
        elif _PLAIN[kind]:
            words.append(_plain(value, kind, kinds))
        elif kind in _MANY:
            end, parts = _parts(value, kind)
            todo.append((value, end))
            todo += [(part, None) for part in reversed(parts)]
        elif (number := numbers.get(id(value))) is not None:
            if number == _OPEN:
                raise NotPlainError(kind)
            words.append(f"#{number}")
        elif kind in rules:
            words.append(rules[kind](value))
        else:
            form = _FORMS[_known(kind, kinds)]
            numbers[id(value)] = _OPEN
            todo.append((value, form.mark))
            todo += [(getattr(value, field), None) for field in reversed(form.made)]
    return words


def _parts(value: Any, kind: type) -> tuple[str, Sequence[Any]]:
    mark = _MANY[kind]
    if mark == "{":
        return f"{{{len(value)}", [part for item in value.items() for part in item]
    return f"{mark}{len(value)}", value


def _known(kind: type, kinds: Container[type] | None) -> type:
    """A class that may be in a value."""
    if kinds is not None and kind not in kinds:
        raise NotPlainError(kind)
    return kind


def _plain(value: Any, kind: Any, kinds: Container[type] | None) -> Word:
    if kind is str:
        return f"'{value}"
    if kind is DType:
        return f"d{value}"
    if kind is float:
        return f"f{struct.pack('>d', value).hex()}"
    if issubclass(kind, Enum):
        return f"={_name(_known(kind, kinds))}.{value.name}"
    plain: Word = value
    return plain


def decode(words: Sequence[Word], kinds: Sequence[type]) -> Any:
    """The value that `encode` had; only objects of `kinds` are made, and mappings are read-only.

    Raises:
        ValueError: the words are no value, or one of other kinds.
    """
    known: dict[str, Any] = {_name(kind): kind for kind in kinds}
    made: list[Any] = []
    stack: list[Any] = []

    def take(count: int) -> list[Any]:
        if count > len(stack):
            raise ValueError("words are missing")
        taken = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        return taken

    for word in words:
        rest: Any
        mark, rest = (word[:1], word[1:]) if isinstance(word, str) else ("", word)
        if mark == "(":
            stack.append(tuple(take(int(rest))))
        elif mark == "[":
            stack.append(take(int(rest)))
        elif mark == "{":
            items = take(2 * int(rest))
            stack.append(MappingProxyType(dict(zip(items[::2], items[1::2], strict=True))))
        elif mark == "#":
            stack.append(made[int(rest)])
        elif mark == "@" and rest in known:
            form = _FORMS[known[rest]]
            made.append(form.object(known[rest], take(len(form.made))))
            stack.append(made[-1])
        else:
            stack.append(_value(mark, rest, known))
    (value,) = stack
    return value


def _value(mark: str, rest: Any, known: Mapping[str, Any]) -> object:
    """What one word says by itself."""
    match mark:
        case "" | "'":
            return rest
        case "d":
            return DType(rest)
        case "f":
            return struct.unpack(">d", bytes.fromhex(rest))[0]
        case "=":
            name, _, member = rest.rpartition(".")
            return known[name].__members__[member]
    raise ValueError(f"there is no meaning in {mark + rest!r}")
