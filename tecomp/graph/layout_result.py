"""Result of layout assignment: layouts, inserted relayouts and the optimality certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.operation_view import IndirectAccess
from tecomp.constraints.user_hints import DivisionHint, Hint
from tecomp.errors import LayoutError
from tecomp.graph.dag import ProgramGraph
from tecomp.graph.layout_combinations import OperandSlot, Seat
from tecomp.graph.sizes import sizes_of
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Const
from tecomp.layout.core.layout import FixedTiledLayout, Layout
from tecomp.layout.formats.stored_tensor import row_major


@dataclass(frozen=True, slots=True)
class InsertedCopy:
    """A copy of a value in another layout (a relayout).

    Attributes:
        tensor: Value.
        source: Layout in which the value is computed.
        layout: Layout of the copy.
        readers: Operations that read the copy; none if only the host gets it.
        elements: Number of elements moved, or of padding elements filled; 0 for values that are
            known at compile time.
        is_of_host: Whether the host supplies the copy of an input, because no device copy can.
    """

    tensor: Tensor
    source: Layout
    layout: Layout
    readers: tuple[Operation, ...]
    elements: int
    is_of_host: bool = False

    @property
    def is_fill(self) -> bool:
        """Whether elements keep their addresses and only padding is written."""
        return self.source.index_map.formula == self.layout.index_map.formula

    @property
    def nbytes(self) -> int:
        """Number of bytes written, including padding; 0 for values known at compile time."""
        if self.is_fill:
            return self.elements * self.layout.nbytes // max(self.layout.num_places, 1)
        return self.layout.nbytes if self.elements else 0


@dataclass(frozen=True, slots=True)
class OptimalityCertificate:
    """Optimality certificate of a layout assignment.

    Attributes:
        cost: Number of elements that all relayouts move.
        lower_bound: Lower bound of that number over all layout assignments.
        method: Method that proves the bound.
    """

    cost: int
    lower_bound: int
    method: str


@dataclass(frozen=True, slots=True)
class HintOutcome:
    """A layout hint and its outcome.

    Attributes:
        hint: Hint.
        reason: Reason why the hint was not honoured; empty if it was.
        fused_kernels: Kernels into which the value was fused, if it is not stored in memory.
    """

    hint: Hint
    reason: str
    fused_kernels: tuple[str, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether the hint was honoured."""
        return not self.reason

    def __str__(self) -> str:
        outcome = "is honoured" if self.is_kept else f"is not honoured, {self.reason}"
        return f"{self.hint} {outcome}{_fusion_remark(self.hint.tensor, self.fused_kernels)}"


