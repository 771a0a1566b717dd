"""Queries of index maps on symbolic shapes agree with enumeration for small sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from tecomp.errors import LayoutError
from tecomp.ir import Extent, Var
from tecomp.poly import IndexMap, values
from tests.strategies.index_algebra import Algebra

Place = tuple[int, ...]
Step = Callable[[list[Any]], list[Any]]

SIZES = [(0, 0), (1, 0), (0, 2), (1, 1), (2, 1), (1, 3), (3, 2), (4, 3), (5, 1), (2, 4), (6, 2)]


@dataclass(frozen=True)
class Case:
    """Index map, the same map as a Python function, and the shape of its domain."""

    function: Callable[..., list[Any]]
    index_map: IndexMap
    shape: tuple[Extent, ...]
    sizes: tuple[Var, Var]


@st.composite
def cases(draw: Any) -> Case:
    """Draw a map of one or two axes with up to three changes of the result list."""
    drawn = Algebra(draw)
    rank = drawn.number(1, 2)
    created = [step(drawn) for _ in range(drawn.number(0, 3))]

    def function(*index: Any) -> list[Any]:
        results = list(index)
        for change in created:
            results = change(results)
        return results

    shape = tuple(drawn.number(1, 6) if drawn.chance(25) else drawn.extent() for _ in range(rank))
    return Case(function, IndexMap.from_func(function, ndim=rank), shape, (drawn.n, drawn.m))


def step(drawn: Algebra) -> Step:
    """Draw a change of the first one or two results that also rotates the result list."""
    c, d = drawn.pick((2, 3, 4, 5, 8)), drawn.number(0, 5)
    change: Callable[[Any, list[Any]], list[Any]] = drawn.pick((
        lambda x, y: [x // c, x % c, *y], lambda x, y: [(x + d) // c, (x + d) % c, *y],
        lambda x, y: [(x + d) % c, *y], lambda x, y: [x * c + d, *y],
        lambda x, y: [x + y[0] * d, *y] if y else [x], lambda x, y: [x // c, *y],
        lambda x, y: [x * c + y[0], *y[1:]] if y else [x * c],
        lambda x, y: [(x + y[0]) % c, *y] if y else [x % c],
    ))

    def apply(results: list[Any]) -> list[Any]:
        changed = change(results[0], results[1:])
        return [changed[-1], *changed[:-1]]

    return apply


def at(extent: Extent, sizes: Mapping[Var, int]) -> int:
    if isinstance(extent, int):
        return extent
    return int(values(extent, {var: np.asarray(n) for var, n in sizes.items()}))


@settings(max_examples=3 * settings().max_examples)
@given(cases())
def test_answers_hold_for_all_sizes(case: Case) -> None:
    index_map, shape = case.index_map, case.shape
    note(f"{index_map} on {[str(extent) for extent in shape]}")
    try:
        ends = index_map.map_shape(shape)
        collision = index_map.collision(shape)
    except LayoutError:
        assume(False)
    if collision is not None:
        first, second = collision
        assert case.function(*first) == case.function(*second)
        return
    is_bijective = index_map.is_bijective(shape)
    inverse, is_padding = index_map.non_surjective_inverse(shape)
    for numbers in SIZES:
        sizes = dict(zip(case.sizes, numbers, strict=True))
        box = tuple(at(extent, sizes) for extent in shape)
        if min(box) < 0 or prod(box) > 400:
            continue
        elements = {tuple(case.function(*index)): index for index in product(*map(range, box))}
        assert len(elements) == prod(box), sizes
        limits = tuple(at(end, sizes) for end in ends)
        assert all(0 <= p < end for place in elements for p, end in zip(place, limits, strict=True))
        assert not is_bijective or len(elements) == prod(limits), sizes
        if prod(limits) > 3000:
            continue
        check_inverse(elements, inverse, is_padding, limits, sizes)


def check_inverse(
    elements: Mapping[Place, Place], inverse: IndexMap, is_padding: Any, ends: Place,
    sizes: Mapping[Var, int],
) -> None:
    """Check the inverse at every occupied position and the padding predicate at all positions."""
    grid = dict(zip(inverse.initial_indices, np.indices(ends), strict=True))
    where = {**grid, **{var: np.asarray(n) for var, n in sizes.items()}}
    found = [np.broadcast_to(values(x, where), ends) for x in (*inverse.final_indices, is_padding)]
    for place in product(*map(range, ends)):
        *index, empty = (int(value[place]) for value in found)
        assert bool(empty) == (place not in elements), (place, sizes)
        assert empty or tuple(index) == elements[place], (place, sizes)
