"""Shape-polymorphic kernels, memoization, and when to specialize on sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tecomp import te
from tecomp.array.graph.locking import compiling
from tecomp.array.graph.node import Buffer, memory
from tecomp.array.graph.views import Chain, along
from tecomp.array.kernels.strided_operands import Operand
from tecomp.array.lru_cache import Recent
from tecomp.array.statistics import counters
from tecomp.machine.host import host_vector_bytes
from tecomp.ptensor.types import Shape, numpy_dtype

Key = TypeVar("Key")
Made = TypeVar("Made")
P = ParamSpec("P")


def made_once(
    kept: Recent[Key, Made], key: Key, make: Callable[P, Made], *args: P.args, **kwargs: P.kwargs
) -> Made:
    """What is kept for a key; it is made and counted if there is nothing yet.

    Args:
        kept: what was made.
        key: equal for equal kernels.
        make: compiles one.
        args: what `make` takes.
        kwargs: what it takes by name.
    """
    found = kept.get(key, None)
    if found is None:
        with compiling:
            found = kept.get(key, None)
            if found is None:  # no other thread was faster
                found = kept.keep(key, make(*args, **kwargs))
                counters.compiled += 1
    return found


_FEWEST = 16
_COMPILED = 0.05
"""Seconds that it takes to compile a kernel."""
_CALLED = 15e-6
"""Seconds that a call of a kernel takes, whatever it computes."""
_COMPUTED = 1e-9
"""Seconds that a point of its loops takes."""


def calls_that_pay(kernels: int, points: int) -> int:
    """The calls that together take as long as to compile what the sizes are built into.

    Nobody knows how many more there will be. So compiling takes no longer than all calls did, and
    what it would have saved by then is no more than it takes. Calls are counted and not measured:
    sums may be added in another order from there on, which no clock may decide.

    Args:
        kernels: that are called.
        points: how often something is computed in all of them.
    """
    return max(_FEWEST, ceil(kernels * _COMPILED / (kernels * _CALLED + points * _COMPUTED)))


MANY = 1 << 14
"""Elements that make it worth while."""
_MANY_PRODUCTS = 1 << 16
"""Products of elements that do, which take less time."""
SHORT = 16
"""Elements of a loop of any kind that are no more than a vector or two."""
_SHORT_VECTORS = 4
"""Vectors of a row that a kernel for rows of any length computes in one step: the accumulators of a
reduction. It takes as long for all shorter rows."""


def short_row(dtype: str) -> int:
    """Return the elements of a row up to which its length is built into kernels.

    Args:
        dtype: type that is computed with along the row.
    """
    return max(SHORT, _SHORT_VECTORS * host_vector_bytes() // numpy_dtype(dtype).itemsize)


_MOST_OPEN = 2**31 - 1
"""The greatest extent that a size of type int32 holds, as `te.size_var` has it."""


@dataclass(slots=True)
class Recipe:
    """How pending operations are computed by a kernel for loops of any extents.

    Attributes:
        key: equal for recipes of the same kernel.
        build: makes a kernel for some extents.
        operands: how the leaves are passed.
        shape: of the results.
        extents: of the kernel's loops.
        loops: of those that go along the results.
        dtypes: of the results.
        points: how often something is computed in these loops.
        sources: of each operand, the leaf that it is a view of, and how, where operands are not
            the leaves themselves.
        is_slow: whether the kernel takes so long to build that sizes alone get one of their own.
        is_product: whether tiles of results go along several loops.
        back: the axes of the results in the order that was asked for, where that is not the order
            in which they lie in memory.
        short: elements of a loop up to which its extent is built in: of the last, or of any in a
            product.
        is_built_in: whether the kernel is for these extents alone.
        calls: how often it was called.
        own: the kernel, once it is known here.
        most_calls: after which its sizes are built in.
        is_plain: whether the leaves and the results are passed as they are; None if that is not
            known yet.
    """

    key: Any
    build: Callable[[Sequence[Any]], Any]
    operands: tuple[Operand, ...]
    shape: Shape
    extents: Shape
    loops: Shape
    dtypes: tuple[np.dtype[Any], ...]
    points: int
    sources: tuple[tuple[int, Chain], ...] | None = None
    is_slow: bool = False
    is_product: bool = False
    back: tuple[int, ...] | None = None
    short: int = SHORT
    is_built_in: bool = False
    calls: int = 0
    own: Any = None
    most_calls: int = field(init=False)
    is_plain: bool | None = None

    def __post_init__(self) -> None:
        self.most_calls = calls_that_pay(1, self.points)

    @property
    def kernel(self) -> Any:
        """What takes the operands and the results, built when it is first asked for."""
        if self.own is None:
            self.own = for_any_sizes(self.key, self.build, self.known)
        return self.own

    @property
    def known(self) -> tuple[int | None, ...]:
        """The extents that the kernel is built for; None of those that come with the call."""
        return known_of(self.extents, self.points, self.is_product, self.short)

    @property
    def is_worth_it(self) -> bool:
        """Whether there is the kernel, or it is soon built, or was asked for with other sizes."""
        if not self.is_slow or self.own is not None:
            return True
        if _kernels.get((self.key, self.known), None) is not None:
            return True
        return _asked.keep(self.key, _asked.get(self.key, self.extents)) != self.extents

    def passes_as_they_are(self) -> bool:
        """Whether the leaves and the results are passed as they are."""
        is_complex = any([dtype.kind == "c" for dtype in self.dtypes])
        is_other = any([how.index or how.shape is not None or how.part for how in self.operands])
        return self.sources is None and self.shape == self.loops and not is_complex and not is_other

    def arrays(self, leaves: Sequence[Buffer]) -> list[Buffer]:
        """What is passed to the kernel for these leaves."""
        given = leaves
        if self.sources is not None:
            given = [viewed(chain, leaves[k]) for k, chain in self.sources]
        return [how.view(data) for how, data in zip(self.operands, given, strict=True)]

    def build_in(self) -> None:
        """Build the sizes into the kernel, where that lets it be another one."""
        if len(self.extents) > 1 and self.points >= MANY:
            with compiling:
                self.own = self.build(self.extents)
                counters.compiled += 1
            self.is_built_in = True


_kernels: Recent[Any, Any] = Recent(1024)
_asked: Recent[Any, Shape] = Recent(1024)
"""Of kernels that take long to build, the extents that they were first asked for with."""


def known_of(
    extents: Shape, points: int, every: bool = False, short: int = SHORT
) -> tuple[int | None, ...]:
    """The extents of loops that kernels are built for; None of those that come with the call.

    Of many short rows the length is known: vectors along them would be mostly empty. So is an
    extent that the type of a size cannot hold.

    Args:
        extents: of the loops.
        points: how often something is computed in them.
        every: whether that holds for all loops, and not for the last alone.
        short: elements of such a loop up to which it is short.
    """
    last = len(extents) - 1
    is_large = points >= (_MANY_PRODUCTS if every else MANY)
    # Of products one kernel serves all sizes, but where several times as much is computed.
    short = SHORT if every and points < 4 * _MANY_PRODUCTS else short
    return tuple([
        n if n > _MOST_OPEN or (is_large and n <= short and (every or k == last)) else None
        for k, n in enumerate(extents)
    ])


def for_any_sizes(
    key: Any, build: Callable[[Sequence[Any]], Any], known: tuple[int | None, ...]
) -> Any:
    """The kernel for loops of any extents, built when it is first asked for.

    Args:
        key: equal for equal kernels.
        build: makes one for some extents.
        known: the extents that the kernel is built for.
    """
    return made_once(_kernels, (key, known), _built, build, known)


def _built(build: Callable[[Sequence[Any]], Any], known: tuple[int | None, ...]) -> Any:
    return build([te.size_var(f"n{k}") if n is None else n for k, n in enumerate(known)])


def computed(
    recipe: Recipe, leaves: Sequence[Buffer], results: Sequence[Buffer] | None = None
) -> Sequence[Buffer]:
    """What the kernel makes of the elements of the leaves, in some memory or in new memory.

    Memory that is given has the axes in the order of the kernel, as the recipe has them.
    """
    if results is None:
        results = [memory(recipe.shape, dtype) for dtype in recipe.dtypes]
    if 0 not in recipe.shape:
        _call(recipe, leaves, results)
    if recipe.back is None:
        return results
    return [result.transpose(recipe.back) for result in results]


def _call(recipe: Recipe, leaves: Sequence[Buffer], results: Sequence[Buffer]) -> None:
    counters.called += 1
    recipe.calls += 1
    if recipe.calls == recipe.most_calls:
        recipe.build_in()
    if recipe.is_plain is None:
        recipe.is_plain = recipe.passes_as_they_are()
    kernel = recipe.own or recipe.kernel
    if recipe.is_plain:
        kernel(*leaves, *results)
        return
    kernel(*recipe.arrays(leaves), *[_passed(result, recipe.loops) for result in results])


def viewed(chain: Chain, data: Buffer) -> Buffer:
    """The elements after operations that move them, of which it is known that there are views."""
    view = along(chain, data)
    assert view is not None
    return view


def _passed(result: Buffer, loops: Shape) -> Buffer:
    if result.dtype.kind != "c":
        return result if result.shape == loops else result.reshape(loops)
    return result.reshape((*loops, 1)).view(result.real.dtype)
