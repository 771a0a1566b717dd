"""Number of Python calls around the kernel of a small array."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp

A, B = xp.asarray(np.ones(100, "float32")), xp.asarray(np.ones(100, "float32"))


def calls_of(work: Callable[[], Any]) -> int:
    """Count the Python calls of a computation after warm-up."""
    for _ in range(5):
        work()
    # Garbage collection calls functions in some of the runs.
    return min(_counted(work) for _ in range(3))


def _counted(work: Callable[[], Any]) -> int:
    called = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal called
        called += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return called


@pytest.mark.parametrize(
    ("work", "most"),
    [
        (lambda: A + B, 10),
        (lambda: xp.eval(A + B), 58),
        (lambda: float(xp.sum(A)), 63),
        (lambda: xp.eval((A + B) * A - B), 91),
    ],
    ids=["recorded", "one operation", "a number", "a chain"],
)
def test_operations_call_few_python_functions(work: Callable[[], Any], most: int) -> None:
    assert calls_of(work) <= most
