"""The language of statements, and functions; the nodes are in `tecomp.ir.language.statements`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from tecomp.drawing.pictured import Pictured
from tecomp.ir.language.buffer import (
    Buffer,
    Extent,
    IndexMap,
    PadValue,
    Range,
    check_separators,
    declaration,
)
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import Expr, Var
from tecomp.ir.language.statements import (
    Allocate,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    Let,
    Prefetch,
    SeqStmt,
    Stmt,
    block,
    over_elements,
    seq,
)
from tecomp.ir.language.text import (
    NEWLINE,
    Bind,
    Name,
    Operand,
    Pieces,
    Printed,
    Reserve,
    identifier,
    operands,
    quoted,
)

__all__ = [
    "Allocate",
    "Buffer",
    "BufferRealize",
    "BufferStore",
    "DeclBuffer",
    "Extent",
    "For",
    "ForKind",
    "IfThenElse",
    "IndexMap",
    "LayoutMaps",
    "Let",
    "Node",
    "PadValue",
    "Prefetch",
    "PrimFunc",
    "Range",
    "SeqStmt",
    "Stmt",
    "block",
    "check_separators",
    "over_elements",
    "seq",
]

_SCREEN = 48
"""Lines of a function that a terminal shows without being asked for all of them."""

LayoutMaps: TypeAlias = "tuple[tuple[Var, tuple[IndexMap, ...]], ...]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrimFunc(Printed, Pictured):
    """A function over buffers.

    Attributes:
        name: an identifier.
        params: buffers and scalar variables, in the caller's order.
        body: what it does.
        sizes: variables in the shapes and the strides of `params` that no scalar parameter binds;
            they take their values from the arrays at the call.
        layout_maps: for the `data` of a buffer, the maps that `apply_buffer_transforms` will
            apply to it, in order.
        pad_values: for the `data` of a buffer, what its padding holds.
        sites: for each run-time index check, what the user wrote and where.

    >>> import tecomp
    >>> from tecomp import te
    >>> A = te.placeholder((4,), name="A")
    >>> B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    >>> func = tecomp.lower(te.create_schedule(B), [A, B], name="plus")
    >>> print(func)
    def plus(A: Buffer("float32", (4,)), B: Buffer("float32", (4,))):
        for i in range(4):
            B[i] = A[i] + float32(1.0)
    >>> func.name, [buffer.name for buffer in func.params], func.sizes, func.sites
    ('plus', ['A', 'B'], (), ())
    >>> func.layout_maps, func.pad_values, dict(func.attrs), type(func.body).__name__
    ((), (), {}, 'For')
    >>> tecomp.parse(str(func)) == func
    True
    """

    _drawn_by: ClassVar[str] = "function:drawn"

    name: str
    params: tuple[Buffer | Var, ...]
    body: Stmt
    sizes: tuple[Var, ...] = ()
    layout_maps: LayoutMaps = ()
    pad_values: tuple[tuple[Var, PadValue], ...] = ()
    sites: tuple[str, ...] = field(default=())

    def bound(self) -> tuple[Var, ...]:
        """The variables that this node binds."""
        params = (p.data if isinstance(p, Buffer) else p for p in self.params)
        return (*self.sizes, *params)

    def __repr__(self) -> str:
        """The text, as much of it as a screen has."""
        lines = str(self).splitlines()
        if len(lines) <= _SCREEN:
            return "\n".join(lines)
        return "\n".join([*lines[:_SCREEN], f"# and {len(lines) - _SCREEN} more lines, in str()"])

    def _repr_html_(self) -> str:
        """The picture, and the text for whoever opens it."""
        return self.picture().with_text(str(self))

    @property
    def attrs(self) -> Mapping[str, Mapping[Var, tuple[IndexMap, ...]]]:
        """`layout_transform_map`, while there is one: buffer data -> maps in order.

        Source:
            transform_layout RFC: the attribute is removed once the maps are applied.
        """
        maps = {"layout_transform_map": MappingProxyType(dict(self.layout_maps))}
        return MappingProxyType(maps if self.layout_maps else {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrimFunc) and same(self, other)

    __hash__ = object.__hash__

    def pieces(self) -> Pieces:
        """As a Python function; what is not code is in decorators before it."""
        buffers = [param for param in self.params if isinstance(param, Buffer)]
        yield from map(Bind, (*self.params, *self.sizes))
        # A decorator may speak of a buffer that the body makes: its name is kept for it.
        named = {data: None for data, _ in (*self.layout_maps, *self.pad_values)}
        yield from (Reserve(data) for data in named if all(data is not b.data for b in buffers))
        yield from self._decorators()
        yield f"def {identifier(self.name)}("
        yield from self._signature()
        yield "):"
        yield from block(self.body)

    def _decorators(self) -> Pieces:
        for count, (data, maps) in enumerate(self.layout_maps):
            yield from (", " if count else "@layout_transform_map(", Name(data), "=[")
            yield from (*operands(maps), "]")
        yield from (")", NEWLINE) if self.layout_maps else ()
        for count, (data, pad) in enumerate(self.pad_values):
            yield from (", " if count else "@pad_value(", Name(data), "=", Operand(pad))
        yield from (")", NEWLINE) if self.pad_values else ()
        if self.sites:
            yield from (f"@sites({', '.join(map(quoted, self.sites))})", NEWLINE)

    def _signature(self) -> Pieces:
        known: set[Var] = set()
        for count, param in enumerate(self.params):
            yield from (", " if count else "", Name(param), ": ")
            if isinstance(param, Buffer):
                yield from declaration(param, view=param.data in known)
                known.add(param.data)
            else:
                yield f'"{param.dtype}"'
        if self.sizes:
            yield ", *" if self.params else "*"
        for var in self.sizes:
            yield from (", ", Name(var), f': "{var.dtype}"')


Node: TypeAlias = "Expr | Stmt | PrimFunc | IndexMap | PadValue | Range"
