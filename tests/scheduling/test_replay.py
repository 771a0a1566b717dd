"""What replay refuses: texts that are no trace, and traces of another computation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from tecomp import te
from tecomp.errors import ParseError, ScheduleError
from tecomp.scheduling.replay import replay

A = te.placeholder((12, 10), name="A")
P = te.compute((12, 10), lambda i, j: A[i, j] * 2.0, name="P")
C = te.compute((12, 10), lambda i, j: P[i, j] + 1.0, name="C")


def changed(**fields: object) -> str:
    s = te.create_schedule(C)
    s[C].split(C.op.axis[0], factor=3)
    document = json.loads(s.trace.to_json())
    document["steps"][0].update(fields)
    return json.dumps(document)


REFUSED: dict[str, tuple[Callable[[], str], type[Exception], str]] = {
    "no JSON": (
        lambda: "{", ParseError,
        "replay: the text is no JSON: Expecting property name enclosed in double quotes: line 1 "
        "column 2 (char 1)",
    ),
    "no text": (
        lambda: cast(Any, None), ParseError, "replay: expected the JSON text of a trace, got None",
    ),
    "another document": (
        lambda: "[1, 2]", ParseError, "replay: the text is no trace of version 1",
    ),
    "another version": (
        lambda: '{"tecomp_trace": 99, "steps": []}', ParseError,
        "replay: the text is no trace of version 1",
    ),
    "no steps": (
        lambda: '{"tecomp_trace": 1, "outputs": ["C"]}', ParseError,
        "replay: the trace is malformed: it has no 'steps'",
    ),
    "other outputs": (
        lambda: '{"tecomp_trace": 1, "outputs": ["D"], "steps": []}', ScheduleError,
        "replay: the trace is for outputs ['D'], got ['C']",
    ),
    "an unknown primitive": (
        lambda: changed(call="__init__"), ParseError, "replay: there is no primitive '__init__'",
    ),
    "steps that are no list": (
        lambda: '{"tecomp_trace": 1, "outputs": ["C"], "steps": 7}', ParseError,
        "replay: the trace is malformed: 'steps' is 7, no list",
    ),
    "a need without a kind": (
        lambda: changed(needs=[{"owner": "C"}]), ParseError,
        "replay: the trace is malformed: it has no 'kind'",
    ),
    "axes of another rank": (
        lambda: changed(needs=[{"owner": "C", "kind": "axis", "names": ["i", "j", "k"]}]),
        ScheduleError,
        "replay: the trace names 3 of C.op.axis, which has 2; replay it on a computation of the "
        "same form",
    ),
    "too many arguments": (
        lambda: changed(args=[{"axis": "i"}, 1, 2, 3, 4, 5], kwargs={}), ParseError,
        "replay: the trace is malformed: split: too many positional arguments",
    ),
    "a method of the schedule called on a stage": (
        lambda: changed(call="cache_read"), ParseError,
        "replay: the trace is malformed: a stage has no cache_read",
    ),
    "a primitive that is no text": (
        lambda: changed(call=["split"]), ParseError,
        "replay: the trace is malformed: 'call' is ['split'], no str",
    ),
    "a stage that is no text": (
        lambda: changed(stage={"a": 1}), ParseError,
        "replay: the trace is malformed: 'stage' is {'a': 1}, no str | None",
    ),
    "a result without a name": (
        lambda: changed(results=[["i"]]), ParseError,
        "replay: the trace is malformed: 'results' has ['i'], no str",
    ),
    "an argument of no kind": (
        lambda: changed(args=[{"axis": ["i"]}]), ParseError,
        "replay: the trace is malformed: {'axis': ['i']} is no argument",
    ),
    "a number that is none": (
        lambda: changed(kwargs={"factor": {"float": "much"}}), ParseError,
        "replay: `much` is no number",
    ),
    "an output that is not there": (
        lambda: changed(args=[{"tensor": "C", "output": 3}]), ParseError,
        "replay: the trace is malformed: output 3 of C, which has 1",
    ),
    "an unknown stage": (
        lambda: changed(stage="Z"), ScheduleError,
        "the schedule has no tensor 'Z'; it has A, P, C",
    ),
    "an axis that no step made": (
        lambda: changed(args=[{"axis": "q"}]), ParseError,
        "replay: the trace is malformed: it has no 'q'",
    ),
    "an argument that is refused": (
        lambda: changed(kwargs={"factor": 0}), ScheduleError,
        "s[C].split(i): factor must be a positive integer, got 0",
    ),
    "an expression of something unknown": (
        lambda: changed(kwargs={"factor": {"expr": "q + 1"}}), ScheduleError,
        "the schedule has no size 'q'; it has none",
    ),
    "an expression that is none": (
        lambda: changed(kwargs={"factor": {"expr": "q +"}}), ParseError,
        "replay: `q +` is no expression",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_trace_of_the_computation_is_refused(case: str) -> None:
    make, kind, message = REFUSED[case]
    text = make()

    with pytest.raises(kind) as caught:
        replay(text, C)

    assert isinstance(caught.value, ParseError | ScheduleError)
    assert caught.value.message == message
