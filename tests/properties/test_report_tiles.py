"""Reports count the tile operations and transfers per core of random tiled products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.driver import specialize_for_cost_model
from tecomp.errors import LowerError, TargetError
from tecomp.ir import Buffer, evaluate
from tecomp.machine import read_target
from tests.strategies.draws import Draw
from tests.strategies.intrinsics import tile_product
from tests.strategies.machines import scratchpads
from tests.strategies.watcher import Watcher, assert_counted

BLOCKS = {"global": None, "ddr": 32, "lx": 16}
MACHINE = read_target(scratchpads(
    "grid", '''
[engine.unit]
kind = "matmul"
m = 2
n = 4
k = 3
inputs = ["float32"]
accumulator = "float32"
a = ["m", "k"]
b = ["k", "n"]
c = ["m", "n"]
cycles = { only = 5 }
memory = "lx"
source = "assumed"
''',
    grid="core.y = 4\ncore.x = 16",
    ddr="transaction_bytes = 32",
    lx="capacity_bytes = 65_536\ntransaction_bytes = 16",
), "grid.toml")


@dataclass(frozen=True)
class Plan:
    """Matrix product and its schedule.

    Attributes:
        shape: Rows, columns and depth.
        tile: Rows, columns and depth of one tile operation.
        order: Order of the loops over tiles: rows, columns, depth.
        bound: Grid axes for the first loops that are not over the depth.
        copies: Loop at which the scratchpad copy of A, B and C is made; None without a copy.
        tiled: Whether A, B and C are stored tile by tile.
    """

    shape: tuple[int, int, int]
    tile: tuple[int, int, int]
    order: tuple[int, ...]
    bound: tuple[str, ...]
    copies: tuple[int | None, ...]
    tiled: tuple[bool, ...]


@st.composite
def plans(draw: Draw) -> Plan:
    tile = tuple(draw(st.integers(1, 4)) for _ in range(3))
    # Rows and columns may have tails.
    shape = tuple(
        min(n * draw(st.integers(1, 4)) + draw(st.sampled_from([0, 0, 1])), 14) for n in tile)
    copies = tuple(draw(st.none() | st.integers(0, 2)) for _ in range(3))
    return Plan(
        shape, tile, tuple(draw(st.permutations([0, 1, 2]))),
        draw(st.sampled_from([(), ("core.x",), ("core.x", "core.y")])), copies,
        tuple(draw(st.booleans()) for _ in range(3)),
    )


def scheduled(plan: Plan) -> tuple[te.Schedule, list[te.Tensor]]:
    m, n, depth = plan.shape
    k = te.reduce_axis((0, depth), name="k")
    A, B = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    sides = [(A, 0, 2), (B, 2, 1), (C, 0, 1)]
    for (tensor, row, column), is_tiled in zip(sides, plan.tiled, strict=True):
        s[tensor].set_scope("ddr")
        if is_tiled and tensor is not C:
            a, b = plan.tile[row], plan.tile[column]
            s[tensor].transform_layout(lambda i, j, a=a, b=b: [i // a, j // b, i % a, j % b])
    result = s.cache_write(C, "lx") if plan.copies[2] is not None else C
    copies = [
        s.cache_read(tensor, "lx", [result]) if at is not None else None
        for tensor, at in zip((A, B), plan.copies, strict=False)
    ]
    at_root = result is C
    i, j = s[C].op.axis
    io, ii = s[C].split(i, factor=plan.tile[0])
    jo, ji = s[C].split(j, factor=plan.tile[1])
    free = [(io, jo)[which] for which in plan.order if which < 2]
    s[C].reorder(*free, ii, ji)
    for leaf, axis in zip(free, plan.bound, strict=False):
        s[C].bind(leaf, axis)
    if at_root:
        loops = dict(zip((0, 1), (io, jo), strict=True))
        inner = [ii, ji]
        stage = s[C]
    else:
        stage = s[result]
        stage.compute_at(s[C], free[max(len(plan.bound) - 1, min(plan.copies[2] or 0, 1))])
        x, y = stage.op.axis
        pairs = [stage.split(axis, factor=f) for axis, f in zip((x, y), plan.tile, strict=False)]
        loops = {which: pair[0] for which, pair in enumerate(pairs)}
        inner = [pair[1] for pair in pairs]
    ko, ki = stage.split(stage.op.reduce_axis[0], factor=plan.tile[2])
    loops[2] = ko
    order = [loops[which] for which in plan.order]
    stage.reorder(*order, *inner, ki)
    for copy, at in zip(copies, plan.copies, strict=False):
        if copy is not None and at is not None:
            s[copy].compute_at(stage, order[at])
    stage.tensorize(inner[0], tile_product(*plan.tile, unit="unit"))
    return s, [A, B, C]


@pytest.mark.exhaustive
@given(plans())
def test_tile_operations_of_each_core(plan: Plan) -> None:
    s, args = scheduled(plan)
    try:
        kernel = tecomp.build(s, args, target=MACHINE)
    except (LowerError, TargetError) as error:
        event(f"refused: {error.kind}")
        return
    report = kernel.report()
    watcher = Watcher(report.axes, BLOCKS, ["unit"])
    func, _ = specialize_for_cost_model("main", kernel.lowered, {})
    rng = np.random.default_rng(0)
    arrays = {
        p.name: rng.integers(-3, 4, [int(str(n)) for n in p.shape]).astype("float32")
        for p in func.params if isinstance(p, Buffer)
    }
    evaluate(func, list(arrays.values()), watcher)

    assert_counted(report, watcher)
    assert {core.core: core.tiles.get("multiply", 0) for core in report.cores
            if core.tiles} == dict(watcher.tiles)
    assert report.tiles == {"multiply": watcher.tiles.total()}
    for core in report.cores:
        assert core.cycles.get("unit unit", 0) % 5 == 0
    event(f"cores: {len(report.cores)}, copies: {sum(c is not None for c in plan.copies)}")
