"""Pretty printer.

A node says in `pieces()` what it is written as; `render` walks the pieces with a stack of its own,
since trees nest deeper than Python's. Knows no node.
"""

from __future__ import annotations

import keyword
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from itertools import chain
from typing import Any, Self, TypeAlias

from tecomp.ir.nodes.graph_utils import post_order, walk

_LONG = 48
"""Pieces of text up to which a part is written again where it is used again."""


class Precedence(IntEnum):
    """How tightly an expression holds together, as in Python's grammar."""

    ANY = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARE = 4
    BITOR = 5
    BITXOR = 6
    BITAND = 7
    SHIFT = 8
    SUM = 9
    PRODUCT = 10
    UNARY = 11
    ATOM = 12


class Mark(Enum):
    """Layout of the text: a new line, and one step further in or out from there on."""

    NEWLINE = "newline"
    INDENT = "indent"
    DEDENT = "dedent"


NEWLINE, INDENT, DEDENT = Mark.NEWLINE, Mark.INDENT, Mark.DEDENT


@dataclass(frozen=True, slots=True)
class Operand:
    """A node inside another, in parentheses if it holds less tightly than `level`."""

    node: Any
    precedence: int = Precedence.ANY


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a variable or a buffer; of the address of a buffer, the buffer's."""

    node: Any


@dataclass(frozen=True, slots=True)
class Bind:
    """From here on a variable or a buffer has a name that nothing else in scope has."""

    node: Any


@dataclass(frozen=True, slots=True)
class Reserve:
    """The address `data` of a buffer that comes later takes its name now, and keeps it."""

    data: Any


@dataclass(frozen=True, slots=True)
class Release:
    """The scope of the last `Bind` of `node` ends; its name is free again."""

    node: Any


Piece: TypeAlias = "str | Operand | Name | Bind | Reserve | Release | Mark"
Pieces: TypeAlias = "Iterable[Piece]"


def render(root: Any) -> str:
    """The text of any node that has `pieces()`.

    A variable that nothing binds takes its name where it is met first, and keeps it. A long part
    of a value that occurs in it again is written once: `(part := ...)`, and `part` from there on.
    """
    writer = _Writer()
    _write(writer, writer.statement((Operand(root),)), sys.maxsize)
    return "".join(writer.out)


def brief(value: Any, most: int = 400) -> str:
    """The text of a value for a message, its end left out where it is long.

    It takes no longer for a larger value, so parts that occur again have no names.
    """
    writer = _Writer()
    _write(writer, iter((Operand(value),)), most + 1)
    return shortened("".join(writer.out), most)


def _write(writer: _Writer, pieces: Iterator[Piece], most: int) -> None:
    """Add pieces and what they stand for, up to `most` of them."""
    todo = [pieces]
    while todo and len(writer.out) < most:
        piece = next(todo[-1], None)
        if piece is None:
            todo.pop()
        elif isinstance(piece, Operand):
            todo.append(writer.operand(piece))
        else:
            writer.write(piece)


def comma(items: Iterable[Piece]) -> Iterator[Piece]:
    """The items with commas between them."""
    for count, item in enumerate(items):
        if count:
            yield ", "
        yield item


def operands(nodes: Iterable[Any]) -> Iterator[Piece]:
    """Expressions or plain ints with commas between them."""
    return comma(str(node) if isinstance(node, int) else Operand(node) for node in nodes)


def tuple_of(nodes: tuple[Any, ...]) -> Iterator[Piece]:
    """Expressions or plain ints as a Python tuple."""
    yield "("
    yield from operands(nodes)
    yield ",)" if len(nodes) == 1 else ")"


def quoted(text: str) -> str:
    """`text` as a Python literal, in double quotes where it holds none."""
    return repr(text) if '"' in text or "'" in text else f'"{repr(text)[1:-1]}"'


def shortened(text: str, most: int = 80) -> str:
    """`text` for a message, its end left out where it is long.

    >>> shortened("x + 1"), shortened("x + 1 + 2 + 3", most=8)
    ('x + 1', 'x + 1...')
    """
    return text if len(text) <= most else f"{text[:most - 3]}..."


def identifier(name: str) -> str:
    """`name` with everything that a Python identifier cannot have replaced.

    >>> identifier("C.local"), identifier("2d"), identifier("lambda")
    ('C_local', '_2d', 'lambda_')
    """
    plain = unicodedata.normalize("NFKC", name)
    legal = "".join(c if f"a{c}".isidentifier() else "_" for c in plain)
    if not legal.isidentifier():
        legal = f"_{legal}"
    return f"{legal}_" if keyword.iskeyword(legal) else legal


def take_name(wish: str, taken: set[str]) -> str:
    """`wish`, numbered where that is `taken` already; it is taken from then on.

    >>> names = {"A"}
    >>> take_name("A", names), take_name("A", names), take_name("B", names)
    ('A_1', 'A_2', 'B')
    """
    name, count = wish, 0
    while name in taken:
        count += 1
        name = f"{wish}_{count}"
    taken.add(name)
    return name


class _Common:
    """A part of a value that is used again, and long: it is written once, with a name."""

    name = "part"


