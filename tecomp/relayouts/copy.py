"""What a copy from one layout to another is."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.ir.language.dtype import INT64, DType
from tecomp.ir.language.expr import Var
from tecomp.ir.language.stmt import IndexMap
from tecomp.ir.traversal.rewrite import substitute


@dataclass(frozen=True, eq=False)
class Side:
    """Where the elements of a tensor are.

    Attributes:
        index_map: from an index to a place.
        places: extents of its results; the memory is their box in row-major order.
    """

    index_map: IndexMap
    places: tuple[int, ...]

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """What two that are the same have in common."""
        names = {old: Var(f"i{k}", INT64) for k, old in enumerate(self.index_map.initial_indices)}
        return str([substitute(e, names) for e in self.index_map.final_indices]), self.places

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Side) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Copy:
    """A copy of a tensor to other places.

    Attributes:
        shape: of the tensor.
        dtype: of its elements, which are moved as they are.
        source: where they are.
        result: where they go.
        fill: the bits that places of the result without an element get; None to leave them.
    """

    shape: tuple[int, ...]
    dtype: DType
    source: Side
    result: Side
    fill: int | None = 0


def bit_pattern(value: np.ndarray[Any, Any]) -> int:
    """The bits of an array of one number, as `Copy.fill` takes them."""
    return int.from_bytes(value.tobytes(), sys.byteorder)
