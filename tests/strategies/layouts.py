"""Random layouts: injective index maps as the text of a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tecomp import te
from tests.strategies.draws import Dice, Draw, Draws

Array: TypeAlias = NDArray[Any]


@dataclass
class _Result:
    """One result of a map, with its extent if it is constant."""

    text: str
    extent: int | None


@dataclass
class _Maker(Draws):
    """Generator that transforms the identity map step by step."""

    results: list[_Result] = field(default_factory=list)

    def step(self) -> None:
        kind = self.number(0, 9)
        known = [r for r in self.results if r.extent]
        if kind <= 1:
            self.results = self.shuffled(self.results)
        elif kind <= 4 and self.results:
            self._split(self.pick(self.results))
        elif kind == 5 and len(self.results) < 5:
            self.results.insert(self.number(0, len(self.results)), _Result("0", 1))
        elif self.results and kind == 6:
            self._shift(self.pick(self.results))
        elif len(self.results) >= 2 and known and kind >= 7:
            second = self.pick(known)
            first = self.pick([r for r in self.results if r is not second])
            (self._fuse, self._skew, self._swizzle)[kind - 7](first, second)

    def _split(self, result: _Result) -> None:
        factor = self.number(1, 5)
        inner = _Result(f"({result.text}) % {factor}", factor)
        at = self.pick((len(self.results), 0))
        result.text = f"({result.text}) // {factor}"
        result.extent = None if result.extent is None else -(-result.extent // factor)
        self.results.insert(at, inner)

    def _shift(self, result: _Result) -> None:
        extent, text, step = result.extent, result.text, self.number(1, 3)
        match self.number(0, 2):
            case 0 if extent:
                result.text = f"{extent - 1} - ({text})"
            case 1 if extent:
                result.text = f"({text} + {step}) % {extent}"
            case _:
                result.text, result.extent = f"({text} + {step})", extent and extent + step

    def _fuse(self, first: _Result, second: _Result) -> None:
        assert second.extent
        first.text = f"({first.text}) * {second.extent} + ({second.text})"
        first.extent = first.extent and first.extent * second.extent
        self.results = [r for r in self.results if r is not second]

    def _skew(self, first: _Result, second: _Result) -> None:
        assert second.extent
        first.text = f"({first.text}) + ({second.text})"
        first.extent = first.extent and first.extent + second.extent - 1

    def _swizzle(self, first: _Result, second: _Result) -> None:
        if first.extent:
            first.text = f"(({first.text}) ^ (({second.text}) % 4))"
            first.extent = -(-first.extent // 4) * 4


def draw_layout(
    draw: Draw | Dice, shape: Sequence[int | None], *, separated: bool | None = None
) -> str:
    """Draw an injective index map for a tensor of `shape`, as the text of a function.

    Args:
        draw: Source of random choices.
        shape: Extents of the tensor; None for an unknown extent.
        separated: If True, the map has two groups of physical axes; otherwise it has one.
    """
    names = [f"a{k}" for k in range(len(shape))]
    maker = _Maker(draw, [_Result(n, e) for n, e in zip(names, shape, strict=True)])
    for _ in range(maker.number(1, 4)):
        if len(maker.results) < 6:
            maker.step()
    while not maker.results or (separated and len(maker.results) < 2):
        maker.results.insert(0, _Result("0", 1))
    texts = [result.text for result in maker.results]
    if separated and len(texts) >= 2:
        texts.insert(maker.number(1, len(texts) - 1), "te.AXIS_SEPARATOR")
    return f"lambda {', '.join(names)}: [{', '.join(texts)}]" if names else (
        f"lambda: [{', '.join(texts)}]"
    )


def function_of(text: str) -> Callable[..., list[Any]]:
    """Evaluate the text of a function."""
    result: Callable[..., list[Any]] = eval(text, {"te": te})
    return result


def places(texts: Sequence[str], shape: Sequence[int]) -> list[Array]:
    """Return the physical indices of all elements of an array of `shape` after all maps."""
    count = math.prod(shape)
    grid = list(np.indices(shape).reshape(len(shape), count))
    for text in texts:
        results = [r for r in function_of(text)(*grid) if r is not te.AXIS_SEPARATOR]
        grid = [np.broadcast_to(np.asarray(r, np.int64), (count,)) for r in results]
    return grid


def pack(texts: Sequence[str], logical: Array, stored: Array) -> Array:
    """Write the elements of `logical` to `stored`; return the mask of written positions."""
    selected = np.zeros(stored.shape, bool)
    if not texts:
        stored[...] = logical
        return np.ones(stored.shape, bool)
    at = tuple(places(texts, logical.shape))
    stored[at] = logical.ravel()
    selected[at] = True
    assert selected.sum() == logical.size, "the strategy made a map that loses elements"
    return selected


def unpack(texts: Sequence[str], stored: Array, shape: Sequence[int]) -> Array:
    """Return the elements of `stored` in the shape of the computation."""
    if not texts:
        return stored.reshape(shape)
    unpacked: Array = stored[tuple(places(texts, shape))].reshape(shape)
    return unpacked
