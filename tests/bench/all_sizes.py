"""Print compilations per array function for twenty sizes, and the speed of the kernels.

    TECOMP_CACHE=off python -m tests.bench.all_sizes

The table shows the milliseconds of the first call, of the second size and of all others, and the
ratio of the time of size-generic kernels to that of kernels specialized on one size.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp.array.graph import computable
from tecomp.array.kernels import (
    ExecutionPlan,
    call_kernel,
    execute_plan,
    run_program,
    select_kernel,
)
from tecomp.array.statistics import counters
from tests.array.test_all_sizes import PATTERNS, numbers, sizes

SHAPES = ((200, 300), (1000, 1000), (200_000, 4))
ROUNDS = 5
SECONDS = 0.01
LARGEST = 1 << 24
"""Largest number of result elements that is measured."""

SHOWN = (
    "less the mean", "standardised", "softmax", "layer norm", "product", "tensordot",
    "where it is greatest", "running", "joined", "rolled", "triangles", "elements at indices",
)


def main() -> None:
    """Print a row for each function."""
    titles = ["function", "kernels", "first", "second", "others"]
    titles += ["x".join(map(str, shape)) for shape in SHAPES]
    print("| " + " | ".join(titles) + " |")
    print("| --- |" + " ---: |" * (len(titles) - 1))
    xp.eval(xp.asarray(numbers(2, 3)) + 1)
    for name in SHOWN:
        print(f"| {name} | {_compiled(name)} | {' | '.join(_ratio(name, s) for s in SHAPES)} |")


def _compiled(name: str) -> str:
    before, times = counters.compiled, []
    for m, n in sizes(20):
        x = xp.asarray(numbers(m, n))
        start = perf_counter()
        xp.eval(PATTERNS[name](xp, x))
        times.append((perf_counter() - start) * 1e3)
    others = median(times[2:])
    return f"{counters.compiled - before} | {times[0]:.0f} ms | {times[1]:.1f} ms | {others:.2f} ms"


def _ratio(name: str, shape: tuple[int, int]) -> str:
    array = PATTERNS[name](xp, xp.asarray(np.random.default_rng(0).random(shape)))
    if array.size > LARGEST:
        return "-"
    work = computable([array._node])
    recipe = select_kernel(work)
    if recipe is None:
        return "-"

    def by_kernels() -> None:
        assert recipe is not None
        if isinstance(recipe, ExecutionPlan):
            for item in recipe.recipes:
                item.calls = 0  # prevents specialization on the sizes
            execute_plan(recipe, work)
        else:
            recipe.calls = 0
            call_kernel(recipe, [node.data for node in work.leaves if node.data is not None])

    pairs = [(_seconds(by_kernels), _seconds(lambda: run_program(work))) for _ in range(ROUNDS)]
    return f"{min(actual for actual, _ in pairs) / min(other for _, other in pairs):.2f}"


def _seconds(call: Callable[[], Any]) -> float:
    call()
    count, start = 0, perf_counter()
    while perf_counter() - start < SECONDS:
        call()
        count += 1
    return (perf_counter() - start) / count


if __name__ == "__main__":
    main()
