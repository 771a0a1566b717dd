"""Buffers, index maps, padding values and ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import ClassVar, TypeAlias

from tecomp.errors import DefinitionError
from tecomp.ir.nodes.dtype import FLOAT32, HANDLE, INT64, DType
from tecomp.ir.nodes.expr_nodes import Binary, Const, Expr, Var
from tecomp.ir.nodes.operators import BinOp
from tecomp.ir.nodes.printer import (
    BindName,
    ParenthesizedOperand,
    Piece,
    Pieces,
    Precedence,
    Printed,
    PrintedName,
    ReleaseName,
    comma,
    operands,
    quote_literal,
    tuple_of,
)
from tecomp.ir.nodes.structural_equality import structural_equal

Extent: TypeAlias = "int | Expr"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Buffer(Printed):
    """Region of memory that is accessed with one index for each axis of `shape`.

    Attributes:
        name: Name in printed text; not part of the identity.
        shape: Extents in elements; Python ints where they are static.
        dtype: Dtype of an element, possibly a vector. Default: float32.
        scope: Name of the memory that contains the buffer. Default: "global".
        axis_separators: Ascending axis numbers; each is the last axis of its group, and the final
            group has no separator. Flattening merges each group into one physical axis. While
            layout maps are pending, the numbers refer to the axes after all maps are applied.
        strides: Distance in elements between consecutive indices of each axis; None if compact
            (row-major). Strides of a parameter may be 0 or negative.
        data: Variable that represents the address of the memory. Two buffers with the same `data`
            are views of the same memory.
        flat: If True, an access has one index regardless of the rank: the offset in elements from
            the first element, computed with the strides. The offset may be negative.
        elem_offset: Offset in elements of the first element from the start of the memory. For a
            parameter, a call passes the memory as a one-dimensional array, and `data` is the
            address of the first element. Default: 0.

    Source:
        transform_layout RFC; separators are numbered as in its NHWC example.

    >>> image = Buffer("image", (64, 32), "float16", "global.texture", axis_separators=(1,))
    >>> image
    image: Buffer("float16", (64, 32), scope="global.texture", axis_separators=(1,))
    >>> image.name, image.shape, image.dtype, image.scope, image.axis_separators
    ('image', (64, 32), 'float16', 'global.texture', (1,))
    >>> image.strides, image.flat, image.index_count
    (None, False, 2)
    >>> image.elem_offset
    0
    >>> view = Buffer("view", (2048,), "float16", data=image.data)
    >>> view.data is image.data
    True
    """

    name: str = field(compare=False)
    shape: tuple[Extent, ...]
    dtype: DType = FLOAT32
    scope: str = "global"
    axis_separators: tuple[int, ...] = ()
    strides: tuple[Extent, ...] | None = None
    data: Var = None  # type: ignore[assignment]
    flat: bool = False
    elem_offset: Extent = 0

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "shape", tuple(map(_extent, self.shape)))
        set_field(self, "dtype", DType(self.dtype))
        set_field(self, "axis_separators", check_ascending(self.axis_separators, len(self.shape)))
        if self.strides is not None:
            set_field(self, "strides", tuple(map(_extent, self.strides)))
        set_field(self, "elem_offset", _extent(self.elem_offset))
        if self.data is None:
            set_field(self, "data", Var(self.name, HANDLE))

    @property
    def has_offset(self) -> bool:
        """Whether the offset is symbolic or not 0.

        >>> Buffer("B", (4,)).has_offset, Buffer("B", (4,), elem_offset=3).has_offset
        (False, True)
        """
        return isinstance(self.elem_offset, Expr) or self.elem_offset != 0

    @property
    def entries(self) -> tuple[Extent, ...]:
        """Extents, strides and offset: all values that may be symbolic.

        >>> Buffer("B", (4, 2), strides=(8, 1), elem_offset=3).entries
        (4, 2, 8, 1, 3)
        """
        return (*self.shape, *(self.strides or ()), self.elem_offset)

    def with_entries(self, entries: Sequence[Extent]) -> Buffer:
        """Return the buffer with other `entries` of the same number.

        >>> Buffer("B", (4, 2)).with_entries((8, 2, 1))
        B: Buffer("float32", (8, 2), elem_offset=1)
        """
        *sizes, offset = entries
        rank = len(self.shape)
        strides = None if self.strides is None else tuple(sizes[rank:])
        return replace(self, shape=tuple(sizes[:rank]), strides=strides, elem_offset=offset)

    @property
    def index_count(self) -> int:
        """Number of indices of an access: 1 if `flat`, else the rank."""
        return 1 if self.flat else len(self.shape)

    def element_at(self, indices: Sequence[Expr]) -> DType:
        """Return the dtype of an access at `indices`.

        The number of lanes is the product of the lanes of the last index and of the buffer dtype.

        >>> from tecomp import te
        >>> Buffer("B", (64,)).element_at([te.var("i")])
        'float32'
        """
        lanes = indices[-1].dtype.lanes if indices else 1
        return self.dtype.with_lanes(lanes * self.dtype.lanes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffer) and structural_equal(self, other)

    def __hash__(self) -> int:
        return hash(self.data)

    def print_tokens(self) -> Pieces:
        """Return the pieces of a parameter declaration: the name and the buffer type."""
        return (PrintedName(self), ": ", *declaration(self))


def _extent(value: Extent) -> Extent:
    if isinstance(value, int):
        return int(value)
    return int(value.value) if isinstance(value, Const) else value


def check_separators(separators: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return `separators` as a tuple, checked to split `rank` axes into nonempty groups.

    Raises:
        DefinitionError: If the separators are not strictly ascending, or a group would be empty.
    """
    cuts = check_ascending(separators, rank)
    if cuts and cuts[-1] >= rank - 1:
        raise _bad_separators(cuts, rank)
    return cuts


