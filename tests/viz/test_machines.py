"""Pictures of targets, reports and plans show the values of the objects."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.cost_model import Roof, Roofline, RooflinePoint
from tecomp.driver import ScheduledKernel
from tests.properties.test_timeline import chains, demo
from tests.strategies.draws import Draw
from tests.strategies.pictures import SVG, check_picture, words_of
from tests.viz.programs import kernel

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
    """Timeline bars are in dependence order: host input, loads, stores, host output."""
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

    assert picture.count('<circle') == 2 * picture.count("B in a cycle</text>") > 4
    assert f"{report.kernel} does " in picture


def test_a_kernel_of_the_processor_has_a_report_to_look_at() -> None:
    report = kernel().report()
    check_picture(report.picture())

    assert "tecomp.calibrate() measures those of the processor at hand." in report.roofline_picture()


def steps(*speeds: float, name: str = "step") -> Roofline:
    """Return a roofline of a made-up CPU, with one kernel per given speed."""
    marks = tuple(RooflinePoint(f"{name} {k}", "L2", 42.7, speed, 1e11, is_measured=k % 2 == 0)
                  for k, speed in enumerate(speeds))
    return Roofline(
        "cpu", "second",
        (Roof("float32 vectors", 1e11), Roof("float32 one by one", 1.4e10), Roof("float32 vectors", 4e11, 4)),
        (Roof("L1", 2e11), Roof("L2", 1e11), Roof("L3", 7e10), Roof("memory", 3e10), Roof("L2", 4e11, 4)),
        marks, ("What the legend says.",),
    )


def test_drawn_roofline(golden: Golden) -> None:
    golden(steps(1.3e9, 5.5e10, 9.8e10).picture())


def test_a_roofline_of_a_processor_names_roofs_and_kernels() -> None:
    lines = [line.text for line in words_of(check_picture(steps(1.3e9, 5.5e10).picture()))]

    for words in ("step 0: 1.3G, 1% of its roof", "step 1: 55G, 55% of its roof", "float32 vectors: 100G",
                  "float32 one by one: 14G", "float32 vectors, 4 cores: 400G", "L1: 200 GB in a second",
                  "memory: 30 GB in a second", "L2, 4 cores: 400 GB in a second", "What the legend says."):
        assert words in lines


def test_a_long_name_leaves_room_for_its_speed() -> None:
    lines = words_of(check_picture(steps(5.5e10, name="W" * 200).picture()))

    assert [line.text for line in lines if line.text.endswith("W…: 55G, 55% of its roof")]


def test_roofs_on_one_line_are_all_seen() -> None:
    """Coincident roofs stay visible: the lower one in drawing order is wider."""
    same = Roofline("cpu", "second", (Roof("float32 vectors", 1e11),),
                    (Roof("L1", 2e11), Roof("L2", 2e11), Roof("memory", 1e11)), (), ())
    widths = re.findall(r'stroke-width="(\d+)" style="stroke:#', same.picture())

    assert widths == ["5", "2", "2"]


def test_few_cycles_are_no_zero() -> None:
    A = te.placeholder((1,), name="A")
    B = te.compute((1,), lambda i: A[i] * 2.0, name="B")
    target = tecomp.Target.load("cpu", clock_hz=1e9, core={"vector_bytes": 16})
    picture = tecomp.build(te.create_schedule(B), [A, B], target=target).report().picture()

    assert "at least 0.0625 cycles, 6.25e-11 s, bound by L1; 0.0703 in the order of" in picture
    assert "The highest bar is 0.0625 cycles." in picture


def test_a_target_with_rates_shows_them() -> None:
    rates = {"read_bytes_per_second": [2e11, 3e10], "flops": {"float32": 1e11},
             "scalar_flops": {"float32": 1e10}, "source": "made up"}
    target = tecomp.Target.load("cpu", core={"cache_bytes": [32768]}, rates=rates)
    lines = [line.text for line in words_of(check_picture(target.picture()))]

    assert "reads in a second: L1 200 GB, memory 30 GB" in lines
    assert "operations in a second, with vectors: float32 100G" in lines
    assert "operations in a second, one by one: float32 10G" in lines


RATE = st.floats(1.0, 1e14)
CORES = st.sampled_from((1, 4, 64))


@st.composite
def rooflines(draw: Draw) -> Roofline:
    """Draw rooflines with any roofs and kernels, including none of a kind."""
    compute = draw(st.lists(st.builds(Roof, st.sampled_from(("float32", "int8")), RATE, CORES), max_size=4))
    memories = draw(st.lists(st.builds(Roof, st.sampled_from(("L1", "L2", "memory")), RATE, CORES),
                             min_size=1, max_size=5))
    marks = draw(st.lists(st.builds(
        RooflinePoint, st.sampled_from(("a", "b")), st.sampled_from([roof.name for roof in memories]),
        st.floats(1e-4, 1e6), RATE, RATE | st.just(float("inf")), st.booleans(), st.booleans()), max_size=6))
    return Roofline("cpu", draw(st.sampled_from(("second", "cycle"))), tuple(compute), tuple(memories),
                    tuple(marks), ())


@settings(max_examples=60)
@given(rooflines())
def test_all_of_any_roofline_is_in_its_frame(roofline: Roofline) -> None:
    root = check_picture(roofline.picture())
    (frame,) = (box for box in root.iter(f"{SVG}rect") if box.get("class") == "frame")
    left, top, wide, high = (float(frame.attrib[name]) for name in ("x", "y", "width", "height"))
    lines = [path.attrib["d"][1:].split("L") for path in root.iter(f"{SVG}path")
             if path.get("class") == "line" and float(path.attrib["stroke-width"]) >= 2]
    points = [tuple(map(float, point.split())) for line in lines for point in line]
    points += [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in root.iter(f"{SVG}circle")]

    assert len(lines) == len(roofline.compute) + len(roofline.memories)
    for x, y in points:
        assert left - 0.2 <= x <= left + wide + 0.2
        assert top - 0.2 <= y <= top + high + 0.2


@settings(max_examples=30)
@given(st.lists(st.floats(1e3, 5e11), max_size=60), st.sampled_from(("step", "W" * 200, "<&>")))
def test_labels_of_any_number_of_kernels_are_apart(speeds: list[float], name: str) -> None:
    picture = steps(*speeds, name=name).picture()

    assert picture.count("<circle") == len(speeds) + len(speeds) // 2
    check_picture(picture)


@settings(max_examples=10)
@given(chains())
def test_any_report(made: ScheduledKernel) -> None:
    report = made.report()
    for picture in (report.picture(), report.timeline_picture(), report.roofline_picture()):
        check_picture(picture)
