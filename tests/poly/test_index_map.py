"""Index maps, case by case: shapes, collisions, inverses with padding, equality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import pytest

from tecomp import te
from tecomp.errors import LayoutError
from tecomp.ir import BinOp, Const, Expr, IndexMapNode, Range, Var, binary, index_value
from tecomp.poly import AXIS_SEPARATOR, IndexMap, image_box, values
from tests.messages import Diagnostic, diagnostic

Shape = tuple[int, ...]
Function = Callable[..., Sequence[Any]]

# Maps that TVM 0.25 and 0.27 reject or get wrong, and some that they get right: function, shape,
# physical shape, number of padding addresses, text of the inverse.
INJECTIVE: dict[str, tuple[Function, Shape, Shape, int, str]] = {
    "rotation": (lambda i: [(i + 3) % 16], (16,), (16,), 0, "lambda p0: [(p0 - 3) % 16]"),
    "rotated rows": (lambda i, j: [i, (j + 1) % 4], (4, 4), (4, 4), 0,
                     "lambda p0, p1: [p0, (p1 - 1) % 4]"),
    "rotated digit": (lambda i: [i // 4, (i + 1) % 4], (16,), (4, 4), 0,
                      "lambda p0, p1: [4 * p0 + (p1 - 1) % 4]"),
    "reversed digits": (lambda i: [(7 - i) // 4, (7 - i) % 4], (8,), (2, 4), 0,
                        "lambda p0, p1: [7 - 4 * p0 - p1]"),
    "shifted by 1": (lambda i: [(i + 1) // 8, (i + 1) % 8], (16,), (3, 8), 8,
                     "lambda p0, p1: [8 * p0 + p1 - 1]"),
    "shifted by 2": (lambda i: [(i + 2) // 8, (i + 2) % 8], (16,), (3, 8), 8,
                     "lambda p0, p1: [8 * p0 + p1 - 2]"),
    "reversal": (lambda i: [15 - i], (16,), (16,), 0, "lambda p0: [15 - p0]"),
    "diagonals": (lambda i, j: [i, (i + j) % 8], (8, 8), (8, 8), 0,
                  "lambda p0, p1: [p0, (p1 - p0) % 8]"),
    "swizzle": (lambda i, j: [i, (j // 8 + i) % 8, j % 8], (8, 64), (8, 8, 8), 0,
                "lambda p0, p1, p2: [p0, 8 * ((p1 - p0) % 8) + p2]"),
    "row pitch": (lambda i, j: [i * 16 + j], (10, 10), (154,), 54,
                  "lambda p0: [p0 // 16, p0 % 16]"),
    "strides 5 and 2": (lambda x, y: [5 * x + 2 * y], (4, 3), (20,), 8,
                        "lambda p0: [p0 // 5, p0 % 5 // 2]"),
    "strides that overlap": (lambda x, y: [5 * x + 2 * y], (4, 5), (24,), 4,
                             "lambda p0: [p0 - 2 * ((2 * p0 + 4) // 5), 4 - (2 * p0 - 1) % 5]"),
    "strides 19, 3, 1": (lambda x, y, z: [z * 19 + y * 3 + x], (3, 5, 2), (34,), 4,
                         "lambda p0: [p0 % 19 % 3, p0 % 19 // 3, p0 // 19]"),
    "remainders that share": (lambda i: [i % 3, i % 2], (4,), (3, 2), 2,
                              "lambda p0, p1: [3 - (3 * p1 + 2 * p0 + 3) % 6]"),
    "a digit twice": (lambda i: [(i + 1) // 2, (i + 1) % 2, (i + 1) % 2], (3,), (2, 2, 2), 5,
                      "lambda p0, p1, p2: [2 * p0 + p1 - 1]"),
    "every other": (lambda i: [2 * i], (8,), (15,), 7, "lambda p0: [p0 // 2]"),
    "pairs swapped": (lambda x: [x // 2 * 2 - x % 2 + 1], (16,), (16,), 0,
                      "lambda p0: [2 * (p0 // 2) - p0 % 2 + 1]"),
    "digit reversed": (lambda x, y: [x * 8 - y + 7], (4, 8), (32,), 0,
                       "lambda p0: [p0 // 8, 7 - p0 % 8]"),
    "remainders": (lambda i: [i % 3, i % 5], (15,), (3, 5), 0,
                   "lambda p0, p1: [5 * ((p1 - p0) % 3) + p1]"),
    "skew": (lambda i, j: [i, i + j], (4, 4), (4, 7), 12, "lambda p0, p1: [p0, p1 - p0]"),
    "255": (lambda x: [(x % 255) // 16, x % 16], (255,), (16, 16), 1,
            "lambda p0, p1: [16 * p0 + p1]"),
    "xor": (lambda i, j: [i, i ^ j], (8, 8), (8, 8), 0, "lambda p0, p1: [p0, p1 ^ p0]"),
    "xor, not a power of 2": (lambda i, j: [i, i ^ j], (10, 10), (10, 16), 60,
                              "lambda p0, p1: [p0, p1 ^ p0]"),
    "xor of digits": (lambda i, j: [i, (j // 8) ^ (i % 8), j % 8], (16, 64), (16, 8, 8), 0,
                      "lambda p0, p1, p2: [p0, 8 * (p1 ^ p0 % 8) + p2]"),
    "xor in one axis": (lambda i, j: [(i * 8 + j) ^ (i & 3)], (8, 8), (64,), 0,
                        "lambda p0: [p0 >> 3, p0 & 7 ^ p0 >> 3 & 3]"),
    "xor with a number": (lambda i: [i ^ 5], (16,), (16,), 0, "lambda p0: [p0 ^ 5]"),
    "Gray code": (lambda i: [i ^ (i >> 1)], (16,), (16,), 0,
                  "lambda p0: [p0 ^ p0 >> 1 ^ p0 >> 2 ^ p0 >> 3]"),
    "Morton": (lambda y, x: [(x & 1) | ((y & 1) << 1) | ((x & 2) << 1) | ((y & 2) << 2)],
               (4, 4), (16,), 0,
               "lambda p0: [p0 >> 1 & 1 ^ p0 >> 2 & 2, p0 & 1 ^ p0 >> 1 & 2]"),
    "Morton with %": (lambda y, x: [(y // 2 * 2 + x // 2) * 4 + y % 2 * 2 + x % 2],
                      (4, 4), (16,), 0,
                      "lambda p0: [2 * (p0 // 8) + p0 // 2 % 2, 2 * (p0 // 4 % 2) + p0 % 2]"),
    "ldmatrix": (lambda i, j: [i % 8 * 4 + j % 8 // 2, 4 * (j // 8) + i // 8 * 2 + j % 2],
                 (16, 16), (32, 8), 0,
                 "lambda p0, p1: [8 * (p1 // 2 % 2) + p0 // 4, 8 * (p1 // 4) + 2 * (p0 % 4) + "
                 "p1 % 2]"),
    "NCHWc": (lambda n, h, w, c: [n, c // 4, h, w, c % 4], (2, 3, 4, 10), (2, 3, 3, 4, 4), 48,
              "lambda p0, p1, p2, p3, p4: [p0, p2, p3, 4 * p1 + p4]"),
    "7 axes to 3": (lambda a, b, c, d, e, f, g: [a * 2 + b, (c * 3 + d) * 2 + e, f * 2 + g],
                    (2, 2, 2, 3, 2, 3, 2), (4, 12, 6), 0,
                    "lambda p0, p1, p2: [p0 // 2, p0 % 2, p1 // 6, p1 // 2 % 3, p1 % 2, "
                    "p2 // 2, p2 % 2]"),
    "cut and rotated": (lambda i: [(i + 3) % 16 // 4, (i + 3) % 4], (16,), (4, 4), 0,
                        "lambda p0, p1: [(4 * p0 + p1 - 3) % 16]"),
    "times 7": (lambda i: [i * 7 % 16], (16,), (16,), 0, "lambda p0: [7 * p0 % 16]"),
    "the same twice": (lambda i: [i, i], (4,), (4, 4), 12, "lambda p0, p1: [p0]"),
    "with a constant": (lambda i: [0, i, 2], (4,), (1, 4, 3), 8, "lambda p0, p1, p2: [p1]"),
    "one element": (lambda i, j: [i + j], (1, 1), (1,), 0, "lambda p0: [0, 0]"),
    "no axis": (lambda: [0], (), (1,), 0, "lambda p0: []"),
}

COLLIDING: dict[str, tuple[Function, Shape, Shape, tuple[Shape, Shape], int]] = {
    "remainder only": (lambda i, j: [i % 2, j], (4, 4), (2, 4), ((0, 0), (2, 0)), 0),
    "quotient only": (lambda i: [i // 2], (4,), (2,), ((0,), (1,)), 0),
    "a digit lost": (lambda i: [i // 4, i % 2], (16,), (4, 2), ((0,), (2,)), 0),
    "an axis lost": (lambda i, j: [i], (4, 3), (4,), ((0, 0), (0, 1)), 0),
    "two axes lost": (lambda i, j, k: [j], (4, 3, 2), (3,), ((0, 0, 0), (0, 0, 1)), 0),
    "sum": (lambda i, j: [i + j], (4, 4), (7,), ((0, 1), (1, 0)), 0),
    "sum of some": (lambda i, j: [i * 3 + j], (50, 40), (187,), ((0, 3), (1, 0)), 0),
    "sum of many": (lambda i, j: [i * 999 + j], (1000, 1000), (999001,), ((0, 999), (1, 0)), 0),
    "even multiples": (lambda i: [i * 6 % 16], (16,), (16,), ((0,), (8,)), 8),
    "later": (lambda i: [i % 12 + i // 12], (14,), (13,), ((1,), (12,)), 1),
    "and": (lambda i, j: [i & j, i], (4, 4), (4, 4), ((0, 0), (0, 1)), 7),
    "two groups": (lambda i, j, k: [i // 2, (j + k) % 3, k], (2, 4, 3), (1, 3, 3),
                   ((0, 0, 0), (0, 3, 0)), 0),
}


def at(exprs: Sequence[Expr], variables: Sequence[Var], index: Sequence[int]) -> Shape:
    """Return the values of expressions at one index."""
    values_of = dict(zip(variables, map(values, map(Const, index), [{}] * len(index)), strict=True))
    return tuple(int(values(expr, values_of)) for expr in exprs)


@pytest.mark.exhaustive(keep=23)
@pytest.mark.parametrize("name", INJECTIVE)
def test_injective_maps(name: str) -> None:
    """Answers are correct for every element and every address."""
    function, shape, places, n_padding, text = INJECTIVE[name]
    index_map = IndexMap.from_func(function)

    inverse, is_padding = index_map.non_surjective_inverse(shape)

    assert index_map.map_shape(shape) == places
    assert index_map.is_injective(shape)
    assert index_map.collision(shape) is None
    assert index_map.padding_count(shape) == n_padding
    assert index_map.is_bijective(shape) == (n_padding == 0)
    assert str(inverse) == text
    found = {tuple(function(*index)): index for index in product(*map(range, shape))}
    for place in product(*map(range, places)):
        empty = at([is_padding], inverse.initial_indices, place)[0]
        assert bool(empty) == (place not in found), place
        if place in found:
            assert at(inverse.final_indices, inverse.initial_indices, place) == found[place]


@pytest.mark.parametrize("name", COLLIDING)
def test_colliding_maps(name: str) -> None:
    function, shape, places, pair, n_padding = COLLIDING[name]
    index_map = IndexMap.from_func(function)

    assert index_map.map_shape(shape) == places
    assert not index_map.is_injective(shape)
    assert not index_map.is_bijective(shape)
    assert index_map.collision(shape) == pair
    assert index_map.padding_count(shape) == n_padding
    assert tuple(function(*pair[0])) == tuple(function(*pair[1]))


def test_predicates() -> None:
    """The padding predicate is expressed in terms of the physical indices."""
    texts = {
        name: str(IndexMap.from_func(INJECTIVE[name][0]).non_surjective_inverse(
            INJECTIVE[name][1])[1])
        for name in ("shifted by 1", "row pitch", "every other", "skew", "NCHWc", "255",
                     "strides that overlap", "xor, not a power of 2", "the same twice", "reversal")
    }

    assert texts == {
        "shifted by 1": "8 * p0 + p1 - 1 < 0 or 8 * p0 + p1 - 1 >= 16",
        "row pitch": "p0 % 16 >= 10",
        "every other": "p0 % 2 != 0",
        "skew": "p1 - p0 < 0 or p1 - p0 >= 4",
        "NCHWc": "4 * p1 + p4 >= 10",
        "255": "16 * p0 + p1 >= 255",
        "strides that overlap": "p0 % 2 == 1 and p0 < 4 or p0 % 2 == 0 and p0 >= 20",
        "xor, not a power of 2": "p1 ^ p0 >= 10",
        "the same twice": "p1 != p0",
        "reversal": "False",
    }


n, m = Var("n"), Var("m")


@pytest.mark.parametrize(
    ("function", "shape", "expected"),
    [
        # A remainder has its full modulus as extent, a quotient the ceiling.
        (lambda i: [i // 4, i % 4], (3,), "1 4"),
        (lambda i: [i // 4, i % 4], (14,), "4 4"),
        (lambda i: [i // 4, i % 4], (1,), "1 4"),
        (lambda i: [i % 16], (14,), "16"),
        (lambda i: [(i // 2) % 4, i % 2], (3,), "4 2"),
        (lambda i: [(i % 16) // 4], (3,), "4"),
        (lambda i: [(i % 255) // 16, i % 16], (9,), "16 16"),
        (lambda i: [(i + 3) % 16], (9,), "16"),
        (lambda i: [(i + 1) // 8, (i + 1) % 8], (16,), "3 8"),
        (lambda i, j: [(4 * i + j) // 64, (4 * i + j) % 64], (10, 4), "1 64"),
        (lambda i: [2 * (i % 8) + 3], (5,), "18"),
        (lambda i, j: [i % 8 + j % 8 * 8], (5, 5), "64"),
        # A recomposed index simplifies to the index itself.
        (lambda i: [i // 4 * 4 + i % 4], (14,), "14"),
        # For other maps, the extents are those of the exact bounding box.
        (lambda i, j: [i * 16 + j], (10, 10), "154"),
        (lambda i: [i - i % 4], (14,), "13"),
        (lambda i, j: [i + j, i - j + 3], (5, 4), "8 8"),
        (lambda i, j: [i * 300 + j], (1000, 900), "300600"),
        (lambda i: [binary(BinOp.MIN, i, 7)], (20,), "8"),
        (lambda i, j: [i ^ j], (5, 3), "7"),
        (lambda i: [7], (5,), "8"),
        # No elements.
        (lambda i: [i // 4, i % 4], (0,), "0 4"),
        (lambda i, j: [i * 8 + j, j, 5], (0, 4), "0 4 6"),
        # Symbolic extents.
        (lambda i: [i // 4, i % 4], (n,), "(n + 3) // 4 4"),
        (lambda i, j: [j, i], (n, m), "m n"),
        (lambda i, j: [i * 16 + j], (n, 16), "n * 16"),
        (lambda i, j: [i * 16 + j], (n, 10), "max(n * 16 - 6, 0)"),
        (lambda i: [(i + 1) // 4, (i + 1) % 4], (n,), "n // 4 + 1 4"),
        (lambda i: [n - 1 - i], (n,), "n"),
        (lambda i: [i + n % 4], (8,), "n % 4 + 8"),
        (lambda i, j: [i, (i + j) % 8], (n * m, 8), "n * m 8"),
        (lambda i: [i % 16], (n,), "16"),
    ],
)
def test_shape(function: Function, shape: tuple[int | Expr, ...], expected: str) -> None:
    index_map = IndexMap.from_func(function)

    assert " ".join(map(str, index_map.map_shape(shape))) == expected


def test_symbolic_extents() -> None:
    """Symbolic answers hold for every size."""
    tiles = IndexMap.from_func(lambda i, j: [i // 4, j, i % 4])
    transpose = IndexMap.from_func(lambda i, j: [j, i])
    rows = IndexMap.from_func(lambda i, j: [i * 16 + j])
    swizzle = IndexMap.from_func(lambda i, j: [i, (i + j) % 8])

    assert tiles.is_injective([n, m])
    assert not tiles.is_bijective([n, m])
    assert str(tiles.padding_count([n, 3])) == "9 - (n + 3) % 4 * 3"
    assert str(tiles.non_surjective_inverse([n, m])) == (
        "(lambda p0, p1, p2: [4 * p0 + p2, p1], 4 * p0 + p2 >= n)"
    )
    assert transpose.is_bijective([n, m])
    assert transpose.padding_count([n, m]) == 0
    assert str(transpose.inverse([n, m])) == "lambda p0, p1: [p1, p0]"
    assert rows.is_bijective([n, 16])
    assert str(rows.inverse([n, 16])) == "lambda p0: [p0 // 16, p0 % 16]"
    assert not rows.is_bijective([n, 10])
    assert not rows.is_injective([n, m])
    assert rows.collision([n, m]) == ((0, 16), (1, 0))
    assert swizzle.is_bijective([n, 8])
    assert str(swizzle.inverse([n, 8])) == "lambda p0, p1: [p0, (p1 - p0) % 8]"
    assert swizzle.collision([n, m]) == ((0, 0), (0, 8))


def test_an_empty_tensor() -> None:
    tiles = IndexMap.from_func(lambda i: [i // 4, i % 4])
    remainder = IndexMap.from_func(lambda i: [i % 4])

    assert tiles.is_bijective([0])
    assert tiles.padding_count([0]) == 0
    assert remainder.is_injective([0])
    assert not remainder.is_bijective([0])
    assert remainder.padding_count([0]) == 4
    assert str(remainder.non_surjective_inverse([0])) == "(lambda p0: [0], True)"


def test_functions_of_the_indices() -> None:
    def last_first(*i: Var, c: Var) -> list[Expr]:
        return [c, *i]

    assert str(IndexMap.from_func(lambda i, j: [j, i])) == "lambda i, j: [j, i]"
    assert str(IndexMap.from_func(lambda *i: i[::-1], ndim=3)) == "lambda i0, i1, i2: [i2, i1, i0]"
    assert str(IndexMap.from_func(lambda n, *i: [*i, n], ndim=3)) == "lambda n, i0, i1: [i0, i1, n]"
    assert str(IndexMap.from_func(last_first, ndim=3)) == "lambda i0, i1, c: [c, i0, i1]"
    assert str(IndexMap.from_func(lambda *i: [*i], ndim=1)) == "lambda i0: [i0]"
    assert str(IndexMap.from_func(lambda i, step=4: [i // step, 0])) == "lambda i: [i // 4, 0]"
    assert [v.dtype for v in IndexMap.from_func(lambda i: (i, 3)).final_indices] == ["int64"] * 2


@pytest.mark.parametrize(
    ("function", "separators"),
    [
        (lambda n, h, w, c: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4], (2,)),
        (lambda n, h, w, c: [n, AXIS_SEPARATOR, h, w, AXIS_SEPARATOR, c], (0, 2)),
        (lambda n, h, w, c: [n, h, w, c], ()),
    ],
)
def test_separators(function: Function, separators: Shape) -> None:
    """A separator is the axis number after which a group ends, as in the RFC's NHWC example."""
    assert IndexMap.from_func(function).axis_separators == separators


