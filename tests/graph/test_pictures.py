"""Program pictures stay within their frame, and trace events add up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.drawing import lanes_of
from tecomp.driver import CompiledProgram
from tests.graph.test_compile import MACHINE, SIZE, arrays, layers, product_of
from tests.graph.test_relayout_insertion import transposed_sum
from tests.numerics import assert_close
from tests.strategies.pictures import check_picture

SVG = "{http://www.w3.org/2000/svg}"


def residual() -> CompiledProgram:
    """Return compiled layers with an additional product of the last and the first layer."""
    X, W, Y = layers(3)
    first = Y.op.input_tensors[0].op.input_tensors[0].op.input_tensors[0].op.input_tensors[0]
    (w,) = arrays((SIZE, SIZE))
    last = product_of(Y, first, "last")
    program: CompiledProgram = tecomp.compile([last, Y], [X], MACHINE, constants={W: w}, name="net")
    return program


def test_drawn(golden: Callable[[object], None]) -> None:
    golden(residual().picture())


def test_a_notebook_shows_a_picture_as_one() -> None:
    X, W, Y = layers(1)
    shown = tecomp.compile(Y, [X, W]).picture()

    assert shown._repr_svg_() == shown
    assert type(shown._repr_svg_()) is str


@pytest.mark.parametrize("count", [1, 40, 150])
def test_many_kernels_are_drawn(count: int) -> None:
    X, W, Y = layers(count)
    program = tecomp.compile(Y, [X, W])
    root = check_picture(program.picture())

    assert len(list(root.iter(f"{SVG}path"))) >= 2 * min(count, 115)
    assert ("more calls are left out" in program.picture()) == (len(program.kernels) > 120)
    check_picture(program.memory.picture())


def test_a_picture_is_saved_beside_programs(tmp_path: Path) -> None:
    X, W, Y = layers(1)
    program: Any = tecomp.compile(Y, [X, W])
    program.save(tmp_path / "x.svg")
    program.save(str(tmp_path / "x.html"))

    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == program.picture()
    assert program._repr_html_() == program.picture()._repr_html_()


def test_relayouts_are_marked_and_layouts_written() -> None:
    A, X, T, Y = transposed_sum()
    program = tecomp.compile(Y, [A, X], "stick128")
    picture = program.picture()
    boxes = [box.get("fill") for box in ET.fromstring(picture).iter(f"{SVG}rect")]

    relayouts = [call.group.result for call in program.kernels if call.is_relayout]
    assert T.op not in relayouts
    assert boxes.count("#dc8813") == len(relayouts) + 1 > 1  # one more in the legend
    assert "A: float16[70, 40] as [1, 128, 64]" in picture


def test_only_what_is_drawn_is_in_the_legend() -> None:
    A, X, _, Y = transposed_sum()
    moved = tecomp.compile(Y, [A, X], "stick128").picture()

    assert [">a relayout</text>" in picture for picture in (residual().picture(), moved)] == [False, True]


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
    held = [event["args"]["bytes"] for event in events if event["ph"] == "C"]

    assert held == [4 * SIZE * SIZE, 8 * SIZE * SIZE, 8 * SIZE * SIZE, 4 * SIZE * SIZE, 0]


def test_a_trace_of_what_was_measured() -> None:
    events = json.loads(residual().timeline(measured=True))["traceEvents"]
    kernels = [event for event in events if event["ph"] == "X"]

    assert all(event["dur"] == 1e6 * event["args"]["measured"] for event in kernels)
