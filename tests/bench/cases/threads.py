"""Speedup of two threads over one."""

from __future__ import annotations

from tests.bench.case import Goal
from tests.bench.cases.images import convolution
from tests.bench.cases.products import product

_GOAL = Goal(of_one_thread=1.85)

CASES = (
    product(
        "threads/matmul-2048", 2048, 2048, 2048, threads=2, goal=_GOAL,
        title="matmul 2048x2048x2048, 2 threads",
    ),
    convolution("threads/conv2d-64x56", 64, 56, 3, threads=2, goal=_GOAL),
)
