"""Trace pictures: lanes, bars and nesting levels of timelines, and trace files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import tecomp
from tecomp.drawing import ChromeTrace, bar, lane_named, level, process_named, trace_of
from tests.graph.test_pictures import residual
from tests.messages import Diagnostic, diagnostic
from tests.strategies.pictures import check_picture, words_of
from tests.viz.programs import kernel


def test_drawn(golden: Callable[[object], None]) -> None:
    golden(residual().timeline().picture())


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
        (lanes(100, 1), ["Left out: 76 of 100 lanes.", "lane 99"]),
        (lanes(5, 1, processes=65), ["core 0", "core 2", "core 64", "Left out: 305 of 325 lanes."]),
        (lanes(30, 1, processes=2), ["Left out: 36 of 60 lanes."]),
        (lanes(1, 300), ["Not in this list: 276 names."]),
        (lanes(40, 60), ["Left out: 600 bars, the shortest of their lanes."]),
        (lanes(1, 0), ["nothing takes time"]),
        (trace_of([]), ["nothing takes time"]),
    ],
)
def test_what_a_picture_has(trace: ChromeTrace, words: list[str]) -> None:
    picture = trace.picture()
    check_picture(picture)
    for each in words:
        assert each in picture, each


@pytest.mark.parametrize("each", [1, 3, 5, 7, 11])
def test_processes_are_shown_with_all_of_their_lanes(each: int) -> None:
    """All lanes of a process are shown; the lane of the whole chip comes last."""
    found = [line.text for line in words_of(check_picture(lanes(each, 1, processes=50).picture()))]

    assert "core 49" in found
    assert {found.count(f"lane {n}") for n in range(each)} == {sum(w.startswith("core ") for w in found)}


def test_bars_of_one_name_that_touch_are_one() -> None:
    apart = [bar("a", "x", 0.0, 1.0), bar("a", "x", 2.0, 1.0)]
    touching = [bar("a", "x", 0.0, 1.0), bar("a", "x", 1.0, 2.0)]
    drawn = [trace_of([process_named(0, "p"), *each]).picture() for each in (apart, touching)]

    assert [each.count("<title>a: ") for each in drawn] == [4, 2]
    assert "a: 0 to 3 us" in drawn[1]


def test_levels_are_shown_at_their_height() -> None:
    trace = trace_of([
        process_named(0, "p"), bar("a", "x", 0.0, 2.0),
        level("bytes", 0.0, "bytes", 1000), level("bytes", 1.0, "bytes", 500),
    ])
    picture = trace.picture()

    assert "bytes, at most 1k" in picture
    heights = {
        each.split("<title>")[1].split("<")[0]: float(each.split('height="')[1].split('"')[0])
        for each in picture.splitlines() if "<title>bytes: " in each
    }
    assert heights["bytes: 1,000"] == 2 * heights["bytes: 500"]


def test_what_is_saved(tmp_path: Path) -> None:
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
