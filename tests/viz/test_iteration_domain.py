"""Pictures of iteration domains: points in loop order, and dependences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import dist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import ScheduleError, te
from tecomp.compute import ComputeOp
from tecomp.ir import evaluate
from tecomp.scheduling.schedule import Schedule
from tecomp.viz import domain_of, steps, sums
from tests.messages import Diagnostic, diagnostic
from tests.strategies.schedules import Case, cases
from tests.viz.figure import Dot, Figure, check_figure, linear_map, one_to_one


def product() -> tuple[Schedule, te.Tensor]:
    """Return a schedule of a matrix product in 4x4 tiles."""
    A = te.placeholder((64, 64), name="A")
    B = te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    rows, columns, few, lanes = s[C].tile(C.op.axis[0], C.op.axis[1], 4, 4)
    outer, inner = s[C].split(k, 4)
    s[C].reorder(rows, columns, outer, few, inner, lanes)
    s[C].vectorize(lanes)
    return s, C


def recurrence(rows: int = 6, columns: int = 5) -> tuple[Schedule, te.Tensor, te.Tensor]:
    """Return a scan where each element depends on the one above and on its left neighbour."""
    X = te.placeholder((rows, columns), name="X")
    S = te.placeholder((rows, columns), name="S")
    start = te.compute((1, columns), lambda _, i: X[0, i], name="start")
    step = te.compute(
        (rows, columns),
        lambda t, i: S[t - 1, i] + te.if_then_else(i > 0, S[t - 1, i - 1], 0.0) + X[t, i],
        name="step")
    scan = te.scan(start, step, S, name="scan")
    return te.create_schedule(scan.op), scan, step


@dataclass(frozen=True)
class DrawnPoint:
    """A point of a figure, with the values of axes and loops of its tooltip."""

    dot: Dot
    at: tuple[int, ...]
    loops: dict[str, int]


def points_of(figure: Figure) -> list[DrawnPoint]:
    """Return the points of a figure."""
    found = []
    for dot in figure.dots:
        at, _, loops = dot.title.partition(": ")
        found.append(DrawnPoint(
            dot, tuple(int(part.rpartition(" = ")[2]) for part in at.split(", ")),
            {name: int(value) for name, value in (part.rsplit(" ", 1) for part in loops.split(", "))}))
    return found


def check_points(
    figure: Figure, *, lanes: Sequence[str] = (), apart: Sequence[str] = ()
) -> list[DrawnPoint]:
    """Check place, number and colour of all points.

    Args:
        figure: Figure of an iteration domain.
        lanes: Loops whose iterations run at once.
        apart: Loops whose iterations run in other threads.
    """
    points = points_of(figure)
    across = linear_map((point.at[-1], point.dot.x) for point in points)
    numbers = {line.middle: line.text for line in figure.words}
    down, right = figure.texts[5].removesuffix(" ↓"), figure.texts[6].removesuffix(" →")
    assert all(point.dot.title.split(", ")[0].startswith(f"{down} = ") for point in points)
    assert all(f", {right} = " in point.dot.title.split(":")[0] for point in points)
    rows = one_to_one((point.at[0], point.dot.y) for point in points)
    linear_map(rows.items())
    top, left = min(rows.values()), across(min(point.at[-1] for point in points))
    heads = {line.text: line for line in figure.words if top - 40 < line.bottom < top - 11 and line.text.isdigit()}
    for value in {point.at[-1] for point in points}:
        assert abs(heads[str(value)].middle[0] - across(value)) < 0.2
    for value, y in rows.items():
        (name,) = (line.text for line in figure.words if line.right < left - 11
                   and line.top < y < line.bottom)
        assert name == str(value)
    # The order of loops, recomputed from their values.
    threads: dict[tuple[int, ...], list[DrawnPoint]] = {}
    for point in points:
        threads.setdefault(tuple(point.loops[name] for name in apart), []).append(point)
    paths = [line.points for line in figure.lines if line.title == "the order of the loops"]
    for lane in threads.values():
        times = {tuple(n for name, n in point.loops.items() if name not in (*lanes, *apart)): 0
                 for point in lane}
        order = {time: number for number, time in enumerate(sorted(times))}
        for point in lane:
            time = tuple(n for name, n in point.loops.items() if name not in (*lanes, *apart))
            (number,) = (text for middle, text in numbers.items() if dist(middle, point.dot.middle) < 3)
            assert number == str(order[time])
        ordered = sorted(lane, key=lambda point: tuple(point.loops.values()))
        assert len(lane) == 1 or tuple(point.dot.middle for point in ordered) in paths
    (words,) = (words for words in figure.legend if words.startswith("one colour: one iteration of "))
    loops = words.removeprefix("one colour: one iteration of ").split(", ")
    one_to_one((tuple(point.loops[name] for name in loops), point.dot.fill) for point in points)
    return points


def check_arrows(figure: Figure) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Check that arrows go from the border of a point to that of another; return these points."""
    middles = {point.dot.title.partition(": ")[0]: point for point in points_of(figure)}
    found = set()
    for line in figure.lines:
        if not line.is_arrow:
            continue
        source, target = (middles[name] for name in line.title.split(" is needed for "))
        start, end = line.points
        length = dist(source.dot.middle, target.dot.middle)
        for place, point in ((start, source), (end, target)):
            assert dist(place, point.dot.middle) == pytest.approx(point.dot.radius + 1, abs=0.2)
        assert dist(start, end) == pytest.approx(length - 2 * (source.dot.radius + 1), abs=0.3)
        found.add((source.at, target.at))
    return found


