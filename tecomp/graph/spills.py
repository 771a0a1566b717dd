"""Values between kernels that stay in scratchpads, and why others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tecomp.compute.tensor import Tensor

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
