"""Traffic of links: bursts, descriptors, hops, and outstanding requests."""

from __future__ import annotations

from typing import Any

import pytest

import tecomp
from tecomp import te
from tecomp.cost_model import CostReport
from tecomp.errors import TargetError
from tecomp.machine import read_target
from tests.messages import Diagnostic, diagnostic
from tests.strategies.machines import scratchpads

MACHINE = scratchpads(
    "linked", '''
[link.load]
from = "ddr"
to = "lx"
scope = "core"
bytes_per_cycle = 16
source = "assumed"
''',
    grid="core.y = 2\ncore.x = 4", ddr="transaction_bytes = 64",
)
TARGET = read_target(MACHINE, "linked.toml")


def copied(machine: tecomp.Target = TARGET, tiled: bool = False, **link: Any) -> CostReport:
    """Report four cores that each copy four 16 x 16 tiles of 64 x 64 elements of four bytes."""
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B)
    s[A].set_scope("ddr")
    if tiled:
        s[A].transform_layout(lambda i, j: [i // 16, j // 16, i % 16, j % 16])
    copy = s.cache_read(A, "lx", [B])
    i, j = s[B].op.axis
    io, jo, _, _ = s[B].tile(i, j, 16, 16)
    s[B].bind(io, "core.x")
    s[copy].compute_at(s[B], jo)
    target = machine.overridden(link={"load": link})
    return tecomp.build(s, [A, B], target=target).report()


def busy(report: CostReport) -> list[float]:
    return [core.cycles["load"] for core in report.cores]


def test_bytes_alone() -> None:
    report = copied()

    (load,) = report.links
    assert (load.link, load.bytes, load.transfers, load.hops) == ("load", 64 * 64 * 4, 16, 0)
    assert busy(report) == [4096 / 16] * 4


@pytest.mark.parametrize(
    ("burst", "tiled", "bursts"),
    [
        (None, False, 4 * 4 * 16), (64, False, 4 * 4 * 16), (32, False, 2 * 4 * 4 * 16),
        (48, False, 2 * 4 * 4 * 16), (64, True, 4 * 4096 // 64), (4096, True, 4), (1000, True, 20),
        # A burst has at least one element.
        (2, False, 64 * 64),
    ],
)
def test_runs_are_cut_into_bursts(burst: int | None, tiled: bool, bursts: int) -> None:
    """The tiles of a core are one run if each tile is contiguous in memory."""
    assert [link.bursts for link in copied(tiled=tiled, burst_bytes=burst).links] == [bursts]


@pytest.mark.parametrize(
    ("loops", "tiled", "transfers"),
    [(None, False, 16), (2, False, 16), (1, False, 256), (1, True, 16)],
)
def test_a_nest_that_is_too_deep_is_several_descriptors(
    loops: int | None, tiled: bool, transfers: int
) -> None:
    assert [link.transfers for link in copied(tiled=tiled, max_loops=loops).links] == [transfers]


def test_requests_wait_for_memory() -> None:
    """Each request of a load waits for the latency of the chip's memory."""
    waiting = TARGET.overridden(memory={"ddr": {"latency_cycles": 50}})
    for outstanding in (1, 2):
        report = copied(waiting, burst_bytes=64, latency_cycles=20, outstanding=outstanding)

        assert busy(report) == [(64 * (20 + 50) + 256) / outstanding] * 4


def test_gaps_within_transactions_are_moved() -> None:
    """Rows that fill most of their last transaction are read by requests of several rows."""
    for width, bursts in ((64, 32), (50, 32), (48, 64)):
        A = te.placeholder((64, width), name="A")
        B = te.compute((64, width), lambda i, j, A=A: A[i, j] + 1.0, name="B")
        s = te.create_schedule(B)
        s[A].set_scope("ddr")
        s[A].transform_layout(lambda i, j: [i, j % 64], loops="logical")
        copy = s.cache_read(A, "lx", [B])
        s[copy].compute_at(s[B], s[B].op.axis[0])
        target = TARGET.overridden(link={"load": {"burst_bytes": 512}})

        (load,) = tecomp.build(s, [A, B], target=target).report().links

        assert load.bursts == bursts, width


@pytest.mark.parametrize(
    ("link", "requests"),
    [({}, 4), ({"max_loops": 1}, 64), ({"burst_bytes": 64}, 64), ({"burst_bytes": 32}, 128)],
)
def test_requests_are_serialized(link: dict[str, Any], requests: int) -> None:
    """One outstanding request pays each latency, two pay half of them, and many pay none."""
    for outstanding in (1, 2, 100_000):
        report = copied(latency_cycles=20, outstanding=outstanding, **link)

        waiting = (requests * 20 + 256) / outstanding
        assert busy(report) == [max(256.0, waiting)] * 4
        assert {core.latency for core in report.cores} == {20}
    assert busy(copied(latency_cycles=20, instances=2, outstanding=1, **link)) == [
        (requests * 20 + 256) / 2
    ] * 4


@pytest.mark.parametrize(
    ("topology", "ports", "hops"),
    [
        ("mesh", [[0, 0]], [0, 1, 2, 3]),
        ("torus", [[0, 0]], [0, 1, 2, 1]),
        ("mesh", [[1, 0]], [1, 2, 3, 4]),
        ("mesh", [[0, 0], [0, 3]], [0, 1, 1, 0]),
    ],
)
def test_hops(topology: str, ports: list[list[int]], hops: list[int]) -> None:
    report = copied(latency_cycles=20, hop_cycles=5, ports=ports, topology=topology)

    assert [core.latency for core in report.cores] == [20 + 5 * passed for passed in hops]
    assert [link.hops for link in report.links] == [max(hops)]


@pytest.mark.parametrize("port", [[0], [2, 0], [0, 0, 0]])
def test_ports_are_cores(port: list[int]) -> None:
    with pytest.raises(TargetError) as error:
        read_target(f"{MACHINE}ports = [{port}]\n", "linked.toml")
    assert diagnostic(error.value) == Diagnostic(
        "target", source="linked.toml", line="", section="",
        reason=f"link `load` has a port at {port}, which is not a core; specify one "
               "non-negative coordinate per axis of the grid: core.y (2), core.x (4)",
    )