def check_ascending(separators: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return `separators` as a tuple after checking their order only.

    The separators may exceed `rank`, because pending layout maps can add axes. `rank` is only used
    in the message.

    Raises:
        DefinitionError: If the separators are negative or not strictly ascending.
    """
    cuts = tuple(separators)
    if cuts and any(b <= a for a, b in pairwise((-1, *cuts))):
        raise _bad_separators(cuts, rank)
    return cuts


def _bad_separators(cuts: tuple[int, ...], rank: int) -> DefinitionError:
    return DefinitionError(
        "axis separators {cuts} do not split {rank} axes into groups of at least one axis; they "
        "must be ascending, each the last axis of its group; write a constant 0 in the map for a "
        "group without axes",
        kind="layout", cuts=list(cuts), rank=rank,
    )


def view_problem(view: Buffer, memory: Buffer) -> str:
    """Return why `view` cannot be a view of `memory`, or an empty string if it can.

    Both must flatten to the same number of physical axes: memory with several physical axes is a
    table of rows, which an access with one index would not address correctly. A view may have fewer
    and shorter rows than its memory. Extents that cannot be compared are accepted.

    >>> x = Buffer("x", (8, 8), axis_separators=(0,))
    >>> view_problem(Buffer("V", (64,), data=x.data), x)
    '`V` is 1-d after flattening, and its memory `x` is 2-d'
    >>> view_problem(Buffer("V", (8, 9), axis_separators=(0,), data=x.data), x)
    'a row of `V` takes 36 bytes, and one of its memory `x` takes 32'
    >>> view_problem(Buffer("V", (4, 2, 8), axis_separators=(1,), data=x.data), x)
    ''
    >>> y = Buffer("y", (64,))
    >>> view_problem(Buffer("V", (8,), data=y.data, elem_offset=57), y)
    '`V` takes 260 bytes from the start of its memory, and `y` takes 256'
    """
    ranks = len(view.axis_separators) + 1, len(memory.axis_separators) + 1
    if ranks[0] != ranks[1]:
        return (
            f"`{view.name}` is {ranks[0]}-d after flattening, and its memory `{memory.name}` is "
            f"{ranks[1]}-d"
        )
    if view.has_offset and view.axis_separators:
        return (
            f"`{view.name}` has an elem_offset and {ranks[0]} physical axes; an offset needs 1 axis"
        )
    cut = view.axis_separators[-1] + 1 if view.axis_separators else 0
    end = memory.axis_separators[-1] + 1 if memory.axis_separators else 0
    if is_longer(view.shape[:cut], memory.shape[:end]):
        return (
            f"`{view.name}` has {_text(view.shape[:cut])} rows, and its memory `{memory.name}` has "
            f"{_text(memory.shape[:end])}"
        )
    if view.strides is not None or memory.strides is not None:
        return ""
    row, known = (*view.shape[cut:], view.dtype.bytes), (*memory.shape[end:], memory.dtype.bytes)
    if view.has_offset:
        row = (end_of(view) or 0, view.dtype.bytes)
    if not is_longer(row, known):
        return ""
    if view.has_offset:
        return (
            f"`{view.name}` takes {_text(row)} bytes from the start of its memory, and "
            f"`{memory.name}` takes {_text(known)}"
        )
    if not cut:
        return (
            f"`{view.name}` takes {_text(row)} bytes, and its memory `{memory.name}` takes "
            f"{_text(known)}"
        )
    return (
        f"a row of `{view.name}` takes {_text(row)} bytes, and one of its memory `{memory.name}` "
        f"takes {_text(known)}"
    )


def end_of(view: Buffer) -> int | None:
    """Return the end of a compact view in its memory, in elements; None if it is symbolic.

    >>> end_of(Buffer("V", (2, 4), elem_offset=3)), end_of(Buffer("V", (2, 0), elem_offset=3))
    (11, 0)
    """
    known = [n for n in view.entries if isinstance(n, int)]
    if len(known) < len(view.entries) or view.strides is not None:
        return None
    elements = prod(known[:-1])
    return known[-1] + elements if elements else 0


def is_longer(extents: Sequence[Extent], others: Sequence[Extent]) -> bool:
    """Return whether the product of `extents` provably exceeds that of `others` for some sizes."""
    count, factors = _factors(extents)
    other_count, left = _factors(others)
    if len(factors) != len(left):
        return False
    for factor in factors:
        found = next((k for k, other in enumerate(left) if structural_equal(factor, other)), None)
        if found is None:
            return False
        del left[found]
    return count > other_count


def _factors(extents: Sequence[Extent]) -> tuple[int, list[Expr]]:
    """Return a product as its constant factor and its symbolic factors."""
    number, factors, worklist = 1, list[Expr](), list(extents)
    while worklist:
        match worklist.pop():
            case int(value):
                number *= value
            case Const(value):
                number *= int(value)
            case Binary(BinOp.MUL, a, b):
                worklist += (a, b)
            case factor:
                factors.append(factor)
    return number, factors


def _text(extents: Sequence[Extent]) -> str:
    number, factors = _factors(extents)
    parts = [str(number)] if number != 1 or not factors else []
    return " * ".join([*parts, *map(str, factors)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IndexMapNode(Printed):
    """Map `lambda initial_indices: final_indices`, with the axis separators of the final indices.

    Source:
        transform_layout RFC, IndexMapNode.
    """

    bound_fields: ClassVar[tuple[str, ...]] = ("initial_indices",)

    initial_indices: tuple[Var, ...]
    final_indices: tuple[Expr, ...]
    axis_separators: tuple[int, ...] = ()

    def bound(self) -> tuple[Var, ...]:
        """Return the variables that this node binds."""
        return self.initial_indices

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexMapNode) and structural_equal(self, other)

    __hash__ = object.__hash__

    def print_tokens(self) -> Pieces:
        """Yield the pieces of the Python lambda that builds this map, separators included."""
        outputs: list[Piece] = []
        for axis, index in enumerate(self.final_indices):
            outputs.append(ParenthesizedOperand(index))
            if axis in self.axis_separators:
                outputs.append("AXIS_SEPARATOR")
        yield from _lambda(self.initial_indices)
        yield from ("[", *comma(outputs), "]")
        yield from map(ReleaseName, self.initial_indices)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PadValue(Printed):
    """Contents of the padding of a buffer, as a function of the physical index.

    Attributes:
        indices: Physical index, one variable for each axis after all layout maps.
        value: Value stored in the padding.
        where: Condition that holds at least for all padding positions; None until the layout maps
            are applied.
    """

    bound_fields: ClassVar[tuple[str, ...]] = ("indices",)

    indices: tuple[Var, ...]
    value: Expr
    where: Expr | None = None

    def bound(self) -> tuple[Var, ...]:
        """Return the variables that this node binds."""
        return self.indices

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PadValue) and structural_equal(self, other)

    __hash__ = object.__hash__

    def print_tokens(self) -> Pieces:
        """Yield the pieces of a Python lambda."""
        yield from _lambda(self.indices)
        if self.where is None:
            yield ParenthesizedOperand(self.value)
        else:
            yield from (ParenthesizedOperand(self.value, Precedence.OR), " if ")
            yield ParenthesizedOperand(self.where, Precedence.OR)
            yield " else None"
        yield from map(ReleaseName, self.indices)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Range(Printed):
    """Half-open interval of `extent` values starting at `min`."""

    min: Expr
    extent: Expr

    def print_tokens(self) -> Pieces:
        """Return the pieces of the pair `(min, extent)`."""
        return tuple_of((self.min, self.extent))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and structural_equal(self, other)

    __hash__ = object.__hash__


def declaration(buffer: Buffer, *, view: bool = False) -> Pieces:
    """Yield the pieces of a `Buffer(...)` type without its name; a view includes its `data`."""
    yield from (f'Buffer("{buffer.dtype}", ', *tuple_of(buffer.shape))
    if buffer.scope != "global":
        yield f", scope={quote_literal(buffer.scope)}"
    if buffer.axis_separators:
        yield f", axis_separators={buffer.axis_separators}"
    if buffer.strides is not None:
        yield from (", strides=", *tuple_of(buffer.strides))
    if buffer.flat:
        yield ", flat=True"
    if buffer.has_offset:
        yield from (", elem_offset=", *operands([buffer.elem_offset]))
    if view:
        yield from (", data=", ParenthesizedOperand(buffer.data))
    yield ")"


def _lambda(variables: tuple[Var, ...]) -> Pieces:
    """Yield the head of a lambda; if a dtype is not int64, defaults specify all dtypes."""
    yield from map(BindName, variables)
    typed = any(var.dtype != INT64 for var in variables)
    yield "lambda " if variables else "lambda"
    for count, var in enumerate(variables):
        yield from (", " if count else "", PrintedName(var), f'="{var.dtype}"' if typed else "")
    yield ": "
