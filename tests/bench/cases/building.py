"""Latency of compilation, of kernel cache hits, and of calls."""

from __future__ import annotations

import numpy as np

from tests.bench.case import Array, Case, Goal
from tests.bench.cases.functions import gelu
from tests.bench.cases.images import convolution
from tests.bench.cases.products import product

_PARTS = {
    "elementwise": Case("", "GELU of 2048x2048", "gelu", ((2048, 2048),), gelu),
    "matmul": product("", 1024, 1024, 1024),
    "conv2d": convolution("", 64, 56, 3),
}
_COLD = {"elementwise": 0.020, "matmul": 0.060, "conv2d": 0.090}
_KEPT = 0.005


def _build(name: str, subject: str, *, is_kept: bool) -> Case:
    """Return a case for the time from a definition to a callable."""
    part = _PARTS[subject]
    state = "from the disk cache" if is_kept else "cold"
    return Case(
        name, f"{subject} ({part.title}), {state}", "build", part.shapes, part.oracle, part.terms,
        options={"part": part, "is_kept": is_kept},
        goal=Goal(seconds=_KEPT if is_kept else _COLD[subject]), is_fresh=True,
    )


def _add(a: Array, b: Array) -> Array:
    return np.asarray(a + b)


CASES = (
    *(_build(f"compile/{what}", what, is_kept=False) for what in _PARTS),
    *(_build(f"cached/{what}", what, is_kept=True) for what in _PARTS),
    Case(
        "call/three-arrays", "a + b of one element into a third array", "add",
        ((1,), (1,)), _add, goal=Goal(seconds=2e-6),
    ),
)
