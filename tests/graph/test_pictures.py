"""Program pictures stay within their frame, and trace events add up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.drawing import lanes_of
from tecomp.driver import CompiledProgram
from tests.graph.test_compile import MACHINE, SIZE, arrays, layers, product_of
from tests.graph.test_relayout_insertion import transposed_sum
from tests.numerics import assert_close
from tests.viz.figure import check_figure, hue, linear_map, one_to_one, only, without_style


def residual() -> CompiledProgram:
    """Return compiled layers with an additional product of the last and the first layer."""
    X, W, Y = layers(3)
    first = Y.op.input_tensors[0].op.input_tensors[0].op.input_tensors[0].op.input_tensors[0]
    (w,) = arrays((SIZE, SIZE))
    last = product_of(Y, first, "last")
    program: CompiledProgram = tecomp.compile([last, Y], [X], MACHINE, constants={W: w}, name="net")
    return program


def test_drawn(golden: Callable[[object], None]) -> None:
    golden(without_style(residual().picture()))


def test_calls_are_rows_and_values_are_lines() -> None:
    """Calls of one kernel have one colour; lines go from each value to the calls that read it."""
    program = residual()
    figure = check_figure(program.picture())
    rows = [only(box for box in figure.boxes if box.title == name)
            for name in ("X", "sums0 layer0", "sums1 layer1", "sums2 layer2", "last")]
    names = [row.title.rpartition(" ")[2] for row in rows]

    linear_map((k, row.top) for k, row in enumerate(rows))
    assert [figure.label_of(row) for row in rows] == [
        f"{row.title} {name}: float32[24, 24]" + " (output)" * (name in ("layer2", "last"))
        + " W as [1, 24, 24]" * name.startswith("layer")  # weights packed at build time
        for row, name in zip(rows, names, strict=True)]
    assert rows[0].fill == figure.legend["an input"]
    one_to_one((id(call.kernel), row.fill) for call, row in zip(program.kernels, rows[1:], strict=True))
    assert hue(rows[1].fill) == hue(figure.legend["a kernel; each has its own colour"])
    assert {(title.partition(":")[0], names[start], names[end]) for title, start, end in figure.connections(rows)} == {
        ("X", "X", "layer0"), ("layer0", "layer0", "layer1"), ("layer0", "layer0", "last"),
        ("layer1", "layer1", "layer2"), ("layer2", "layer2", "last")}


@pytest.mark.parametrize("is_alone", [False, True])
def test_live_values_are_drawn_at_their_addresses(is_alone: bool) -> None:
    """In the plan alone and beside the calls: addresses run to the right, kernels downwards."""
    program = residual()
    plan = program.memory
    figure = check_figure(plan.picture() if is_alone else program.picture())
    (whole,) = (box for box in figure.boxes if box.title == "free memory")
    values = figure.boxes_titled(r"(\w+): ([\d,]+) bytes from ([\d,]+) on, kernels (\d+) to (\d+)")
    scale = whole.width / plan.bytes
    calls = ([box for name in ("sums0 layer0", "sums1 layer1", "sums2 layer2", "last") for box in figure.boxes
              if box.title == name])
    rows = ([figure.line(str(k)) for k in range(4)] if is_alone else calls)

    assert {found[1] for found, _ in values} == {value.tensor.name for value in plan.values}
    for (found, box), value in zip(values, plan.values, strict=True):
        size, offset, first, last = (int(text.replace(",", "")) for text in found.groups()[1:])
        assert (size, offset, first, last) == (value.bytes, value.offset, value.first, value.last)
        assert box.left == pytest.approx(whole.left + offset * scale, abs=0.2)
        assert box.width == pytest.approx(size * scale - 1, abs=0.2)
        assert rows[first].top - 8 <= box.top <= rows[first].top + 0.2
        assert rows[last].bottom - 0.2 - 1 <= box.bottom <= rows[last].bottom + 8
        assert figure.label_of(box).startswith(found[1])
    one_to_one((found[3], box.fill) for found, box in values)


def test_a_notebook_shows_a_picture_as_one() -> None:
    X, W, Y = layers(1)
    shown = tecomp.compile(Y, [X, W]).picture()

    assert shown._repr_svg_() == shown
    assert type(shown._repr_svg_()) is str


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("count", [1, 40, 150])
def test_many_kernels_are_drawn(count: int) -> None:
    X, W, Y = layers(count)
    program = tecomp.compile(Y, [X, W])
    figure = check_figure(program.picture())

    assert len(figure.lines) >= 2 * min(count, 115)
    assert any("more calls are omitted" in line for line in figure.texts) == (len(program.kernels) > 120)
    check_figure(program.memory.picture())


def test_save_writes_figures_and_programs(tmp_path: Path) -> None:
    X, W, Y = layers(1)
    program: Any = tecomp.compile(Y, [X, W])
    program.save(tmp_path / "x.svg")
    program.save(str(tmp_path / "x.html"))

    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == program.picture()
    assert program._repr_html_() == program.picture()._repr_html_()


def test_relayouts_are_marked_and_layouts_written() -> None:
    A, X, T, Y = transposed_sum()
    program = tecomp.compile(Y, [A, X], "stick128")
    figure = check_figure(program.picture())
    colour = figure.legend["a relayout"]

    relayouts = [call.group.result for call in program.kernels if call.is_relayout]
    assert T.op not in relayouts
    marked = [box for box in figure.boxes if box.fill == colour]
    assert len(marked) == len(relayouts) + 1 > 1  # one more in the legend
    assert "A: float16[70, 40] as [1, 128, 64]" in figure.texts


def test_the_legend_lists_drawn_items_only() -> None:
    A, X, _, Y = transposed_sum()
    moved = tecomp.compile(Y, [A, X], "stick128").picture()
    B = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="B")
    plain = tecomp.compile(B, [A], "cpu").picture()

    assert ["a relayout" in check_figure(picture).legend for picture in (plain, moved)] == [
        False, True]


def test_values_that_meet_have_lines_of_their_own() -> None:
    A, B, C, D = (te.placeholder((1,), name=name) for name in "ABCD")
    lives = {B: (0, 3), A: (0, 1), C: (1, 2), D: (3, 4)}

    assert lanes_of(lives) == {A: 0, B: 1, C: 0, D: 0}


def test_a_trace_has_the_times_of_the_report() -> None:
    program = residual()
    events = json.loads(program.timeline())["traceEvents"]
    kernels = [event for event in events if event["ph"] == "X"]
    bounds = [kernel.bound for kernel in program.report().kernels]

    assert [event["name"] for event in kernels] == ["layer0", "layer1", "layer2", "last"]
    assert [event["dur"] for event in kernels] == [1e6 * (bound or 0) for bound in bounds]
    starts = np.cumsum([0, *(event["dur"] for event in kernels[:-1])])
    assert_close([event["ts"] for event in kernels], starts)


def test_a_trace_has_the_bytes_that_are_held() -> None:
    events = json.loads(residual().timeline())["traceEvents"]
    sizes = [event["args"]["bytes"] for event in events if event["ph"] == "C"]

    assert sizes == [4 * SIZE * SIZE, 8 * SIZE * SIZE, 8 * SIZE * SIZE, 4 * SIZE * SIZE, 0]


def test_a_trace_of_measurements() -> None:
    events = json.loads(residual().timeline(measured=True))["traceEvents"]
    kernels = [event for event in events if event["ph"] == "X"]

    assert all(event["dur"] == 1e6 * event["args"]["measured"] for event in kernels)
