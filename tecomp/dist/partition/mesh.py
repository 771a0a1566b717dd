"""Meshes: the processes of a team, numbered along several axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tecomp.errors import LayoutError
from tecomp.ir.language.given import whole_numbers_of


@dataclass(frozen=True)
class Mesh:
    """Processes in rows and columns; the last axis counts fastest.

    Attributes:
        shape: how many processes there are along each axis.
        names: what the axes are called; `m0`, `m1` ... if not given.

    Raises:
        LayoutError: an extent is no positive integer, or names do not tell the axes apart.

    >>> mesh = Mesh((2, 3), names=("rows", "columns"))
    >>> print(mesh)
    Mesh(rows=2, columns=3)
    >>> mesh.shape, mesh.names, mesh.ndim, mesh.size
    ((2, 3), ('rows', 'columns'), 2, 6)
    """

    shape: tuple[int, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given: Any = (self.shape,) if isinstance(self.shape, int) else self.shape
        shape = whole_numbers_of(given)
        if not shape or min(shape) < 1:
            raise LayoutError(
                f"mesh: the shape is {self.shape!r}; give one or more positive integers, "
                "such as (2, 2)",
                kind="partition",
            )
        names = tuple(self.names) or tuple(f"m{k}" for k in range(len(shape)))
        if len(names) != len(shape) or len(set(names)) < len(names):
            raise LayoutError(
                f"mesh: {len(shape)} axes are called {list(names)}; give each axis a name "
                "of its own",
                kind="partition",
            )
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "names", names)

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many processes there are."""
        return prod(self.shape)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Where in the mesh a process is.

        Raises:
            LayoutError: there is no such process.

        >>> Mesh((2, 3)).coordinates(5)
        (1, 2)
        """
        if not 0 <= rank < self.size:
            raise LayoutError(
                f"mesh: there is no rank {rank} in {self}; ranks go from 0 to {self.size - 1}",
                kind="partition",
            )
        found = []
        for extent in reversed(self.shape):
            rank, at = divmod(rank, extent)
            found.append(at)
        return tuple(reversed(found))

    def rank(self, coordinates: Sequence[int]) -> int:
        """The process at a place of the mesh.

        Raises:
            LayoutError: there is no such place.

        >>> Mesh((2, 3)).rank((1, 0))
        3
        """
        inside = len(coordinates) == self.ndim and all(
            0 <= at < extent for at, extent in zip(coordinates, self.shape, strict=True)
        )
        if not inside:
            raise LayoutError(
                f"mesh: there is no process at {tuple(coordinates)} of {self}; give "
                f"{self.ndim} numbers from 0 on that lie in the mesh",
                kind="partition",
            )
        number = 0
        for at, extent in zip(coordinates, self.shape, strict=True):
            number = number * extent + at
        return number

    def __str__(self) -> str:
        axes = zip(self.names, self.shape, strict=True)
        return f"Mesh({', '.join(f'{name}={extent}' for name, extent in axes)})"
