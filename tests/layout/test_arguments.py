"""What is no layout and no list of integers is named as such, wherever it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import GridMap, Layout, LayoutError, StickLayout

STICKS = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
ANY: Any = STICKS
stick_layout: Any = StickLayout
relayout: Any = tecomp.relayout
made_of: Any = Layout
made_map: Any = GridMap


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ANY.place(1),
            "layout: the element is 1; give integers, one for each axis, such as (0, 1)",
        ),
        (
            lambda: ANY.place((1.5, 0)),
            "layout: the element is (1.5, 0); give integers, one for each axis, such as (0, 1)",
        ),
        (
            lambda: ANY.element("abc"),
            "layout: the place is 'abc'; give integers, one for each axis, such as (0, 1)",
        ),
        (
            lambda: ANY.dma(start=(0.5, 0)),
            "layout.dma: start is (0.5, 0); give integers, one for each axis, such as (0, 1)",
        ),
        (
            lambda: ANY.runs(extents=3),
            "layout.runs: extents is 3; give integers, one for each axis, such as (0, 1)",
        ),
        (
            lambda: ANY.dma(0),
            "layout.dma: 0 are no strides; give one for each axis, in elements",
        ),
        (
            lambda: stick_layout((3, 128), "float16", "ab"),
            "stick layout: dim_order is 'ab'; give integers, one for each axis, such as (0, 1)",
        ),
        (
            lambda: Layout.of(ANY.nbytes, "float16", lambda i: [i]),
            "layout: the shape is 512000; give integers, one for each axis, such as (0, 1)",
        ),
        (
            lambda: made_of((4,), "float32", STICKS.index_map, storage="int4"),
            "layout: 'int4' is no storage format; take one of storage_format(name)",
        ),
        (
            lambda: ANY.runs_to(None),
            "layout.runs_to: None is no layout; make one, such as with Layout.of",
        ),
        (
            lambda: stick_layout(None),
            "stick layout: missing a required argument: 'dtype'; this way to write one takes size, "
            'dtype, pad_all_dims, stick_bytes, e.g. StickLayout((1024, 256), "float16")',
        ),
        (
            lambda: stick_layout((4, 4), "float16", lanes=3),
            "stick layout: got an unexpected keyword argument 'lanes'; this way to write one takes "
            'size, dtype, pad_all_dims, stick_bytes, e.g. StickLayout((1024, 256), "float16")',
        ),
        (
            lambda: made_map((8, 8), divmod, (8, 8)),
            "grid map: divmod is no index map; GridMap.of(shape, function, physical) takes a "
            "function of the axes",
        ),
        (
            lambda: made_map((8, 8), lambda y, x: [y, x], (8, 8)),
            "grid map: <lambda> is no index map; GridMap.of(shape, function, physical) takes a "
            "function of the axes",
        ),
        (
            lambda: made_map((8, 8), "rows", (8, 8)),
            "grid map: 'rows' is no index map; GridMap.of(shape, function, physical) takes a "
            "function of the axes",
        ),
        (
            lambda: ANY.row_major((4, 5), "float32", (0, 2)),
            "layout: the order [0, 2] does not have each of the 2 axes once; give their numbers, "
            "from the longest steps on",
        ),
        (
            lambda: ANY.row_major(None, "float32"),
            "layout: the shape is None; give integers, one for each axis, such as (0, 1)",
        ),
        (
            lambda: ANY.is_equivalent_to(None),
            "layout.is_equivalent_to: None is no layout; make one, such as with Layout.of",
        ),
        (
            lambda: STICKS.index_map.then(ANY),
            f"index map: expected an index map, got {ANY!r}; make one with IndexMap.from_func",
        ),
        (
            lambda: relayout(ANY, (1000, 200)),
            "relayout: (1000, 200) is no layout; make one, such as with Layout.of",
        ),
    ],
)
def test_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(LayoutError) as error:
        call()

    assert error.value.message == message


def test_integers_of_any_kind() -> None:
    assert ANY.place(np.array([3, 130])) == (2, 3, 2)
    assert ANY.element([np.int8(2), 3, 2]) == (3, 130)


def test_a_type_is_given_by_its_name() -> None:
    numbers = np.array([0.0, 1.0, -1.5, 448.0], "float32")
    layout = made_of(
        (4,), "float32", tecomp.IndexMap.from_func(lambda i: [3 - i]),
        storage=tecomp.storage_format("float8_e4m3fn"),
    )

    assert layout.nbytes == 4
    np.testing.assert_array_equal(layout.unpack(layout.pack(numbers)), numbers)
