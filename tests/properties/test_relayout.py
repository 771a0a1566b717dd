"""Compiled copies between random layouts move every element and fill the padding."""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tecomp import Core, IndexMap, Layout, relayout
from tecomp.codegen import Kernel
from tecomp.ir import DType
from tecomp.relayout_kernels import CopyEndpoint, CopySpec, kernel
from tests.strategies.arrays import Guarded
from tests.strategies.draws import Draw
from tests.strategies.layouts import draw_layout, function_of, places

Array: TypeAlias = NDArray[Any]

TYPES = ("uint8", "float16", "float32", "float64", "bool", "bfloat16", "int64")
BLOCKS = (2, 3, 4, 8, 16, 32, 64)
MOST_PLACES = 1 << 20


@st.composite
def blocked(draw: Draw, rank: int) -> str:
    """Draw a map into blocks of typical sizes, in any order, sometimes swizzled."""
    names = [f"a{k}" for k in range(rank)]
    results = []
    for name in names:
        cuts = sorted(draw(st.sets(st.sampled_from(BLOCKS), max_size=2)))
        if len(cuts) == 2 and cuts[1] % cuts[0]:
            cuts = cuts[1:]
        low = 1
        for cut in cuts:
            results.append(f"{name} // {low} % {cut // low}")
            low = cut
        top = f"{name} // {low}"
        results.append(draw(st.sampled_from((top, top, f"{top} % {draw(st.integers(40, 50))}"))))
    order = draw(st.permutations(results))
    if len(order) > 1 and draw(st.booleans()):
        row, column = order[-2:]
        period = column.split("%")[-1].strip()
        if period in ("4", "8"):
            order[-1] = f"({column}) ^ ({row}) % {period}"
    return f"lambda {', '.join(names)}: [{', '.join(order)}]"


@st.composite
def tensors(draw: Draw) -> tuple[tuple[int, ...], str, list[str]]:
    """Draw a shape, a dtype and two maps."""
    rank = draw(st.integers(1, 3))
    sizes = st.sampled_from((1, 2, 3, 7, 16, 31, 32, 33, 40))
    shape = tuple(draw(st.lists(sizes, min_size=rank, max_size=rank)))
    texts = [
        draw(blocked(rank)) if draw(st.booleans()) else draw_layout(draw, shape, separated=False)
        for _ in range(2)
    ]
    # The padding of several axes multiplies.
    for text in texts:
        ends = IndexMap.from_func(function_of(text), ndim=rank).map_shape(shape)
        assume(prod(int(str(n)) for n in ends) <= MOST_PLACES)
    return shape, draw(st.sampled_from(TYPES)), texts


def random_bits(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    """Return random bit patterns, including NaN; a bool is 0 or 1."""
    kind = DType(dtype).numpy
    most = 2 if dtype == "bool" else 256
    count = int(np.prod(shape)) * kind.itemsize
    return np.random.default_rng(seed).integers(
        0, most, count, np.uint8).view(kind).reshape(shape)


def bits(array: Array) -> Array:
    """Return the bytes of an array, which a copy preserves."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@pytest.mark.exhaustive
@settings(max_examples=3 * settings().max_examples)
@given(tensors(), st.sampled_from((None, 0.0, 1.0)))
def test_every_element_moves_and_padding_reads_as_the_pad_value(
    tensor: tuple[tuple[int, ...], str, list[str]], pad: float | None
) -> None:
    shape, dtype, texts = tensor
    src, dst = (
        Layout.of(shape, dtype, function_of(text), pad_value=pad) for text in texts
    )
    array = random_bits(src.physical_shape, dtype)
    expected = np.full(dst.physical_shape, pad or 0).astype(array.dtype)
    at, to = (tuple(places([text], shape)) for text in texts)
    expected[to] = array[at]
    source, out = Guarded(array), Guarded(random_bits(dst.physical_shape, dtype, 1))

    assert relayout(src, dst)(source.array, out=out.array) is out.array

    assert np.array_equal(bits(out.array), bits(expected))
    out.check()
    source.check()
    back = relayout(dst, src)(out.array)
    assert np.array_equal(bits(back[at]), bits(array[at]))
    there_again = relayout(src, dst)(back)
    assert np.array_equal(bits(there_again), bits(expected))


@given(tensors(), st.permutations(range(3)), st.booleans())
def test_unpack_undoes_pack(
    tensor: tuple[tuple[int, ...], str, list[str]], order: list[int], has_gaps: bool
) -> None:
    shape, dtype, (text, _) = tensor
    layout = Layout.of(shape, dtype, function_of(text))
    axes = [k for k in order if k < len(shape)]
    back = [axes.index(k) for k in range(len(shape))]
    wide = random_bits(tuple(shape[k] * (1 + has_gaps) for k in axes), dtype)
    array = wide[tuple(slice(None, None, 1 + has_gaps) for _ in axes)].transpose(back)
    assert array.shape == shape
    expected = np.zeros(layout.physical_shape, array.dtype)
    expected[tuple(places([text], shape))] = np.ascontiguousarray(array).reshape(-1)

    packed = layout.pack(array)

    assert np.array_equal(bits(packed), bits(expected))
    assert np.array_equal(bits(layout.unpack(packed)), bits(array))
    out = np.zeros_like(wide)[tuple(slice(None, None, 1 + has_gaps) for _ in axes)].transpose(back)
    assert layout.unpack(packed, out) is out
    assert np.array_equal(bits(out), bits(array))


MACHINES = (Core(4, 64, 32, (4096, 8192)), Core(3, 16, 16, (1024, 2048)))


@settings(max_examples=settings().max_examples // 2)
@given(tensors(), st.sampled_from(MACHINES))
def test_threads_and_small_caches_move_the_same(
    tensor: tuple[tuple[int, ...], str, list[str]], core: Core
) -> None:
    """Parallel loops, tiles and non-temporal stores are forced on small tensors."""
    shape, dtype, texts = tensor
    maps = [IndexMap.from_func(function_of(text), ndim=len(shape)) for text in texts]
    sides = [CopyEndpoint(item, tuple(int(str(n)) for n in item.map_shape(shape))) for item in maps]
    copy = CopySpec(shape, DType(dtype), sides[0], sides[1], 7)
    source = random_bits(copy.source.physical_extents, dtype).reshape(-1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_SHARED_BYTES", 0)
        shared = kernel.function_of(copy, core)
    found, expected = (np.zeros(prod(copy.result.physical_extents), source.dtype) for _ in range(2))

    Kernel(shared)(source, found)
    Kernel(kernel.host_function(copy))(source, expected)

    np.testing.assert_array_equal(bits(found), bits(expected))
