"""Contiguous runs of copies: brute-force lengths, published factors and a time bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tecomp import Layout, LayoutError, ShardLayout
from tecomp.layout import Runs
from tests.messages import Diagnostic, diagnostic
from tests.strategies.copies import host_offsets, run_lengths

Golden = Callable[[object], None]
SECONDS = 1.0


def of(shape: Sequence[int], mapping: Callable[..., Sequence[Any]], **options: Any) -> Layout:
    return Layout.of(shape, "float16", mapping, **options)


def timed(runs: Callable[[], Runs]) -> Runs:
    """Return the result after checking that the best of three runs stays within the time limit."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        found = runs()
        seconds.append(time.process_time() - start)
    assert min(seconds) < SECONDS
    return found


def tiles(shape: Sequence[int], sizes: Sequence[int]) -> Layout:
    return of(shape, lambda *i: [
        *(x // n for x, n in zip(i, sizes, strict=True)),
        *(x % n for x, n in zip(i, sizes, strict=True)),
    ])


LAYOUTS: dict[str, Layout] = {
    "sticks": of((20, 200), lambda i, j: [j // 64, i, j % 64]),
    "rows of sticks": of((20, 128), lambda i, j: [i, j // 64, j % 64]),
    "joined rows": of((40, 50), lambda i, j: [(i * 50 + j) // 64, (i * 50 + j) % 64]),
    "transposed": of((12, 10), lambda i, j: [j, i]),
    "rotated": of((16,), lambda i: [(i + 3) % 16]),
    "reversed": of((16,), lambda i: [15 - i]),
    "swizzled": of((16, 64), lambda i, j: [i, (j // 8) ^ (i % 8), j % 8]),
    "skewed": of((8, 64), lambda i, j: [i, (j // 8 + i) % 8, j % 8]),
    "remainders": of((60,), lambda i: [i % 3, i % 5, i // 15]),
    "tiles": tiles((53, 63), (18, 24)),
    "coprime": tiles((7, 11, 13), (3, 5, 4)),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_lengths_match_brute_force(layout: Layout) -> None:
    runs = layout.runs()

    assert dict(runs.lengths) == run_lengths(layout.offsets(), host_offsets(layout.shape))
    assert (runs.elements, runs.total) == (layout.num_elements, layout.num_elements)


@pytest.mark.parametrize(("a", "b"), [((32, 32), (48, 48)), ((8, 128), (16, 16)), ((5, 7), (7, 5))])
def test_copies_between_layouts(a: tuple[int, int], b: tuple[int, int]) -> None:
    source, target = tiles((100, 90), a), tiles((100, 90), b)

    runs = source.runs_to(target)

    assert dict(runs.lengths) == run_lengths(source.offsets(), target.offsets())
    assert runs.count == target.runs_to(source).count


def test_a_loop_that_runs_once_may_lead_nowhere() -> None:
    """A loop of one iteration has no step: five rows in shards of three rows."""
    source, target = (ShardLayout((5, 3), "int32", grid=grid) for grid in ((1, 1), (2, 1)))

    assert dict(source.runs_to(target).lengths) == {9: 1, 6: 1}
    assert dict(target.runs_to(source).lengths) == {9: 1, 6: 1}


def test_strides_and_boxes() -> None:
    layout = LAYOUTS["sticks"]
    device, host = layout.offsets(), host_offsets((20, 200), (1, 20))

    assert dict(layout.runs((1, 20)).lengths) == run_lengths(device, host)
    part = layout.runs(start=(5, 60), extents=(10, 100))
    box = slice(5, 15), slice(60, 160)
    assert dict(part.lengths) == run_lengths(device[box], host_offsets((20, 200))[box])


def test_numbers_of_a_histogram() -> None:
    runs = LAYOUTS["sticks"].runs()

    assert runs.lengths == ((8, 20), (64, 60))
    assert (runs.count, runs.shortest, runs.median, runs.longest, runs.factor) == (80, 8, 64, 64, 8)
    assert (runs.transactions(), runs.transactions(32)) == (80, 140)
    assert str(runs) == (
        "80 runs of 8 to 64 elements, median 64, all multiples of 8, by sets"
    )
    assert str(of((), lambda: [0]).runs()) == "1 runs of 1 elements, by sets"


def test_empty_layouts_have_no_runs() -> None:
    runs = of((0, 3), lambda i, j: [i, j]).runs()

    assert (runs.count, runs.shortest, runs.median, runs.longest, runs.factor) == (0, 0, 0, 0, 0)


def test_no_run_goes_from_core_to_core() -> None:
    """Runs do not cross cores: rows on several cores, against one run in a single memory."""
    rows = of((8, 32), lambda i, j: [i // 2, i % 2, j], grid_axes=[0])

    assert rows.runs().lengths == ((64, 4),)
    assert of((8, 32), lambda i, j: [i // 2, i % 2, j]).runs().lengths == ((256, 1),)


def grid_4096(cores: int) -> Layout:
    per_group = 4096 // cores
    return of(
        (4096, 4096), lambda i, j: [i // per_group, j // per_group, i % per_group, j % per_group], grid_axes=[0, 1]
    )


def test_resharding_4096() -> None:
    """The run length for 8x8 to 4x4 cores is 512, the factor of tt-mlir."""
    runs = timed(lambda: grid_4096(8).runs_to(grid_4096(4)))

    assert (runs.lengths, runs.factor, runs.method) == (((512, 32768),), 512, "sets")
    same = timed(lambda: grid_4096(8).runs_to(grid_4096(8)))
    assert same.lengths == ((512 * 512, 64),)


@pytest.mark.parametrize(
    ("grid", "lengths"),
    [((8, 8), ((16, 786432),)), ((1, 64), ((2, 6291456),)), ((64, 1), ((196608, 64),))],
)
def test_reshapes_32_24_128_128(grid: tuple[int, int], lengths: Sequence[tuple[int, int]]) -> None:
    """A reshape to 768x128x128, which took tt-mlir minutes, takes bounded time."""
    rows, columns = 32 * 24 * 128 // grid[0], 128 // grid[1]
    outer = 768 // grid[0]
    shape = (32, 24, 128, 128)
    before = of(shape, lambda n, c, h, w: [
        ((n * 24 + c) * 128 + h) // rows, w // columns, ((n * 24 + c) * 128 + h) % rows, w % columns
    ], grid_axes=[0, 1])
    after = of(shape, lambda n, c, h, w: [
        (n * 24 + c) // outer, h // columns, (n * 24 + c) % outer, h % columns, w
    ], grid_axes=[0, 1])

    runs = timed(lambda: before.runs_to(after))

    assert (runs.lengths, runs.method) == (tuple(lengths), "sets")


def test_a_transpose_is_single_elements() -> None:
    runs = timed(lambda: of((4096, 4096), lambda i, j: [i, j]).runs((1, 4096)))

    assert (runs.lengths, runs.method) == (((1, 4096 * 4096),), "sets")


@pytest.mark.exhaustive
def test_coprime_tiles_of_six_dimensions() -> None:
    """All of 255,255 elements are counted, and a sample of 75 million; host runs use sets."""
    small, large = (13, 11, 17, 7, 5, 3), (97, 89, 83, 7, 5, 3)
    one, other = (5, 7, 11, 2, 3, 2), (3, 4, 5, 3, 2, 3)
    source, target = tiles(small, one), tiles(small, other)

    assert dict(timed(lambda: source.runs_to(target)).lengths) == run_lengths(
        source.offsets(), target.offsets()
    )
    part = timed(lambda: tiles(large, one).runs_to(tiles(large, other)))
    assert part.method == "part"
    assert str(part) == (
        "348,600 runs of 1 to 2 elements, median 1, all multiples of 1, counted in 522,900 of "
        "75,236,595 elements"
    )
    host = timed(lambda: tiles(large, one).runs())
    assert host.method == "sets"
    assert sum(length * count for length, count in host.lengths) == host.total


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(
    "layout",
    [
        of((4000, 500), lambda i, j: [i, (i + j) % 500]),
        of((2000, 2000), lambda i, j: [(i + j) % 2000, j]),
        of((1000, 7, 300), lambda i, j, k: [(i * 2100 + j * 300 + k) * 7 // 13 % 3,
                                            i, j, k]),
    ],
    ids=["skewed", "rotated columns", "irregular"],
)
def test_hard_maps_take_no_longer(layout: Layout) -> None:
    runs = timed(layout.runs)

    assert sum(length * count for length, count in runs.lengths) == runs.elements


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (
            lambda: tiles((4, 4), (2, 2)).runs_to(tiles((4, 8), (2, 2))),
            Diagnostic("layout-shape-mismatch", shape=[4, 4], target_shape=[4, 8]),
        ),
        (
            lambda: tiles((4, 4), (2, 2)).runs((1,)),
            Diagnostic(
                "transfer", caller="layout.runs", chosen_count=1, chosen=[1], rank=2, shape=[4, 4],
            ),
        ),
        (
            lambda: tiles((4, 4), (2, 2)).runs().transactions(0),
            Diagnostic("transfer", size=0),
        ),
    ],
    ids=["shape", "strides", "burst"],
)
def test_refusals(ask: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        ask()

    assert diagnostic(caught.value) == expected


def test_offsets_match_numpy() -> None:
    """The reference offsets of the tests above equal those of a NumPy formula."""
    i, j = np.indices((20, 200))

    assert np.array_equal(LAYOUTS["sticks"].offsets(), j // 64 * 20 * 64 + i * 64 + j % 64)