class _CommonParts:
    """The parts of the values in one statement.

    Attributes:
        pieces: what each node is written as.
        repeated: the nodes that get a name where they are written first.
        written: those that have it.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.pieces: dict[int, list[Piece]] = {}
        self.repeated: set[int] = set()
        self.written: dict[int, _Common] = {}
        uses = Counter(map(id, values))
        for node in walk(*values, parts=self._inside):
            uses.update(map(id, self._inside(node)))
        if any(count > 1 for count in uses.values()):
            self._find_repeated(values, uses)

    def _inside(self, node: Any) -> list[Any]:
        return _values_in(self.of(node))

    def _find_repeated(self, values: Sequence[Any], uses: Counter[int]) -> None:
        lengths: dict[int, int] = {}
        for node in post_order(*values, parts=self._inside):
            length = len(self.of(node)) + sum(lengths[id(part)] for part in self._inside(node))
            if uses[id(node)] > 1 and length > _LONG:
                self.repeated.add(id(node))
                length = 1
            lengths[id(node)] = length

    def of(self, node: Any) -> list[Piece]:
        """What a value is written as."""
        if id(node) not in self.pieces:
            self.pieces[id(node)] = list(node.pieces())
        return self.pieces[id(node)]


def _values_in(pieces: Sequence[Piece]) -> list[Any]:
    return [p.node for p in pieces if isinstance(p, Operand) and _is_value(p.node)]


def _is_value(node: Any) -> bool:
    """Whether it is an expression, which can have a name."""
    return getattr(node, "is_value", False)


class _Writer:
    """The text so far, how far in it is, and what has which name."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.depth = 0
        self.names = _Names()
        self.parts = _CommonParts(())

    def write(self, piece: Piece) -> None:
        """Add a piece that is no operand."""
        if isinstance(piece, str):
            self.out.append(piece)
        elif isinstance(piece, Name):
            self.out.append(self.names.find(piece.node))
        elif isinstance(piece, Bind):
            self.names.bind(piece.node)
        elif isinstance(piece, Reserve):
            self.names.reserve(piece.data)
        elif isinstance(piece, Release):
            self.names.release(piece.node)
        elif piece is NEWLINE:
            self.out.append("\n" + "    " * self.depth)
        else:
            self.depth += 1 if piece is INDENT else -1

    def operand(self, piece: Operand) -> Iterator[Piece]:
        """What a node is written as where it stands."""
        node, parts = piece.node, self.parts
        if not _is_value(node):
            return self.statement(node.pieces())
        if (part := parts.written.get(id(node))) is not None:
            return iter((Name(part),))
        if id(node) in parts.repeated:
            part = parts.written[id(node)] = _Common()
            return chain(("(", Bind(part), Name(part), " := "), parts.of(node), (")",))
        # A node without a level of its own stands alone, as a call does.
        if getattr(node, "precedence", Precedence.ATOM) >= piece.precedence:
            return iter(parts.of(node))
        return chain(("(",), parts.of(node), (")",))

    def statement(self, pieces: Pieces) -> Iterator[Piece]:
        """The pieces of a statement, whose values repeat no long part."""
        own, around = list(pieces), self.parts
        self.parts = _CommonParts(_values_in(own))
        yield from own
        yield from map(Release, self.parts.written.values())
        self.parts = around


class Printed:
    """What shows as its text; it never changes, so that a copy is itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        # A copied variable would be another variable.
        return self

    def pieces(self) -> Pieces:
        """What this node is written as, see `tecomp.ir.nodes.printer`."""
        raise NotImplementedError(f"{type(self).__name__}.pieces")

    def __str__(self) -> str:
        return render(self)

    def __repr__(self) -> str:
        return str(self)


class _Names:
    """Which names are taken, and by what.

    Several buffers may be views of one memory, whose address is `data`: they are told apart by
    what they are, and the address goes by the name of the first of them.
    """

    def __init__(self) -> None:
        # Keyed by variable: those are hashed and found by identity.
        self._variables: dict[Any, list[str]] = {}
        self._views: dict[Any, list[tuple[Any, str]]] = {}
        self._reserved: dict[Any, str] = {}
        self._taken: set[str] = set()

    def bind(self, node: Any) -> None:
        if not hasattr(node, "data"):
            self._variables.setdefault(node, []).append(self._unique(node.name))
            return
        views = self._views.setdefault(node.data, [])
        kept = None if views else self._reserved.get(node.data)
        views.append((node, kept or self._unique(node.name)))

    def reserve(self, data: Any) -> None:
        self._reserved[data] = self._unique(data.name)

    def release(self, node: Any) -> None:
        if not hasattr(node, "data"):
            self._taken.discard(self._variables[node].pop())
            return
        views = self._views[node.data]
        last = next(k for k in reversed(range(len(views))) if views[k][0] is node)
        name = views.pop(last)[1]
        if name != self._reserved.get(node.data):
            self._taken.discard(name)

    def find(self, node: Any) -> str:
        return self._view(node) if hasattr(node, "data") else self._variable(node)

    def _variable(self, node: Any) -> str:
        if views := self._views.get(node):
            return views[0][1]
        if node in self._reserved:
            return self._reserved[node]
        if not self._variables.get(node):
            self.bind(node)
        return self._variables[node][-1]

    def _view(self, node: Any) -> str:
        views: list[tuple[Any, str]] = self._views.get(node.data, [])
        known = [name for view, name in views if view is node]
        if found := known or [name for view, name in views if view == node]:
            return found[-1]
        self.bind(node)
        return self._views[node.data][-1][1]

    def _unique(self, name: str) -> str:
        return take_name(identifier(name), self._taken)


def counted(count: int, word: str) -> str:
    """So many of something.

    >>> counted(1, "call"), counted(2, "call")
    ('1 call', '2 calls')
    """
    return f"{count} {word}{'s' * (count != 1)}"
