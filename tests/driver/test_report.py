"""Cost reports of small programs on a small target, and the results of the same programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.cost_model import iteration_counting
from tecomp.driver import ScheduledKernel, profiling
from tecomp.errors import CallError, LowerError
from tecomp.machine import Target, read_target
from tests.messages import Diagnostic, diagnostic
from tests.strategies.machines import scratchpads

SMALL = read_target(scratchpads(
    "small", '''
[link.load]
from = "ddr"
to = "lx"
scope = "core"
bytes_per_cycle = 16
latency_cycles = 20
source = "assumed"

[link.store]
from = "lx"
to = "ddr"
scope = "core"
bytes_per_cycle = 16
source = "assumed"

[engine.vector]
kind = "vector"
width_bytes = 64
types = ["float32"]
cycles = { default = 1, exp = 8 }
memory = "lx"
source = "assumed"
''',
    ddr="""capacity_bytes = 1_048_576
read_bytes_per_cycle = 32
write_bytes_per_cycle = 16
latency_cycles = 100
transaction_bytes = 64""",
    lx="""capacity_bytes = 8192
read_bytes_per_cycle = 64
write_bytes_per_cycle = 64""",
), "small.toml")


def matmul(
    rows: int = 64, tile: int = 16, target: Target = SMALL, n: int = 64
) -> tuple[te.Schedule, list[te.Tensor]]:
    """Build C = A B with rows divided among cores, and operands and result in scratchpads."""
    A, B = te.placeholder((rows, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((rows, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    for tensor in (A, B, C):
        s[tensor].set_scope("ddr")
    a, b = s.cache_read(A, "lx", [C]), s.cache_read(B, "lx", [C])
    c = s.cache_write(C, "lx")
    i, j = s[C].op.axis
    outer, i = s[C].split(i, factor=-(-rows // target.grid["core.x"]))
    jo, ji = s[C].split(j, factor=tile)
    s[C].bind(outer, te.thread_axis("core.x"))
    s[C].reorder(outer, jo, i, ji)
    s[c].compute_at(s[C], jo)
    ko, ki = s[c].split(s[c].op.reduce_axis[0], factor=tile)
    y, x = s[c].op.axis
    s[c].reorder(ko, y, ki, x)
    s[c].vectorize(x)
    s[a].compute_at(s[c], ko)
    s[b].compute_at(s[c], ko)
    return s, [A, B, C]


def factors(rows: int, n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return random integer matrices, whose products are exact."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype("float32") for shape in ((rows, n), (n, n)))
    return a, b


@pytest.mark.parametrize("rows", [64, 50])
def test_matmul(golden: Callable[[object], None], rows: int) -> None:
    kernel = tecomp.build(*matmul(rows), target=SMALL)
    a, b = factors(rows, 64)
    c = np.zeros((rows, 64), np.float32)

    kernel(a, b, c)

    np.testing.assert_array_equal(c, a @ b)
    golden(kernel.report())


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("rows", [16, 13])
def test_every_pass_computes_the_product(
    agrees: Callable[..., ScheduledKernel], rows: int
) -> None:
    """The program has the same number of tiles and loops, and fewer elements."""
    s, (A, B, C) = matmul(rows, 4, n=16)
    a, b = factors(rows, 16)

    agrees(s, [A, B, C], {A: a, B: b, C: a @ b}, target=SMALL)


def test_figures_that_are_easy_to_work_out() -> None:
    report = tecomp.build(*matmul(), target=SMALL).report()

    def bytes_of(memory: str, direction: str) -> int:
        return next(t.bytes for t in report.traffic
                    if (t.memory, t.direction) == (memory, direction))

    # Each core loads its rows of A for each of 4 column tiles, and all of B.
    assert bytes_of("ddr", "read") == 4 * (4 * 16 * 64 + 64 * 64) * 4
    assert bytes_of("ddr", "write") == 64 * 64 * 4
    assert report.operations == {"add float32": 64**3, "mul float32": 64**3}
    assert {m.memory: m.peak_bytes for m in report.memories} == {
        "ddr": 3 * 64 * 64 * 4, "lx": 3 * 16 * 16 * 4,
    }
    compute = 2 * 64**3 / 4 / 16
    assert {core.cycles["compute"] for core in report.cores} == {compute}
    traffic = report.of("ddr", "read")
    assert traffic is not None
    assert (traffic.transactions, traffic.longest_run_bytes) == (131072 // 64, 64)
    assert report.of("global", "read") is None
    assert report.imbalance == 1.0


def test_the_core_with_the_longest_part_is_waited_for() -> None:
    report = tecomp.build(*matmul(50), target=SMALL).report()

    work = [core.operations for core in report.cores]
    assert work == [13 * 64 * 64 * 2] * 3 + [11 * 64 * 64 * 2]
    assert report.imbalance == 13 * 4 / 50


def test_contiguous_tiles_are_one_run() -> None:
    """A tile is copied from rows, and from a layout in which the tile is contiguous."""
    runs = []
    for is_tiled in (False, True):
        A = te.placeholder((64, 64), name="A")
        B = te.compute((64, 64), lambda i, j, A=A: A[i, j] + 1.0, name="B")
        s = te.create_schedule(B)
        s[A].set_scope("ddr")
        if is_tiled:
            s[A].transform_layout(lambda i, j: [i // 16, j // 16, i % 16, j % 16])
        copy = s.cache_read(A, "lx", [B])
        i, j = s[B].op.axis
        io, jo, _, _ = s[B].tile(i, j, 16, 16)
        s[B].bind(io, "core.x")
        s[copy].compute_at(s[B], jo)
        traffic = tecomp.build(s, [A, B], target=SMALL).report().of("ddr", "read")
        assert traffic is not None
        assert traffic.bytes == 64 * 64 * 4
        runs.append((traffic.runs, traffic.longest_run_bytes))

    # Each core copies four tiles, which are adjacent in the second layout.
    assert runs == [(64 * 4, 64), (4, 4096)]


def test_padding() -> None:
    A = te.placeholder((50,), name="A")
    B = te.compute((50,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B)
    s[A].set_scope("ddr")
    s[A].transform_layout(lambda i: [i // 16, i % 16])

    report = tecomp.build(s, [A, B], target=SMALL).report()

    assert {m.memory: (m.peak_bytes, m.padding_bytes) for m in report.memories} == {
        "ddr": (256, 56)
    }


def test_sizes_are_passed_by_name() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: te.exp(A[i]), name="B")
    s = te.create_schedule(B)
    s[A].set_scope("ddr")
    kernel = tecomp.build(s, [A, B], target=SMALL)

    report = kernel.report(n=100)

    assert [(t.memory, t.direction, t.bytes) for t in report.traffic] == [
        ("global", "write", 400), ("ddr", "read", 400),
    ]
    assert report.cores[0].cycles["compute"] == 100 * 8 / 16
    with pytest.raises(CallError) as error:
        kernel.report()
    assert diagnostic(error.value) == (
        Diagnostic("unbound-size", where="report", func="main", name="n", function="report")
    )
    with pytest.raises(CallError) as error:
        kernel.report(n=-1)
    assert diagnostic(error.value) == Diagnostic("invalid-value", where="report", name="n", size=-1)
    with pytest.raises(CallError) as error:
        kernel.report(n=8, m=9)
    assert diagnostic(error.value) == Diagnostic(
        "unbound-size", where="report", func="main", size="m", names="n",
    )


def test_memory_for_explicit_sizes() -> None:
    n = te.var("n")
    A = te.placeholder((8, n), name="A")
    B = te.compute((8, n), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B)
    s[A].set_scope("ddr")
    row = s.cache_read(A, "lx", [B])
    i, _ = B.op.axis
    s[B].bind(s[B].split(i, nparts=4)[0], "core.x")
    s[row].compute_at(s[B], s[B].leaf_iter_vars[1])

    report = tecomp.build(s, [A, B], target=SMALL).report(n=100)

    assert {m.memory: m.peak_bytes for m in report.memories} == {
        "ddr": 8 * 100 * 4, "lx": 100 * 4,
    }


def test_reports_list_data_dependent_parts() -> None:
    A, index = te.placeholder((64,), name="A"), te.placeholder((8,), "int32", name="index")
    B = te.compute((8,), lambda i: A[index[i]], name="B")
    s = te.create_schedule(B)

    report = tecomp.build(s, [A, index, B], target=SMALL).report()

    assert report.unknown == ("cast(\"int64\", index[i])",)
    assert "data-dependent (" in str(report)


def test_loops_whose_extent_depends_on_data_count_as_empty() -> None:
    rows = te.placeholder((5,), "int32", name="rows")
    data, values = te.placeholder((4, 9), name="data"), te.placeholder((7,), name="values")
    columns = te.placeholder((7,), "int32", name="columns")
    out = topi.nn.sparse_dense(data, values, columns, rows)

    report = tecomp.build(out, [data, values, columns, rows, out], target=SMALL).report()

    assert report.operations == {}
    assert "data-dependent (assumed: conditions true, loops empty" in str(report)


def test_reports_sample_many_different_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (iteration_counting, profiling):
        monkeypatch.setattr(module, "BUDGET", 1000)
    n = 40
    A = te.placeholder((n, n), name="A")
    B = te.compute(
        (n, n), lambda i, j: te.if_then_else(i * j % 7 == 0, A[i, j], 0.0), name="B")
    kernel = tecomp.build(te.create_schedule(B), [A, B], target=SMALL)

    with pytest.raises(LowerError) as error:
        kernel.report()
    assert diagnostic(error.value) == (
        Diagnostic("limit-exceeded", budget=1000, name="main")
    )


def test_triangles() -> None:
    n = 2048
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k, where=k <= i), name="B")
    s = te.create_schedule(B)
    i, = B.op.axis
    s[B].bind(s[B].split(i, nparts=4)[0], "core.x")

    report = tecomp.build(s, [A, B], target=SMALL).report()

    assert report.operations == {"add float32": n * (n + 1) // 2}
    # Core c has the rows from 512 * c to 512 * (c + 1).
    assert [core.operations for core in report.cores] == [
        512 * 513 // 2 + 512 * 512 * core for core in range(4)
    ]


def test_json() -> None:
    report = tecomp.build(*matmul(), target=SMALL).report()

    document = json.loads(report.to_json())

    assert document["cycles"] == report.cycles
    assert document["bound_by"] == report.bound_by == "lx read"
    assert document["seconds"] == report.cycles / 1e9
    assert [t["bytes"] for t in document["traffic"]] == [t.bytes for t in report.traffic]


def test_trace() -> None:
    report = tecomp.build(*matmul(50), target=SMALL).report()

    events = json.loads(report.trace())["traceEvents"]

    parts = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in parts} == {0, 1, 2, 3, 4}
    for resource, cycles in report.chip.items():
        actual = [e for e in parts if (e["pid"], e["cat"]) == (4, resource)]
        assert sum(e["args"]["cycles"] for e in actual) == pytest.approx(cycles)
    for process, core in enumerate(report.cores):
        for row, (resource, cycles) in enumerate(core.cycles.items()):
            actual = [e for e in parts if (e["pid"], e["tid"]) == (process, row)]
            assert {e["cat"] for e in actual} == {resource}
            assert sum(e["args"]["cycles"] for e in actual) == pytest.approx(cycles)
            # Activities follow each other, in microseconds, from the arrival of the first data on.
            ends = [core.latency * 1e-3, *(e["ts"] + e["dur"] for e in actual)]
            assert all(e["ts"] >= end - 1e-9 for e, end in zip(actual, ends, strict=False))
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert names == ["core 0", "core 1", "core 2", "core 3", "chip"]