def test_tiles_of_a_product() -> None:
    s, C = product()
    figure = check_figure(s[C].domain_picture(*C.op.axis))

    assert figure.texts[:5] == [
        "iteration domain of C", "C[i, j] = sum(A[i, k] * B[k, j], axis=[k]), where k = 0",
        "loops, outermost first: i.outer, j.outer, k.outer, i.inner, k.inner, j.inner",
        "Points (i, j)", "numbers: order of execution"]
    points = check_points(figure, lanes=["j.inner"])
    assert {point.at for point in points} == {*np.ndindex(12, 16)}
    assert all(4 * point.loops["i.outer"] + point.loops["i.inner"] == point.at[0]
               and 4 * point.loops["j.outer"] + point.loops["j.inner"] == point.at[1] for point in points)
    assert check_arrows(figure) == set()


def test_a_reduction_is_a_chain() -> None:
    s, C = product()
    figure = check_figure(s[C].domain_picture())

    points = check_points(figure, lanes=["j.inner"])
    assert {point.at for point in points} == {*np.ndindex(12, 16)}
    assert check_arrows(figure) == {((j, k), (j, k + 1)) for j in range(12) for k in range(15)}


def test_a_scan_follows_from_steps_before() -> None:
    s, scan, _ = recurrence()
    figure = check_figure(s[scan].domain_picture())

    points = check_points(figure)
    assert [point.at for point in points] == [(t, i) for t in range(1, 6) for i in range(5)]
    assert check_arrows(figure) == {
        ((t, i - d), (t + 1, i)) for t in range(1, 5) for i in range(5) for d in (0, 1) if i >= d}


def test_the_dependences_of_a_scan() -> None:
    s, scan, step = recurrence(4, 3)
    expected = {
        ((t, i - d), (t + 1, i)) for t in range(2) for i in range(3) for d in (0, 1) if i >= d
    }
    for tensor, axes in ((scan, scan.op.axis), (step, step.op.axis)):
        stage = s[tensor]._state
        found = set(steps(s.state, stage, domain_of(s.state, stage, axes)))
        first = 1 - int(stage.compute.axis[0].low)
        assert {((t - first, i), (u - first, j)) for (t, i), (u, j) in found} >= expected, tensor
        assert len(found) == len(expected) + 5 * first, tensor


def test_a_step_that_reads_all_of_the_last_one() -> None:
    W = te.placeholder((20, 20), name="W")
    S = te.placeholder((30, 20), name="S")
    start = te.compute((1, 20), lambda _, i: W[0, i], name="start")
    r = te.reduce_axis((0, 20), name="r")
    mixed = te.compute((30, 20), lambda t, i: te.sum(S[t - 1, r] * W[r, i], axis=r), name="mixed")
    step = te.compute((30, 20), lambda t, i: te.tanh(mixed[t, i]), name="step")
    scan = te.scan(start, step, S, name="scan")
    s = te.create_schedule(scan.op)
    state = s[scan]._state
    found = steps(s.state, state, domain_of(s.state, state, scan.op.axis))
    assert set(found) == {
        ((t, r), (t + 1, i)) for t in range(11) for i in range(16) for r in range(16)
    }
    assert "those to one point are drawn" in s[scan].domain_picture()


