"""Size-polymorphic kernels, their cache, and their specialization on sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tecomp import te
from tecomp.array.graph.node import Buffer, memory
from tecomp.array.graph.pending import compiling
from tecomp.array.graph.views import Chain, apply_view_chain
from tecomp.array.kernels.strided_operands import FixedView, KernelOperand, fixed_view
from tecomp.array.statistics import counters
from tecomp.caches import LRUCache
from tecomp.machine.host import host_vector_bytes
from tecomp.ptensor.types import Shape, numpy_dtype

Key = TypeVar("Key")
Made = TypeVar("Made")
P = ParamSpec("P")


def memoized(
    cache: LRUCache[Key, Made], key: Key, make: Callable[P, Made], *args: P.args, **kwargs: P.kwargs
) -> Made:
    """Return the cached value of a key; compile and count it if it is not cached.

    Args:
        cache: Cache.
        key: Key, equal for equal kernels.
        make: Function that compiles a kernel.
        args: Positional arguments of `make`.
        kwargs: Keyword arguments of `make`.
    """
    found = cache.get(key, None)
    if found is None:
        with compiling:
            found = cache.get(key, None)
            if found is None:  # otherwise another thread has compiled it
                found = cache.keep(key, make(*args, **kwargs))
                counters.compiled += 1
    return found


_MIN_CALLS = 16
_COMPILED = 0.05
"""Compile time of a kernel in seconds."""
_CALLED = 15e-6
"""Overhead of a kernel call in seconds."""
_COMPUTED = 1e-9
"""Time per iteration point of a kernel in seconds."""


def specialization_threshold(kernels: int, points: int) -> int:
    """Return the number of calls whose total time equals the time of compiling for fixed sizes.

    The number of later calls is unknown. With this threshold, compiling takes no longer than all
    calls so far, and the loss against compiling at once is at most the compile time. Calls are
    counted, not measured: specialization can change the order of summation, which must not depend
    on a clock.

    Args:
        kernels: Number of kernels per call.
        points: Number of iteration points of all kernels.
    """
    return max(_MIN_CALLS, ceil(kernels * _COMPILED / (kernels * _CALLED + points * _COMPUTED)))


MANY = 1 << 14
"""Minimum number of elements for specialization on sizes."""
_MIN_PRODUCTS = 1 << 16
"""Minimum number of products for specialization; a product takes less time than other elements."""
SHORT = 16
"""Maximum extent of a short loop of any kind: one or two vectors."""
_SHORT_ROW = 32
"""Minimum row length up to which the loop extent is compiled into kernels, on any machine."""
_SHORT_VECTORS = 4
"""Number of vectors that a size-polymorphic kernel computes per step of a row.

