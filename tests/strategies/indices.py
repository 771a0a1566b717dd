"""Random index expressions of axes and sizes: strided, reversed and diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tests.strategies.draws import Draws

Extent: TypeAlias = "int | str"


@dataclass(frozen=True)
class Axis:
    """Spatial axis or reduction axis of a computation."""

    name: str
    extent: Extent

    @property
    def variable(self) -> str:
        """Name of the variable without the start of the axis."""
        return self.name.strip("()").split()[0]

    @property
    def last(self) -> int:
        """Maximum index; an empty axis counts as one element."""
        assert isinstance(self.extent, int)
        return max(self.extent - 1, 0)


@dataclass(frozen=True)
class Index:
    """Text of an index expression, with its bounds if they are constant."""

    text: str
    low: int | None = None
    high: int | None = None
    whole: Extent | None = None
    """Extent of an axis for which the index is always in bounds; None if there is none."""


class Indices(Draws):
    """Generator of index expressions."""

    def index(self, axes: Sequence[Axis]) -> Index:
        """Draw an index expression of one or two axes, or a constant."""
        if not axes or self.chance(5):
            value = self.number(0, 3)
            return Index(str(value), value, value)
        axis = self.pick(axes)
        if len(axes) > 1 and self.chance(25):
            other = self.pick([a for a in axes if a is not axis])
            if isinstance(axis.extent, int) and isinstance(other.extent, int):
                return self._of_two(axis, other)
            return self._symbolic_two(axis, other)
        return self._symbolic(axis) if isinstance(axis.extent, str) else self._of_one(axis)

    def _of_one(self, axis: Axis) -> Index:
        name, last = axis.name, axis.last
        match self.number(0, 8):
            case 4:
                step = self.number(-3, 3)
                text = f"{name} + {step}" if step >= 0 else f"{name} - {-step}"
                return Index(text, step, last + step)
            case 5:
                return Index(f"{last} - {name}", 0, last, axis.extent)
            case 6:
                step, start = self.number(2, 3), self.number(0, 2)
                return Index(f"{name} * {step} + {start}", start, last * step + start)
            case 7:
                step = self.number(2, 4)
                return Index(f"{name} // {step}", 0, last // step)
            case 8:
                step = self.number(2, 4)
                return Index(f"{name} % {step}", 0, min(last, step - 1))
        return Index(name, 0, last, axis.extent)

    def _of_two(self, axis: Axis, other: Axis) -> Index:
        most = axis.last + other.last
        match self.number(0, 5):
            case 0:
                return Index(f"{axis.name} + {other.name}", 0, most)
            case 1:
                return Index(f"{axis.name} - {other.name} + {other.last}", 0, most)
            case 2:
                stride, dilation, border = self._window()
                return Index(f"{axis.name} * {stride} + {other.name} * {dilation} - {border}",
                             -border, axis.last * stride + other.last * dilation - border)
            case 4 | 5:
                return self._of_flat(axis, other)
        return Index(f"{axis.name} * 2 + {other.name}", 0, axis.last + most)

    def _of_flat(self, axis: Axis, other: Axis) -> Index:
        """Draw a digit of the row-major index of two axes, as in a reshape."""
        step, width = self.number(2, 5), other.last + 1
        flat = f"({axis.name} * {width} + {other.name})"
        last = axis.last * width + other.last
        if self.chance(50):
            return Index(f"{flat} % {step}", 0, min(last, step - 1))
        return Index(f"{flat} // {step}", 0, last // step)

    def _window(self) -> tuple[int, int, int]:
        """Draw the stride, the dilation and the leading padding of a window."""
        return self.number(1, 3), self.number(1, 3), self.number(0, 2)

    def _symbolic(self, axis: Axis) -> Index:
        name, extent = axis.name, axis.extent
        match self.number(0, 7):
            case 0:
                return Index(f"{name} - 1")
            case 1:
                return Index(f"{extent} - 1 - {name}", whole=extent)
            case 2:
                return Index(f"{name} // 2", whole=extent)
            case 3:
                return Index(f"{name} + 1")
            case 4:
                step = self.number(2, 3)
                return Index(f"{name} * {step}", whole=f"({extent} * {step})")
            case 5:
                step = self.number(2, 4)
                return Index(f"{name} % {step}", 0, step - 1)
        return Index(name, whole=extent)

    def _symbolic_two(self, axis: Axis, other: Axis) -> Index:
        a, b, rows, columns = axis.name, other.name, axis.extent, other.extent
        match self.number(0, 6):
            case 5:
                return Index(f"({a} * {columns} + {b}) // 2", whole=f"({rows} * {columns})")
            case 6:
                step = self.number(2, 4)
                return Index(f"({a} * {columns} + {b}) % {step}", 0, step - 1)
            case 0:
                return Index(f"{a} + {b}", whole=f"({rows} + {columns})")
            case 1:
                return Index(f"{a} - {b} + {columns} - 1", whole=f"({rows} + {columns})")
            case 2:
                return Index(f"{a} * {columns} + {b}", whole=f"({rows} * {columns})")
        stride, dilation, border = self._window()
        most = f"({rows} * {stride} + {columns} * {dilation})"
        text = f"{a} * {stride} + {b} * {dilation}"
        return Index(f"{text} - {border}") if border else Index(text, whole=most)
