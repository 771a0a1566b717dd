"""Divisions of kernels among cores that share values in scratchpads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from tecomp.compute.tensor import Tensor
from tecomp.errors import CapacityError, TargetError
from tecomp.graph.value_placement import SpillKind
from tecomp.schedules.fusion.scratchpad import DividedResult, divide_result
from tecomp.schedules.scratchpad.placement import Placement
from tecomp.schedules.scratchpad.work_division import DivisionSpec, UndividedResult

UndividedReason = tuple[SpillKind, str]
"""Kind of the reason why a kernel is not divided, and its text."""


@dataclass(frozen=True, slots=True)
class OperandDivision:
    """Division of a value.

    Attributes:
        count: Number of parts along each axis.
        cores: For each axis, the axis of the result of the core loop with the same parts.
    """

    count: tuple[int, ...]
    cores: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class DividedKernel:
    """Kernel with its division.

    Attributes:
        name: Name of the result.
        division: Division, or the reason why there is none.
        operand_placeholders: Placeholders of the operands in the divided kernel.
        size: Size of the result in bytes.
        cores: For each axis of the result, the axis of the last member with the same parts.
    """

    name: str
    division: DividedResult | UndividedReason
    operand_placeholders: Mapping[Tensor, Tensor]
    size: int
    cores: tuple[int | None, ...]

    @property
    def cut(self) -> DivisionSpec:
        """Division of the kernel."""
        assert isinstance(self.division, DividedResult)
        return self.division.cut

    @property
    def parts(self) -> str:
        """Number of parts per axis, as text."""
        assert isinstance(self.division, DividedResult)
        return format_extents(self.division.outline.count)

    def part_of(self, x: Tensor) -> tuple[int, ...]:
        """Return the shape of the part of an operand that one core reads."""
        assert isinstance(self.division, DividedResult)
        box = self.division.input_boxes[self.operand_placeholders[x]]
        return tuple(span.extent for span in box)

    def division_of(self, x: Tensor) -> OperandDivision | None:
        """Return the division of an operand; None if several cores read the same elements."""
        assert isinstance(self.division, DividedResult)
        axes = self.division.division_of(self.operand_placeholders[x])
        if axes is None:
            return None
        counts = (1, *self.division.outline.count)
        count = tuple(counts[0 if axis is None else axis + 1] for axis in axes)
        cores = tuple(None if axis is None else self.cores[axis] for axis in axes)
        return OperandDivision(count, cores)

    def cost(self, best: DividedKernel) -> int:
        """Return the extra traffic over the best division, in bytes, scaled to the busiest core."""
        assert isinstance(self.division, DividedResult)
        assert isinstance(best.division, DividedResult)
        largest, smallest = prod(self.division.outline.core), prod(best.division.outline.core)
        traffic: int = self.division.outline.read + self.size
        best_traffic: int = best.division.outline.read + best.size
        extra: int = traffic * largest // smallest - best_traffic
        return extra


@dataclass(frozen=True, slots=True)
class FusedKernels:
    """Kernels that share one core loop.

    Attributes:
        last: Number of the kernel that computes the result of the loop.
        members: Kernels by number, with their divisions.
        resident_bytes: Resident values with their bytes per core, in reverse order.
        taken: Bytes of resident values that are live during each member.
        cuts: Division of the resident values.
    """

    last: int
    members: Mapping[int, DividedKernel]
    resident_bytes: Mapping[Tensor, int] = field(default_factory=dict)
    taken: Mapping[int, int] = field(default_factory=dict)
    cuts: Mapping[Tensor, DivisionSpec] = field(default_factory=dict)


def division_of(result: Tensor, where: Placement) -> DividedResult | UndividedReason:
    """Return how the cores divide a kernel, or the reason why they do not."""
    try:
        found = divide_result(result, where)
    except CapacityError as error:
        return "capacity", error.message
    except TargetError as error:
        return "division", error.message
    return (found.kind, found.reason) if isinstance(found, UndividedResult) else found


def division_text(view: DividedKernel) -> str:
    """Format the name of a kernel and its division."""
    return f"{view.name} (divided {view.parts})"


def format_extents(sizes: Iterable[int]) -> str:
    """Format extents, such as `4 x 8`."""
    return " x ".join(map(str, sizes))
