"""Pretty printer.

Each node describes its text in `print_tokens()`. `render` expands the pieces with an explicit
stack, because trees may be deeper than Python's recursion limit. This module does not depend on
node classes.
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

from tecomp.ir.nodes.graph_utils import post_order, preorder

_MAX_REPEATED_TOKENS = 48
"""Maximum length, in pieces, of a shared subexpression that is repeated rather than named."""


class Precedence(IntEnum):
    """Operator precedence, as in Python's grammar."""

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


class LineBreak(Enum):
    """Control piece: newline, or change of the indentation by one level."""

    NEWLINE = "newline"
    INDENT = "indent"
    DEDENT = "dedent"


NEWLINE, INDENT, DEDENT = LineBreak.NEWLINE, LineBreak.INDENT, LineBreak.DEDENT


@dataclass(frozen=True, slots=True)
class ParenthesizedOperand:
    """Nested node, parenthesized if its precedence is below `precedence`."""

    node: Any
    precedence: int = Precedence.ANY


@dataclass(frozen=True, slots=True)
class PrintedName:
    """Name of a variable or buffer; the address of a buffer has the name of the buffer."""

    node: Any


@dataclass(frozen=True, slots=True)
class BindName:
    """Start of the scope of a variable or buffer, which receives a unique name."""

    node: Any


@dataclass(frozen=True, slots=True)
class ReserveName:
    """Early assignment of a name to the address `data` of a buffer that is bound later."""

    data: Any


@dataclass(frozen=True, slots=True)
class ReleaseName:
    """End of the scope of the last `BindName` of `node`; its name becomes available again."""

    node: Any


Piece: TypeAlias = (
    "str | ParenthesizedOperand | PrintedName | BindName | ReserveName | ReleaseName | LineBreak"
)
Pieces: TypeAlias = "Iterable[Piece]"


def render(root: Any) -> str:
    """Return the text of a node that implements `print_tokens()`.

    A free variable receives a name at its first use and keeps it. A long subexpression that occurs
    several times in a statement is printed once as `(part := ...)` and then as `part`.
    """
    writer = _TextWriter()
    _write(writer, writer.statement((ParenthesizedOperand(root),)), sys.maxsize)
    return "".join(writer.out)


def brief(value: Any, limit: int = 400) -> str:
    """Return the text of a value for a message, truncated to `limit` characters.

    The cost is bounded for values of any size, so shared subexpressions are not named.
    """
    writer = _TextWriter()
    _write(writer, iter((ParenthesizedOperand(value),)), limit + 1)
    return truncate("".join(writer.out), limit)


def _write(writer: _TextWriter, pieces: Iterator[Piece], limit: int) -> None:
    """Expand and write pieces until `limit` strings have been written."""
    worklist = [pieces]
    while worklist and len(writer.out) < limit:
        piece = next(worklist[-1], None)
        if piece is None:
            worklist.pop()
        elif isinstance(piece, ParenthesizedOperand):
            worklist.append(writer.operand(piece))
        else:
            writer.write(piece)