def test_separator_is_one_object() -> None:
    assert repr(AXIS_SEPARATOR) == "AXIS_SEPARATOR"
    assert type(AXIS_SEPARATOR)("AXIS_SEPARATOR") is AXIS_SEPARATOR


def test_indices() -> None:
    i, j = Var("i"), Var("j")
    nchwc = IndexMap.from_func(lambda n, h, w, c: [n, c // 4, h, w, c % 4])

    assert list(map(str, nchwc.map_indices([11, 37, 23, 101]))) == ["11", "25", "37", "23", "1"]
    assert list(map(str, nchwc.map_indices([i, 0, 0, 4 * j]))) == ["i", "j", "0", "0", "0"]


def test_composition() -> None:
    blocks = IndexMap.from_func(lambda i, j: [i // 4, j, i % 4])
    flat = IndexMap.from_func(lambda a, b, c: [a, AXIS_SEPARATOR, b * 4 + c])
    inverse = blocks.inverse([8, 8])

    assert str(blocks.then(flat)) == "lambda i, j: [i // 4, AXIS_SEPARATOR, j * 4 + i % 4]"
    assert str(blocks.then(inverse)) == "lambda i, j: [i, j]"
    assert str(inverse.inverse([2, 8, 4])) == "lambda p0, p1: [p0 // 4, p1, p0 % 4]"


@pytest.mark.parametrize(
    ("one", "other", "shape", "expected"),
    [
        (lambda i: [i // 4 % 4, i % 4], lambda i: [i // 4, i % 4], (16,), True),
        (lambda i: [i // 4 % 4, i % 4], lambda i: [i // 4, i % 4], (17,), False),
        (lambda i: [i // 4 % 4, i % 4], lambda i: [i // 4, i % 4], None, False),
        (lambda i: [i - i // 4 * 4], lambda i: [i % 4], None, True),
        (lambda i, j: [j, i], lambda a, b: [b, a], None, True),
        (lambda i, j: [j, i], lambda a, b: [a, b], (3, 3), False),
        (lambda i, j: [j, i], lambda a, b: [a, b], (1, 1), True),
        (lambda i: [i], lambda i: [i, 0], (4,), False),
        (lambda i: [i ^ 1], lambda i: [i + 1 - i % 2 * 2], (16,), True),
        (lambda i: [i ^ 1], lambda i: [i], (16,), False),
        (lambda i: [i ^ 1], lambda k: [k ^ 1], None, True),
        (lambda i: [i + 1], lambda i: [i], (0,), True),
        (lambda i: [i % 1000000], lambda i: [i], (1000000,), True),
        (lambda i: [i % 1000000], lambda i: [i], (1000001,), False),
        (lambda i: [(i + 3) % 16], lambda i: [(i - 13) % 16], (n,), True),
        (lambda i: [i % 16], lambda i: [i], (n,), False),
    ],
)
def test_equivalence(
    one: Function, other: Function, shape: Sequence[int | Expr] | None, expected: bool
) -> None:
    first, second = IndexMap.from_func(one), IndexMap.from_func(other)

    assert first.is_equivalent_to(second, shape) is expected
    assert second.is_equivalent_to(first, shape) is expected


def test_plain_maps() -> None:
    i = Var("i")
    plain = IndexMapNode((i,), (i // 4, i % 4), (0,))

    lifted = IndexMap.lift(plain)

    assert lifted.axis_separators == (0,)
    assert lifted.plain == plain
    assert lifted == IndexMap((i,), (i // 4, i % 4), (0,))
    assert lifted != IndexMap((i,), (i // 4, i % 4))
    assert IndexMap.lift(lifted) is lifted
    assert lifted.map_shape([16]) == (4, 4)


io, jo = Var("io"), Var("jo")
TILE = {io: (0, 9), jo: (0, 9)}


@pytest.mark.parametrize(
    ("function", "region", "expected"),
    [
        (lambda i: [i // 4, i % 4], [(io * 8, 8)], "io * 2: 2, 0: 4"),
        (lambda i: [i // 4, i % 4], [(io * 3, 3)], "io * 3 // 4: 2, 0: 4"),
        (lambda i: [i // 4, i % 4], [(io * 6, 3)], "io * 3 // 2: 2, 0: 4"),
        (lambda i: [i // 4, i % 4], [(io * 8 + 2, 2)], "io * 2: 1, 2: 2"),
        (lambda i: [i // 4, i % 4], [(io, 1)], "io // 4: 1, io % 4: 1"),
        (lambda i: [i // 4, i % 4], [(io * 4 - 1, 6)], "io - 1: 3, 0: 4"),
        (lambda i: [i // 4, i % 4], [(n, 6)], "n // 4: 3, 0: 4"),
        (lambda i: [i // 4, i % 4], [(0, 14)], "0: 4, 0: 4"),
        (lambda i: [i // 4, i % 4], [(0, n)], "0: (n + 3) // 4, 0: 4"),
        (lambda i: [15 - i], [(io, 2)], "14 - io: 2"),
        (lambda i, j: [i, (i + j) % 8], [(io, 1), (0, 8)], "io: 1, 0: 8"),
        (lambda i, j: [i * 16 + j], [(io * 2, 2), (jo, 3)], "io * 32 + jo: 19"),
        (lambda i, j: [i, i ^ j], [(io, 1), (0, 8)], "io: 1, 0: 16"),
        (lambda i, j: [i // 4, j, i % 4], [(io * 4, 4), (0, n)], "io: 1, 0: n, 0: 4"),
        (lambda i: [binary(BinOp.MIN, i, 20)], [(io * 2, 2)], "0: 20"),
    ],
)
def test_box_of_places(
    function: Function, region: list[tuple[int | Expr, int | Expr]], expected: str
) -> None:
    bounds = [Range(index_value(low), index_value(extent)) for low, extent in region]

    box = image_box(IndexMap.from_func(function), bounds, TILE)

    assert ", ".join(f"{part.min}: {part.extent}" for part in box) == expected


@pytest.mark.parametrize("name", INJECTIVE)
def test_box_holds_all_places(name: str) -> None:
    """The bounding box contains all addresses of 1- and 2-element boxes at any offset."""
    function, shape, *_ = INJECTIVE[name]
    index_map = IndexMap.from_func(function)
    outer = tuple(Var(f"o{k}") for k in range(len(shape)))
    size = [min(2, extent) if extent < 8 else 2 for extent in shape]
    region = [Range(v * s, index_value(s)) for v, s in zip(outer, size, strict=True)]
    limits = {v: (0, extent // s - 1) for v, extent, s in zip(outer, shape, size, strict=True)}

    box = image_box(index_map, region, limits)

    for tile in list(product(*(range(high + 1) for _, high in limits.values())))[:200]:
        low = at([part.min for part in box], outer, tile)
        extents = at([part.extent for part in box], outer, tile)
        for within in product(*map(range, size)):
            index = [t * s + w for t, s, w in zip(tile, size, within, strict=True)]
            place = function(*index)
            assert all(a <= p < a + e for a, p, e in zip(low, place, extents, strict=True))


def test_results_are_memoized() -> None:
    tiles = IndexMap.from_func(lambda i: [i // 4, i % 4])

    first = tiles.inverse([16])

    assert tiles.inverse([16]).final_indices is first.final_indices
    (extent,) = te.placeholder((16,)).shape
    assert tiles.inverse([extent]).final_indices is first.final_indices
    fresh = IndexMap.from_func(lambda i: [i // 4, i % 4])
    assert fresh.on([extent]) is fresh.on([extent])
    assert prod(tiles.map_shape([16])) == 16


@pytest.mark.parametrize(
    ("one", "other", "shape", "expected"),
    [
        (lambda i: [i % 32], lambda a: [a % 64], (20,), (64,)),
        (lambda i: [i % 32], lambda a: [a ^ 3], (20,), (32,)),
        (lambda i: [i // 4, i % 4], lambda a, b: [a * 4 + b], (14,), (16,)),
        (lambda i, j: [i % 32, j], lambda a, b: [b, a // 4, a % 4], (5, 7), (7, 8, 4)),
    ],
)
def test_a_composed_map_composes_positions(
    one: Any, other: Any, shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    """A composed map has the physical shape of the second map applied to that of the first."""
    first, second = (IndexMap.from_func(f) for f in (one, other))

    both = first.then(second)

    assert both.map_shape(shape) == second.map_shape(first.map_shape(shape)) == expected
    assert both.then(IndexMap.from_func(lambda *i: list(i), ndim=len(expected))).map_shape(
        shape) == expected
    assert both.padding_count(shape) == prod(expected) - prod(shape)


@pytest.mark.parametrize("depth", [50, 300, 1000])
def test_deep_maps(depth: int) -> None:
    """Nested remainders are supported, although no sum of digits expresses them."""
    def function(i: Any) -> list[Any]:
        place = i
        for k in range(depth):
            place = (place + 1) % (1000 + k)
        return [place, i // 4]

    index_map = IndexMap.from_func(function)

    assert index_map.map_shape([8]) == (999 + depth, 2)
    assert index_map.collision([8]) is None
    assert index_map.padding_count([8]) == 2 * (999 + depth) - 8


def test_box_of_places_without_known_bounds() -> None:
    """XOR with an unbounded index may give any address, so the tensor extents bound the box."""
    swizzle = IndexMap.from_func(lambda i, j: [i, i % 4 ^ j])
    bounds = [Range(index_value(0), index_value(2)), Range(n - 2, index_value(3))]

    box = image_box(swizzle, bounds, TILE, [2, 7])

    assert [f"{part.min}: {part.extent}" for part in box] == ["0: 2", "0: 8"]
    with pytest.raises(LayoutError) as refused:
        image_box(swizzle, bounds, TILE)
    assert diagnostic(refused.value) == (
        Diagnostic("limit-exceeded", moved="i % 4 ^ n + j - 2")
    )
