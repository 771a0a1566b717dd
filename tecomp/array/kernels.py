"""Kernels that take arrays of any sizes, and how they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.array.counters import counters
from tecomp.array.graph import Pending
from tecomp.array.loops import Operand
from tecomp.array.node import Buffer
from tecomp.ptensor.types import Shape


@dataclass(frozen=True, slots=True)
class Recipe:
    """How pending operations are computed by a kernel for loops of any extents.

    Attributes:
        kernel: takes the operands and the results.
        operands: how the leaves are passed.
        shape: of the results.
        extents: of the kernel's loops.
        loops: of those that go along the results.
        dtypes: of the results.
    """

    kernel: Any
    operands: tuple[Operand, ...]
    shape: Shape
    extents: Shape
    loops: Shape
    dtypes: tuple[np.dtype[Any], ...]


def run(recipe: Recipe, work: Pending) -> None:
    """Compute what is wanted by its kernel."""
    results = [np.empty(recipe.shape, dtype) for dtype in recipe.dtypes]
    arrays = [
        how.view(node.data)  # type: ignore[arg-type]
        for how, node in zip(recipe.operands, work.leaves, strict=True)
    ]
    counters.called += 1
    recipe.kernel(*arrays, *[_passed(result, recipe.loops) for result in results])
    for place, result in zip(work.outputs, results, strict=True):
        work.nodes[place].computed(result)


def _passed(result: Buffer, loops: Shape) -> Buffer:
    if result.dtype.kind != "c":
        return result.reshape(loops)
    return result.reshape((*loops, 1)).view(result.real.dtype)
