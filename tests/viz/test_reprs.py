"""The `repr` of large objects is one line; `str` and pictures show the details."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import tecomp
import tecomp.array as xp
from tests.graph.test_pictures import residual
from tests.properties.test_timeline import demo
from tests.viz.programs import kernel, rectified
from tests.viz.test_layout import LAYOUTS
from tests.viz.test_machines import steps

LINES: dict[str, tuple[Callable[[], Any], str]] = {
    "target": (
        lambda: tecomp.Target.load("stick128"),
        "<Target stick128: 32 cores with scratchpads, that move and compute with sticks of 128 bytes>",
    ),
    "report": (
        lambda: demo("stick128").report(), "<Report of main on stick128: 32 cores, 17_650 cycles>"),
    "timeline": (lambda: demo("stick128").timeline(), "<Trace of N characters>"),
    "roofline": (lambda: steps(1.3e9, 5.5e10), "<Roofline of cpu: step 0, step 1>"),
    "program-report": (lambda: residual().report(), "<ProgramReport of net on cpu: 4 calls of 2 kernels>"),
    "program-timeline": (lambda: residual().timeline(), "<Trace of N characters>"),
    "plan": (lambda: residual().memory, "<Plan of 4_608 bytes for 2 values>"),
    "schedule-trace": (lambda: rectified()[0].trace, "<Trace of D: 8 calls>"),
    "explanation": (lambda: xp.explain(xp.exp(xp.asarray([1.0, 2.0]))), "<Explanation of 1 kernel>"),
    "picture": (lambda: kernel().picture(), "<Svg of N characters>"),
    "page": (lambda: next(iter(LAYOUTS.values())).explore(), "<Page of N characters>"),
}


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("name", LINES)
def test_large_reprs_are_one_line(name: str) -> None:
    result, line = LINES[name]

    assert re.sub(r"[0-9_]+ characters", "N characters", repr(result())) == line


def test_text_repr_is_complete() -> None:
    picture = kernel().picture()

    assert f"{picture}" == str(picture) == picture[:]
    assert str(picture).startswith("<svg")
