"""Trace pictures: lanes, bars and nesting levels of timelines, and trace files."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import tecomp
from tecomp.drawing import ChromeTrace, bar, lane_named, level, process_named, trace_of
from tests.graph.test_pictures import residual
from tests.messages import Diagnostic, diagnostic
from tests.viz.figure import (
    assert_increasing,
    assert_proportional,
    check_figure,
    check_timeline,
    lane_label,
    number,
    only,
    without_style,
)
from tests.viz.programs import kernel


def test_drawn(golden: Callable[[object], None]) -> None:
    golden(without_style(lanes(1, 2).picture()))


def lanes(count: int, bars: int, processes: int = 1) -> ChromeTrace:
    """Return processes with lanes of sequential events."""
    events = [process_named(p, f"core {p}") for p in range(processes)]
    for p in range(processes):
        for n in range(count):
            events.append(lane_named(p, n, f"lane {n}"))
            events += [
                bar(f"step {k}", "kernel", 10.0 * k, 6.0, process=p, lane=n)
                for k in range(bars)
            ]
    return trace_of(events)


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (lanes(2, 3), ["core 0", "lane 1", "step 2", "step 1: 10 to 16 us"]),
        (lanes(3, 2, processes=2), ["core 0", "core 1", "lane 2"]),
        (lanes(100, 1), ["Omitted: 76 of 100 lanes.", "lane 99"]),
        (lanes(5, 1, processes=65), ["core 0", "core 2", "core 64", "Omitted: 305 of 325 lanes."]),
        (lanes(30, 1, processes=2), ["Omitted: 36 of 60 lanes."]),
        (lanes(1, 300), ["Not in this list: 276 names."]),
        (lanes(40, 60), ["Omitted: 600 bars, the shortest of their lanes."]),
        (lanes(1, 0), ["no event has a duration"]),
        (trace_of([]), ["no event has a duration"]),
    ],
)
def test_contents_of_a_figure(trace: ChromeTrace, words: list[str]) -> None:
    figure = check_figure(trace.picture())
    message = [*figure.texts, *(box.title for box in figure.boxes)]
    for word in words:
        assert word in message, word


BAR = r"(?P<name>[^:]+): (?P<start>[\d.,e+-]+) to (?P<stop>[\d.,e+-]+) us(?:; .*)?"


def test_bars_are_at_their_times() -> None:
    """Lanes are below each other; bars of one name have one colour, and their name if it fits."""
    figure = check_figure(lanes(3, 4, processes=2).picture())
    bars = check_timeline(figure, BAR, slack=0.6)
    tops: dict[tuple[str, str], set[float]] = {}
    for found, box in bars:
        lane = lane_label(figure, box)
        title = max((line for line in figure.words if line.text in ("core 0", "core 1") and line.top < box.top),
                    key=lambda line: line.top).text
        tops.setdefault((title, lane), set()).add(box.top)
        assert figure.label_of(box) == found["name"]
        assert float(found["stop"]) - float(found["start"]) == 6
    assert [*tops] == [(f"core {p}", f"lane {n}") for p in range(2) for n in range(3)]
    assert_increasing(only(value) for value in tops.values())
    assert [found["name"] for found, _ in bars] == [f"step {k}" for k in range(4)] * 6
    assert [*figure.legend] == [f"step {k}" for k in range(4)]


def test_a_program_is_a_trace_of_its_kernels() -> None:
    program = residual()
    figure = check_figure(program.timeline().picture())
    size = max(number(found["stop"]) for found, _ in figure.boxes_titled(BAR))
    unit = next(scale for scale in (1e6, 1e3, 1.0, 1e-3) if size >= scale)
    bars = check_timeline(figure, BAR, unit=unit, slack=0.8)

    assert [found["name"] for found, _ in bars] == ["layer0", "layer1", "layer2", "last"]
    assert_increasing(box.left for _, box in bars)
    for (_, before), (_, after) in pairwise(bars):
        assert after.left == pytest.approx(before.right, abs=0.7)


@pytest.mark.parametrize("each", [1, 3, 5, 7, 11])
def test_processes_are_shown_with_all_of_their_lanes(each: int) -> None:
    """All lanes of a process are shown; the lane of the whole chip comes last."""
    found = check_figure(lanes(each, 1, processes=50).picture()).texts

    assert "core 49" in found
    assert {found.count(f"lane {n}") for n in range(each)} == {sum(w.startswith("core ") for w in found)}


def test_bars_of_one_name_that_touch_are_one() -> None:
    apart = [bar("a", "x", 0.0, 1.0), bar("a", "x", 2.0, 1.0)]
    touching = [bar("a", "x", 0.0, 1.0), bar("a", "x", 1.0, 2.0)]
    drawn = [check_figure(trace_of([process_named(0, "p"), *item]).picture()) for item in (apart, touching)]

    assert [[found[0] for found, _ in figure.boxes_titled(BAR)] for figure in drawn] == [
        ["a: 0 to 1 us", "a: 2 to 3 us"], ["a: 0 to 3 us"]]


def test_levels_are_shown_at_their_height() -> None:
    trace = trace_of([
        process_named(0, "p"), bar("a", "x", 0.0, 2.0),
        level("bytes", 0.0, "bytes", 1000), level("bytes", 1.0, "bytes", 500),
    ])
    figure = check_figure(trace.picture())
    levels = [(number(found[1]), box) for found, box in figure.boxes_titled("bytes: (.*)")]

    assert "bytes, at most 1k" in figure.texts
    assert [value for value, _ in levels] == [1000, 500]
    assert_proportional((value, box.height) for value, box in levels)
    (_, first), (_, second) = levels
    assert first.bottom == second.bottom
    (whole,) = (box for _, box in figure.boxes_titled(BAR))
    assert first.left == whole.left
    assert second.left == pytest.approx(first.right, abs=0.2)
    assert second.right == pytest.approx(whole.right, abs=0.2)
    assert first.width == pytest.approx(second.width, abs=0.2)


def test_saved_files(tmp_path: Path) -> None:
    trace = kernel().timeline()
    for suffix in ("json", "svg", "html"):
        trace.save(tmp_path / f"x.{suffix}")

    assert json.loads((tmp_path / "x.json").read_text("utf-8")) == json.loads(trace)
    assert (tmp_path / "x.svg").read_text("utf-8") == trace.picture() == trace._repr_svg_()
    assert trace.picture() in (tmp_path / "x.html").read_text("utf-8")
    assert trace.picture() in trace._repr_html_()


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tecomp.CallError) as caught:
        kernel().timeline().save("x.png")

    assert diagnostic(caught.value) == (
        Diagnostic("unknown-choice", path="x.png", kinds=".json or .svg or .html")
    )
