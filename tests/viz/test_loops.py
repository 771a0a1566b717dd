"""Pictures of functions, kernels and schedules: extent, annotation and nesting of loops."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from math import dist, inf, prod
from pickle import dumps, loads

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import ScheduleError
from tecomp.drawing import Canvas, colour
from tecomp.ir import For, PrimFunc, walk
from tecomp.scheduling.schedule import Schedule
from tecomp.viz import LoopRow, draw_nest
from tests.messages import Diagnostic, diagnostic
from tests.strategies.schedules import Case, cases
from tests.viz.figure import (
    Box,
    Figure,
    check_figure,
    hue,
    linear_map,
    one_to_one,
    only,
    without_style,
)
from tests.viz.programs import kernel, named, rectified

Golden = Callable[[object], None]


MEANINGS = {
    "loop": "a loop", "vectorized": "vectorized: in vector lanes",
    "unrolled": "unrolled: body repeated", "parallel": "parallel: shared by threads",
    "bound": "bound: one core each", "tensorized": "tensorized: an operation of the machine",
    "stage": "a stage", "memory": "memory", "condition": "a condition", "statement": "a statement",
}
"""Meaning of each kind of row, as the legend states it."""


def words(picture: str) -> list[str]:
    """Return the lines of text of a figure, after the checks of all figures."""
    return check_figure(picture).texts


@dataclass(frozen=True)
class Row:
    """A row of a loop nest: its box, label and remark."""

    box: Box
    label: str
    remark: str


def rows_of(figure: Figure, left: float = 0.0, right: float = inf) -> list[Row]:
    """Return the rows of the loop nest between two x coordinates, from top to bottom."""
    swatches = {*figure.legend_boxes.values()}
    found = []
    for box in figure.boxes:
        if box in swatches or not left <= box.left < right:
            continue
        remarks = [line.text for line in figure.words if "soft" in line.style
                   and 0 < line.left - box.right < 12 and box.top < line.middle[1] < box.bottom]
        found.append(Row(box, figure.label_of(box), " ".join(remarks)))
    return sorted(found, key=lambda row: row.box.top)


def check_nest(figure: Figure, rows: Sequence[Row], depths: Sequence[int]) -> None:
    """Check indentation, and the vertical lines along nested rows."""
    linear_map((number, row.box.top) for number, row in enumerate(rows))
    if len({*depths}) > 1:
        linear_map((depth, row.box.left) for depth, row in zip(depths, rows, strict=True))
    lines = sorted(line.points for line in figure.lines if line.style == "faint" and line.stroke == 1)
    expected = []
    for number, (row, depth) in enumerate(zip(rows, depths, strict=True)):
        end = next((k for k in range(number + 1, len(rows)) if depths[k] <= depth), len(rows))
        if end > number + 1:
            left = row.box.left + 5
            expected.append(((left, row.box.bottom), (left, rows[end - 1].box.bottom)))
    # Figures of two nests hold the lines of both.
    for line in expected:
        assert any(all(dist(a, b) < 0.2 for a, b in zip(line, item, strict=True)) for item in lines), line


def check_kinds(figure: Figure, rows: Sequence[Row], kinds: Sequence[str]) -> None:
    """Check that rows have the colours of their kinds, and that the legend names these alone."""
    for row, kind in zip(rows, kinds, strict=True):
        assert row.box.fill == figure.legend[MEANINGS[kind]], (row, kind)
    assert {*figure.legend} == {MEANINGS[kind] for kind in kinds}


def printed(func: PrimFunc) -> list[tuple[int, str]]:
    """Return depth and text of each line of the printed body of a function."""
    lines = str(func).splitlines()[1:]
    return [((len(line) - len(line.lstrip())) // 4 - 1, line.strip()) for line in lines]


def test_the_loops_of_a_kernel_match_its_text() -> None:
    """Rows of the figure are lines of the printed function, as deep and in the same order."""
    built = kernel()
    figure = check_figure(built.picture())
    rows = rows_of(figure, right=figure.line("Buffers").left)
    lines = printed(built.lowered.functions["pack_reads"])
    depths, kinds, labels = [], [], []
    for depth, line in lines:
        loop = re.fullmatch(r"for (\w+) in (range|parallel|vectorized|unrolled)\((\d+)\):", line)
        depths.append(depth)
        if loop:
            kinds.append(loop[2].replace("range", "loop"))
            labels.append(f"{loop[1]}: {loop[3]}")
        elif line.startswith("with Allocate("):
            kinds.append("memory")
            labels.append("C: float32[256] in global, 1,024 B")
        else:
            kinds.append("statement")
            labels.append(line)
    check_nest(figure, rows, depths)
    check_kinds(figure, rows, kinds)
    assert [row.box.title.replace(".outer:", "_outer:").replace(".inner:", "_inner:") for row in rows] == labels
    assert all(row.label == row.box.title or row.label.endswith("…") for row in rows)


def test_rows_show_trip_counts() -> None:
    """The numbers of the figure are the products of the extents of the loops around a row."""
    figure = check_figure(kernel().picture())
    rows = rows_of(figure, right=figure.line("Buffers").left)
    step = rows[1].box.left - rows[0].box.left
    neighbors: list[int] = []
    for row in rows:
        depth = round((row.box.left - rows[0].box.left) / step)
        extent = re.fullmatch(r"\S+: (\d+)", row.label)
        neighbors[depth:] = [int(extent[1]) if extent else 1]
        count = re.search(r"(?:runs )?([\d,]+) times", row.remark)
        assert (int(count[1].replace(",", "")) if count else None) == (
            prod(neighbors) if depth and not row.label.startswith("C: ") else None), row


def test_buffers_that_are_written_are_marked() -> None:
    figure = check_figure(kernel().picture())
    heading = figure.line("Buffers")
    found = {}
    for line in figure.words:
        if line.left > heading.left and "mono" in line.style:
            dot = only(dot for dot in figure.dots if line.top < dot.y < line.bottom)
            assert 0 < line.left - dot.x < 16
            found[line.text] = dot

    assert {name: dot.title for name, dot in found.items()} == {
        "A: float32[4096] in global, 16,384 B": "parameter, read",
        "B: float32[4096] in global, 16,384 B": "parameter, read",
        "D: float32[4096] in global, 16,384 B": "parameter, written",
        "C: float32[256] in global, 1,024 B": "written",
    }
    fills = {(dot.title.rpartition(", ")[2], dot.fill) for dot in figure.dots}
    assert {*one_to_one(fills)} == {"read", "written"}
    assert hue(dict(fills)["written"]) == hue(colour(0)), "blue ones are written"


MARKS = {"C": {"k.inner": "unrolled", "j": "vectorized"}, "D": {"i.outer": "parallel", "j.inner": "vectorized"}}


def test_a_schedule_has_the_loops_of_its_stages() -> None:
    """Rows are stages and their loops, in order; lines go from each stage to its readers."""
    s, _ = rectified()
    figure = check_figure(s.picture())
    rows = rows_of(figure)
    expected = [
        (depth, name, mark) for stage in s.stages for depth, name, mark in (
            (0, stage.op.name, "stage"),
            *((k + 1, f"{axis.name}: {re.findall(r'[0-9]+', str(axis.dom.extent))[-1]}",
               MARKS.get(stage.op.name, {}).get(axis.name, "loop"))
              for k, axis in enumerate(stage.leaf_iter_vars)))]

    assert [row.label for row in rows] == [label for _, label, _ in expected]
    check_nest(figure, rows, [depth for depth, _, _ in expected])
    check_kinds(figure, rows, [kind for _, _, kind in expected])
    assert [row.remark for row in rows] == [
        "in global", "in global", "computed at D, j.outer, in global", "adds up", "", "unrolled, adds up",
        "vectorized", "in global, an output", "parallel", "", "", "vectorized"]
    # Lines run to the right of all remarks.
    right = max(line.right for line in figure.words if "soft" in line.style and line.top > rows[0].box.top
                and line.bottom < rows[-1].box.bottom)
    stages = {row.label: row.box for row in rows if row.label in {"A", "B", "C", "D"}}
    wide = {name: replace(box, right=right + 8) for name, box in stages.items()}
    names = [*wide]
    assert {(title.partition(":")[0], names[a], names[b])
            for title, a, b in figure.connections([*wide.values()])} == {
        ("A", "A", "C"), ("B", "B", "C"), ("C", "C", "D")}


def test_a_call_is_drawn_before_and_after() -> None:
    """`reorder` is the fourth call: the loops of C, before it on the left and after it on the right."""
    figure = check_figure(rectified()[0].step_picture(3))
    before, after = figure.line("Before"), figure.line("After")
    sides = rows_of(figure, right=after.left - 1), rows_of(figure, left=after.left - 1)

    assert figure.texts[:2] == ["s[C].reorder(k_outer, i_1, k_inner, j_1)", "call 4 of 8"]
    assert before.right < max(row.box.right for row in sides[0]) < after.left
    assert [[row.label for row in rows] for rows in sides] == [
        ["C", "i: 64", "j: 64", "k.outer: 16", "k.inner: 4"],
        ["C", "k.outer: 16", "i: 64", "k.inner: 4", "j: 64"]]
    for rows in sides:
        check_nest(figure, rows, range(5))
    check_kinds(figure, [*sides[0], *sides[1]], ["stage", *["loop"] * 4] * 2)
    assert [row.box.top for row in sides[0]] == [row.box.top for row in sides[1]]


def test_drawn(golden: Golden) -> None:
    golden(without_style(rectified()[0].step_picture(2)))


def test_functions_show_trip_counts() -> None:
    lines = words(kernel().func.picture())

    assert lines.count("16 lanes, 4,096 times") == 4
    assert not any("vectorized" in line for line in lines)


def test_a_notebook_shows_a_function_with_its_text() -> None:
    func = tecomp.parse('def f(A: Buffer("int32", (4,))):\n    A[0] = int32(1)\n')
    shown = func._repr_html_()

    assert shown.startswith(func.picture()._repr_html_())
    assert "<pre>def f(A: Buffer(&quot;int32&quot;, (4,))):\n" in shown


def test_the_loops_of_a_stage() -> None:
    s, args = rectified()
    lines = words(s[args[-1]].picture())

    assert lines[0] == "stage D"
    assert [line for line in lines if ": " in line][:4] == [
        "i.outer: 4", "j.outer: 4", "i.inner: 16", "j.inner: 16"]


def test_only_changes_of_a_call_are_shown() -> None:
    s, _ = rectified()
    lines = words(s.step_picture(2))

    assert lines[0] == "k_outer, k_inner = s[C].split(k, factor=4)"
    assert "D" not in lines
    assert lines.index("Before") < lines.index("After") < lines.index("k.outer: 16")


def test_unknown_calls() -> None:
    s, _ = rectified()
    count = len(s.trace.steps)
    for schedule, step, seen in ((s, count, count), (s, -count - 1, count), (loads(dumps(s)), 0, 0)):
        with pytest.raises(ScheduleError) as caught:
            schedule.step_picture(step)
        assert diagnostic(caught.value) == (
            Diagnostic("invalid-value", step=step, calls=f"{seen} calls")
        )


def test_long_texts_are_truncated() -> None:
    lowered = kernel().lowered

    assert len(repr(lowered)) < 300
    assert repr(lowered).startswith("<Lowered main: after nest, ")
    assert str(lowered) == lowered.dump()


def test_tooltips_of_long_names_are_complete() -> None:
    s = named("W" * 300)
    A, B = (stage.op.outputs[0] for stage in s.stages)
    lines = words(tecomp.build(s, [A, B]).picture())

    assert sum(line.endswith("…: float32[8] in global, 32 B") for line in lines) == 2


def test_a_long_function_shows_a_screen() -> None:
    body = "\n".join(f"    A[{k}] = float32({k}.0)" for k in range(60))
    func = tecomp.parse(f'def main(A: Buffer("float32", (60,))):\n{body}\n')

    shown = repr(func).splitlines()
    assert shown[:-1] == str(func).splitlines()[:48]
    assert shown[-1] == f"# and {len(str(func).splitlines()) - 48} more lines, in str()"
    assert tecomp.parse(str(func)) == func


def test_many_statements_are_left_out() -> None:
    body = "\n".join(f"    A[{k}] = float32({k}.0)" for k in range(500))
    func = tecomp.parse(f'def main(A: Buffer("float32", (500,))):\n{body}\n')

    assert "⋮ the rest is omitted" in words(func.picture())


def test_words_that_fit_are_whole() -> None:
    names = ["m" * length for length in range(1, 80)]
    canvas = Canvas()
    draw_nest(canvas, [LoopRow(0, kind, name) for name in names for kind in ("loop", "stage")], 24, 24)

    assert words(canvas.finished("rows")) == [name for name in names for _ in range(2)]


def test_a_deep_nest() -> None:
    loops = "".join(f"{'    ' * (k + 1)}for i{k} in range(2):\n" for k in range(60))
    func = tecomp.parse(
        f'def main(A: Buffer("float32", (2,))):\n{loops}{"    " * 61}A[i0] = float32(0.0)\n')

    assert f"{2 ** 60:,} times" in words(func.picture())


@given(st.text(min_size=1, max_size=300))
def test_any_name(name: str) -> None:
    try:
        schedule = named(name)
    except tecomp.TecompError:
        return
    check_figure(schedule.picture())


@pytest.mark.exhaustive
@settings(max_examples=15)
@given(cases())
def test_any_program(case: Case) -> None:
    check_figure(case.schedule.picture())
    before = copy(case.schedule)
    lowered = case.lower()
    for func in {id(func): func for func in lowered.functions.values()}.values():
        lines = words(func.picture())
        names = {node.loop_var.name for node in walk(func.body) if isinstance(node, For)}
        shown = {match.group(1) for line in lines if (match := re.match(r"(\S+): \S", line))}
        assert names <= shown or "⋮ the rest is omitted" in lines or any("…" in n for n in lines)
    check_figure(lowered.picture())
    _check_steps(before)


def _check_steps(schedule: Schedule) -> None:
    for step in range(len(schedule.trace.steps)):
        check_figure(schedule.step_picture(step))
