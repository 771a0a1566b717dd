"""Layouts for a target: its sticks, tiles, grid and formats, and errors for others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tecomp import Layout, ShardLayout, Target, TecompError
from tecomp.errors import CapacityError, LayoutError, TargetError
from tecomp.layout import StickLayout
from tests.messages import Diagnostic, diagnostic

STICK = Target.load("stick128")
WORMHOLE = Target.load("tensix_wh")
BLACKHOLE = Target.load("tensix_bh")


def test_sticks_match_the_target() -> None:
    half = STICK.overridden(stick={"bytes": 64, "padding": "stick"})

    assert StickLayout.for_target(STICK, (5, 100, 150), "float16") == StickLayout(
        (5, 100, 150), "float16"
    )
    assert StickLayout.for_target(half, (5, 100, 150), "float16").device_size == [100, 5, 5, 32]
    assert StickLayout.for_target(half, (5, 100, 150), "float16", True).device_size == [
        128, 5, 32, 32,
    ]  # fmt: skip
    ordered = StickLayout.for_target(STICK, (5, 100, 192), "float16", [1, 0, 2], memory="ddr")
    assert (ordered.device_size, ordered.memory) == ([5, 3, 100, 64], "ddr")


def test_shards_are_on_the_cores_of_the_target() -> None:
    layout = ShardLayout.for_target(BLACKHOLE, (640, 832), "float32", element="bfp_bf8")

    assert (layout.grid, layout.tile, layout.face) == ((10, 13), (32, 32), (16, 16))
    assert (layout.memref_shape, layout.shard_bytes) == ((2, 2), 4 * 1088)
    plain = ShardLayout.for_target(WORMHOLE, (64, 64), "float32", grid=(2, 1), tiled=False)
    assert (plain.memref_shape, plain.tile, plain.storage.name) == ((32, 64), None, "float32")
    small = ShardLayout.for_target(WORMHOLE, (64, 64), "bfloat16", tile=(16, 32), grid=(1, 1))
    assert small.memref_shape == (4, 2)


def test_layouts_of_exactly_the_capacity() -> None:
    room = WORMHOLE.memory("l1").usable_bytes
    assert room is not None

    assert ShardLayout.for_target(
        WORMHOLE, (64, room), "uint8", tiled=False, grid=(64, 1)
    ).shard_bytes == room  # fmt: skip


def test_a_grid_that_the_target_does_not_have_is_folded() -> None:
    """TTNN's width sharding: a 1x64 grid is folded onto 8x8 cores."""
    layout = ShardLayout.for_target(WORMHOLE, (32, 4096), "float32", grid=(1, 64))
    for column in range(0, 4096, 200):
        core = column // 64
        assert layout.physical_core((0, column)) == (0, core // 8, core % 8)
    assert ShardLayout.parse(str(layout), face=(16, 16)) == layout
    whole = ShardLayout.for_target(WORMHOLE, (512, 1024), "bfloat16")
    assert whole.physical_core((100, 1000)) == (0, 1, 7)
    odd = ShardLayout.for_target(WORMHOLE, (32, 11 * 32), "bfloat16", grid=(1, 11))
    assert odd.physical_core((0, 10 * 32)) == (0, 1, 2)


@pytest.mark.parametrize(
    ("target", "memory", "dtype", "memref"),
    [
        (WORMHOLE, "l1", "float32", (18, 32)), (WORMHOLE, "l1", "uint8", (18, 32)),
        (WORMHOLE, "l1", "bfloat16", (18, 32)), (BLACKHOLE, "dram", "uint8", (18, 64)),
        (WORMHOLE, "dram", "uint8", (18, 32)),
    ],
)
def test_rows_of_shards_are_padded_to_the_alignment_of_the_memory(
    target: Target, memory: str, dtype: str, memref: tuple[int, int]
) -> None:
    layout = ShardLayout.for_target(
        target, (53, 61), dtype, grid=(3, 2), tiled=False, memory_space=memory)
    assert (layout.scalar_shard_shape, layout.memref_shape) == ((18, 31), memref)
    assert layout.memref_shape[1] * layout.dtype.bytes % target.memory(memory).alignment_bytes == 0
    i, j = np.indices((53, 61))
    assert np.array_equal(
        layout.offsets(), ((i // 18 * 2 + j // 31) * 18 + i % 18) * memref[1] + j % 31)


@pytest.mark.parametrize(
    ("make", "kind", "expected"),
    [
        (lambda: StickLayout.for_target(WORMHOLE, (4, 4), "float16"), TargetError,
         Diagnostic("unsupported-by-target", name="tensix_wh")),
        (lambda: StickLayout.for_target(STICK, (4, 4), "float16", memory="l1"), TargetError,
         Diagnostic(
             "unsupported-by-target",
             problem="target stick128 has no memory `l1`; its memories are global, ddr, lx",
         )),
        (lambda: StickLayout.for_target(STICK, (1024, 1024), "float16", memory="lx"),
         CapacityError,
         Diagnostic(
             "capacity", dtype="float16", shape=[1024, 1024], storage="dlfloat16", size=2097152,
             memory="lx", where=" of a core", target="stick128", usable_bytes=2031616,
         )),
        (lambda: StickLayout.for_target(Target.load("vtcm2d"), (4, 4), "float16"), LayoutError,
         Diagnostic(
             "unsupported-by-target", target="vtcm2d", dtype="float16", element="dlfloat16",
             known="float16",
         )),
        (lambda: ShardLayout.for_target(STICK, (4, 4), "float16", memory_space="lx"), LayoutError,
         Diagnostic("unsupported-by-target", target="stick128")),
        (lambda: ShardLayout.for_target(WORMHOLE, (64, 64), "float16", grid=(16, 8)), LayoutError,
         Diagnostic("unsupported-by-target", grid="16x8", size=128, target="tensix_wh", cores=64)),
        (lambda: ShardLayout.for_target(WORMHOLE, (64, 64), "float64"), LayoutError,
         Diagnostic(
             "unsupported-by-target", target="tensix_wh", dtype="float64",
             formats="float32, bfloat16, float16, int32, uint32, uint16, uint8, bool",
         )),
        (lambda: ShardLayout.for_target(WORMHOLE, (64, 64), "float16", element="bfp_bf8"),
         LayoutError,
         Diagnostic(
             "unsupported-by-target", target="tensix_wh", dtype="float16", element="bfp_bf8",
             known="float16, bfp_f8, bfp_f4, bfp_f2",
         )),
        (lambda: ShardLayout.for_target(
            WORMHOLE, (64, 1_498_113), "uint8", tiled=False, grid=(64, 1)
        ), CapacityError,
         Diagnostic(
             "capacity", dtype="uint8", shape=[64, 1498113], storage="uint8", size=1498128,
             memory="l1", where=" of a core", target="tensix_wh", usable_bytes=1498112,
         )),
        (lambda: ShardLayout.for_target(
            WORMHOLE, (2**17, 2**17), "uint8", memory_space="dram"
        ), CapacityError,
         Diagnostic(
             "capacity", dtype="uint8", shape=[131072, 131072], storage="uint8", size=17179869184,
             memory="dram", where="", target="tensix_wh", usable_bytes=12884901888,
         )),
    ],
    ids=str.split("no-sticks no-memory scratchpad format no-tiles cores type element shard dram"),
)
def test_layouts_beyond_the_capacity_of_the_target(
    make: Callable[[], Layout], kind: type[TecompError], expected: Diagnostic
) -> None:
    with pytest.raises(kind) as error:
        make()

    assert type(error.value) is kind
    assert diagnostic(error.value) == expected
