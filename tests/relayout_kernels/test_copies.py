"""Relayout loops for several CPUs, against NumPy indexing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp import Core, IndexMap
from tecomp.codegen import Kernel
from tecomp.ir import DType, evaluate
from tecomp.relayout_kernels import CopyEndpoint, CopySpec, function_of, kernel_of
from tests.strategies.arrays import Guarded

Map = Callable[..., list[Any]]

CORE = Core(1, 32, 16, (32768, 524288))
MACHINES = [
    (CORE, "uint8"), (CORE, "uint32"), (Core(1, 16, 16, (32768,)), "uint64"),
    (Core(1, 32, 16, (4096, 16384)), "uint32"),
    (Core(4, 64, 32, (32768,)), "uint16"),
]

MAPS: dict[str, Map] = {
    "rows": lambda i, j: [i, j],
    "columns": lambda i, j: [j, i],
    "sticks": lambda i, j: [j // 64, i, j % 64],
    "faces": lambda i, j: [i // 32, j // 32, i // 16 % 2, j // 16 % 2, i % 16, j % 16],
    "pairs": lambda i, j: [i // 2, j, i % 2],
    "fours": lambda i, j: [i // 4, j, i % 4],
    "threes": lambda i, j: [j // 3, i, j % 3],
    "backwards": lambda i, j: [-i + 130, -j + 200],
    "swizzle": lambda i, j: [i, j // 64, j % 64 ^ (i % 8 * 8)],
    "gaps": lambda i, j: [i, 2 * j],
}
ROWS, COLUMNS, STICKS = (MAPS[name] for name in ("rows", "columns", "sticks"))
SHAPE = (131, 201)


def side(function: Map, shape: tuple[int, ...]) -> CopyEndpoint:
    """Return the copy endpoint of an index map."""
    index_map = IndexMap.from_func(function, ndim=len(shape))
    return CopyEndpoint(index_map, tuple(int(str(n)) for n in index_map.map_shape(shape)))


def places(function: Map, shape: tuple[int, ...]) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the address of every element, by the same function of NumPy indices."""
    return tuple(np.broadcast_arrays(*function(*np.indices(shape, sparse=True))))


def expected(
    array: np.ndarray[Any, Any], source: Map, result: Map, extents: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """Return the array in the result layout, given an array in the source layout."""
    found = np.full(extents, 9, array.dtype)
    found[places(result, SHAPE)] = array[places(source, SHAPE)]
    return found


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("core", "dtype"), MACHINES)
@pytest.mark.parametrize("result", MAPS)
def test_every_layout_from_rows_columns_and_sticks(
    result: str, core: Core, dtype: str
) -> None:
    for source in ("rows", "columns", "sticks"):
        copy = CopySpec(SHAPE, DType(dtype), side(MAPS[source], SHAPE), side(MAPS[result], SHAPE), 9)
        random = np.random.default_rng(0)
        array = Guarded(random.integers(0, 255, copy.source.physical_extents, dtype))
        out = Guarded(np.zeros(copy.result.physical_extents, dtype))
        func = function_of(copy, core)

        Kernel(func)(array.array.reshape(-1), out.array.reshape(-1))

        reference = expected(array.array, MAPS[source], MAPS[result], copy.result.physical_extents)
        np.testing.assert_array_equal(out.array, reference)
        out.check()
        if core is not CORE:
            continue
        checked = np.zeros_like(reference)
        Kernel(func, check_bounds=True)(array.array.reshape(-1), checked.reshape(-1))
        np.testing.assert_array_equal(checked, reference)


def test_a_result_of_many_bytes_is_shared_by_threads() -> None:
    shape = (600, 600)
    copy = CopySpec(shape, DType("uint32"), side(ROWS, shape), side(COLUMNS, shape))
    few, many = (function_of(copy, Core(n, 32, 16, (32768,))) for n in (1, 2))

    assert "parallel" not in str(few)
    assert str(many).count("in parallel(") == 1
    array = np.arange(360_000, dtype="uint32")
    out = np.zeros_like(array)
    Kernel(many)(array, out)
    np.testing.assert_array_equal(out.reshape(shape), array.reshape(shape).T)


def test_padding_is_preserved_without_a_fill() -> None:
    copy = CopySpec(SHAPE, DType("uint8"), side(ROWS, SHAPE), side(STICKS, SHAPE), None)
    out = np.full(copy.result.physical_extents, 7, np.uint8)

    kernel_of(copy)(np.zeros(SHAPE, np.uint8), out)

    assert out.sum() == 7 * (out.size - 131 * 201)


def test_the_interpreter_agrees() -> None:
    shape = (20, 37)
    result = side(lambda i, j: [j // 8, i, j % 8], shape)
    copy = CopySpec(shape, DType("uint16"), side(ROWS, shape), result)
    array = np.arange(740, dtype="uint16")
    compiled, interpreted = np.zeros((2, 20 * 40), "uint16")
    func = function_of(copy, CORE)

    Kernel(func)(array, compiled)
    evaluate(func, [array, interpreted])

    np.testing.assert_array_equal(interpreted, compiled)


def test_the_loops_of_sticks(golden: Callable[[object], None]) -> None:
    shape = (1000, 200)
    copy = CopySpec(shape, DType("float16"), side(ROWS, shape), side(STICKS, shape))

    golden(function_of(copy, CORE))


@pytest.mark.parametrize(
    ("columns", "dtype", "requests"),
    [(2000, "float64", 4), (2048, "float64", 0), (4000, "float16", 16), (4096, "float16", 0),
     (3000, "float32", 8), (3072, "float32", 0)],
)
def test_next_rows_are_prefetched_unless_they_conflict_in_the_cache(
    columns: int, dtype: str, requests: int
) -> None:
    shape = (4_000_000 // columns, columns)
    copy = CopySpec(shape, DType(dtype), side(ROWS, shape), side(COLUMNS, shape))
    text = str(function_of(copy, CORE))
    requested = text.count("prefetch(")

    assert (requested if "scope=\"local\"" in text else None) == requests


def test_rows_shorter_than_a_vector_are_not_stored_past_the_caches() -> None:
    small = Core(1, 32, 16, (4096, 16384))
    for name, is_streamed in (("threes", False), ("sticks", True)):
        copy = CopySpec(SHAPE, DType("uint32"), side(ROWS, SHAPE), side(MAPS[name], SHAPE))

        assert ("global.stream" in str(function_of(copy, small))) == is_streamed


def test_requests_stay_inside_of_the_source() -> None:
    """Reads stay within the source; the interpreter raises an error for others."""
    shape = (270, 37)
    copy = CopySpec(shape, DType("float32"), side(ROWS, shape), side(COLUMNS, shape))
    func = function_of(copy, Core(1, 32, 16, (4096, 16384)))
    array = np.arange(270 * 37, dtype="float32")
    result = np.zeros_like(array)
    evaluate(func, [array, result])

    assert "prefetch(" in str(func)
    np.testing.assert_array_equal(result.reshape(37, 270), array.reshape(shape).T)


def test_the_loops_of_a_transpose(golden: Callable[[object], None]) -> None:
    shape = (1000, 2000)
    copy = CopySpec(shape, DType("float64"), side(ROWS, shape), side(COLUMNS, shape))

    golden(function_of(copy, CORE))
