"""Invalid layouts and integer lists are reported by parameter name in all entry points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import GridMap, Layout, LayoutError, StickLayout
from tests.messages import Diagnostic, diagnostic

STICKS = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
ANY: Any = STICKS
stick_layout: Any = StickLayout
relayout: Any = tecomp.relayout
made_of: Any = Layout
made_map: Any = GridMap


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: ANY.place(1),
            Diagnostic("invalid-type", where="layout: the element", values=1),
        ),
        (
            lambda: ANY.place((1.5, 0)),
            Diagnostic("invalid-type", where="layout: the element", values=(1.5, 0)),
        ),
        (
            lambda: ANY.element("abc"),
            Diagnostic("invalid-type", where="layout: the place", values="abc"),
        ),
        (
            lambda: ANY.dma(start=(0.5, 0)),
            Diagnostic("invalid-type", where="layout.dma: start", values=(0.5, 0)),
        ),
        (
            lambda: ANY.runs(extents=3),
            Diagnostic("invalid-type", where="layout.runs: extents", values=3),
        ),
        (
            lambda: ANY.dma(0),
            Diagnostic("transfer", caller="layout.dma", strides=0),
        ),
        (
            lambda: stick_layout((3, 128), "float16", "ab"),
            Diagnostic("invalid-type", where="stick layout: dim_order", values="ab"),
        ),
        (
            lambda: Layout.of(ANY.nbytes, "float16", lambda i: [i]),
            Diagnostic(
                "invalid-type", where="layout: the shape", value=512000,
                remedy="pass one integer per axis, such as (0, 1)",
            ),
        ),
        (
            lambda: made_of((4,), "float32", STICKS.index_map, storage="int4"),
            Diagnostic("storage-format", storage="int4"),
        ),
        (
            lambda: ANY.runs_to(None),
            Diagnostic("invalid-type", where="layout.runs_to", value=None),
        ),
        (
            lambda: stick_layout(None),
            Diagnostic(
                "sticks", reason="missing a required argument: 'dtype'",
                names="size, dtype, pad_all_dims, num_stick_dims, stick_bytes",
            ),
        ),
        (
            lambda: stick_layout((4, 4), "float16", lanes=3),
            Diagnostic(
                "sticks", reason="got an unexpected keyword argument 'lanes'",
                names="size, dtype, pad_all_dims, num_stick_dims, stick_bytes",
            ),
        ),
        (
            lambda: made_map((8, 8), divmod, (8, 8)),
            Diagnostic("shards", value="divmod"),
        ),
        (
            lambda: made_map((8, 8), lambda y, x: [y, x], (8, 8)),
            Diagnostic("shards", value="<lambda>"),
        ),
        (
            lambda: made_map((8, 8), "rows", (8, 8)),
            Diagnostic("shards", value="'rows'"),
        ),
        (
            lambda: ANY.row_major((4, 5), "float32", (0, 2)),
            Diagnostic("layout", axes=[0, 2], rank=2),
        ),
        (
            lambda: ANY.row_major(None, "float32"),
            Diagnostic(
                "invalid-type", where="layout: the shape", value=None,
                remedy="pass one integer per axis, such as (0, 1)",
            ),
        ),
        (
            lambda: ANY.is_equivalent_to(None),
            Diagnostic("invalid-type", where="layout.is_equivalent_to", value=None),
        ),
        (
            lambda: STICKS.index_map.then(ANY),
            Diagnostic("invalid-type", plain=str(ANY)),
        ),
        (
            lambda: relayout(ANY, (1000, 200)),
            Diagnostic("invalid-type", where="relayout", value=(1000, 200)),
        ),
    ],
)
def test_refused(call: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as error:
        call()

    assert diagnostic(error.value) == expected


def test_integers_of_any_kind() -> None:
    assert ANY.place(np.array([3, 130])) == (2, 3, 2)
    assert ANY.element([np.int8(2), 3, 2]) == (3, 130)


def test_dtype_by_name() -> None:
    numbers = np.array([0.0, 1.0, -1.5, 448.0], "float32")
    layout = made_of(
        (4,), "float32", tecomp.IndexMap.from_func(lambda i: [3 - i]),
        storage=tecomp.storage_format("float8_e4m3fn"),
    )

    assert layout.nbytes == 4
    np.testing.assert_array_equal(layout.unpack(layout.pack(numbers)), numbers)
