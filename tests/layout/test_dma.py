"""DMA loop nests: published tables, views, slices, and maps that need several nests."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import islpy as isl
import numpy as np
import pytest

from tecomp import DmaNest, Layout, LayoutError, te
from tests.messages import Diagnostic, diagnostic
from tests.strategies.copies import assert_copies, host_offsets


def of(shape: Sequence[int], mapping: Callable[..., Sequence[Any]]) -> Layout:
    return Layout.of(shape, "float16", mapping)


def offsets(layout: Layout, mapping: Callable[..., Sequence[Any]]) -> np.ndarray[Any, Any]:
    """Return device offsets, computed by NumPy alone."""
    total: Any = 0
    for value, extent in zip(
        mapping(*np.indices(layout.shape)), layout.physical_shape, strict=True
    ):
        total = total * extent + value
    return np.broadcast_to(total, layout.shape)


def check(
    mapping: Callable[..., Sequence[Any]], shape: Sequence[int], **options: Any
) -> tuple[DmaNest, ...]:
    """Return the nests after checking that they copy each element of the box exactly once."""
    layout = of(shape, mapping)
    nests = layout.dma(**options)
    start = options.get("start") or [0] * len(shape)
    extents = options.get("extents") or [n - low for n, low in zip(shape, start, strict=True)]
    box = [slice(low, low + n) for low, n in zip(start, extents, strict=True)]
    host = host_offsets(shape, options.get("host_strides"), options.get("host_offset", 0))
    assert_copies(nests, offsets(layout, mapping), host, box)
    return nests


def sticks(i: Any, j: Any) -> list[Any]:
    return [j // 64, i, j % 64]


PUBLISHED = {
    "whole": (
        sticks, (1024, 256),
        ["((4, 1024, 64), (65536, 64, 1), (64, 256, 1))"],
    ),
    "remainder": (
        sticks, (1000, 200),
        [
            "((3, 1000, 64), (64000, 64, 1), (64, 200, 1))",
            "((1, 1000, 8), (64000, 64, 1), (64, 200, 1)) from host 192 to device 192000",
        ],
    ),
    "rows padded": (
        lambda i, j: [j // 64, i % 1024, j % 64], (1000, 200),
        [
            "((3, 1000, 64), (65536, 64, 1), (64, 200, 1))",
            "((1, 1000, 8), (65536, 64, 1), (64, 200, 1)) from host 192 to device 196608",
        ],
    ),
    "all padded": (
        lambda i, j, k: [j % 128, k // 64, i % 64, k % 64], (5, 100, 150),
        [
            "((100, 2, 5, 64), (12288, 4096, 64, 1), (150, 64, 15000, 1))",
            "((100, 1, 5, 22), (12288, 4096, 64, 1), (150, 64, 15000, 1)) "
            "from host 128 to device 8192",
        ],
    ),
    "rank 3": (
        lambda i, j, k: [j, k // 64, i, k % 64], (5, 100, 150),
        [
            "((100, 2, 5, 64), (960, 320, 64, 1), (150, 64, 15000, 1))",
            "((100, 1, 5, 22), (960, 320, 64, 1), (150, 64, 15000, 1)) from host 128 to device 640",
        ],
    ),
    "order 1, 0, 2": (
        lambda i, j, k: [i, k // 64, j, k % 64], (5, 100, 150),
        [
            "((5, 2, 100, 64), (19200, 6400, 64, 1), (15000, 64, 150, 1))",
            "((5, 1, 100, 22), (19200, 6400, 64, 1), (15000, 64, 150, 1)) "
            "from host 128 to device 12800",
        ],
    ),
    "sparse": (
        lambda i, j: [j, i, 0 * i % 64], (6, 9), ["((9, 6, 1), (384, 64, 1), (1, 9, 0))"],
    ),
    "index of extent 1": (
        lambda i, j, k: [j, k // 64, i, k % 64], (1, 3, 128),
        ["((3, 2, 1, 64), (128, 64, 64, 1), (128, 64, 384, 1))"],
    ),
    "less than a stick": (
        lambda i, j, k: [j, k // 64, i, k % 64], (2, 3, 40),
        ["((3, 1, 2, 40), (128, 128, 64, 1), (40, 64, 120, 1))"],
    ),
    "two remainders": (
        lambda i: [i % 360 // 120, i % 120 // 64, i // 360, i % 120 % 64], (4800,),
        [
            "((3, 1, 13, 64), (1792, 896, 64, 1), (120, 64, 360, 1))",
            "((1, 1, 1, 64), (1792, 896, 64, 1), (120, 64, 360, 1)) from host 4680 to device 832",
            "((3, 1, 13, 56), (1792, 896, 64, 1), (120, 64, 360, 1)) from host 64 to device 896",
            "((1, 1, 1, 56), (1792, 896, 64, 1), (120, 64, 360, 1)) from host 4744 to device 1728",
        ],
    ),
    "scalar": (lambda: [0], (), ["((1), (1), (0))"]),
    "empty": (lambda i, j: [i, j], (0, 3), []),
}


@pytest.mark.exhaustive(keep=9)
@pytest.mark.parametrize(("mapping", "shape", "printed"), PUBLISHED.values(), ids=PUBLISHED)
def test_published(
    mapping: Callable[..., Sequence[Any]], shape: Sequence[int], printed: list[str]
) -> None:
    """The nests equal the tables of torch-spyre's DMA descriptors and stride maps."""
    nests = check(mapping, shape) if math.prod(shape) < 100000 else of(shape, mapping).dma()

    assert [str(nest) for nest in nests] == printed


