"""Random index maps: every answer against enumeration of all elements by Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tecomp.errors import LayoutError
from tecomp.ir import Expr, Range, Var, index_value
from tecomp.poly import IndexMap, evaluate_over_box, image_box
from tests.messages import Diagnostic, diagnostic

Index = tuple[int, ...]
Results = list[Any]  # index expressions or integers: the same code makes both


@dataclass(frozen=True)
class Step:
    """Change to the current results; `k` and `other` select results, `c` is a constant."""

    name: str
    k: int
    other: int
    c: int
    offset: int

    def __call__(self, results: Results) -> Results:
        """Return the results after the change."""
        k, other = self.k % len(results), self.other % len(results)
        x, y, c = results[k], results[other], self.c
        if self.name == "fuse" and k == other:
            return results
        result = STEPS[self.name](x, y, c, self.offset)
        rest = [r for n, r in enumerate(results) if n != k and (n != other or self.name != "fuse")]
        return [*rest[:k], *result, *rest[k:]]


STEPS: dict[str, Callable[[Any, Any, int, int], Results]] = {
    "split": lambda x, y, c, d: [x // c, x % c],
    "split outwards": lambda x, y, c, d: [x % c, x // c],
    "split shifted": lambda x, y, c, d: [(x + d) // c, (x + d) % c],
    "rotate": lambda x, y, c, d: [(x + d) % c],
    "skew": lambda x, y, c, d: [(x + y) % c],
    "lean": lambda x, y, c, d: [x + y * d],
    "reverse": lambda x, y, c, d: [15 - x],
    "scale": lambda x, y, c, d: [x * c + d],
    "swap pairs": lambda x, y, c, d: [x // 2 * 2 - x % 2 + 1],
    "fuse": lambda x, y, c, d: [x * c + y],
    "remainder": lambda x, y, c, d: [x % c],
    "quotient": lambda x, y, c, d: [x // c],
    "copy": lambda x, y, c, d: [x, y],
    "constant": lambda x, y, c, d: [x, d],
    "times": lambda x, y, c, d: [x * d % c],
    "shift back": lambda x, y, c, d: [x - d],
}

BIT_STEPS: dict[str, Callable[[Any, Any, int, int], Results]] = {
    "xor": lambda x, y, c, d: [x ^ y],
    "xor digit": lambda x, y, c, d: [x ^ (y % 4)],
    "xor constant": lambda x, y, c, d: [x ^ d],
    "and": lambda x, y, c, d: [x & y],
    "or": lambda x, y, c, d: [x | (y << 4)],
    "shift": lambda x, y, c, d: [x ^ (x >> 1)],
}

STEPS.update(BIT_STEPS)


def steps(names: Sequence[str]) -> st.SearchStrategy[list[Step]]:
    step = st.builds(
        Step,
        st.sampled_from(names),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from([2, 3, 4, 5, 8, 16]),
        st.integers(0, 7),
    )
    return st.lists(step, max_size=4)


AFFINE = steps([name for name in STEPS if name not in BIT_STEPS])
BITS = steps(["split", "fuse", "rotate", "skew", "scale", *BIT_STEPS])
# Layout-like maps, which mostly have an inverse; arbitrary steps rarely give one.
BENIGN = steps(["split", "split outwards", "split shifted", "rotate", "skew", "lean", "fuse", "scale"])
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 12, 16]), min_size=1, max_size=3).map(
    tuple
)


@dataclass(frozen=True)
class Truth:
    """Index map with the enumerated address of each element."""

    index_map: IndexMap
    shape: Index
    places: dict[Index, Index]

    @property
    def collision(self) -> tuple[Index, Index] | None:
        """Return the first two elements that share an address."""
        seen: dict[Index, list[Index]] = {}
        for index, place in self.places.items():
            seen.setdefault(place, []).append(index)
        pairs = [(found[0], found[1]) for found in seen.values() if len(found) > 1]
        return min(pairs) if pairs else None


def truth_of(result: list[Step], shape: Index) -> Truth:
    """Return the map of some steps, enumerated on all elements."""

    def function(*index: Any) -> Results:
        results = list(index)
        for step in result:
            results = step(results)
        return results

    indices = product(*map(range, shape))
    places = {index: tuple(function(*index)) for index in indices}
    return Truth(IndexMap.from_func(function, ndim=len(shape)), shape, places)


def on_box(exprs: Sequence[Expr], variables: Sequence[Var], shape: Index) -> list[Any]:
    """Return the values of expressions at every index of a box, as tuples."""
    return list(zip(*(a.tolist() for a in evaluate_over_box(exprs, variables, shape)), strict=True))


def check_shape(truth: Truth) -> Index | None:
    """Return the physical shape, after checking that it holds all addresses; None if negative."""
    negative = [place for place in truth.places.values() if min(place) < 0]
    if negative:
        with pytest.raises(LayoutError) as error:
            truth.index_map.map_shape(truth.shape)
        value, index = (error.value.parameters[name] for name in ("value", "index"))
        assert diagnostic(error.value) == Diagnostic(
            "negative-address", expr=error.value.parameters["expr"], value=value, index=index,
            positive=-value,
        )
        assert value in truth.places[index]
        return None
    shape = truth.index_map.map_shape(truth.shape)
    ends = tuple(n for n in shape if isinstance(n, int))
    assert len(ends) == len(shape)
    assert all(p < end for place in truth.places.values() for p, end in zip(place, ends, strict=True))
    return ends


def check_answers(truth: Truth) -> None:
    """Check collision, counts, inverse and padding against enumeration."""
    index_map, shape = truth.index_map, truth.shape
    ends = check_shape(truth)
    assume(ends is not None)
    assert ends is not None
    image = set(truth.places.values())
    unused = prod(ends) - len(image)
    assert index_map.collision(shape) == truth.collision
    assert index_map.padding_count(shape) == unused
    assert index_map.is_injective(shape) == (truth.collision is None)
    assert index_map.is_bijective(shape) == (truth.collision is None and unused == 0)
    if truth.collision is None:
        check_inverse(truth, ends)


def check_inverse(truth: Truth, ends: Index) -> None:
    """Check that each address maps back to its element or is padding."""
    if truth.index_map.inverse_or_none(truth.shape) is None:
        # Only maps that mix bit operations may have no inverse expression.
        assert any(sign in str(truth.index_map) for sign in "^&|")
        return
    inverse, is_padding = truth.index_map.non_surjective_inverse(truth.shape)
    if prod(ends) > 50_000:
        return
    elements = {place: index for index, place in truth.places.items()}
    found = on_box([*inverse.final_indices, is_padding], inverse.initial_indices, ends)
    for place, (*index, empty) in zip(product(*map(range, ends)), found, strict=True):
        assert bool(empty) == (place not in elements), place
        assert empty or tuple(index) == elements[place], place


@given(AFFINE, SHAPES)
def test_affine_maps(made: list[Step], shape: Index) -> None:
    check_answers(truth_of(made, shape))


@given(BENIGN, SHAPES)
def test_usual_maps(made: list[Step], shape: Index) -> None:
    check_answers(truth_of(made, shape))


@given(BITS, SHAPES)
def test_maps_with_bit_operations(made: list[Step], shape: Index) -> None:
    check_answers(truth_of(made, shape))


@given(AFFINE | BITS, AFFINE | BITS, SHAPES)
def test_equivalence(one: list[Step], other: list[Step], shape: Index) -> None:
    first, second = truth_of(one, shape), truth_of(other, shape)
    repeated = truth_of(one, shape)

    assert first.index_map.is_equivalent_to(repeated.index_map, shape)
    assert first.index_map.is_equivalent_to(second.index_map, shape) == (
        first.places == second.places
        and len(first.index_map.final_indices) == len(second.index_map.final_indices)
    )


@given(BENIGN | BITS, BENIGN | BITS, SHAPES)
def test_composition(one: list[Step], other: list[Step], shape: Index) -> None:
    first = truth_of(one, shape)
    ends = check_shape(first)
    assume(ends is not None and prod(ends) < 10_000)
    assert ends is not None
    second = truth_of(other, ends)

    both = first.index_map.then(second.index_map)

    found = on_box(both.final_indices, both.initial_indices, shape)
    assert found == [second.places[place] for place in first.places.values()]
    expected = check_shape(second)
    assume(expected is not None and prod(expected) < 10_000)
    assert both.map_shape(shape) == expected
    assert both.on(shape).ends == expected
    check_answers(Truth(both, shape, dict(zip(first.places, found, strict=True))))


@given(AFFINE | BITS, SHAPES, st.lists(st.integers(1, 3), min_size=3, max_size=3))
def test_boxes_of_places(made: list[Step], shape: Index, sizes: list[int]) -> None:
    truth = truth_of(made, shape)
    assume(check_shape(truth) is not None and 0 not in shape)
    tile = [min(s, n) for s, n in zip(sizes, shape, strict=False)]
    counts = tuple(n // s for n, s in zip(shape, tile, strict=True))
    outer = tuple(Var(f"o{k}") for k in range(len(shape)))
    region = [Range(v * s, index_value(s)) for v, s in zip(outer, tile, strict=True)]

    box = image_box(
        truth.index_map, region, {v: (0, n - 1) for v, n in zip(outer, counts, strict=True)}
    )

    lows = np.array(on_box([part.min for part in box], outer, counts))
    extents = np.array(on_box([part.extent for part in box], outer, counts))
    for at, low, extent in zip(product(*map(range, counts)), lows, extents, strict=True):
        for within in product(*map(range, tile)):
            index = tuple(a * s + w for a, s, w in zip(at, tile, within, strict=True))
            place = np.array(truth.places[index])
            assert (low <= place).all()
            assert (place < low + extent).all()


@settings(max_examples=20)
@given(BENIGN, st.integers(1, 3), st.sampled_from([1, 2, 5, 8, 13]))
def test_symbolic_extents(made: list[Step], rank: int, size: int) -> None:
    """Symbolic answers for an extent n hold for each value of n."""
    n = Var("n")
    symbolic: list[int | Expr] = [n, *([4] * (rank - 1))]
    truth = truth_of(made, (size, *([4] * (rank - 1))))
    index_map = truth.index_map
    assume(check_shape(truth) is not None)
    if index_map.is_injective(symbolic):
        assert truth.collision is None
        inverse, is_padding = index_map.non_surjective_inverse(symbolic)
        ends = tuple(
            end if isinstance(end, int) else int(evaluate_over_box([end], [n], (size + 1,))[0][size])
            for end in index_map.map_shape(symbolic)
        )
        assume(prod(ends) < 20_000)
        elements = {place: index for index, place in truth.places.items()}
        exprs = [*inverse.final_indices, is_padding]
        found = on_box(exprs, (n, *inverse.initial_indices), (size + 1, *ends))[-prod(ends) :]
        for place, (*index, empty) in zip(product(*map(range, ends)), found, strict=True):
            assert bool(empty) == (place not in elements), place
            assert empty or tuple(index) == elements[place], place
    else:
        pair = index_map.collision(symbolic)
        assert pair is not None
        bigger = truth_of(made, (max(pair[0][0], pair[1][0]) + 1, *([4] * (rank - 1))))
        assert bigger.places[pair[0]] == bigger.places[pair[1]]
