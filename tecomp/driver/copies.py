"""What a copy from one layout to another is.

Its loops have a schedule of the library, which lies above the driver. So the driver knows the name
of what makes them, as an entry point has it, and loads that when it is asked for.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np

from tecomp.codegen.calls.kernel import Kernel
from tecomp.ir.language.dtype import INT64, DType
from tecomp.ir.language.expr import Var
from tecomp.ir.language.stmt import Buffer, IndexMap
from tecomp.ir.traversal.rewrite import substitute

_LOOPS = EntryPoint("loops", "tecomp.relayouts.function:host_function", "tecomp.relayouts")


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

    def kernel(self, name: str = "copy") -> Kernel:
        """Compiled, for two arrays in the shapes of the places."""
        return _kernel(self, name)


def bit_pattern(value: np.ndarray[Any, Any]) -> int:
    """The bits of an array of one number, as `Copy.fill` takes them."""
    return int.from_bytes(value.tobytes(), sys.byteorder)


@lru_cache(maxsize=256)
def _kernel(copy: Copy, name: str) -> Kernel:
    signature = [
        Buffer("source", copy.source.places, copy.dtype),
        Buffer("result", copy.result.places, copy.dtype),
    ]
    return Kernel(_LOOPS.load()(copy, name), signature)
