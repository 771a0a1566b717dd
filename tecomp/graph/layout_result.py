"""Result of layout assignment: layouts, inserted relayouts and the optimality certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.operation_view import View
from tecomp.constraints.user_hints import DivisionHint, Hint
from tecomp.errors import LayoutError
from tecomp.graph.dag import Graph
from tecomp.graph.layout_combinations import Seat, Slot
from tecomp.graph.sizes import sizes_of
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Const
from tecomp.layout.addressing.stored_tensor import row_major
from tecomp.layout.core.layout import FixedTiledLayout, Layout


@dataclass(frozen=True, slots=True)
class Copy:
    """A value brought to another layout.

    Attributes:
        tensor: the value.
        source: the layout that it is made in.
        layout: the one of the copy.
        readers: the operations that read the copy.
        elements: that are moved, or places of padding that are filled; none of what is known when
            the program is compiled.
        is_of_host: whether it is one of what the caller passes, as no copy on the machine makes it.
    """

    tensor: Tensor
    source: Layout
    layout: Layout
    readers: tuple[Operation, ...]
    elements: int
    is_of_host: bool = False

    @property
    def is_fill(self) -> bool:
        """Whether elements stay where they are, and only padding is written."""
        return self.source.index_map.formula == self.layout.index_map.formula

    @property
    def nbytes(self) -> int:
        """Bytes that it writes, padding included; none of what is known before."""
        if self.is_fill:
            return self.elements * self.layout.nbytes // max(self.layout.num_places, 1)
        return self.layout.nbytes if self.elements else 0


@dataclass(frozen=True, slots=True)
class Certificate:
    """How sure it is that no other layouts cost less.

    Attributes:
        cost: elements that all relayouts move.
        lower_bound: no choice of layouts moves fewer.
        method: how that is known.
    """

    cost: int
    lower_bound: int
    method: str


@dataclass(frozen=True, slots=True)
class Wish:
    """A hint, and what became of it.

    Attributes:
        hint: what was wished.
        reason: why it is not so; empty if it is.
        inside: the kernels that compute the value for themselves, if it is in no memory.
    """

    hint: Hint
    reason: str
    inside: tuple[str, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether it is so."""
        return not self.reason

    def __str__(self) -> str:
        kept = "is kept" if self.is_kept else f"is not kept, {self.reason}"
        return f"{self.hint} {kept}{_where(self.hint.tensor, self.inside)}"


@dataclass(frozen=True, slots=True)
class DivisionWish:
    """A hint about a division, and what became of it.

    Attributes:
        hint: what was wished.
        refused: why it is not so; empty if it is.
        inside: the kernels that compute the value for themselves, if it is in no memory.
    """

    hint: DivisionHint
    refused: str = ""
    inside: tuple[str, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether it is so."""
        return not self.refused

    def __str__(self) -> str:
        kept = f"is not kept: {self.refused}" if self.refused else "is kept"
        return f"{self.hint} {kept}{_where(self.hint.tensor, self.inside)}"


def _where(tensor: Tensor, inside: Sequence[str]) -> str:
    """What is said of a value that kernels compute for themselves."""
    if not inside:
        return ""
    return f"; {tensor.name} is in no memory, but inside of {', '.join(inside)}"


@dataclass(frozen=True, slots=True)
class Layouts(Mapping[Tensor, FixedTiledLayout]):
    """The layouts of a program, by the tensors as the caller wrote them.

    Attributes:
        of: the layout in which each value is made; that of another tensor, if it is a view of it.
        relayouts: copies of values in other layouts.
        certificate: how sure it is that none would be cheaper.
        seats: the same as `of`, and for views what they show.
        shown: the views, which are in no memory of their own.
        reads: for each operation what it reads a copy of, and in which layout.
        copying: the operations that only bring a value to another layout.
        asked: the operations whose results have a layout that was asked for, and are in memory.
        wishes: the hints, and whether they were kept.
        graph: the program.
    """

    of: Mapping[Tensor, Layout]
    relayouts: tuple[Copy, ...]
    certificate: Certificate
    seats: Mapping[Tensor, Seat]
    shown: frozenset[Tensor]
    reads: Mapping[Operation, tuple[tuple[Slot, Layout | None], ...]]
    copying: frozenset[Operation]
    asked: frozenset[Operation]
    wishes: tuple[Wish | DivisionWish, ...]
    graph: Graph

    def copies_of(self, tensor: Tensor) -> tuple[Copy, ...]:
        """The copies of a value."""
        return tuple(copy for copy in self.relayouts if copy.tensor is tensor)

    def __getitem__(self, tensor: Tensor) -> FixedTiledLayout:
        """Where a value is.

        Raises:
            LayoutError: it is none of the program.
        """
        if tensor not in self:
            raise LayoutError(
                f"layouts: {tensor!r} is no value of the program; these are "
                f"{', '.join(x.name for x in self.seats)}",
                kind="demand",
            )
        found = self.graph.of(tensor)
        return _fixed(found, self.seats[found])

    def __contains__(self, tensor: object) -> bool:
        return isinstance(tensor, Tensor) and self.graph.of(tensor) in self.seats

    def get(self, tensor: Tensor, default: Any = None) -> Any:
        """Where a value is, or something else for what is none of the program."""
        if tensor not in self:
            return default
        return self[tensor]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.seats)

    def __len__(self) -> int:
        return len(self.seats)

    @property
    def moved_bytes(self) -> int:
        """Bytes that relayouts write, padding included."""
        return sum(copy.nbytes for copy in self.relayouts)

    def __str__(self) -> str:
        lines = [f"{x.name}: {self[x]}" for x in self]
        for copy in self.relayouts:
            readers = ", ".join(op.name for op in copy.readers)
            to = _fixed(copy.tensor, copy.layout)
            lines.append(f"{copy.tensor.name} for {readers}: {to}, {copy.elements:,} elements")
        known = self.certificate
        lines.append(
            f"relayouts move {known.cost:,} elements, at least {known.lower_bound:,} have to be "
            f"({known.method})"
        )
        lines += map(str, self.wishes)
        return "\n".join(lines)


def _fixed(tensor: Tensor, seat: Seat) -> FixedTiledLayout:
    size = sizes_of(tensor)
    if isinstance(seat, Layout):
        return FixedTiledLayout(size, row_major(size), seat)
    return FixedTiledLayout(size, _strides(seat, size), seat.layout)


def _strides(view: View, size: Sequence[int]) -> tuple[int, ...]:
    """Elements of the host from one index of a view to the next, if these are constants."""
    steps = row_major(view.layout.shape)

    def offset(at: Sequence[int]) -> int:
        index = [simplify(n) for n in view.at([Const(n, INT64) for n in at])]
        return sum(step * int(n.value) for step, n in zip(steps, index, strict=True)
                   if isinstance(n, Const))  # fmt: skip

    start = offset([0] * len(size))
    units = [[int(k == dim and size[k] > 1) for k in range(len(size))] for dim in range(len(size))]
    strides = tuple(offset(unit) - start for unit in units)
    last = [max(extent - 1, 0) for extent in size]
    whole = start + sum(n * step for n, step in zip(last, strides, strict=True))
    return strides if offset(last) == whole else tuple(row_major(size))
