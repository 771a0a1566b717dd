"""Common digits of two layouts, against the offsets of all elements."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from tecomp import IndexMap
from tecomp.ir import INT64, Buffer, BufferStore, PrimFunc, evaluate
from tecomp.poly import CommonDigits, DigitAxis, common_digits, padding_boxes

Map = Callable[..., list[Any]]


def cut(shape: tuple[int, ...], *functions: Map) -> tuple[CommonDigits, list[tuple[int, ...]]]:
    """Return the common digits of some maps, and the extents of their results."""
    maps = [IndexMap.from_func(f, ndim=len(shape)) for f in functions]
    places = [tuple(int(str(n)) for n in m.map_shape(shape)) for m in maps]
    return common_digits(shape, list(zip(maps, places, strict=True))), places


def units(axis: DigitAxis) -> list[tuple[int, int]]:
    """Return unit and size of each digit."""
    return [(digit.unit, digit.size) for digit in axis.digits]


def test_an_axis_is_cut_where_one_of_the_layouts_cuts_it() -> None:
    found, _ = cut(
        (100, 200), lambda i, j: [i, j],
        lambda i, j: [j // 64, i // 16, j % 64, i % 16], lambda i, j: [j // 16, i, j % 16],
    )

    rows, columns = found.axes
    assert units(rows) == [(16, 7), (1, 16)]
    assert units(columns) == [(64, 4), (16, 4), (1, 16)]
    high, low = (digit.var for digit in rows.digits)
    assert [offset.strides[low] for offset in found.offsets] == [200, 1, 16]
    assert [offset.strides[high] for offset in found.offsets] == [3200, 1024, 256]
    assert [offset.remainder for offset in found.offsets] == [None, None, None]


def test_incompatible_splits_share_common_divisors() -> None:
    found, _ = cut((96,), lambda i: [i % 12, i // 12], lambda i: [i % 8, i // 8])

    assert units(found.axes[0]) == [(12, 8), (4, 3), (1, 4)]
    assert found.offsets[0].remainder is None
    assert str(found.offsets[1].remainder) == (
        "48 * ((3 * i0_12 + i0_4) % 2) + (3 * i0_12 + i0_4) // 2"
    )


def test_axes_that_are_counted_together_become_one() -> None:
    found, _ = cut(
        (10, 30), lambda i, j: [i, j], lambda i, j: [(i * 30 + j) % 4, (i * 30 + j) // 4]
    )

    (axis,) = found.axes
    assert axis.extent == 300
    assert units(axis) == [(4, 75), (1, 4)]


def test_a_swizzle_leaves_the_digits_that_it_does_not_touch() -> None:
    found, _ = cut((64, 64), lambda i, j: [i, j], lambda i, j: [i, j ^ i % 8 * 8])

    rest = found.offsets[1].remainder
    low = found.axes[1].digits[-1]
    assert (low.unit, low.size) == (1, 8)
    assert found.offsets[1].strides[low.var] == 1
    assert str(rest) == "64 * i0_1 + (8 * i1_8 ^ 8 * i0_1)"


MAPS: list[tuple[tuple[int, ...], Map]] = [
    ((100, 200), lambda i, j: [j // 64, i, j % 64]),
    ((7, 9, 5), lambda i, j, k: [k % 8, i // 4, j, i % 4]),
    ((33, 70), lambda i, j: [i // 32, j // 32, i // 16 % 2, j // 16 % 2, i % 16, j % 16]),
    ((10, 30), lambda i, j: [(i * 30 + j) // 64, (i * 30 + j) % 64]),
    ((1, 5), lambda i, j: [i % 4, j, i // 4]),
    ((12,), lambda i: [i * 3 % 36]),
]


@pytest.mark.parametrize(("shape", "function"), MAPS)
def test_boxes_cover_every_index_and_every_empty_place_once(
    shape: tuple[int, ...], function: Map
) -> None:
    found, (places,) = cut(shape, function)
    (offset,) = found.offsets
    count = np.zeros(prod(places), np.int64)
    for boxes in product(*(axis.boxes() for axis in found.axes)):
        where = np.array([offset.const])
        for axis, box in zip(found.axes, boxes, strict=True):
            for digit, (first, n) in zip(axis.digits, box, strict=True):
                steps = (first + np.arange(n)) * offset.strides.get(digit.var, 0)
                where = (where[:, None] + steps).reshape(-1)
        count[where] += 1
    selected = np.zeros(places, np.int64)
    selected[tuple(np.broadcast_arrays(*function(*np.indices(shape, sparse=True))))] = 1
    assert np.array_equal(count, selected.reshape(-1))

    empty = padding_boxes(found.axes, offset, prod(places))

    assert empty is not None
    for start, dims in empty:
        where = np.array([start])
        for n, step in dims:
            where = (where[:, None] + np.arange(n) * step).reshape(-1)
        count[where] += 1
    assert np.array_equal(count, np.ones_like(count))


@pytest.mark.parametrize(
    "function", [lambda i: [i + 3], lambda i: [i * 3], lambda i: [i ^ i // 4 % 4], lambda i: [11 - i]]
)
def test_places_that_no_digit_counts_are_in_no_box(function: Map) -> None:
    found, (places,) = cut((12,), function)

    assert padding_boxes(found.axes, found.offsets[0], prod(places)) is None


def test_non_digit_sums_remain_expressions() -> None:
    shape = (16, 24)
    functions: list[Map] = [
        lambda i, j: [(i + j) % 16, j], lambda i, j: [i, j ^ (i // 2 & 3)],
        lambda i, j: [(i * 24 + j) // 5, (i * 24 + j) % 5],
        lambda i, j: [(i * 24 + j) ^ ((i * 24 + j) & 96) // 32],
    ]
    found, places = cut(shape, *functions)
    digits = [digit for axis in found.axes for digit in axis.digits]
    for function, extents, offset in zip(functions, places, found.offsets, strict=True):
        expected = np.sort(np.ravel_multi_index(
            tuple(np.broadcast_arrays(*function(*np.indices(shape)))), extents).reshape(-1))
        result = Buffer("result", (1,), INT64)
        total = offset.remainder if offset.remainder is not None else digits[0].var * 0
        func = PrimFunc("at", (result, *(d.var for d in digits)),
                        BufferStore(result, total, (digits[0].var * 0,)))
        actual = []
        for values in product(*(range(d.size) for d in digits)):
            sizes = dict(zip((d.var for d in digits), values, strict=True))
            if any(
                sum(d.unit * sizes[d.var] for d in axis.digits) >= axis.extent
                for axis in found.axes
            ):
                continue
            out = np.zeros(1, np.int64)
            evaluate(func, [out, *values])
            linear = sum(step * sizes[var] for var, step in offset.strides.items())
            actual.append(offset.const + linear + int(out[0]))
        assert np.array_equal(np.sort(actual), expected)
