"""Pictures of targets, reports and plans: what they say is what the objects say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings

import tecomp
from tecomp.driver.build import ScheduledKernel
from tests.pictures.programs import kernel
from tests.properties.test_timeline import chains, demo
from tests.strategies.pictures import SVG, check_picture, words_of

Golden = Callable[[object], None]


@pytest.mark.parametrize("name", [name for name in tecomp.list_targets() if name != "cpu"])
def test_a_target_is_drawn(name: str) -> None:
    target = tecomp.Target.load(name)
    lines = [line.text for line in words_of(check_picture(target.picture()))]

    assert lines[0] == name
    assert set(target.memories) <= set(lines)
    for link in target.links.values():
        whose = "each core" if link.scope == "core" else "the chip"
        assert f"{link.name}: {link.from_} to {link.to}, {link.bytes_per_cycle:.4g} B/cycle of {whose}" in lines


def test_the_processor_at_hand_is_drawn() -> None:
    check_picture(tecomp.Target.load("cpu").picture())


def test_drawn_target(golden: Golden) -> None:
    golden(tecomp.Target.load("stick128").picture())


def test_drawn_report(golden: Golden) -> None:
    golden(demo("stick128").report().picture())


def test_the_bars_of_a_timeline_are_in_order() -> None:
    """What the host sends comes before what cores load, and what they store before it goes back."""
    root = check_picture(demo("stick128").report().timeline_picture())
    bars = [
        (title.partition(": ")[0], float(box.attrib["x"]), float(box.attrib["width"]))
        for box in root.iter(f"{SVG}rect") if ", cycles " in (title := box.findtext(f"{SVG}title", ""))
    ]
    ends = {name: max(x + wide for each, x, wide in bars if each == name) for name, _, _ in bars}
    starts = {name: min(x for each, x, _ in bars if each == name) for name, _, _ in bars}

    assert ends["weights_ddr"] <= starts["weights_ddr_lx"] + 0.7
    assert ends["features_ddr"] <= starts["features"] + 0.7


def test_a_roofline_has_each_memory_and_the_kernel() -> None:
    report = demo("tensix_wh").report()
    picture = report.roofline_picture()
    check_picture(picture)

    assert picture.count("<circle") == picture.count("B in a cycle</text>") > 2
    assert f"{report.kernel} does " in picture


def test_a_kernel_of_the_processor_has_a_report_to_look_at() -> None:
    report = kernel().report()
    check_picture(report.picture())

    assert "No memory or link that it uses has a known rate." in report.roofline_picture()


@settings(max_examples=10)
@given(chains())
def test_any_report(made: ScheduledKernel) -> None:
    report = made.report()
    for picture in (report.picture(), report.timeline_picture(), report.roofline_picture()):
        check_picture(picture)
