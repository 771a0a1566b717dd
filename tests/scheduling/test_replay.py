"""Errors of replay: texts that are not traces, and traces of another computation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from tecomp import te
from tecomp.errors import ParseError, ScheduleError
from tecomp.scheduling.replay import replay
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((12, 10), name="A")
P = te.compute((12, 10), lambda i, j: A[i, j] * 2.0, name="P")
C = te.compute((12, 10), lambda i, j: P[i, j] + 1.0, name="C")


def changed(**fields: object) -> str:
    s = te.create_schedule(C)
    s[C].split(C.op.axis[0], factor=3)
    document = json.loads(s.trace.to_json())
    document["steps"][0].update(fields)
    return json.dumps(document)


REFUSED: dict[str, tuple[Callable[[], str], type[Exception], Diagnostic]] = {
    "no JSON": (
        lambda: "{", ParseError,
        Diagnostic(
            "trace-text",
            reason="Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
    ),
    "no text": (
        lambda: cast(Any, None), ParseError, Diagnostic("trace-text", text=None),
    ),
    "another document": (
        lambda: "[1, 2]", ParseError, Diagnostic("trace-text", version=1),
    ),
    "another version": (
        lambda: '{"tecomp_trace": 99, "steps": []}', ParseError,
        Diagnostic("trace-text", version=1),
    ),
    "no steps": (
        lambda: '{"tecomp_trace": 1, "outputs": ["C"]}', ParseError,
        Diagnostic("trace-text", name="steps"),
    ),
    "other outputs": (
        lambda: '{"tecomp_trace": 1, "outputs": ["D"], "steps": []}', ScheduleError,
        Diagnostic("replay", description=['D'], outputs=['C']),
    ),
    "an unknown primitive": (
        lambda: changed(call="__init__"), ParseError, Diagnostic("trace-text", call="__init__"),
    ),
    "steps that are no list": (
        lambda: '{"tecomp_trace": 1, "outputs": ["C"], "steps": 7}', ParseError,
        Diagnostic("trace-text", name="steps", document=7, expected="list"),
    ),
    "a need without a kind": (
        lambda: changed(needs=[{"owner": "C"}]), ParseError,
        Diagnostic("trace-text", name="kind"),
    ),
    "axes of another rank": (
        lambda: changed(needs=[{"owner": "C", "kind": "axis", "names": ["i", "j", "k"]}]),
        ScheduleError,
        Diagnostic("replay", name_count=3, owner="C", attribute="axis", axis_count=2),
    ),
    "too many arguments": (
        lambda: changed(args=[{"axis": "i"}, 1, 2, 3, 4, 5], kwargs={}), ParseError,
        Diagnostic("trace-text", call="split", reason="too many positional arguments"),
    ),
    "a method of the schedule called on a stage": (
        lambda: changed(call="cache_read"), ParseError,
        Diagnostic("trace-text", whose="a stage", call="cache_read"),
    ),
    "a primitive that is no text": (
        lambda: changed(call=["split"]), ParseError,
        Diagnostic("trace-text", name="call", document=['split'], expected="str"),
    ),
    "a stage that is no text": (
        lambda: changed(stage={"a": 1}), ParseError,
        Diagnostic("trace-text", name="stage", document="{'a': 1}", expected="str | None"),
    ),
    "a result without a name": (
        lambda: changed(results=[["i"]]), ParseError,
        Diagnostic("trace-text", field="results", name=['i']),
    ),
    "an argument of no kind": (
        lambda: changed(args=[{"axis": ["i"]}]), ParseError,
        Diagnostic("trace-text", value="{'axis': ['i']}"),
    ),
    "a number that is none": (
        lambda: changed(kwargs={"factor": {"float": "much"}}), ParseError,
        Diagnostic("trace-text", text="much"),
    ),
    "an output that is not there": (
        lambda: changed(args=[{"tensor": "C", "output": 3}]), ParseError,
        Diagnostic("trace-text", output=3, name="C", count=1),
    ),
    "an unknown stage": (
        lambda: changed(stage="Z"), ScheduleError,
        Diagnostic("not-in-schedule", name="Z", known="A, P, C"),
    ),
    "an axis that no step made": (
        lambda: changed(args=[{"axis": "q"}]), ParseError,
        Diagnostic("trace-text", name="q"),
    ),
    "an argument that is refused": (
        lambda: changed(kwargs={"factor": 0}), ScheduleError,
        Diagnostic("invalid-value", where="s[C].split(i)", subject="factor", number=0),
    ),
    "an expression of something unknown": (
        lambda: changed(kwargs={"factor": {"expr": "q + 1"}}), ScheduleError,
        Diagnostic("not-in-schedule", name="q", names="none"),
    ),
    "an expression that is none": (
        lambda: changed(kwargs={"factor": {"expr": "q +"}}), ParseError,
        Diagnostic("trace-text", text="q +"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_replay_rejects_foreign_traces(case: str) -> None:
    make, kind, expected = REFUSED[case]
    text = make()

    with pytest.raises(kind) as caught:
        replay(text, C)

    assert isinstance(caught.value, ParseError | ScheduleError)
    assert diagnostic(caught.value) == expected
