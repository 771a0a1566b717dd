"""Compare unscheduled variants of operators with the scheduled library operators."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median

import numpy as np

import tecomp
from tecomp import te
from tests.bench.case import Array
from tests.bench.spellings.written import OPERATORS, Operator
from tests.bench.worker import Call, time_calls

TARGET = tecomp.Target.load("cpu")


def _call(inputs: Sequence[te.Tensor], output: te.Tensor, result: te.Tensor | te.Schedule) -> Call:
    kernel = tecomp.build(result, [*inputs, output], TARGET)
    numbers = np.random.default_rng(20)
    arrays = [_some(numbers, x) for x in inputs]
    out = np.empty([int(str(n)) for n in output.shape], str(output.dtype))
    return lambda: kernel(*arrays, out)


def _some(numbers: np.random.Generator, x: te.Tensor) -> Array:
    shape, dtype = [int(str(n)) for n in x.shape], str(x.dtype)
    if dtype.startswith("int"):
        return numbers.integers(-100, 100, shape).astype(dtype)
    return numbers.standard_normal(shape, np.float32).astype(dtype)


def ratios(operator: Operator, rounds: int, seconds: float) -> dict[str, tuple[float, float]]:
    """Return the ratios of library time to variant time, of minimum and median times."""
    inputs, output = operator.define()
    calls = {"": _call(inputs, output, operator.schedule(output, TARGET))}
    for name, way in operator.ways.items():
        inputs, output = way()
        calls[name] = _call(inputs, output, output)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name] += time_calls([call], int(seconds * 1e9))
    baseline = times.pop("")
    return {
        name: (min(baseline) / min(each), median(baseline) / median(each)) for name, each in times.items()
    }


def main(arguments: Sequence[str]) -> int:
    """Return the exit status: 0, or 1 if a variant takes over 1 / 0.9 of the library's time."""
    parser = argparse.ArgumentParser(prog="python tests/bench/written_ways.py")
    parser.add_argument("operator", nargs="*", help="what names begin with; all without any")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each")
    parser.add_argument("--time", type=float, default=0.03, help="seconds of a turn")
    options = parser.parse_args(arguments)
    least = float("inf")
    print("| operator | written | shortest | median |\n| --- | --- | ---: | ---: |")
    for operator in OPERATORS:
        if options.operator and not operator.name.startswith(tuple(options.operator)):
            continue
        for name, (shortest, middle) in ratios(operator, options.rounds, options.time).items():
            print(f"| {operator.name} | {name} | {shortest:.2f} | {middle:.2f} |", flush=True)
            least = min(least, shortest)
    return int(least < 0.9)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
