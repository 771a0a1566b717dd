"""Pictures of targets, reports and plans show the values of the objects."""

from __future__ import annotations

import re
from dataclasses import replace
from math import dist, log10

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.cost_model import Roof, Roofline, RooflinePoint, roofline_of
from tecomp.drawing import DESCENT, colour, in_bytes
from tecomp.driver import ScheduledKernel
from tests.properties.test_timeline import chains, demo
from tests.strategies.draws import Draw
from tests.strategies.machines import ACCELERATORS
from tests.viz.figure import (
    Figure,
    assert_increasing,
    assert_proportional,
    check_figure,
    check_timeline,
    lane_label,
    linear_map,
    number,
    only,
)
from tests.viz.programs import kernel


@pytest.mark.parametrize("name", ACCELERATORS)
def test_a_target_is_drawn(name: str) -> None:
    """Memories have the colours of their scopes; each link runs from its source to its destination."""
    target = tecomp.Target.load(name)
    figure = check_figure(target.picture())
    scopes = {"host": "of the host", "chip": "of the chip", "core": "of each core"}
    memories = {found[1]: box for found, box in figure.boxes_titled(r"([\w.]+): .*")
                if found[1] in target.memories}

    assert figure.texts[0] == name
    assert [*memories] == [*target.memories]
    rows = [*memories.values()]
    linear_map((k, box.top) for k, box in enumerate(rows))
    for memory in target.memories.values():
        box = memories[memory.name]
        assert box.fill == figure.legend[scopes[memory.scope]]
        assert figure.label_of(box).startswith(f"{memory.name} ")
        assert f"{memory.rank} ax" in figure.label_of(box)
    assert [*figure.legend] == [words for scope, words in scopes.items()
                                if any(memory.scope == scope for memory in target.memories.values())]
    names = [*memories]
    expected = set()
    for link in target.links.values():
        description = "each core" if link.scope == "core" else "the chip"
        words = f"{link.name}: {link.from_} to {link.to}, {link.bytes_per_cycle:.4g} B/cycle of {description}"
        assert words in figure.texts
        expected.add((words, names.index(link.from_), names.index(link.to)))
    assert figure.connections(rows) == expected


@pytest.mark.parametrize("name", ACCELERATORS)
def test_the_cores_and_units_of_a_target(name: str) -> None:
    """Each core has a box at its place in the grid, each unit a line."""
    target = tecomp.Target.load(name)
    figure = check_figure(target.picture())
    cores = {(int(found[1]), int(found[2])): box for found, box in figure.boxes_titled(r"core (\d+), (\d+)")}

    assert len(cores) == (target.cores if target.grid else 0)
    if len(cores) > 1:
        linear_map((column, box.left) for (_, column), box in cores.items())
        if len({row for row, _ in cores}) > 1:
            linear_map((row, box.top) for (row, _), box in cores.items())
        assert {box.fill for box in cores.values()} == {figure.legend.get("of each core", colour(2))}
    for unit in target.engine.values():
        assert any(line.startswith(f"{unit.name}: ") for line in figure.texts)


def test_host_target_is_drawn() -> None:
    check_figure(tecomp.Target.load("cpu").picture())


BAR = r"(?P<name>\w+): (?P<resource>[\w ]+), cycles (?P<start>[\d,]+) to (?P<stop>[\d,]+)"


def test_the_bars_of_a_timeline_are_in_order() -> None:
    """Timeline bars are in dependence order: host input, loads, stores, host output."""
    figure = check_figure(demo("stick128").report().timeline_picture())
    bars = check_timeline(figure, BAR)
    assert all(lane_label(figure, box) == found["resource"] for found, box in bars)
    ends = {found["name"]: box.right for found, box in sorted(bars, key=lambda bar: bar[1].right)}
    starts = {found["name"]: box.left for found, box in sorted(bars, key=lambda bar: -bar[1].left)}

    assert ends["weights_ddr"] <= starts["weights_ddr_lx"] + 0.7
    assert ends["features_ddr"] <= starts["features"] + 0.7


