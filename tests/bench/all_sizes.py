"""Print how often functions of arrays are compiled for twenty sizes, and how fast such kernels are.

    TECOMP_CACHE=off python -m tests.bench.all_sizes

Beside the milliseconds of the first call, of the second size and of all others, it prints how much
longer kernels for all sizes take than what is compiled for one alone.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp.array.graph.evaluate import computable
from tecomp.array.kernels.execution_plan import ExecutionPlan, execute_plan, select_kernel
from tecomp.array.kernels.kernel import call_kernel
from tecomp.array.kernels.static_programs import run_program
from tecomp.array.statistics import counters
from tests.array.test_all_sizes import PATTERNS, numbers, sizes

SHAPES = ((200, 300), (1000, 1000), (200_000, 4))
ROUNDS = 5
SECONDS = 0.01
LARGEST = 1 << 24
"""Elements of a result that is tried."""

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
            for each in recipe.recipes:
                each.calls = 0  # so that sizes are not built in
            execute_plan(recipe, work)
        else:
            recipe.calls = 0
            call_kernel(recipe, [node.data for node in work.leaves if node.data is not None])

    pairs = [(_seconds(by_kernels), _seconds(lambda: run_program(work))) for _ in range(ROUNDS)]
    return f"{min(ours for ours, _ in pairs) / min(other for _, other in pairs):.2f}"


def _seconds(call: Callable[[], Any]) -> float:
    call()
    count, start = 0, perf_counter()
    while perf_counter() - start < SECONDS:
        call()
        count += 1
    return (perf_counter() - start) / count


if __name__ == "__main__":
    main()
