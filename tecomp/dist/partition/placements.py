"""Placements: what the processes along one axis of a mesh have of an array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tecomp.errors import LayoutError
from tecomp.ir.language.given import whole_numbers_of

OPS = ("sum", "prod", "min", "max", "any", "all")


@dataclass(frozen=True)
class Shard:
    """An axis of the array is cut into blocks, which are dealt out along the axis of the mesh.

    Attributes:
        axis: of the array; negative ones count from the end.
        block: indices in a block. As many as give each process one block at most if not given;
            1 deals indices out one by one (cyclic), anything between is block-cyclic.
        sizes: how many consecutive indices each process has, 0 included, in place of `block`.

    Raises:
        LayoutError: one of them is no such number.

    >>> Shard(0), Shard(axis=1, block=4), Shard(0, sizes=(3, 0, 5))
    (Shard(0), Shard(1, block=4), Shard(0, sizes=(3, 0, 5)))
    """

    axis: int
    block: int | None = None
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.axis, int):
            raise LayoutError(
                f"Shard: the axis is {self.axis!r}; give its number, such as 0", kind="partition"
            )
        if self.block is not None and not (isinstance(self.block, int) and self.block > 0):
            raise LayoutError(
                f"Shard: block={self.block!r}; give how many indices a block has, 1 or more",
                kind="partition",
            )
        if self.sizes is None:
            return
        sizes = whole_numbers_of(self.sizes)
        if sizes is None or any(n < 0 for n in sizes) or self.block is not None:
            raise LayoutError(
                f"Shard: sizes={self.sizes!r} and block={self.block!r}; give either a block, or "
                "how many indices each process has, 0 or more",
                kind="partition",
            )
        object.__setattr__(self, "sizes", sizes)

    def __repr__(self) -> str:
        block = "" if self.block is None else f", block={self.block}"
        sizes = "" if self.sizes is None else f", sizes={self.sizes}"
        return f"Shard({self.axis}{block}{sizes})"


@dataclass(frozen=True)
class Replicate:
    """Every process along the axis of the mesh has the same.

    >>> from tecomp.dist import Mesh, Partition
    >>> Partition((10,), "int8", Mesh((2,)), [Replicate()]).local_shape(1)
    (10,)
    """


@dataclass(frozen=True)
class Partial:
    """Every process along the axis of the mesh has an operand of what the array is.

    Attributes:
        op: what combines them: `sum`, `prod`, `min`, `max`, `any` or `all`.

    Raises:
        LayoutError: there is no such operation.

    >>> Partial(), Partial(op="max")
    (Partial('sum'), Partial('max'))
    """

    op: str = "sum"

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise LayoutError(
                f"Partial: there is no operation {self.op!r}; give one of {', '.join(OPS)}",
                kind="partition",
            )

    def __repr__(self) -> str:
        return f"Partial({self.op!r})"


Placement: TypeAlias = "Shard | Replicate | Partial"


def checked(placements: Sequence[Placement], mesh_ndim: int, ndim: int) -> tuple[Placement, ...]:
    """Placements with axes from 0 on, one for each axis of the mesh.

    Raises:
        LayoutError: they fit neither the mesh nor the array, or not each other.
    """
    given = (placements,) if isinstance(placements, Shard | Replicate | Partial) else placements
    made = tuple(given)
    if len(made) != mesh_ndim or not all(
        isinstance(placed, Shard | Replicate | Partial) for placed in made
    ):
        raise LayoutError(
            f"partition: the placements {list(made)} are not one for each of the {mesh_ndim} "
            "axes of the mesh; give Shard(axis), Replicate() or Partial(op) for each",
            kind="partition",
        )
    ops = sorted({placed.op for placed in made if isinstance(placed, Partial)})
    if len(ops) > 1:
        raise LayoutError(
            f"partition: partial values are combined by {' and '.join(ops)}, and the order would "
            "matter; combine them along one axis of the mesh first",
            kind="partition",
        )
    return tuple(_normal(placed, ndim) for placed in made)


def _normal(placed: Placement, ndim: int) -> Placement:
    if not isinstance(placed, Shard):
        return placed
    if not -ndim <= placed.axis < ndim:
        raise LayoutError(
            f"partition: {placed} cuts an axis that an array of {ndim} axes does not have; "
            "give the number of one of them, or Replicate()",
            kind="partition",
        )
    return Shard(placed.axis % ndim, placed.block, placed.sizes)