@dataclass(frozen=True, slots=True)
class DivisionHintOutcome:
    """A work-division hint and its outcome.

    Attributes:
        hint: Hint.
        refused: Reason why the hint was not honoured; empty if it was.
        fused_kernels: Kernels into which the value was fused, if it is not stored in memory.
    """

    hint: DivisionHint
    refused: str = ""
    fused_kernels: tuple[str, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether the hint was honoured."""
        return not self.refused

    def __str__(self) -> str:
        outcome = f"is not honoured: {self.refused}" if self.refused else "is honoured"
        return f"{self.hint} {outcome}{_fusion_remark(self.hint.tensor, self.fused_kernels)}"


def _fusion_remark(tensor: Tensor, inside: Sequence[str]) -> str:
    """Return the remark on a value that was fused into kernels."""
    if not inside:
        return ""
    return f"; {tensor.name} is not stored, but fused into {', '.join(inside)}"


@dataclass(frozen=True, slots=True)
class ProgramLayouts(Mapping[Tensor, FixedTiledLayout]):
    """Layouts of a program, by the tensors of the caller's program.

    Attributes:
        of: Layout in which each value is computed; for a view, the layout of the viewed tensor.
        relayouts: Copies of values in other layouts.
        certificate: Optimality certificate.
        layouts_or_views: As `of`, but with views in place of the layouts that they refer to.
        shown: Views, which are not stored in memory.
        reads: Operand slots of each operation, with the layout of the copy that it reads, if any.
        copying: Operations that only copy a value to another layout.
        requested_ops: Operations whose results have a requested layout and are stored in memory.
        wishes: Hints and their outcomes.
        graph: Program.
        for_host: Relayouts of outputs that would otherwise be copied to the host element by
            element. They are not part of the optimization problem.
        reshards: Copies in device memory of values in scratchpads, for readers of other parts.
    """

    of: Mapping[Tensor, Layout]
    relayouts: tuple[InsertedCopy, ...]
    certificate: OptimalityCertificate
    layouts_or_views: Mapping[Tensor, Seat]
    shown: frozenset[Tensor]
    reads: Mapping[Operation, tuple[tuple[OperandSlot, Layout | None], ...]]
    copying: frozenset[Operation]
    requested_ops: frozenset[Operation]
    wishes: tuple[HintOutcome | DivisionHintOutcome, ...]
    graph: ProgramGraph
    for_host: tuple[InsertedCopy, ...] = ()
    reshards: tuple[InsertedCopy, ...] = ()

    def copies_of(self, tensor: Tensor) -> tuple[InsertedCopy, ...]:
        """Return the copies of a value."""
        return tuple(x for x in (*self.relayouts, *self.for_host) if x.tensor is tensor)

    def __getitem__(self, tensor: Tensor) -> FixedTiledLayout:
        """Return the storage of a value on the host and on the device.

        Raises:
            LayoutError: If the tensor is not a value of the program.
        """
        if tensor not in self:
            raise LayoutError(
                "layouts: {tensor!r} is not a value of the program; its values are {seats}",
                kind="layout-requirement", tensor=tensor,
                seats=", ".join(x.name for x in self.layouts_or_views),
            )
        found = self.graph.of(tensor)
        return _fixed_layout(found, self.layouts_or_views[found])

    def __contains__(self, tensor: object) -> bool:
        return isinstance(tensor, Tensor) and self.graph.of(tensor) in self.layouts_or_views

    def get(self, tensor: Tensor, default: Any = None) -> Any:
        """Return the storage of a value, or `default` if the program has no such value."""
        if tensor not in self:
            return default
        return self[tensor]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.layouts_or_views)

    def __len__(self) -> int:
        return len(self.layouts_or_views)

    @property
    def moved_bytes(self) -> int:
        """Number of bytes that relayouts write, including padding."""
        return sum(copy.nbytes for copy in self.relayouts)

    def __str__(self) -> str:
        lines = [f"{x.name}: {self[x]}" for x in self]
        for copy in (*self.relayouts, *self.for_host, *self.reshards):
            readers = ", ".join(op.name for op in copy.readers) or "the host"
            layout = _fixed_layout(copy.tensor, copy.layout)
            lines.append(f"{copy.tensor.name} for {readers}: {layout}, {copy.elements:,} elements")
        known = self.certificate
        lines.append(
            f"relayouts move {known.cost:,} elements, lower bound {known.lower_bound:,} "
            f"({known.method})"
        )
        lines += map(str, self.wishes)
        return "\n".join(lines)


def _fixed_layout(tensor: Tensor, storage: Seat) -> FixedTiledLayout:
    size = sizes_of(tensor)
    if isinstance(storage, Layout):
        return FixedTiledLayout(size, row_major(size), storage)
    return FixedTiledLayout(size, _strides(storage, size), storage.layout)


def _strides(view: IndirectAccess, size: Sequence[int]) -> tuple[int, ...]:
    """Return the host strides of a view in elements; row-major strides if it is not linear."""
    steps = row_major(view.layout.shape)

    def offset(position: Sequence[int]) -> int:
        index = [simplify(n) for n in view.at([Const(n, INT64) for n in position])]
        return sum(step * int(n.value) for step, n in zip(steps, index, strict=True)
                   if isinstance(n, Const))  # fmt: skip

    start = offset([0] * len(size))
    units = [[int(k == dim and size[k] > 1) for k in range(len(size))] for dim in range(len(size))]
    strides = tuple(offset(unit) - start for unit in units)
    last = [max(extent - 1, 0) for extent in size]
    end = start + sum(n * step for n, step in zip(last, strides, strict=True))
    return strides if offset(last) == end else tuple(row_major(size))
