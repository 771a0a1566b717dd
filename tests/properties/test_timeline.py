"""The timeline of a report is causal: data are moved and computed before they are used."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.cost_model import SLICES, Activity, CostReport, last_slice
from tecomp.cost_model.timeline import timeline
from tecomp.demo.filters import schedule_on_target
from tecomp.driver import ScheduledKernel
from tecomp.ir import Allocate, BufferLoad, BufferStore, OperandTransfer, walk
from tests.strategies.draws import Draw
from tests.strategies.machines import ACCELERATORS, MATRIX_MACHINES
from tests.viz.figure import Figure

_NEARLY = 1e-6


def demo(name: str) -> ScheduledKernel:
    target = tecomp.Target.load(name)
    program = schedule_on_target(target, 64, 64, 16)
    if program is None:
        pytest.skip("the demo has no program of its own for this machine")
    return tecomp.build(program.schedule, program.args, target=target)


def chain(name: str, *, is_nested: bool) -> ScheduledKernel:
    """Build two stages on one core; copies are nested in row blocks or move all at once."""
    target = tecomp.Target.load(name)
    far = next(m.name for m in target.memories.values() if m.scope == "chip")
    near = next(m.name for m in target.memories.values() if m.scope == "core")
    A = te.placeholder((64, 64), "float32", name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((64, 64), lambda i, j: te.exp(B[i, j]) + B[i, j], name="C")
    s = te.create_schedule(C.op)
    s[A].set_scope(far)
    s[C].set_scope(far)
    s[B].set_scope(near)
    rows, out = s.cache_read(A, near, [B]), s.cache_write(C, near)
    if target.memory(near).rank > 1:
        for tensor in (rows, B, out):
            s[tensor].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j], loops="logical")
    if is_nested:
        outer, _ = s[C].split(C.op.axis[0], 8)
        for tensor in (rows, B, out):
            s[tensor].compute_at(s[C], outer)
    return tecomp.build(s, [A, C], target=target)


def sources(kernel: ScheduledKernel) -> dict[str, list[set[str]]]:
    """Return the buffers that each statement reads, by written buffer in program order."""
    func = kernel.lowered.functions["flatten_buffer"]
    found: dict[str, list[set[str]]] = defaultdict(list)
    for node in walk(func.body):
        assert not isinstance(node, OperandTransfer)
        if isinstance(node, BufferStore):
            read = {part.buffer.name for part in walk(node.value) if isinstance(part, BufferLoad)}
            found[node.buffer.name].append(read - {node.buffer.name})
    return found


def moments(kernel: ScheduledKernel) -> Iterator[dict[tuple[str, int], list[dict[str, Any]]]]:
    """Yield the trace events of each core by buffer and slice."""
    events = json.loads(kernel.report().trace())["traceEvents"]
    cores: dict[int, dict[tuple[str, int], list[dict[str, Any]]]] = {}
    for event in events:
        if event["ph"] == "X":
            core = cores.setdefault(event["pid"], defaultdict(list))
            core[event["name"], event["args"]["slice"]].append(event)
    yield from cores.values()


def check(kernel: ScheduledKernel) -> None:
    inputs = sources(kernel)
    for core in moments(kernel):
        for (name, piece), events in core.items():
            by_statement: dict[int, list[dict[str, Any]]] = defaultdict(list)
            for event in events:
                by_statement[event["args"]["statement"]].append(event)
            # The first of several statements only initializes a sum, which may take no time.
            last = sorted(by_statement, reverse=True)
            for number, read in zip(last, inputs[name][::-1], strict=False):
                actual = by_statement[number]
                start = min(event["ts"] for event in actual)
                for source in read:
                    assert _end(core.get((source, piece), ())) <= start + _NEARLY
                for event in actual:
                    if event["cat"].endswith(" write"):
                        before = [e for e in actual if not e["cat"].endswith(" write")]
                        assert _end(before) <= event["ts"] + _NEARLY


@st.composite
def chains(draw: Draw) -> ScheduledKernel:
    """Draw stages in chip memory, on up to four cores, that read data of other cores."""
    target = tecomp.Target.load(draw(st.sampled_from(("stick128", "tensix_wh"))))
    far = next(m.name for m in target.memories.values() if m.scope == "chip")
    near = next(m.name for m in target.memories.values() if m.scope == "core")
    A = te.placeholder((32, 32), "float32", name="A")
    results = [A]
    for k in range(draw(st.integers(1, 3))):
        results.append(stage(f"T{k}", results[-1], draw(st.sampled_from(("same", "turned", "summed")))))
    s = te.create_schedule(results[-1].op)
    for before, tensor in pairwise(results):
        s[before].set_scope(far)
        outer, inner = s[tensor].split(tensor.op.axis[0], 8)
        if draw(st.booleans()):
            s[tensor].bind(outer, "core.x")
        if draw(st.booleans()):
            rows = s.cache_read(before, near, [tensor])
            s[rows].compute_at(s[tensor], draw(st.sampled_from((outer, inner))))
    s[results[-1]].set_scope(far)
    return tecomp.build(s, [A, results[-1]], target=target)


def stage(name: str, before: te.Tensor, kind: str) -> te.Tensor:
    """Define a stage that reads a matrix element-wise, transposed or summed along its columns."""
    if kind == "summed":
        k = te.reduce_axis((0, 32), name="k")
        return te.compute((32, 32), lambda i, j: te.sum(before[k, j] * (i + 1), axis=k), name=name)
    if kind == "turned":
        return te.compute((32, 32), lambda i, j: before[j, i] * 2.0, name=name)
    return te.compute((32, 32), lambda i, j: before[i, j] + 1.0, name=name)


@pytest.mark.exhaustive
@settings(max_examples=25)
@given(chains())
def test_activities_follow_their_inputs(kernel: ScheduledKernel) -> None:
    check(kernel)
    check_across(kernel)


@pytest.mark.exhaustive(keep=1, most=4)
@pytest.mark.parametrize("name", ACCELERATORS)
def test_cores_wait_for_the_chip_and_the_chip_for_cores(name: str) -> None:
    assert check_across(demo(name)) > 0


def check_across(kernel: ScheduledKernel) -> int:
    """Check that shared data are complete before they are read, and return the number of reads.

    No loop of these programs contains both a writer and a reader of shared memory.
    """
    events = [e for e in json.loads(kernel.report().trace())["traceEvents"] if e["ph"] == "X"]
    func = kernel.lowered.functions["flatten_buffer"]
    target = tecomp.Target.load(kernel.report().target)
    shared = {
        node.buffer.name for node in walk(func.body)
        if isinstance(node, Allocate) and target.memory(node.buffer.scope).scope == "chip"
    }
    found = 0
    for name, inputs in sources(kernel).items():
        statements = sorted({e["args"]["statement"] for e in events if e["name"] == name})
        # The first of several statements only initializes a sum, which may take no time.
        for number, read in zip(statements[::-1], inputs[::-1], strict=False):
            start = min(e["ts"] for e in events if e["args"]["statement"] == number)
            for source in read & shared:
                assert _end([e for e in events if e["name"] == source]) <= start + _NEARLY
                found += 1
    return found


def _end(events: Iterable[dict[str, Any]]) -> float:
    return max((float(event["ts"] + event["dur"]) for event in events), default=0.0)


def check_ends(kernel: ScheduledKernel) -> None:
    """Check that picture, trace and report agree on the end time, and makespan >= cycles."""
    report = kernel.report()
    scale = 1.0 if report.clock_hz is None else report.clock_hz / 1e6
    events = json.loads(report.trace())["traceEvents"]
    end = max((scale * (e["ts"] + e["dur"]) for e in events if e["ph"] == "X"), default=0.0)
    for picture in (report.picture(), report.timeline_picture()):
        message = [line for line in Figure(picture).texts if "in the order of the timeline" in line]
        found = re.search(r"at least ([\d,]+) cycles.*; ([\d,]+) in the order", message[0])
        assert found

        assert abs(int(found[1].replace(",", "")) - report.cycles) <= 0.5
        assert abs(int(found[2].replace(",", "")) - end) <= 0.6
    assert report.makespan == pytest.approx(end)
    assert report.makespan >= report.cycles - _NEARLY


@settings(max_examples=10)
@given(chains())
def test_head_and_axis_of_a_timeline_say_the_same(kernel: ScheduledKernel) -> None:
    check_ends(kernel)


@pytest.mark.exhaustive(keep=1, most=4)
@pytest.mark.parametrize("name", ACCELERATORS)
def test_head_and_axis_of_a_demo_say_the_same(name: str) -> None:
    check_ends(demo(name))


def in_blocks(blocks: int) -> CostReport:
    """Report the cost of loading, doubling and storing elements on one core, block by block."""
    A = te.placeholder((64, 4096), "float16", name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] + A[i, j], name="B")
    s = te.create_schedule(B)
    for tensor in (A, B):
        s[tensor].set_scope("ddr")
    near, out = s.cache_read(A, "lx", [B]), s.cache_write(B, "lx")
    block, _ = s[B].split(B.op.axis[0], nparts=blocks)
    s[near].compute_at(s[B], block)
    s[out].compute_at(s[B], block)
    return tecomp.build(s, [A, B], target=tecomp.Target.load("stick128")).report()


def test_more_iterations_overlap_more() -> None:
    """The busy time of the bottleneck resource is constant, and a single block overlaps nothing."""
    found = [in_blocks(blocks) for blocks in (1, 2, 4, 8, 64)]
    spans = [report.makespan for report in found]

    assert len({report.cycles for report in found}) == 1
    assert spans[0] > spans[1] > spans[2] > spans[3] == pytest.approx(spans[4])
    assert spans[3] > found[3].cycles


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", ACCELERATORS)
def test_demo_is_causal(name: str) -> None:
    check(demo(name))


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("name", MATRIX_MACHINES)
def test_chains_are_causal(name: str, *, is_nested: bool) -> None:
    check(chain(name, is_nested=is_nested))


@pytest.mark.parametrize(("iterations", "end"), [(1, 24.0), (2, 20.0), (8, 17.0), (64, 17.0)])
def test_iterations_of_one_loop_overlap(iterations: int, end: float) -> None:
    """A copy overlaps the computation of earlier iterations only within one loop."""
    parts = [Activity("A.lx", "link", 8.0, 0, 0), Activity("B", "compute", 16.0, 1, 1, ((0, iterations),))]

    assert max(event.end for event in timeline(parts)) == end


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from((1, 2, 3, 8, 50)),
                          st.integers(0, 7), st.integers(1, 9)), min_size=1, max_size=6))
def test_slices_follow_their_dependences(drawn: list[tuple[int, int, int, int, int]]) -> None:
    parts = [
        Activity(f"T{k}", f"r{resource}", float(cycles), k, step,
             ((source % k, iterations),) if k else ())
        for k, (resource, step, iterations, source, cycles) in enumerate(drawn)
    ]
    when = {(event.activity, event.slice): event for event in timeline(parts)}

    assert len(when) == SLICES * len(parts)
    for (k, piece), event in when.items():
        for source, iterations in parts[k].dependences:
            assert when[source, last_slice(piece, iterations)].end <= event.start
    for resource in {part.resource for part in parts}:
        actual = sorted((e.start, e.end) for e in when.values() if parts[e.activity].resource == resource)
        assert all(a[1] <= b[0] for a, b in pairwise(actual))