These are the accumulators of a reduction. All shorter rows take as long as one step.
"""


def short_row(dtype: str) -> int:
    """Return the row length up to which the loop extent is compiled into kernels.

    Args:
        dtype: dtype of the computation along the row.
    """
    return max(_SHORT_ROW, _SHORT_VECTORS * host_vector_bytes() // numpy_dtype(dtype).itemsize)


_MAX_SYMBOLIC_EXTENT = 2**31 - 1
"""Greatest extent that fits the int32 type of `te.size_var`."""


@dataclass(slots=True)
class KernelRecipe:
    """Description of a size-polymorphic kernel that computes pending operations.

    Attributes:
        key: Key, equal for recipes of the same kernel.
        build: Function that builds a kernel for given extents.
        operands: How each leaf is passed.
        shape: Shape of the results.
        extents: Extents of the kernel's loops.
        loops: Extents of the loops over the results.
        dtypes: dtypes of the results.
        points: Number of iteration points.
        sources: For each operand, the leaf of which it is a view, and the view operations; None if
            the operands are the leaves.
        is_slow: Whether the kernel takes so long to build that a single set of sizes gets its own
            program.
        is_product: Whether results are tiled along several loops.
        result_permutation: Permutation from the axis order of the results in memory to the
            requested order; None if they are equal.
        short: Extent up to which a loop extent is compiled in: of the last loop, or of any loop of
            a product.
        is_built_in: Whether the kernel is specialized on these extents.
        calls: Number of calls so far.
        resolved_kernel: Kernel, once it is resolved.
        most_calls: Number of calls after which the kernel is specialized on its sizes.
        is_plain: Whether leaves and results are passed unchanged; None if not yet determined.
        views: View that is passed for each operand, once it is determined.
    """

    key: Any
    build: Callable[[Sequence[Any]], Any]
    operands: tuple[KernelOperand, ...]
    shape: Shape
    extents: Shape
    loops: Shape
    dtypes: tuple[np.dtype[Any], ...]
    points: int
    sources: tuple[tuple[int, Chain], ...] | None = None
    is_slow: bool = False
    is_product: bool = False
    result_permutation: tuple[int, ...] | None = None
    short: int = SHORT
    is_built_in: bool = False
    calls: int = 0
    resolved_kernel: Any = None
    most_calls: int = field(init=False)
    is_plain: bool | None = None
    views: tuple[FixedView, ...] = ()

    def __post_init__(self) -> None:
        self.most_calls = specialization_threshold(1, self.points)

    @property
    def kernel(self) -> Any:
        """Kernel that takes the operands and the results, built on first use."""
        if self.resolved_kernel is None:
            self.resolved_kernel = build_dynamic_kernel(self.key, self.build, self.known)
        return self.resolved_kernel

    @property
    def known(self) -> tuple[int | None, ...]:
        """Extents that are compiled in; None for extents that are passed with the call."""
        return static_extents(self.extents, self.points, self.is_product, self.short)

    @property
    def is_worth_it(self) -> bool:
        """Whether the kernel exists, is quick to build, or was requested with other sizes too."""
        if not self.is_slow or self.resolved_kernel is not None:
            return True
        if _kernels.get((self.key, self.known), None) is not None:
            return True
        return _asked.keep(self.key, _asked.get(self.key, self.extents)) != self.extents

    def passes_as_they_are(self, num_leaves: int) -> bool:
        """Return whether leaves and results are passed unchanged, after a first call.

        Leaves of one recipe have the same shapes and strides in each call.

        Args:
            num_leaves: Number of leaves of a call.
        """
        is_complex = any([dtype.kind == "c" for dtype in self.dtypes])
        is_viewed = any([view.apply is not None for view in self.views])
        sources = range(num_leaves) if self.sources is None else [k for k, _ in self.sources]
        is_moved = [*sources] != [*range(num_leaves)]
        return self.shape == self.loops and not (is_complex or is_viewed or is_moved)

    def arrays(self, leaves: Sequence[Buffer]) -> list[Buffer]:
        """Return the kernel arguments for the leaves."""
        inputs = leaves if self.sources is None else [leaves[k] for k, _ in self.sources]
        views = self.views
        if not views or not all(map(FixedView.matches, views, inputs)):
            views = self.views = tuple([
                fixed_view(data, partial(_view_of, spec, chain))
                for spec, data, chain in zip(self.operands, inputs, self._chains, strict=True)
            ])
        return [
            data if view.apply is None else view.apply(data)
            for view, data in zip(views, inputs, strict=True)
        ]

    @property
    def _chains(self) -> Sequence[Chain]:
        """View operations that are applied to each operand."""
        if self.sources is None:
            return ((),) * len(self.operands)
        return [chain for _, chain in self.sources]

    def read_through(self, chains: Sequence[Chain]) -> None:
        """Apply view operations to the leaves, before those of the operands."""
        if any(chains):
            sources = self.sources or tuple([(k, ()) for k in range(len(self.operands))])
            self.sources = tuple([(k, chains[k] + chain) for k, chain in sources])

    def build_in(self) -> None:
        """Specialize the kernel on its sizes, if the loops can benefit."""
        if len(self.extents) > 1 and self.points >= MANY:
            with compiling:
                self.resolved_kernel = self.build(self.extents)
                counters.compiled += 1
            self.is_built_in = True


_kernels: LRUCache[Any, Any] = LRUCache("array.kernels")
_asked: LRUCache[Any, Shape] = LRUCache("array.first_extents")
"""Extents with which each slow kernel was first requested."""


def static_extents(
    extents: Shape, points: int, all_loops: bool = False, short: int = SHORT
) -> tuple[int | None, ...]:
    """Return the loop extents that are compiled in; None for extents that are passed with the call.

    The length of many short rows is compiled in: vectors along such rows would be mostly empty. An
    extent beyond the type of sizes is compiled in too.

    Args:
        extents: Extents of the loops.
        points: Number of iteration points.
        all_loops: If True, consider all loops, otherwise only the last.
        short: Extent up to which a loop is short.
    """
    last = len(extents) - 1
    is_large = points >= (_MIN_PRODUCTS if all_loops else MANY)
    # One kernel serves all sizes of small products; only large products use the longer limit.
    short = SHORT if all_loops and points < 4 * _MIN_PRODUCTS else short
    return tuple(
        [
            n
            if n > _MAX_SYMBOLIC_EXTENT or (is_large and n <= short and (all_loops or k == last))
            else None
            for k, n in enumerate(extents)
        ]
    )


def build_dynamic_kernel(
    key: Any, build: Callable[[Sequence[Any]], Any], known: tuple[int | None, ...]
) -> Any:
    """Return the size-polymorphic kernel, built on first use.

    Args:
        key: Key, equal for equal kernels.
        build: Function that builds a kernel for given extents.
        known: Extents that are compiled in.
    """
    return memoized(_kernels, (key, known), _build, build, known)


def _build(build: Callable[[Sequence[Any]], Any], known: tuple[int | None, ...]) -> Any:
    return build([te.size_var(f"n{k}") if n is None else n for k, n in enumerate(known)])


def call_kernel(
    recipe: KernelRecipe, leaves: Sequence[Buffer], results: Sequence[Buffer] | None = None
) -> Sequence[Buffer]:
    """Run a kernel on the leaves, and return the results in given or new memory.

    Given memory has the axis order of the kernel, as the recipe specifies.
    """
    if results is None:
        results = [memory(recipe.shape, dtype) for dtype in recipe.dtypes]
    if 0 not in recipe.shape:
        _call(recipe, leaves, results)
    if recipe.result_permutation is None:
        return results
    return [result.transpose(recipe.result_permutation) for result in results]


def _call(recipe: KernelRecipe, leaves: Sequence[Buffer], results: Sequence[Buffer]) -> None:
    counters.called += 1
    recipe.calls += 1
    if recipe.calls == recipe.most_calls:
        recipe.build_in()
    kernel = recipe.resolved_kernel or recipe.kernel
    if recipe.is_plain:
        kernel(*leaves, *results)
        return
    kernel(*recipe.arrays(leaves), *[_passed_extents(result, recipe.loops) for result in results])
    if recipe.is_plain is None:
        recipe.is_plain = recipe.passes_as_they_are(len(leaves))


def _view_of(spec: KernelOperand, chain: Chain, data: Buffer) -> Buffer:
    return spec.view(apply_views(chain, data))


def apply_views(chain: Chain, data: Buffer) -> Buffer:
    """Apply a chain of view operations that is known to be a view of the memory."""
    view = apply_view_chain(chain, data)
    assert view is not None
    return view


def _passed_extents(result: Buffer, loops: Shape) -> Buffer:
    if result.dtype.kind != "c":
        return result if result.shape == loops else result.reshape(loops)
    return result.reshape((*loops, 1)).view(result.real.dtype)
