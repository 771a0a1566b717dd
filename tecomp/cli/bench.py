"""`tecomp bench`: how fast some operators are on this machine, beside NumPy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

import tecomp
from tecomp import te, topi
from tecomp.cli.output import show, with_json
from tecomp.codegen.calls.timing import time_call

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Case:
    """An operator of tensors, the same in NumPy, and the ranks of what it takes."""

    define: Callable[..., Any]
    in_numpy: Callable[..., Array]
    ranks: tuple[int, ...]


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


_CASES = {
    "add": _Case(topi.add, np.add, (2, 2)),
    "exp": _Case(topi.exp, np.exp, (2,)),
    "matmul": _Case(topi.matmul, np.matmul, (2, 2)),
    "matvec": _Case(lambda a, x: topi.tensordot(a, x, 1), np.matmul, (2, 1)),
    "softmax": _Case(topi.nn.softmax, _softmax, (2,)),
    "sum": _Case(lambda x: topi.sum(x, axis=1), lambda x: np.asarray(x.sum(1)), (2,)),
    "transpose": _Case(topi.transpose, lambda x: np.ascontiguousarray(x.T), (2,)),
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(sorted(_CASES)))
@click.option(
    "--size", "n", type=click.IntRange(1, 16384), default=1024, show_default=True,
    help="Of the axes of matrices and vectors of float32.",
)
@click.option(
    "--seconds", type=click.FloatRange(0, 100, min_open=True), default=0.3, show_default=True,
    help="How long to measure each.",
)
@with_json
def bench(names: Sequence[str], n: int, seconds: float, as_json: bool) -> None:
    """Measure operators that nobody scheduled by hand, or those of NAMES, beside NumPy.

    Times are the shortest of many calls, in milliseconds; checks of arguments are included, new
    arrays for results are not.
    """
    asked: Sequence[str] = names or sorted(_CASES)
    with click.progressbar(asked, file=sys.stderr) as chosen:
        rows = [_measured(name, _CASES[name], n, seconds) for name in chosen]
    show(rows, as_json=as_json)


def _measured(name: str, case: _Case, n: int, seconds: float) -> dict[str, object]:
    inputs = [te.placeholder((n,) * rank, name=f"X{k}") for k, rank in enumerate(case.ranks)]
    output = case.define(*inputs)
    kernel = tecomp.build(output, [*inputs, output], name=name)
    random = np.random.default_rng(0)
    arrays = [random.random(X.shape, np.float32) for X in inputs]
    wanted = case.in_numpy(*arrays)
    out = np.empty(wanted.shape, np.float32)
    kernel(*arrays, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-3)
    ours = kernel.timeit(*arrays, out, seconds=seconds).min
    theirs = time_call(case.in_numpy, arrays, seconds).min
    return {
        "operator": name,
        "tecomp_ms": round(1e3 * ours, 4),
        "numpy_ms": round(1e3 * theirs, 4),
        "times_as_fast": round(theirs / ours, 2),
    }
