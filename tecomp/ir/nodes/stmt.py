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
    IndexMapNode,
    PadValue,
    Range,
    check_separators,
    declaration,
    end_of,
    is_longer,
    view_problem,
)
from tecomp.ir.nodes.expr import BufferLoad, Expr, Var
from tecomp.ir.nodes.printer import (
    DEDENT,
    INDENT,
    NEWLINE,
    BindName,
    ParenthesizedOperand,
    Piece,
    Pieces,
    Printed,
    PrintedName,
    ReleaseName,
    ReserveName,
    comma,
    identifier,
    operands,
    quote_literal,
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
    loops_over_elements,
    seq,
)
from tecomp.ir.nodes.structural_equality import structural_equal

__all__ = [
    "Allocate",
    "ArrayArgument",
    "Buffer",
    "BufferRealize",
    "BufferStore",
    "CallingConvention",
    "DeclBuffer",
    "Extent",
    "ExternCall",
    "For",
    "ForKind",
    "IfThenElse",
    "IndexMapNode",
    "LayoutMaps",
    "Let",
    "Node",
    "OperandTransfer",
    "PadValue",
    "Passed",
    "Prefetch",
    "PrimFunc",
    "Range",
    "SeqStmt",
    "Stmt",
    "TensorOp",
    "array_argument",
    "block",
    "check_separators",
    "end_of",
    "is_longer",
    "loops_over_elements",
    "seq",
    "view_problem",
]

_SCREEN = 48
"""Maximum number of lines that `repr` of a function shows."""

