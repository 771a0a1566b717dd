"""`PrimFunc`, tensor operations and external calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from tecomp.drawing.drawable import Pictured
from tecomp.errors import InternalError
from tecomp.ir.nodes.buffer import (
    Buffer,
    Extent,
    IndexMap,
    PadValue,
    Range,
    check_separators,
    declaration,
    is_longer,
    view_problem,
)
from tecomp.ir.nodes.expr import BufferLoad, Expr, Var
from tecomp.ir.nodes.printer import (
    DEDENT,
    INDENT,
    NEWLINE,
    Bind,
    Name,
    Operand,
    Piece,
    Pieces,
    Printed,
    Release,
    Reserve,
    comma,
    identifier,
    operands,
    quoted,
    tuple_of,
)
from tecomp.ir.nodes.stmt_nodes import (
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
from tecomp.ir.nodes.structural_equality import same

__all__ = [
    "Allocate",
    "ArrayArgument",
    "Buffer",
    "BufferRealize",
    "BufferStore",
    "Convention",
    "DeclBuffer",
    "Extent",
    "For",
    "ForKind",
    "IfThenElse",
    "IndexMap",
    "LayoutMaps",
    "Let",
    "Node",
    "OutsideCall",
    "PadValue",
    "Passed",
    "Prefetch",
    "PrimFunc",
    "Range",
    "SeqStmt",
    "Stmt",
    "TensorOp",
    "Touch",
    "array_argument",
    "block",
    "check_separators",
    "is_longer",
    "over_elements",
    "seq",
    "view_problem",
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

    _drawn_by: ClassVar[str] = "loop_nest:draw_function"

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


Passed: TypeAlias = "Expr | Stmt | str"


class Convention(Enum):
    """How a function is called; the value is its word in printed text."""

    PACKED = "call_packed"
    C = "call_extern"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ArrayArgument(Stmt):
    """Memory that a call takes: an array whose element at `variables` is where `access` is.

    Only stands among the arguments of an `OutsideCall`. The access is a load, or a store of what is
    there where the call may write: it happens to any of the elements, in any order.

    Attributes:
        variables: one for each axis.
        shape: the extents of the array.
        access: a `BufferLoad`, or a `BufferStore` of that.
    """

    binds: ClassVar[tuple[str, ...]] = ("variables",)

    variables: tuple[Var, ...]
    shape: tuple[Expr, ...]
    access: Expr | Stmt

    def bound(self) -> tuple[Var, ...]:
        """The variables that this node binds."""
        return self.variables

    @property
    def is_written(self) -> bool:
        """Whether the call may write there."""
        return isinstance(self.access, BufferStore)

    @property
    def place(self) -> BufferLoad:
        """The element at `variables`.

        Raises:
            InternalError: it is no element.
        """
        place = self.access.value if isinstance(self.access, BufferStore) else self.access
        if not isinstance(place, BufferLoad):
            raise InternalError(f"`{place}` is no element that an array could have")
        return place

    def pieces(self) -> Pieces:
        """`reads(lambda i, j: A[i, j], (4, 8))`, or `writes(...)`."""
        yield from map(Bind, self.variables)
        yield f"{'writes' if self.is_written else 'reads'}(lambda"
        for count, var in enumerate(self.variables):
            yield from (", " if count else " ", Name(var))
        yield from (": ", Operand(self.place), ", ")
        yield from tuple_of(self.shape)
        yield ")"
        yield from map(Release, self.variables)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutsideCall(Stmt):
    """Calls a function that was registered, with arrays, numbers and texts.

    Nothing is known of it but that it touches no memory besides its arrays. If it fails, so does
    the function that it is called from.

    Attributes:
        function: its name.
        convention: how it is called.
        arguments: in order.
        multiply_adds: how many it does, if its user says so: what it costs besides its memory.
    """

    function: str
    convention: Convention
    arguments: tuple[Passed, ...]
    multiply_adds: Expr | None = None

    @property
    def arrays(self) -> tuple[ArrayArgument, ...]:
        """The memory that it takes."""
        return tuple(each for each in self.arguments if isinstance(each, ArrayArgument))

    def pieces(self) -> Pieces:
        """`call_packed("gemm", reads(...), writes(...), 3)`."""
        yield f"{self.convention.value}("
        given: list[Piece] = [quoted(self.function)]
        for each in self.arguments:
            given.append(quoted(each) if isinstance(each, str) else Operand(each))
        yield from comma(given)
        yield from () if self.multiply_adds is None else (
            ", multiply_adds=", Operand(self.multiply_adds))
        yield ")"


def array_argument(
    buffer: Buffer,
    variables: tuple[Var, ...],
    shape: tuple[Expr, ...],
    indices: tuple[Expr, ...],
    *,
    is_written: bool,
) -> ArrayArgument:
    """The array whose element at `variables` is at `indices` of a buffer."""
    place = BufferLoad(buffer, indices)
    access = BufferStore(buffer, place, indices) if is_written else place
    return ArrayArgument(variables, shape, access)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Touch(Stmt):
    """An operand's element, `place`, is moved: to the unit, or, if `is_written`, from it.

    Only stands among the operands of a `TensorOp`, and does nothing by itself.
    """

    place: Expr
    is_written: bool = False

    def pieces(self) -> Pieces:
        """`reads(A[i, j])` or `writes(A[i, j])`."""
        return ("writes(" if self.is_written else "reads(", Operand(self.place), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorOp(Stmt):
    """`body` is one operation of the machine.

    Exists until `expand_tensor_ops`, for who counts; it means the same as its body.

    Attributes:
        name: of the operation.
        operands: loops of `Touch` over all elements of its operands, each once.
        body: what it does.
        tile: extents of its data axes, and then of its reduction axes.
        unit: of the machine's engine, that does it; empty if it is nothing but its body.
        mode: of the unit; empty for the usual one of the operands' type.
    """

    name: str
    operands: Stmt
    body: Stmt
    tile: tuple[int, ...] = ()
    unit: str = ""
    mode: str = ""

    def pieces(self) -> Pieces:
        """`with TensorOp("product", tile=(8, 64, 64), unit="matmul"):`, the operands first."""
        yield f"with TensorOp({quoted(self.name)}, tile={self.tile}"
        yield f", unit={quoted(self.unit)}" if self.unit else ""
        yield f", mode={quoted(self.mode)}" if self.mode else ""
        yield from ("):", INDENT, NEWLINE, "with Operands():")
        yield from (*block(self.operands), NEWLINE, Operand(self.body), DEDENT)