def test_the_timeline_has_the_events_of_the_report() -> None:
    """Lanes of the first two cores, the last one and the chip have the bytes and cycles of the report."""
    report = demo("stick128").report()
    figure = check_figure(report.timeline_picture())
    bars = check_timeline(figure, BAR)
    first, activities, events = report.timelines()[0]
    top, bottom = (figure.line(f"core {k}").top for k in (0, 1))
    drawn = {(found["name"], found["resource"]) for found, box in bars if top < box.top < bottom}

    assert first == "core 0"
    assert drawn == {(activities[event.activity].name, activities[event.activity].resource)
                     for event in events if event.end > event.start}
    assert [line for line in figure.texts if line.startswith("core ")] == ["core 0", "core 1"]
    last = max(number(found["stop"]) for found, _ in bars)
    assert last == round(max(event.end for _, _, events in report.timelines() for event in events))


def test_the_cores_of_a_report_are_bars() -> None:
    """The height of a bar is the time of the busiest resource, that of a narrow one the computation."""
    report = demo("stick128").report()
    figure = check_figure(report.picture())
    top, below = figure.line("Cores").bottom, figure.line("Roofline").top
    found = [(match, box) for match, box in figure.boxes_titled(r"core \((\d+),\): (.*)") if top < box.top < below]
    bars = {int(match[1]): box for match, box in found if "operations" in match[2]}
    inner = {int(match[1]): box for match, box in found if match[2].startswith("computes for ")}

    assert [*bars] == [*inner] == [core.core[0] for core in report.cores]
    base = only({round(box.bottom, 1) for box in (*bars.values(), *inner.values())})
    assert only(line for line in figure.lines if {y for _, y in line.points} == {base})
    heights = [(core.busy, bars[core.core[0]].height) for core in report.cores]
    assert_proportional([*heights, *((core.computing, inner[core.core[0]].height) for core in report.cores)])
    assert_increasing(box.left for box in bars.values())
    legend = figure.legend
    assert {box.fill for box in bars.values()} == {legend["busiest resource, with the latency before"]}
    assert {box.fill for box in inner.values()} == {legend["computing"]}
    assert f"The highest bar is {max(core.busy for core in report.cores):,.0f} cycles." in figure.texts


def test_the_memories_of_a_report_are_filled() -> None:
    """Each memory is a bar, filled and hatched by the share of bytes in use and of padding."""
    result = demo("stick128").report()
    small = tuple(replace(memory, usable_bytes=2 * memory.peak_bytes) for memory in result.memories)
    report = replace(result, memories=small)
    figure = check_figure(report.picture())
    memories = {found[1]: box for found, box in figure.boxes_titled(r"([\w.]+): [\d,]+ B") if box.fill == "plain"}

    assert [*memories] == [memory.memory for memory in report.memories]
    assert any(memory.padding_bytes for memory in report.memories)
    assert_increasing(box.top for box in memories.values())
    for memory in report.memories:
        whole = memories[memory.memory]
        name = figure.line(memory.memory)
        assert name.right < whole.left
        assert whole.top < name.middle[1] < whole.bottom
        capacity = memory.usable_bytes or max(memory.peak_bytes, memory.padding_bytes, 1)
        (used,) = (box for box in figure.boxes if whole.contains(box) and box.title.startswith(f"{memory.peak_bytes:,} B")
                   and box.fill not in ("pad", "plain"))
        assert used.left == whole.left
        assert used.width == pytest.approx(max(whole.width * memory.peak_bytes / capacity, 1), abs=0.2)
        pads = [box for box in figure.boxes if whole.contains(box) and box.fill == "pad"]
        assert len(pads) == bool(memory.padding_bytes)
        for box in pads:
            assert box.title == f"{memory.padding_bytes:,} B of padding"
            assert box.left == whole.left
            assert box.width == pytest.approx(max(whole.width * memory.padding_bytes / capacity, 1), abs=0.2)