LayoutMaps: TypeAlias = "tuple[tuple[Var, tuple[IndexMapNode, ...]], ...]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrimFunc(Printed, Pictured):
    """Function over buffers and scalars.

    Attributes:
        name: Name, printed as an identifier.
        params: Buffers and scalar variables, in the order of the call.
        body: Statement that the function executes.
        sizes: Variables in the shapes and strides of `params` that are not scalar parameters; they
            are bound to the sizes of the arrays at the call.
        layout_maps: Pending layout maps of each buffer, keyed by its `data`, in the order in which
            `apply_buffer_transforms` will apply them.
        pad_values: Padding contents of each buffer, keyed by its `data`.
        sites: For each run-time index check, the user's source expression and its location.

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
        """Return the variables that this node binds."""
        params = (p.data if isinstance(p, Buffer) else p for p in self.params)
        return (*self.sizes, *params)

    def __repr__(self) -> str:
        """Return the text, truncated to the first lines of a long function."""
        lines = str(self).splitlines()
        if len(lines) <= _SCREEN:
            return "\n".join(lines)
        return "\n".join([*lines[:_SCREEN], f"# and {len(lines) - _SCREEN} more lines, in str()"])

    def _repr_html_(self) -> str:
        """Return the figure of the function, with its text in a collapsible section."""
        return self.picture().with_text(str(self))

    @property
    def attrs(self) -> Mapping[str, Mapping[Var, tuple[IndexMapNode, ...]]]:
        """Function attributes: `layout_transform_map`, from buffer data to pending maps in order.

        The attribute is absent if no map is pending.

        Source:
            transform_layout RFC: the attribute is removed once the maps are applied.
        """
        maps = {"layout_transform_map": MappingProxyType(dict(self.layout_maps))}
        return MappingProxyType(maps if self.layout_maps else {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrimFunc) and structural_equal(self, other)

    __hash__ = object.__hash__

    def print_tokens(self) -> Pieces:
        """Yield the pieces of a Python function; metadata is printed as decorators."""
        buffers = [param for param in self.params if isinstance(param, Buffer)]
        yield from map(BindName, (*self.params, *self.sizes))
        # A decorator may refer to a buffer that the body allocates, so its name is reserved.
        named = {data: None for data, _ in (*self.layout_maps, *self.pad_values)}
        yield from (ReserveName(data) for data in named if all(data is not b.data for b in buffers))
        yield from self._decorators()
        yield f"def {identifier(self.name)}("
        yield from self._signature()
        yield "):"
        yield from block(self.body)

    def _decorators(self) -> Pieces:
        for count, (data, maps) in enumerate(self.layout_maps):
            yield from (", " if count else "@layout_transform_map(", PrintedName(data), "=[")
            yield from (*operands(maps), "]")
        yield from (")", NEWLINE) if self.layout_maps else ()
        for count, (data, pad) in enumerate(self.pad_values):
            yield from (
                ", " if count else "@pad_value(",
                PrintedName(data),
                "=",
                ParenthesizedOperand(pad),
            )
        yield from (")", NEWLINE) if self.pad_values else ()
        if self.sites:
            yield from (f"@sites({', '.join(map(quote_literal, self.sites))})", NEWLINE)

    def _signature(self) -> Pieces:
        known: set[Var] = set()
        for count, param in enumerate(self.params):
            yield from (", " if count else "", PrintedName(param), ": ")
            if isinstance(param, Buffer):
                yield from declaration(param, view=param.data in known)
                known.add(param.data)
            else:
                yield f'"{param.dtype}"'
        if self.sizes:
            yield ", *" if self.params else "*"
        for var in self.sizes:
            yield from (", ", PrintedName(var), f': "{var.dtype}"')


Node: TypeAlias = "Expr | Stmt | PrimFunc | IndexMapNode | PadValue | Range"


Passed: TypeAlias = "Expr | Stmt | str"


class CallingConvention(Enum):
    """Calling convention of an external function; the value is its keyword in the printed text."""

    PACKED = "call_packed"
    C = "call_extern"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ArrayArgument(Stmt):
    """Array argument of an external call, given by an access that maps its indices to memory.

    Occurs only in the arguments of an `ExternCall`. The call may access all elements, in any
    order.

    Attributes:
        variables: Index variables, one for each axis.
        shape: Extents of the array.
        access: `BufferLoad` of the element at `variables`, or a `BufferStore` of this load to the
            same element if the call may write it.
    """

    bound_fields: ClassVar[tuple[str, ...]] = ("variables",)

    variables: tuple[Var, ...]
    shape: tuple[Expr, ...]
    access: Expr | Stmt

    def bound(self) -> tuple[Var, ...]:
        """Return the variables that this node binds."""
        return self.variables

    @property
    def is_written(self) -> bool:
        """Whether the call may write the array."""
        return isinstance(self.access, BufferStore)

    @property
    def element(self) -> BufferLoad:
        """Load of the element at `variables`.

        Raises:
            InternalError: If the access is not a buffer access.
        """
        load = self.access.value if isinstance(self.access, BufferStore) else self.access
        if not isinstance(load, BufferLoad):
            raise InternalError("`{value}` is not a valid element of an array", value=load)
        return load

    def print_tokens(self) -> Pieces:
        """Yield the pieces of `reads(lambda i, j: A[i, j], (4, 8))`, or of `writes(...)`."""
        yield from map(BindName, self.variables)
        yield f"{'writes' if self.is_written else 'reads'}(lambda"
        for count, var in enumerate(self.variables):
            yield from (", " if count else " ", PrintedName(var))
        yield from (": ", ParenthesizedOperand(self.element), ", ")
        yield from tuple_of(self.shape)
        yield ")"
        yield from map(ReleaseName, self.variables)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExternCall(Stmt):
    """Call of a registered external function with arrays, scalars and strings.

    The function is assumed to access no memory besides its array arguments. If it fails, the
    calling function fails.

    Attributes:
        function: Registered name.
        convention: Calling convention.
        arguments: Arguments in order.
        multiply_adds: Number of multiply-adds for the cost model, if specified by the user; memory
            traffic follows from the array arguments.
    """

    function: str
    convention: CallingConvention
    arguments: tuple[Passed, ...]
    multiply_adds: Expr | None = None

    @property
    def arrays(self) -> tuple[ArrayArgument, ...]:
        """Array arguments."""
        return tuple(arg for arg in self.arguments if isinstance(arg, ArrayArgument))

    def print_tokens(self) -> Pieces:
        """Yield the pieces of `call_packed("gemm", reads(...), writes(...), 3)`."""
        yield f"{self.convention.value}("
        tokens: list[Piece] = [quote_literal(self.function)]
        for arg in self.arguments:
            tokens.append(quote_literal(arg) if isinstance(arg, str)
                else ParenthesizedOperand(arg))
        yield from comma(tokens)
        yield from () if self.multiply_adds is None else (
            ", multiply_adds=", ParenthesizedOperand(self.multiply_adds))
        yield ")"


def array_argument(
    buffer: Buffer,
    variables: tuple[Var, ...],
    shape: tuple[Expr, ...],
    indices: tuple[Expr, ...],
    *,
    is_written: bool,
) -> ArrayArgument:
    """Return the array argument whose element at `variables` is `buffer[indices]`."""
    load = BufferLoad(buffer, indices)
    access = BufferStore(buffer, load, indices) if is_written else load
    return ArrayArgument(variables, shape, access)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OperandTransfer(Stmt):
    """Transfer of the operand element `element` to a functional unit, or from it if `is_written`.

    Occurs only in the operands of a `TensorOp` and has no effect by itself.
    """

    element: Expr
    is_written: bool = False

    def print_tokens(self) -> Pieces:
        """Return the pieces of `reads(A[i, j])` or `writes(A[i, j])`."""
        return ("writes(" if self.is_written else "reads(", ParenthesizedOperand(self.element), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorOp(Stmt):
    """Statement `body` that the target executes as a single operation.

    The node exists until `expand_tensor_ops` and provides operands and unit to the cost model; its
    semantics are those of `body`.

    Attributes:
        name: Name of the operation.
        operands: Loop nests of `OperandTransfer` over all elements of the operands, each visited
            once.
        body: Statement that defines the semantics.
        tile: Extents of the data axes, followed by those of the reduction axes.
        unit: Functional unit of the target's engine; empty if the operation has no unit.
        mode: Mode of the unit; empty for the default mode of the operand dtypes.
    """

    name: str
    operands: Stmt
    body: Stmt
    tile: tuple[int, ...] = ()
    unit: str = ""
    mode: str = ""

    def print_tokens(self) -> Pieces:
        """Yield the pieces of `with TensorOp("product", tile=(8, 64, 64), unit="matmul"):`.

        The operands are printed in a separate block before the body.
        """
        yield f"with TensorOp({quote_literal(self.name)}, tile={self.tile}"
        yield f", unit={quote_literal(self.unit)}" if self.unit else ""
        yield f", mode={quote_literal(self.mode)}" if self.mode else ""
        yield from ("):", INDENT, NEWLINE, "with Operands():")
        yield from (*block(self.operands), NEWLINE, ParenthesizedOperand(self.body), DEDENT)
