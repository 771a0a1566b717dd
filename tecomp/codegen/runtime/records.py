"""Records of the runtime: fields in memory that code in LLVM IR and Python name alike.

The text of the runtime names fields and constants; `assembled` puts in what LLVM reads:

    %at.piece = field Thread.piece, ptr %thread     the address of a field of a record
    %is.more = icmp ult i64 %k, $CALLERS            a constant, or a piece of text
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template

from tecomp.errors import InternalError

_BYTES = {"i32": 4, "i64": 8, "ptr": 8}
_FIELD = re.compile(r"\bfield (\w+)\.(\w+), ")


@dataclass(frozen=True, slots=True)
class Record:
    """A structure, laid out as C does it.

    Attributes:
        name: of the type in LLVM IR.
        fields: each a name and a type in LLVM IR.

    >>> span = Record("Span", (("first", "i64"), ("end", "i64")))
    >>> span.definition
    '%Span = type { i64, i64 }'
    >>> span.place("end")
    1
    """

    name: str
    fields: tuple[tuple[str, str], ...]

    @property
    def definition(self) -> str:
        """The type as LLVM IR."""
        return f"%{self.name} = type {{ {', '.join(kind for _, kind in self.fields)} }}"

    @property
    def names(self) -> tuple[str, ...]:
        """The fields, in order."""
        return tuple(name for name, _ in self.fields)

    @property
    def bytes(self) -> int:
        """What it takes in memory, if no field is a record or an array."""
        return self.offset("")

    def offset(self, field: str) -> int:
        """Bytes before a field that is no record or array, like those before it; "" is the end.

        >>> Record("Pair", (("short", "i32"), ("address", "ptr"))).offset("address")
        8
        """
        end = 0
        for name, kind in self.fields:
            size = _BYTES[kind]
            start = -(-end // size) * size
            if name == field:
                return start
            end = start + size
        return end

    def place(self, field: str) -> int:
        """The position of a field.

        Raises:
            InternalError: there is no such field.
        """
        if field not in self.names:
            raise InternalError(f"{self.name} has no field {field!r}; it has {self.names}")
        return self.names.index(field)


def words(name: str, *fields: str) -> Record:
    """A record whose fields are words of 64 bits.

    >>> words("Rule", "kind", "value").definition
    '%Rule = type { i64, i64 }'
    """
    return Record(name, tuple((field, "i64") for field in fields))


def pointers(name: str, *fields: str) -> Record:
    """A record whose fields are addresses.

    >>> pointers("Pair", "one", "other").definition
    '%Pair = type { ptr, ptr }'
    """
    return Record(name, tuple((field, "ptr") for field in fields))


def assembled(text: str, records: Sequence[Record], constants: Mapping[str, object]) -> str:
    """`text` as LLVM IR, with fields and constants in place of their names.

    Raises:
        InternalError: a name stands for nothing.

    >>> span = words("Span", "first", "end")
    >>> assembled("%a = field Span.end, ptr %span", [span], {})
    '%a = getelementptr %Span, ptr %span, i32 0, i32 1'
    >>> assembled("%b = add i64 %a, $MORE", [], {"MORE": 7})
    '%b = add i64 %a, 7'
    """
    known = {record.name: record for record in records}
    try:
        lines = Template(text).substitute(constants).split("\n")
        return "\n".join(_line(line, known) for line in lines)
    except KeyError as error:
        raise InternalError(f"text of the runtime: {error} is declared nowhere") from error


def _line(line: str, known: Mapping[str, Record]) -> str:
    found = _FIELD.search(line)
    if not found:
        return line
    record = known[found[1]]
    address = f"getelementptr %{record.name}, {line[found.end() :]}"
    return f"{line[: found.start()]}{address}, i32 0, i32 {record.place(found[2])}"