def check_roofline(figure: Figure, roofline: Roofline) -> None:
    """Check that roofs and kernels are at their values, on the logarithmic scale of the axes."""
    (frame,) = (frame for frame in figure.frames if not frame.title)
    across = linear_map((log10(number(line.text)), line.middle[0]) for line in figure.words
                        if line.size == 9 and frame.bottom < line.top < frame.bottom + 20)
    scale = [(log10(number(line.text)), line.bottom - 9 * DESCENT - 3) for line in figure.words
             if line.size == 9 and line.right < frame.left and frame.has((frame.left, line.middle[1]), 6)]
    up = linear_map((value, -y) for value, y in scale)
    legend = figure.legend
    for dot in figure.dots:
        if dot.fill == "paper":
            continue
        found = re.fullmatch(r"(.*) and ([\w. ]+): (\S+) operations per byte, (\S+) per \w+(?:, of .*)?", dot.title)
        assert found, dot.title
        assert dot.x == pytest.approx(across(log10(float(found[3]))), abs=0.3)
        assert dot.y == pytest.approx(-up(log10(number(found[4]))), abs=0.3)
        assert any(dot.fill == fill and words.startswith((f"{found[2]}:", f"{found[2]},"))
                   for words, fill in legend.items())
    titles = {f"{roof.title}: at most {roof.rate:,.4g} bytes per {roofline.unit}": roof for roof in roofline.memories}
    titles |= {f"{roof.title}: at most {roof.rate:,.4g} operations per {roofline.unit}": roof
               for roof in roofline.compute}
    drawn = [line for line in figure.lines if line.title in titles]
    assert {line.title for line in drawn} == {*titles}
    for line in drawn:
        roof, (first, last) = titles[line.title], line.points
        assert line.is_dashed == (roof.cores > 1)
        if roof in roofline.compute:
            assert (first[0], last[0]) == (frame.left, frame.right)
            assert first[1] == last[1] == pytest.approx(-up(log10(roof.rate)), abs=0.3)
            continue
        # The line has the slope of the rate: operations = rate * intensity.
        origin = across(0.0), -up(log10(roof.rate))
        slope = (across(1.0) - across(0.0), up(1.0) - up(0.0))
        for x, y in line.points:
            assert (x - origin[0]) / slope[0] == pytest.approx((origin[1] - y) / slope[1], abs=0.01)
        assert line.colour == legend[f"{roof.title}: {in_bytes(roof.rate)} per {roofline.unit}"]


def test_a_roofline_is_at_its_values() -> None:
    roofline = steps(1.3e9, 5.5e10, 9.8e10)
    figure = check_figure(roofline.picture())

    check_roofline(figure, roofline)
    assert [dot.title.partition(" and ")[0] for dot in figure.dots if dot.title] == ["step 0", "step 1", "step 2"]
    assert len([dot for dot in figure.dots if dot.fill == "paper"]) == 1, "step 1 was not measured"


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", ["stick128", "tensix_wh"])
def test_the_roofline_of_a_report_is_at_its_values(name: str) -> None:
    report = demo(name).report()
    check_roofline(check_figure(report.roofline_picture()), roofline_of(report))


def test_each_label_of_a_roofline_is_tied_to_its_point() -> None:
    """A thin line leads from each kernel and each compute roof to its label."""
    figure = check_figure(steps(1.3e9, 5.5e10, 9.8e10).picture())
    points = {dot.title.partition(" and ")[0]: dot.middle for dot in figure.dots if dot.title}
    points |= {line.title.partition(": at most")[0]: line.points[-1] for line in figure.lines
               if " operations per second" in line.title}
    labels = {line.text.partition(": ")[0]: line for line in figure.words}

    assert len(points) == 6
    for name, point in points.items():
        (end,) = (line.points[-1] for line in figure.lines if line.style == "faint"
                  and dist(line.points[0], point) < 0.2)
        assert 0 < labels[name].left - end[0] < 8
        assert labels[name].top < end[1] < labels[name].bottom