def comma(items: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the items, separated by commas."""
    for count, item in enumerate(items):
        if count:
            yield ", "
        yield item


def operands(nodes: Iterable[Any]) -> Iterator[Piece]:
    """Yield the pieces of expressions or Python ints, separated by commas."""
    return comma(str(node) if isinstance(node, int) else ParenthesizedOperand(node) for node
        in nodes)


def tuple_of(nodes: tuple[Any, ...]) -> Iterator[Piece]:
    """Yield the pieces of a Python tuple of expressions or ints."""
    yield "("
    yield from operands(nodes)
    yield ",)" if len(nodes) == 1 else ")"


def quote_literal(text: str) -> str:
    """Return `text` as a Python string literal, with double quotes unless it contains quotes."""
    return repr(text) if '"' in text or "'" in text else f'"{repr(text)[1:-1]}"'


def truncate(text: str, max_length: int = 80) -> str:
    """Truncate `text` to `max_length` characters for a message; an ellipsis marks the truncation.

    >>> truncate("x + 1"), truncate("x + 1 + 2 + 3", max_length=8)
    ('x + 1', 'x + 1...')
    """
    return text if len(text) <= max_length else f"{text[:max_length - 3]}..."


def identifier(name: str) -> str:
    """Return `name` with characters replaced so that it is a valid Python identifier.

    >>> identifier("C.local"), identifier("2d"), identifier("lambda")
    ('C_local', '_2d', 'lambda_')
    """
    normalized = unicodedata.normalize("NFKC", name)
    legal = "".join([c if f"a{c}".isidentifier() else "_" for c in normalized])
    if not legal.isidentifier():
        legal = f"_{legal}"
    return f"{legal}_" if keyword.iskeyword(legal) else legal


def take_name(base: str, taken: set[str]) -> str:
    """Return a name that is not in `taken`, numbered if necessary, and add it to `taken`.

    >>> names = {"A"}
    >>> take_name("A", names), take_name("A", names), take_name("B", names)
    ('A_1', 'A_2', 'B')
    """
    name, count = base, 0
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    taken.add(name)
    return name


class _Common:
    """Shared subexpression that is long enough to be named; `name` is the base of its name."""

    name = "part"


class _CommonParts:
    """Shared subexpressions of the values in one statement.

    Attributes:
        tokens: Pieces of each node, by its id.
        repeated: Ids of the nodes to be named at their first use.
        written: Names of the nodes that have been printed, by the id of the node.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.tokens: dict[int, list[Piece]] = {}
        self.repeated: set[int] = set()
        self.written: dict[int, _Common] = {}
        uses = Counter(map(id, values))
        for node in preorder(*values, parts=self._inside):
            uses.update(map(id, self._inside(node)))
        if any(count > 1 for count in uses.values()):
            self._find_repeated(values, uses)

    def _inside(self, node: Any) -> list[Any]:
        return _values_in(self.of(node))

    def _find_repeated(self, values: Sequence[Any], uses: Counter[int]) -> None:
        lengths: dict[int, int] = {}
        for node in post_order(*values, parts=self._inside):
            length = len(self.of(node)) + sum(lengths[id(part)] for part in self._inside(node))
            if uses[id(node)] > 1 and length > _MAX_REPEATED_TOKENS:
                self.repeated.add(id(node))
                length = 1
            lengths[id(node)] = length

    def of(self, node: Any) -> list[Piece]:
        """Return the cached pieces of a value."""
        if id(node) not in self.tokens:
            self.tokens[id(node)] = list(node.print_tokens())
        return self.tokens[id(node)]


def _values_in(pieces: Sequence[Piece]) -> list[Any]:
    return [p.node for p in pieces if isinstance(p, ParenthesizedOperand) and _is_value(p.node)]


def _is_value(node: Any) -> bool:
    """Return whether `node` is an expression, which can be named."""
    return getattr(node, "is_value", False)


class _TextWriter:
    """Printer state: output text, indentation, names in scope and shared subexpressions."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.depth = 0
        self.names = _NameScope()
        self.parts = _CommonParts(())

    def write(self, piece: Piece) -> None:
        """Process a piece that is not an operand."""
        if isinstance(piece, str):
            self.out.append(piece)
        elif isinstance(piece, PrintedName):
            self.out.append(self.names.find(piece.node))
        elif isinstance(piece, BindName):
            self.names.bind(piece.node)
        elif isinstance(piece, ReserveName):
            self.names.reserve(piece.data)
        elif isinstance(piece, ReleaseName):
            self.names.release(piece.node)
        elif piece is NEWLINE:
            self.out.append("\n" + "    " * self.depth)
        else:
            self.depth += 1 if piece is INDENT else -1

    def operand(self, piece: ParenthesizedOperand) -> Iterator[Piece]:
        """Return the pieces of a nested node in its context."""
        node, parts = piece.node, self.parts
        if not _is_value(node):
            return self.statement(node.print_tokens())
        if (part := parts.written.get(id(node))) is not None:
            return iter((PrintedName(part),))
        if id(node) in parts.repeated:
            part = parts.written[id(node)] = _Common()
            return chain(("(", BindName(part), PrintedName(part), " := "), parts.of(node), (")",))
        # Nodes without a precedence, such as calls, never need parentheses.
        if getattr(node, "precedence", Precedence.ATOM) >= piece.precedence:
            return iter(parts.of(node))
        return chain(("(",), parts.of(node), (")",))

    def statement(self, pieces: Pieces) -> Iterator[Piece]:
        """Yield the pieces of a statement; names of shared subexpressions are scoped to it."""
        tokens, outer_parts = list(pieces), self.parts
        self.parts = _CommonParts(_values_in(tokens))
        yield from tokens
        yield from map(ReleaseName, self.parts.written.values())
        self.parts = outer_parts


class Printed:
    """Base class of immutable nodes with a printed form; `copy` returns the node itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        # Variables are compared by identity, so a copy would be a different variable.
        return self

    def print_tokens(self) -> Pieces:
        """Return the pieces of the printed form; see `tecomp.ir.nodes.printer`."""
        raise NotImplementedError(f"{type(self).__name__}.print_tokens")

    def __str__(self) -> str:
        return render(self)

    def __repr__(self) -> str:
        return str(self)


class _NameScope:
    """Names in scope and the variables and buffers that they denote.

    Several buffers may be views of the same memory, whose address is `data`. Views are
    distinguished by structural equality, and the address has the name of the first view.
    """

    def __init__(self) -> None:
        # Keyed by variable, which is hashed and compared by identity.
        self._variables: dict[Any, list[str]] = {}
        self._views: dict[Any, list[tuple[Any, str]]] = {}
        self._reserved: dict[Any, str] = {}
        self._used_names: set[str] = set()

    def bind(self, node: Any) -> None:
        if not hasattr(node, "data"):
            self._variables.setdefault(node, []).append(self._unique(node.name))
            return
        views = self._views.setdefault(node.data, [])
        reserved = None if views else self._reserved.get(node.data)
        views.append((node, reserved or self._unique(node.name)))

    def reserve(self, data: Any) -> None:
        self._reserved[data] = self._unique(data.name)

    def release(self, node: Any) -> None:
        if not hasattr(node, "data"):
            self._used_names.discard(self._variables[node].pop())
            return
        views = self._views[node.data]
        last = next(k for k in reversed(range(len(views))) if views[k][0] is node)
        name = views.pop(last)[1]
        if name != self._reserved.get(node.data):
            self._used_names.discard(name)

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
        return take_name(identifier(name), self._used_names)


def format_count(count: int, noun: str) -> str:
    """Format a count with a noun in the singular or plural.

    >>> format_count(1, "call"), format_count(2, "call")
    ('1 call', '2 calls')
    """
    return f"{count} {noun}{'s' * (count != 1)}"
