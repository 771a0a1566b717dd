"""Pictures of functions, kernels and schedules: extent, annotation and nesting of loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from pickle import dumps, loads

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import ScheduleError
from tecomp.drawing import Canvas
from tecomp.ir import For
from tecomp.ir.traversal.rewrite import walk
from tecomp.scheduling.schedule import Schedule
from tecomp.viz.loop_nest import LoopRow, draw_nest
from tests.messages import Diagnostic, diagnostic
from tests.strategies.pictures import check_picture, words_of
from tests.strategies.schedules import Case, cases
from tests.viz.programs import kernel, named, rectified

Golden = Callable[[object], None]


def words(picture: str) -> list[str]:
    """Return the text lines of a picture after its checks."""
    return [line.text for line in words_of(check_picture(picture))]


def test_a_kernel_is_drawn(golden: Golden) -> None:
    golden(kernel().picture())


def test_a_schedule_is_drawn(golden: Golden) -> None:
    golden(rectified()[0].picture())


def test_a_call_is_drawn_before_and_after(golden: Golden) -> None:
    golden(rectified()[0].step_picture(3))


def test_the_loops_of_a_kernel_have_their_marks() -> None:
    lines = words(kernel().picture())

    assert lines[lines.index("i.outer: 4") + 1] == "parallel"
    assert lines[lines.index("k.inner: 4") + 1] == "unrolled, runs 16,384 times in all"
    assert lines[lines.index("j: 16") + 1] == "vectorized, runs 4,096 times in all"
    assert "C: float32[256] in global, 1,024 B" in lines


def test_a_function_says_how_often_statements_run() -> None:
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


def test_only_what_a_call_changes_is_shown() -> None:
    s, _ = rectified()
    lines = words(s.step_picture(2))

    assert lines[0] == "k_outer, k_inner = s[C].split(k, factor=4)"
    assert "D" not in lines
    assert lines.index("Before") < lines.index("After") < lines.index("k.outer: 16")


def test_calls_that_there_are_not() -> None:
    s, _ = rectified()
    count = len(s.trace.steps)
    for schedule, step, seen in ((s, count, count), (s, -count - 1, count), (loads(dumps(s)), 0, 0)):
        with pytest.raises(ScheduleError) as caught:
            schedule.step_picture(step)
        assert diagnostic(caught.value) == (
            Diagnostic("invalid-value", step=step, calls=f"{seen} calls")
        )


def test_long_texts_are_short_where_they_stand_alone() -> None:
    lowered = kernel().lowered

    assert len(repr(lowered)) < 300
    assert repr(lowered).startswith("<Lowered main: after nest, ")
    assert str(lowered) == lowered.dump()


def test_what_is_said_of_a_long_name_is_whole() -> None:
    s = named("W" * 300)
    A, B = (stage.op.outputs[0] for stage in s.stages)
    lines = [line.text for line in words_of(check_picture(tecomp.build(s, [A, B]).picture()))]

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

    assert "⋮ the rest is left out" in words(func.picture())


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
    check_picture(schedule.picture())


@settings(max_examples=15)
@given(cases())
def test_any_program(case: Case) -> None:
    check_picture(case.schedule.picture())
    before = copy(case.schedule)
    lowered = case.lower()
    for func in {id(func): func for func in lowered.functions.values()}.values():
        lines = words(func.picture())
        names = {node.loop_var.name for node in walk(func.body) if isinstance(node, For)}
        shown = {match.group(1) for line in lines if (match := re.match(r"(\S+): \S", line))}
        assert names <= shown or "⋮ the rest is left out" in lines or any("…" in n for n in lines)
    check_picture(lowered.picture())
    _check_steps(before)


def _check_steps(schedule: Schedule) -> None:
    for step in range(len(schedule.trace.steps)):
        check_picture(schedule.step_picture(step))