def test_many_points_are_left_out() -> None:
    s, C = product()
    assert check_figure(s[C].domain_picture()).texts[-3:] == [
        "Points with the same number are computed together, in lanes of j.inner.",
        "A corner of 12 by 16 of the 64 by 64 points is shown; numbers count its 192 points alone.",
        "Arrows: each point accumulates onto the previous one.",
    ]


def test_thread_local_counters_with_explicit_sizes() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    outer, _ = s[B].split(B.op.axis[0], 4)
    s[B].parallel(outer)
    figure = check_figure(s[B].domain_picture())
    found = figure.texts

    assert [w for w in found if w.isdigit()][16:] == ["0", "1", "2", "3"] * 4
    assert found[-4:] == [
        "one colour: one iteration of i.outer",
        "Iterations of i.outer run in parallel; each has its own numbers.",
        "Sizes that calls give are 16 here.",
        "No point depends on another one.",
    ]


def test_a_triangle_has_no_points_outside() -> None:
    A = te.placeholder((6, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k, where=k <= i), name="B")
    s = te.create_schedule(B.op)
    state = s[B]._state
    domain = domain_of(s.state, state, (B.op.axis[0], k))

    assert (domain.is_inside == np.tri(6, dtype=bool)).all()
    assert sums(domain) == [((i, n), (i, n + 1)) for i in range(6) for n in range(i)]


def test_compute_location_is_noted() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    assert ("It is computed at C, i, in parts; this is the order if it was computed once."
            in check_figure(s[B].domain_picture()).texts)
    s[B].compute_inline()
    assert "It is computed inline, in the order of its reader." in check_figure(s[B].domain_picture()).texts


def test_without_axes_there_is_one_point() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((), lambda: A[3] + 1.0, name="B")
    s = te.create_schedule(B.op)
    assert "one point: it has no axes" in check_figure(s[B].domain_picture()).texts


@pytest.mark.parametrize("choose", [
    lambda i, j, k: (i, i), lambda i, j, k: (i, j, k), lambda i, j, k: (j, "i"),
])
def test_unknown_slices(choose: Callable[..., tuple[Any, ...]]) -> None:
    s, C = product()
    axes = choose(*C.op.axis, C.op.reduce_axis[0])
    with pytest.raises(ScheduleError) as caught:
        s[C].domain_picture(*axes)
    names = ", ".join(map(str, axes))
    assert diagnostic(caught.value) == (
        Diagnostic("unknown-loop", stage="C", axes=names, names="i, j, k")
    )


def test_a_placeholder_has_no_iterations() -> None:
    s, C = product()
    with pytest.raises(ScheduleError) as caught:
        s[C.op.input_tensors[0]].domain_picture()
    assert diagnostic(caught.value) == Diagnostic("unknown-loop", name="A")


class Order:
    """Observer that records the elements of a buffer that are read, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.places: list[tuple[int, ...]] = []

    def reader(self, node: Any) -> Callable[[tuple[int, ...]], None]:
        return self.places.append if node.buffer.name == self.name else lambda place: None

    def writer(self, node: Any) -> Callable[[tuple[int, ...]], None]:
        return lambda place: None

    def operation(self, node: Any) -> None:
        return None

    def core(self, thread: str, value: int | None) -> None:
        return None


@settings(max_examples=40)
@given(st.data())
def test_numbers_are_the_order_of_the_loops(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 12))
    A = te.placeholder((rows, columns), name="A", dtype="int32")
    k = te.reduce_axis((0, columns), name="k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    for _ in range(data.draw(st.integers(0, 4))):
        loops = s[B].leaf_iter_vars
        if data.draw(st.booleans()):
            s[B].split(data.draw(st.sampled_from(loops)), factor=data.draw(st.integers(1, 5)))
        else:
            s[B].reorder(*data.draw(st.permutations(loops)))
    watch = Order("A")
    arrays = [np.zeros((rows, columns), "int32"), np.zeros(rows, "int32")]
    evaluate(tecomp.lower(s, [A, B], stop_after="nest"), arrays, watch)
    domain = domain_of(s.state, s[B]._state, (B.op.axis[0], k))

    assert domain.in_order() == [watch.places]
    times = [int(domain.time[point]) for point in watch.places]
    assert times == list(range(rows * columns))


@settings(max_examples=15)
@given(cases())
def test_any_program(case: Case) -> None:
    for stage in case.schedule.stages:
        if isinstance(stage.op, ComputeOp):
            check_figure(stage.domain_picture())
