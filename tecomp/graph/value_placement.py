"""Where values are stored: arguments, arena, scratchpads."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.graph.sizes import plain_layout
from tecomp.layout.core.layout import Layout
from tecomp.layout.formats.format import Format
from tecomp.layout.sharding.shard_layout import ShardLayout
from tecomp.machine.descriptor import Target
from tecomp.poly.maps.index_map import IndexMap
from tecomp.schedules.scratchpad.placement import device_of


@dataclass(frozen=True, slots=True)
class ValueLocations:
    """Storage of the values of a program in memory.

    Attributes:
        target: Target.
        stored: Layouts of values that are not in row-major order.
        arguments: Tensors that the caller passes in host memory.
    """

    target: Target
    stored: Mapping[Tensor, Layout]
    arguments: Container[Tensor]

    def is_outside(self, x: Tensor) -> bool:
        """Return whether a value is in host memory that is separate from the device memory."""
        return self.target.core is None and x in self.arguments

    def is_near(self, x: Tensor) -> bool:
        """Return whether a value is in scratchpads between kernels."""
        layout = self.stored.get(x)
        return isinstance(layout, ShardLayout) and layout.memory != device_of(self.target)

    def of(self, x: Tensor) -> Layout | IndexMap | None:
        """Return the layout of a value, including its memory for arguments in host memory.

        None on processors for row-major values. An emulated target keeps values in host dtypes, in
        row-major order of device memory by default.
        """
        if x in self.stored:
            return self._as_stored(x, self.stored[x])
        if self.target.core is not None:
            return None
        return plain_layout(x) if self.is_outside(x) else plain_layout(x).index_map

    def _as_stored(self, x: Tensor, layout: Layout) -> Layout | IndexMap:
        if self.is_near(x):
            return Layout(
                layout.shape, x.dtype, layout.index_map, Format.plain(x.dtype), None,
                layout.memory, layout.grid_axes,
            )
        if layout.pad_value is None:
            return layout.index_map
        # Values have host dtypes, and so do their padding values.
        return Layout.of(
            layout.shape, x.dtype, layout.index_map, pad_value=layout.pad_value,
            memory=device_of(self.target),
        )


@dataclass(frozen=True, slots=True)
class Shards:
    """Layout of a value in scratchpads.

    Attributes:
        layout: Layout.
        count: Number of parts along each axis of the value; a core has one part.
    """

    layout: ShardLayout
    count: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ResidencyExclusions:
    """Constraints on the storage of values: in memory, or in given shards in scratchpads.

    Attributes:
        relayouts: Copies between layouts.
        requested_ops: Operations whose results were requested in memory.
        hinted: Results of kernels with a division hint.
        refused: Results of kernels that failed to compile with resident values, with the reasons.
        shards: Values that must be in scratchpads, with their shards.
        copies: Operations that copy such values to device memory for readers of other parts.
    """

    relayouts: Container[Operation]
    requested_ops: Container[Operation]
    hinted: Container[Operation]
    refused: Mapping[Operation, str]
    shards: Mapping[Tensor, Shards] = field(default_factory=dict)
    copies: Container[Operation] = ()


class ReshardError(Exception):
    """Internal signal: a value in shards needs a copy in device memory.

    Attributes:
        tensor: Value.
        readers: Operations that read the value on cores that have other parts of it; none if the
            kernel that computes the value divides it into other parts.
    """

    def __init__(self, tensor: Tensor, readers: Sequence[Operation]) -> None:
        super().__init__(tensor.name)
        self.tensor, self.readers = tensor, tuple(readers)


SpillKind: TypeAlias = Literal[
    "host", "result", "relayout", "requested", "padding", "hint", "steps", "reduction", "gather",
    "copied", "division", "readers", "capacity", "limit", "cost",
]
"""Reason why a value is stored in device memory.

`host`: it comes from or goes to the host; `result`: it is a program output; `relayout`: it is the
source or the result of a relayout; `requested`: it was requested in memory; `padding`: its layout
defines the padding value; `hint`: a division hint applies to it or to its reader; `steps`: it is
computed or read sequentially, step by step; `reduction`: several cores share the reduction that
computes or reads it; `gather`: the elements read depend on data; `copied`: its reader packs it
first; `division`: the cores of its reader read other parts than cores compute; `readers`: several
kernels with different divisions read it; `capacity`: it does not fit into a scratchpad; `limit`:
its reader already has the maximum number of resident values; `cost`: the program would take at
least as many modelled cycles with the value in scratchpads from kernel to kernel.
"""


@dataclass(frozen=True, slots=True)
class Spill:
    """A value between kernels that is stored to and loaded from device memory.

    Attributes:
        tensor: Tensor.
        bytes: Size in device memory in bytes.
        kind: Reason why the value does not stay in the scratchpads.
        reason: The reason as text, with numbers.
    """

    tensor: Tensor
    bytes: int
    kind: SpillKind
    reason: str

    def __str__(self) -> str:
        return f"{self.tensor.name}: {self.bytes:_} bytes, {self.kind}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ResidentValue:
    """A value that stays in scratchpads: each core reads the part that it computed.

    Attributes:
        tensor: Tensor.
        bytes: Number of bytes that are not stored to memory.
        core_bytes: Size of the part of one core in bytes.
        parts: Number of parts along each axis.
        kernel: Result of the kernel that computes and reads the value; for a value between kernels,
            of the last kernel that reads it.
        is_between: Whether the value stays in scratchpads from kernel to kernel.
    """

    tensor: Tensor
    bytes: int
    core_bytes: int
    parts: tuple[int, ...]
    kernel: Tensor
    is_between: bool = False

    @property
    def reason(self) -> str:
        """Reason why the value stays in scratchpads."""
        parts = " x ".join(map(str, self.parts))
        if self.is_between:
            return (
                f"from kernel to kernel until {self.kernel.name}, {self.core_bytes:_} "
                f"bytes on a core, divided {parts}"
            )
        return (
            f"each core of {self.kernel.name} reads its own {self.core_bytes:_} bytes, divided "
            f"{parts}"
        )

    def __str__(self) -> str:
        return f"{self.tensor.name}: {self.bytes:_} bytes stay in scratchpads, {self.reason}"
