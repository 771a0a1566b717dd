"""What a programmer says about how a value is computed: by which cores, and in how many tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tecomp.compute.axis import IterVar
from tecomp.compute.operation import ComputeOp
from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError
from tecomp.ir.language.given import check_kind

Kind = Literal["cores", "num_tiles_per_dim"]

Parts = Mapping[str, int] | Mapping[IterVar, int] | Mapping[str | IterVar, int]
"""How many parts along axes, by these or by their names."""

_TEXT = {"cores": "is shared out to cores", "num_tiles_per_dim": "is computed in tiles"}


@dataclass(frozen=True, slots=True, eq=False)
class DivisionHint:
    """A wish about how a value is divided; `hint` makes it.

    Attributes:
        tensor: the value.
        kind: whether it is shared out to cores, or the part of a core is computed in tiles.
        parts: how many along which of its axes, by number; those that it is reduced over come last.
        is_hard: whether it has to be so.
    """

    tensor: Tensor
    kind: Kind
    parts: tuple[tuple[int, int], ...]
    is_hard: bool

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """Those of the value, then those that it is reduced over."""
        return axes_of(self.tensor)

    def __str__(self) -> str:
        listed = ", ".join(f"{count} along {self.axes[axis].name}" for axis, count in self.parts)
        return f"the hint that {self.tensor.name} {_TEXT[self.kind]}, {listed},"


def axes_of(tensor: Tensor) -> tuple[IterVar, ...]:
    """The axes of what computes a value, those that it is reduced over last."""
    return (*tensor.op.axis, *tensor.op.reduce_axis)


def division_hint(
    tensor: Tensor, kind: Kind, parts: Parts, *, is_hard: bool
) -> DivisionHint:
    """A wish about the division of a value, checked.

    Raises:
        LayoutError: nothing computes the tensor here, it has no such axes, or a number is none.
    """
    cure = "give a number for each axis, by its name"
    check_kind(parts, Mapping, f"hint: {kind}", cure, LayoutError)
    if not isinstance(tensor.op, ComputeOp):
        raise LayoutError(
            f"hint: {tensor.name} is not computed in loops, and has no {kind}; give a value that "
            "te.compute makes",
            kind="demand",
        )
    if not parts:
        raise LayoutError(f"hint: {kind} of {tensor.name} names no axis; {cure}", kind="demand")
    found: dict[int, int] = {}
    for axis, count in parts.items():
        number = _number(tensor, axis, kind)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise LayoutError(
                f"hint: {kind} along {axes_of(tensor)[number].name} of {tensor.name} is {count!r}; "
                "give a number from 1 on",
                kind="wrong-number",
            )
        if found.setdefault(number, count) != count:
            raise LayoutError(
                f"hint: {kind} along {axes_of(tensor)[number].name} of {tensor.name} is given "
                f"twice ({found[number]}, {count}); give it once",
                kind="given-twice",
            )
    return DivisionHint(tensor, kind, tuple(sorted(found.items())), is_hard)


def _number(tensor: Tensor, axis: object, kind: Kind) -> int:
    axes = axes_of(tensor)
    fitting = [k for k, own in enumerate(axes) if own is axis or own.name == axis]
    if len(fitting) == 1:
        return fitting[0]
    name = axis.name if isinstance(axis, IterVar) else repr(axis)
    listed = ", ".join(own.name for own in axes) or "none"
    how = "is no axis" if not fitting else f"names {len(fitting)} axes"
    raise LayoutError(
        f"hint: {kind}: {name} {how} of {tensor.name} (it has {listed}); give one of its "
        f"op.axis{' or op.reduce_axis' if tensor.op.reduce_axis else ''}",
        kind="demand",
    )
