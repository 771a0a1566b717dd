"""What a rule finds wrong: the operands, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tecomp.constraints.operation import Use
from tecomp.ir.language.expr import Var


@dataclass(frozen=True)
class Problem:
    """Operands that do not keep a rule, and why.

    Attributes:
        uses: the operands.
        told: why, or what says so: often nobody asks.
    """

    uses: tuple[Use, ...]
    told: str | Callable[[], str]

    @property
    def why(self) -> str:
        """What is wrong."""
        return self.told if isinstance(self.told, str) else self.told()

    @property
    def key(self) -> tuple[object, ...]:
        """What two that say the same have in common."""
        return self.names, self.why

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tensors."""
        return tuple(dict.fromkeys(use.name for use in self.uses))


def listed(axes: Sequence[Var]) -> str:
    """The names of axes."""
    return ", ".join(axis.name for axis in axes)


def at_place(place: Sequence[int]) -> str:
    """An index of memory, as messages show it."""
    return f"[{', '.join(map(str, place))}]"


def at_point(point: Mapping[Var, int]) -> str:
    """An index by the names of its axes."""
    return "(" + ", ".join(f"{var.name}={value}" for var, value in point.items()) + ")"


def both_points(pair: tuple[Mapping[Var, int], Mapping[Var, int]]) -> str:
    """Two indices, for a message that says where each of them is."""
    return f"{at_point(pair[0])} and {at_point(pair[1])}"
