"""Kernels that take arrays of any sizes, and how they are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tecomp import te
from tecomp.array.counters import counters
from tecomp.array.graph.node import Buffer, Node
from tecomp.array.graph.pending import Pending
from tecomp.array.graph.views import Chain, along
from tecomp.array.graph.waiting import compiling
from tecomp.array.kernels.kept import made_once
from tecomp.array.kernels.loops import Operand
from tecomp.array.recent import Recent
from tecomp.ptensor.types import Shape

_OFTEN = 16
"""Calls with the same sizes after which these are built in."""
_MANY = 1 << 14
"""Elements that make it worth while."""


@dataclass(slots=True)
class Recipe:
    """How pending operations are computed by a kernel for loops of any extents.

    Attributes:
        kernel: takes the operands and the results.
        build: makes a kernel for some extents.
        operands: how the leaves are passed.
        shape: of the results.
        extents: of the kernel's loops.
        loops: of those that go along the results.
        dtypes: of the results.
        sources: of each operand, the leaf that it is a view of, and how, where operands are not
            the leaves themselves.
        is_built_in: whether the kernel is for these extents alone.
        calls: how often it was called.
    """

    kernel: Any
    build: Callable[[Sequence[Any]], Any]
    operands: tuple[Operand, ...]
    shape: Shape
    extents: Shape
    loops: Shape
    dtypes: tuple[np.dtype[Any], ...]
    sources: tuple[tuple[int, Chain], ...] | None = None
    is_built_in: bool = False
    calls: int = 0

    def arrays(self, leaves: Sequence[Node]) -> list[Buffer]:
        """What is passed to the kernel for these leaves."""
        given = [node.data for node in leaves]
        if self.sources is not None:
            given = [along(chain, given[k]) for k, chain in self.sources]
        return [
            how.view(data)  # type: ignore[arg-type]
            for how, data in zip(self.operands, given, strict=True)
        ]

    def build_in(self) -> None:
        """Build the sizes into the kernel, where that lets it be another one."""
        if len(self.extents) > 1 and prod(self.extents) >= _MANY:
            with compiling:
                self.kernel = self.build(self.extents)
                counters.compiled += 1
            self.is_built_in = True


_kernels: Recent[Any, Any] = Recent(1024)


def for_any_sizes(key: Any, build: Callable[[Sequence[Any]], Any], rank: int) -> Any:
    """The kernel for loops of any extents, built when it is first asked for.

    Args:
        key: equal for equal kernels.
        build: makes one for some extents.
        rank: the number of loops.
    """
    return made_once(_kernels, key, _built, build, rank)


def _built(build: Callable[[Sequence[Any]], Any], rank: int) -> Any:
    return build([te.size_var(f"n{k}") for k in range(rank)])


def run(recipe: Recipe, work: Pending) -> None:
    """Compute what is wanted by its kernel."""
    if work.into is None:
        results = [np.empty(recipe.shape, dtype) for dtype in recipe.dtypes]
    else:
        results = [work.memory(place) for place in work.outputs]
    arrays = recipe.arrays(work.leaves)
    counters.called += 1
    recipe.calls += 1
    if recipe.calls == _OFTEN:
        recipe.build_in()
    recipe.kernel(*arrays, *[_passed(result, recipe.loops) for result in results])
    for place, result in zip(work.outputs, results, strict=True):
        work.nodes[place].computed(result)


def _passed(result: Buffer, loops: Shape) -> Buffer:
    if result.dtype.kind != "c":
        return result.reshape(loops)
    return result.reshape((*loops, 1)).view(result.real.dtype)
