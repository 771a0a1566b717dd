"""Where values are stored: arguments, arena, scratchpads."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tecomp.compute.tensor import Tensor
from tecomp.graph.sizes import plain_layout
from tecomp.layout.core.layout import Layout
from tecomp.machine.descriptor import Target
from tecomp.poly.maps.index_map import IndexMap
from tecomp.schedules.scratchpad.placement import device_of


@dataclass(frozen=True, slots=True)
class Places:
    """Where the values of a program are.

    Attributes:
        target: the machine.
        stored: the layouts of values that are not in the order of NumPy.
        arguments: what the caller passes, which is in the memory of the host.
    """

    target: Target
    stored: Mapping[Tensor, Layout]
    arguments: Container[Tensor]

    def is_outside(self, x: Tensor) -> bool:
        """Whether a value is in the memory of a host that the machine has beside its own."""
        return self.target.core is None and x in self.arguments

    def of(self, x: Tensor) -> Layout | IndexMap | None:
        """Where a value is: what the caller passes in the memory that its layout names.

        None where that goes without saying: on a processor, in the order of NumPy. A machine that
        is run here keeps values in the types of the host, in layouts of its own where nothing is
        said.
        """
        if x in self.stored:
            return self._as_stored(x, self.stored[x])
        if self.target.core is not None:
            return None
        return plain_layout(x) if self.is_outside(x) else plain_layout(x).index_map

    def _as_stored(self, x: Tensor, layout: Layout) -> Layout | IndexMap:
        if layout.pad_value is None:
            return layout.index_map
        # Values are in the types of the host, those in padding too.
        return Layout.of(
            layout.shape, x.dtype, layout.index_map, pad_value=layout.pad_value,
            memory=device_of(self.target),
        )


SpillKind: TypeAlias = Literal[
    "host", "result", "relayout", "asked", "padding", "hint", "steps", "reduction", "gather",
    "copied", "division", "readers", "room", "many",
]
"""Why a value goes to the memory of the device.

`host`: it comes from the host, or goes there; `result`: the caller gets it; `relayout`: it is
brought to another layout, or is what was brought; `asked`: it is to be in memory; `padding`: what
its padding holds is a part of its layout; `hint`: somebody says how it, or what reads it, is
divided; `steps`: it is computed, or read, one step after another; `reduction`: several cores share
the reduction that it is, or that reads it; `gather`: data says which elements are read; `copied`:
what reads it has it in another order first; `division`: its reader's cores read other parts than
cores make; `readers`: several kernels read it, divided in different ways; `room`: a scratchpad has
no room for it; `many`: what reads it has as many values that stay as one kernel may have.
"""


@dataclass(frozen=True, slots=True)
class Spill:
    """A value between kernels that is stored to the memory of the device, and loaded from there.

    Attributes:
        tensor: what it is.
        bytes: that it takes there.
        kind: why it does not stay in the scratchpads.
        reason: the same in words, with its numbers.
    """

    tensor: Tensor
    bytes: int
    kind: SpillKind
    reason: str

    def __str__(self) -> str:
        return f"{self.tensor.name}: {self.bytes:_} bytes, {self.kind}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Resident:
    """A value that stays in the scratchpads: each core reads what it made.

    Attributes:
        tensor: what it is.
        bytes: that are neither stored nor loaded.
        core_bytes: of the scratchpad of one core.
        parts: along each of its axes.
        kernel: the result of the kernel that makes and reads it.
    """

    tensor: Tensor
    bytes: int
    core_bytes: int
    parts: tuple[int, ...]
    kernel: Tensor

    @property
    def reason(self) -> str:
        """Why it does."""
        parts = " x ".join(map(str, self.parts))
        return (
            f"each core of {self.kernel.name} reads what it made, {self.core_bytes:_} bytes, "
            f"divided {parts}"
        )

    def __str__(self) -> str:
        return f"{self.tensor.name}: {self.bytes:_} bytes stay in scratchpads, {self.reason}"