def test_a_roofline_has_each_memory_and_the_kernel() -> None:
    report = demo("tensix_wh").report()
    figure = check_figure(report.roofline_picture())
    memories = [words for words in figure.legend if words.endswith("B per cycle")]

    assert len(figure.dots) == 2 * len(memories) > 4
    assert any(line.startswith(f"{report.kernel} executes ") for line in figure.texts)


def test_a_kernel_of_the_processor_has_a_report_to_look_at() -> None:
    report = kernel().report()
    check_figure(report.picture())

    assert any("tecomp.calibrate() measures the host." in line
               for line in check_figure(report.roofline_picture()).texts)


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


def test_a_roofline_of_a_processor_names_roofs_and_kernels() -> None:
    lines = check_figure(steps(1.3e9, 5.5e10).picture()).texts

    for words in ("step 0: 1.3G, 1% of the roof", "step 1: 55G, 55% of the roof", "float32 vectors: 100G",
                  "float32 one by one: 14G", "float32 vectors, 4 cores: 400G", "L1: 200 GB per second",
                  "memory: 30 GB per second", "L2, 4 cores: 400 GB per second", "What the legend says."):
        assert words in lines


def test_long_names_leave_space_for_the_rate() -> None:
    lines = check_figure(steps(5.5e10, name="W" * 200).picture()).texts

    assert [line for line in lines if line.endswith("W…: 55G, 55% of the roof")]


def test_roofs_on_one_line_are_all_seen() -> None:
    """Coincident roofs stay visible: the lower one in drawing order is wider."""
    same = Roofline("cpu", "second", (Roof("float32 vectors", 1e11),),
                    (Roof("L1", 2e11), Roof("L2", 2e11), Roof("memory", 1e11)), (), ())
    figure = check_figure(same.picture())

    assert [line.stroke for line in figure.lines if line.colour] == [5, 2, 2]


def test_few_cycles_are_no_zero() -> None:
    A = te.placeholder((1,), name="A")
    B = te.compute((1,), lambda i: A[i] * 2.0, name="B")
    target = tecomp.Target.load("cpu", clock_hz=1e9, core={"vector_bytes": 16})
    figure = check_figure(tecomp.build(te.create_schedule(B), [A, B], target=target).report().picture())

    assert figure.texts[1].startswith(
        "at least 0.0625 cycles, 6.25e-11 s, bound by L1; 0.0703 in the order of")
    assert "The highest bar is 0.0625 cycles." in figure.texts


def test_a_target_with_rates_shows_them() -> None:
    rates = {"read_bytes_per_second": [2e11, 3e10], "flops": {"float32": 1e11},
             "scalar_flops": {"float32": 1e10}, "source": "made up"}
    target = tecomp.Target.load("cpu", core={"cache_bytes": [32768]}, rates=rates)
    lines = check_figure(target.picture()).texts

    assert "reads per second: L1 200 GB, memory 30 GB" in lines
    assert "operations per second, with vectors: float32 100G" in lines
    assert "operations per second, one by one: float32 10G" in lines


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
    figure = check_figure(roofline.picture())
    (frame,) = (frame for frame in figure.frames if not frame.title)
    lines = [line for line in figure.lines if line.style == "line" and line.stroke >= 2]
    points = [point for line in lines for point in line.points] + [dot.middle for dot in figure.dots]

    assert len(lines) == len(roofline.compute) + len(roofline.memories)
    assert all(frame.has(point) for point in points)
    check_roofline(figure, roofline)


@settings(max_examples=30)
@given(st.lists(st.floats(1e3, 5e11), max_size=60), st.sampled_from(("step", "W" * 200, "<&>")))
def test_labels_of_any_number_of_kernels_are_apart(speeds: list[float], name: str) -> None:
    figure = check_figure(steps(*speeds, name=name).picture())

    assert len(figure.dots) == len(speeds) + len(speeds) // 2


@settings(max_examples=10)
@given(chains())
def test_any_report(made: ScheduledKernel) -> None:
    report = made.report()
    for picture in (report.picture(), report.timeline_picture(), report.roofline_picture()):
        check_figure(picture)
