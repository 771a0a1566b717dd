"""Scratchpad target properties used by schedules: memories, layouts, capacity and cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tecomp
from tecomp import StickLayout, TargetError, te
from tecomp.machine import read_target
from tecomp.schedules.scratchpad import Placement, placement_of
from tests.messages import Diagnostic, diagnostic
from tests.strategies.machines import ACCELERATORS, scratchpads


def placed(name: str) -> Placement:
    found = placement_of(tecomp.Target.load(name))
    assert found is not None
    return found


def test_memories() -> None:
    found = {name: (placed(name).device, placed(name).scratchpad) for name in ACCELERATORS}

    assert found == {
        "neuroncore_v2": ("global", "sbuf"),
        "stick128": ("ddr", "lx"),
        "tensix_bh": ("dram", "l1"),
        "tensix_wh": ("dram", "l1"),
        "texture2d": ("global.texture", "local"),
        "vtcm2d": ("global", "global.vtcm"),
    }


def test_a_link_from_the_host_leads_to_scratchpads() -> None:
    text = scratchpads("near", """
[link.load]
from = "global"
to = "lx"
scope = "core"
bytes_per_cycle = 32
source = "assumed"
""", lx="capacity_bytes = 65536").replace("[memory.ddr]", "[memory.other]")
    found = placement_of(read_target(text, "near.toml"))

    assert found is not None
    assert (found.device, found.scratchpad, found.scratchpad_bytes) == ("other", "lx", 65536)
    alone = replace(found.target, memories={
        name: found.target.memories[name] for name in ("global", "lx")})
    found = placement_of(alone)
    assert found is not None
    assert (found.device, found.scratchpad) == ("global", "lx")


def test_a_scratchpad_of_the_chip_is_shared() -> None:
    vtcm = placed("vtcm2d")

    assert vtcm.scratchpad_bytes == (vtcm.target.memory("global.vtcm").usable_bytes or 0) // vtcm.target.cores


@pytest.mark.parametrize("change", [{"grid": None}, {"memory": {"lx": {"capacity_bytes": None,
                                                                     "reserved_bytes": None}}}])
def test_machines_without(change: dict[str, object]) -> None:
    assert placement_of(tecomp.Target.load("stick128").overridden(**change)) is None


@pytest.mark.parametrize("shape", [(1, 70), (100, 257), (128, 128), (2, 3, 40), (70,), (1, 1)])
def test_sticks_match_the_machine(shape: tuple[int, ...]) -> None:
    where = placed("stick128")
    sticks = StickLayout.for_target(where.target, shape, "float16", memory="ddr")

    layout = tecomp.Layout.of(shape, "float16", where.layout(shape, "float16", "ddr"))
    assert layout.physical_shape == sticks.physical_shape
    np.testing.assert_array_equal(layout.offsets(), sticks.offsets())


def test_tiles_match_the_machine() -> None:
    where = placed("tensix_wh")
    shape = (100, 257)
    tiles = tecomp.ShardLayout.for_target(
        where.target, shape, "float32", grid=(1, 1), memory_space="dram"
    )

    layout = tecomp.Layout.of(shape, "float32", where.layout(shape, "float32"))
    assert layout.physical_shape == tiles.physical_shape[2:] == (4, 9, 2, 2, 16, 16)
    np.testing.assert_array_equal(layout.offsets(), tiles.offsets())


def test_memory_of_two_axes_has_rows() -> None:
    texture, vtcm = placed("texture2d"), placed("vtcm2d")

    def shape(where: Placement, memory: str) -> tuple[int, ...]:
        sizes = (2, 3, 40)
        layout = tecomp.Layout.of(sizes, "float16", where.layout(sizes, "float16", memory))
        return layout.memory_shape

    assert shape(texture, "global.texture") == (6, 40)
    assert shape(vtcm, "global.vtcm") == (6, 64)


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("name", ACCELERATORS)
@pytest.mark.parametrize("shape", [(1, 1), (7, 33), (40, 200)])
def test_bytes_match_the_program(name: str, shape: tuple[int, int]) -> None:
    where = placed(name)
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B)
    copy = s.cache_read(A, where.scratchpad, [B])
    s[copy].transform_layout(where.layout(shape, "float32"))

    report = tecomp.build(s, [A, B], target=where.target).report()
    (found,) = (m for m in report.memories if m.memory == where.scratchpad)
    assert found.peak_bytes <= where.bytes(shape, "float32")
    assert where.bytes(shape, "float32") - found.peak_bytes < where.target.memory(
        where.scratchpad).alignment_bytes


def test_the_largest_part() -> None:
    where = placed("stick128")

    def need(rows: int) -> int:
        return int(where.bytes((rows, 1000), "float16"))

    rows = where.largest(10_000, 1, need)
    assert need(rows) <= where.scratchpad_bytes < need(rows + 1)
    assert where.largest(10, 1, need) == 10
    assert where.largest(10, 32, need) == 32
    assert where.largest(10, 1, lambda rows: where.scratchpad_bytes + 1) == 1


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("name", ACCELERATORS)
@pytest.mark.parametrize("rounds", [1, 3, 4, 33, 64, 100, 257])
def test_rounds_are_shared_evenly(
    agrees: Callable[..., object], name: str, rounds: int
) -> None:
    where = placed(name)
    A = te.placeholder((rounds, 2), name="A")
    B = te.compute((rounds, 2), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B)
    inner = where.share(s, B, B.op.axis[0])
    a = np.arange(2 * rounds, dtype="float32").reshape(rounds, 2)

    agrees(s, [A, B], {A: a, B: a + 1}, target=where.target)
    report = tecomp.build(s, [A, B], target=where.target).report()
    most = -(-rounds // where.target.cores)
    assert inner.extent == most
    assert {core.operations for core in report.cores[:-1]} <= {2 * most}
    assert len(report.cores) == -(-rounds // most)


def test_sizes_that_are_known_at_the_call() -> None:
    where = placed("stick128")
    A = te.placeholder((te.var("n"), 4), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B)

    with pytest.raises(TargetError) as error:
        where.put(s, A)
    assert diagnostic(error.value) == (
        Diagnostic("unbound-size", x="A", extent="n")
    )
