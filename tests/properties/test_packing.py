"""`pack`, `unpack` and `empty` of a kernel with random layouts of one tensor."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tecomp import IndexMap, te
from tecomp.driver.build import build
from tests.strategies.arrays import assert_equal, garbage
from tests.strategies.draws import Draw
from tests.strategies.layouts import draw_layout, function_of, pack
from tests.strategies.values import TYPES

Layout: TypeAlias = "tuple[list[int], str, list[str]]"


@st.composite
def layouts(draw: Draw) -> Layout:
    """Draw a shape, a dtype, and one or two index maps for a tensor of this shape."""
    first: list[int] = draw(st.lists(st.sampled_from((3, 2, 1, 5, 7, 8, 13, 0)), max_size=3))
    shape, texts = first, []
    for _ in range(draw(st.integers(1, 2))):
        texts.append(draw_layout(draw, shape, separated=False))
        index_map = IndexMap.from_func(function_of(texts[-1]), ndim=len(shape))
        shape = [int(str(extent)) for extent in index_map.map_shape(shape)]
    return first, draw(st.sampled_from(TYPES)), texts


@given(layouts())
@example(([], "float32", ["lambda: [0]"]))
def test_pack_stores_elements_at_their_physical_index(layout: Layout) -> None:
    shape, dtype, texts = layout
    X = te.placeholder(shape, dtype, name="X")
    Y = te.compute(shape, lambda *i: X[i], name="Y")
    s = te.create_schedule(Y.op)
    for text in texts:
        s[X].transform_layout(function_of(text))
    kernel = build(s, [X, Y])
    count = int(np.prod(shape))
    logical = (np.arange(1, count + 1) % 100).reshape(shape).astype(X.dtype.numpy)
    stored = kernel.empty(X)
    expected = np.zeros_like(stored)
    selected = pack(texts, logical, expected)

    assert_equal(kernel.pack(X, logical), expected, "packed")

    dirty = garbage(stored.shape, stored.dtype)
    dirty[selected] = expected[selected]
    assert_equal(kernel.unpack(X, dirty), logical, "unpacked")

    y = garbage(logical.shape, logical.dtype)
    kernel(dirty, y)
    assert_equal(y, logical, "copied by the kernel")

    y = garbage(logical.shape, logical.dtype)
    kernel(logical, y, layouts="logical")
    assert_equal(y, logical, "copied from the shape of the computation")