def as_set(nest: DmaNest) -> isl.Set:
    """Return the set of (device offset, host offset) pairs of a nest."""
    names = [f"n{k}" for k in range(len(nest.ranges))]
    inside = " and ".join(
        f"0 <= {name} < {count}" for name, count in zip(names, nest.ranges, strict=True)
    )
    device, host = (
        " + ".join([str(offset), *(f"{s}{n}" for n, s in zip(names, strides, strict=True))])
        for offset, strides in (
            (nest.device_offset, nest.device_strides), (nest.host_offset, nest.host_strides)
        )
    )
    return isl.Set(
        f"{{ [d, h] : exists {', '.join(names)} : {inside} and d = {device} and h = {host} }}"
    )


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(
    ("formula", "shape", "mapping"),
    [
        (
            "1024*64*floor(j/64) + 64*i + j mod 64", (1000, 200),
            lambda i, j: [j // 64, i % 1024, j % 64],
        ),
        (
            "125*1024*floor(i/32) + 1024*floor(j/32) + 32*(i mod 32) + j mod 32", (4090, 4000),
            lambda i, j: [i // 32, j // 32, i % 32, j % 32],
        ),
        (
            "1792*floor((i mod 360)/120) + 896*floor((i mod 120)/64) + 64*floor(i/360) "
            "+ (i mod 120) mod 64", (4800, 1),
            lambda i, j: [i % 360 // 120, i % 120 // 64, i // 360, i % 120 % 64],
        ),
    ],
    ids=["sticks", "tiles", "two remainders"],
)
def test_nests_are_proven_to_be_exact(
    formula: str, shape: tuple[int, int], mapping: Callable[..., Sequence[Any]]
) -> None:
    """By integer sets, nests are disjoint and their union is the layout."""
    expected = isl.Set(
        f"{{ [d, h] : exists i, j : 0 <= i < {shape[0]} and 0 <= j < {shape[1]} "
        f"and h = {shape[1]}i + j and d = {formula} }}"
    )
    total = isl.Set("{ [d, h] : false }")
    for nest in of(shape, mapping).dma():
        part = as_set(nest)
        assert total.intersect(part).is_empty()
        total = total.union(part)

    assert total.is_equal(expected)


def test_a_sum_of_digits_is_one_loop() -> None:
    """Full sticks and the partial last one are contiguous here and fuse into one loop."""
    assert check(lambda i: [i // 64, i % 64], (150,)) == (DmaNest((150,), (1,), (1,)),)
    assert check(lambda i: [i // 64, i % 64], (128,)) == (DmaNest((2, 64), (64, 1), (64, 1)),)


def test_rows_that_were_joined_are_cut_as_one_index() -> None:
    """A fused row index is cut as a whole: 40 rows of 200 are 125 full sticks."""
    nests = check(lambda i, j: [(i * 200 + j) // 64 % 5, (i * 200 + j) // 320,
                                (i * 200 + j) % 64], (40, 200))

    assert [nest.ranges for nest in nests] == [(5, 25, 64)]


def ordinal(i: Any) -> list[Any]:
    return [i // 12 % 3, i // 4 % 3, i // 36, i % 4]


@pytest.mark.parametrize(
    ("mapping", "shape", "most"),
    [
        (lambda i, j: [i // 32, j // 32, i % 32, j % 32], (100, 100), 4),
        (lambda i, j: [j // 24, i // 18, i % 18, j % 24], (53, 63), 4),
        (lambda n, c, h: [n, c // 4, h, c % 4], (3, 10, 7), 2),
        (ordinal, (130,), 8),
        (lambda i: [(i + 3) % 16], (16,), 2),
        (lambda i: [15 - i], (16,), 1),
        (lambda i: [(15 - i) // 4 % 2, (15 - i) // 8, (15 - i) % 4], (14,), 3),
        (lambda i: [i % 3, i % 5, i // 15], (100,), 15),
        (lambda i, j: [i, (j // 8 + i) % 8, j % 8], (8, 64), 15),
        (lambda i, j: [i, (j // 8) ^ (i % 8), j % 8], (16, 64), 8),
        (lambda i, j: [i, j ^ 5], (3, 8), 1),
        (lambda i, j: [i, j & 3, j >> 2], (3, 14), 2),
        (lambda i, j: [j // 6 % 4, j // 24, (i + j % 6), i % 3 * 0], (1, 50), 4),
    ],
)
def test_no_more_nests_than_remainders_make(
    mapping: Callable[..., Sequence[Any]], shape: Sequence[int], most: int
) -> None:
    """The number of nests is bounded: 2^k for k remainders, plus alternative digit splits."""
    assert len(check(mapping, shape)) <= most


def test_slices_are_boxes_of_indices() -> None:
    nests = check(sticks, (100, 200), start=(5, 60), extents=(10, 100))

    assert [str(nest) for nest in nests] == [
        "((1, 10, 4), (6400, 64, 1), (64, 200, 1)) from host 1060 to device 380",
        "((1, 10, 64), (6400, 64, 1), (64, 200, 1)) from host 1064 to device 6720",
        "((1, 10, 32), (6400, 64, 1), (64, 200, 1)) from host 1128 to device 13120",
    ]
    assert check(sticks, (100, 200), start=(99, 0)) == check(
        sticks, (100, 200), start=(99, 0), extents=(1, 200)
    )
    assert check(sticks, (100, 200), start=(3, 4), extents=(0, 7)) == ()


@pytest.mark.parametrize("offset", [0, 64, 128])
def test_slices_at_sticks_need_no_nest_more(offset: int) -> None:
    assert len(check(sticks, (9, 256), start=(0, offset), extents=(9, 128))) == 1


def test_a_slice_of_the_host_fills_a_whole_layout() -> None:
    """The slice `x[:, 60:]` of [40, 120] fills a whole layout on the device."""
    (nest,) = check(sticks, (40, 60), host_strides=(120, 1), host_offset=60)

    assert nest == DmaNest((1, 40, 60), (2560, 64, 1), (64, 120, 1), 0, 60)


def test_strides_of_the_host_may_be_zero_or_negative() -> None:
    check(sticks, (10, 130), host_strides=(0, 1))
    (nest,) = check(sticks, (10, 64), host_strides=(-64, -1), host_offset=639)

    assert nest.host_strides == (-64, -64, -1)


def test_strides_of_the_device_are_not_negative() -> None:
    (nest,) = check(lambda i, j: [9 - i, j], (10, 4))

    assert nest == DmaNest((10, 4), (4, 1), (-4, 1), 0, 36)


def test_maps_without_digits_become_runs() -> None:
    layout = of((6, 5), lambda i, j: [te.if_then_else(i < 2, i, 2), i - te.if_then_else(i < 2, i, 2), j])
    i, j = np.indices((6, 5))
    least = np.minimum(i, 2)

    nests = layout.dma()

    assert_copies(nests, least * 20 + (i - least) * 5 + j, host_offsets((6, 5)), ())
    assert [str(nest) for nest in nests] == [
        "((2, 5), (20, 1), (5, 1))", "((20), (1), (1)) from host 10 to device 40",
    ]


@pytest.mark.parametrize(
    ("layout", "options", "device", "host"),
    [
        # Axes are in host order, with the loops of one axis together.
        (lambda i, j: [j // 8, i, j % 8], {"extents": (3, 16)},
         "i*24 + j*8 + k*1", "j*20 + (i*8 + k*1)"),
        (lambda i, j: [i // 2, j // 8, i % 2, j % 8], {"extents": (2, 8), "start": (0, 8)},
         "16 + i*48 + j*16 + k*8 + l*1", "8 + (i*40 + k*20) + (j*8 + l*1)"),
        (lambda i, j: [j, i], {}, "i*3 + j*1", "j*20 + i*1"),
        # Negative and zero strides.
        (lambda i, j: [i, j], {"host_strides": (-20, 1), "host_offset": 40},
         "i*20 + j*1", "40 + i*-20 + j*1"),
        (lambda i, j: [i, j], {"host_strides": (0, 1)}, "i*20 + j*1", "i*0 + j*1"),
    ],
)
def test_loops_in_the_grouping_of_the_document(
    layout: Any, options: dict[str, Any], device: str, host: str
) -> None:
    (nest,) = of((3, 20), layout).dma(**options)

    assert nest.as_loops().splitlines()[-1].strip() == (
        f"device_memory[device_tensor_address + {device}] = "
        f"host_memory[host_tensor_address + {host}]"
    )


def test_loops_as_text_run() -> None:
    nests = check(lambda i, j: [j // 8, i, j % 8], (3, 20))
    host, device = np.arange(60), np.full(72, -1)

    for nest in nests:
        text = re.sub(r"\b[i-k]\b", lambda name: f"_{name[0]}", nest.as_loops())
        exec(text, {
            "device_memory": device, "host_memory": host,
            "device_tensor_address": 0, "host_tensor_address": 0,
        })

    expected = np.full((3, 24), -1)
    expected[:, :20] = np.arange(60).reshape(3, 20)
    assert np.array_equal(device, expected.reshape(3, 3, 8).transpose(1, 0, 2).ravel())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"host_strides": (1,)},
            Diagnostic(
                "transfer", caller="layout.dma", chosen_count=1, chosen=[1], rank=2, shape=[10, 20],
            ),
        ),
        (
            {"host_strides": (1.5, 1)},
            Diagnostic("transfer", caller="layout.dma", number=1.5),
        ),
        (
            {"start": (0, 15), "extents": (10, 6)},
            Diagnostic("transfer", caller="layout.dma", first=[0, 15], counts=[10, 6], shape=[10, 20]),
        ),
        (
            {"start": (0,)},
            Diagnostic("transfer", caller="layout.dma", first=[0], counts=[10], shape=[10, 20]),
        ),
        (
            {"start": (-1, 0)},
            Diagnostic("transfer", caller="layout.dma", first=[-1, 0], counts=[11, 20], shape=[10, 20]),
        ),
    ],
    ids=["rank", "fraction", "box", "short", "negative"],
)
def test_refusals(options: dict[str, Any], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        of((10, 20), sticks).dma(**options)

    assert diagnostic(caught.value) == expected


@pytest.mark.exhaustive
def test_excessive_loop_nests_are_rejected_with_their_count() -> None:
    layout = of((40000,), lambda i: [i * 20011 % 40009])

    with pytest.raises(LayoutError) as caught:
        layout.dma()

    assert diagnostic(caught.value) == (
        Diagnostic(
            "limit-exceeded", subject="layout.dma: lambda i: [i * 20011 % 40009] on [40000]",
            found_count=6136, most_nests=1024,
        )
    )
