"""tecomp arrays: `tecomp.array` in user style."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tecomp.array as xp
from tests.bench.case import Array, Case
from tests.bench.chains.written import CHAINS
from tests.bench.worker import Bind, Call

WARM = 20
"""Warm-up calls, as for peers that compile first: frequent sizes are specialized."""


def _evaluated(result: Any) -> Any:
    xp.eval(*(result if isinstance(result, tuple) else (result,)))
    return result


def chain(case: Case) -> Bind:
    """Record and evaluate in each call, or record once with `jit`."""
    written = CHAINS[case.options["chain"]]

    def function(*arrays: Any) -> Any:
        return written(xp, *arrays)

    run: Callable[..., Any] = xp.jit(function) if case.options["is_jitted"] else function

    def bind(*inputs: Array) -> Call:
        operands = [xp.asarray(array) for array in inputs]
        for _ in range(WARM):
            _evaluated(run(*operands))
        return lambda: _evaluated(run(*operands))

    return bind


def one_operation(case: Case) -> Bind:
    """Measure recording of a sum, with or without evaluation."""
    is_forced = case.options["is_forced"]

    def bind(*inputs: Array) -> Call:
        x, y = [xp.asarray(array) for array in inputs]
        return (lambda: _evaluated(x + y)) if is_forced else (lambda: x + y)

    return bind


def first_use(case: Case) -> Bind:
    """Measure the first use of a chain, in a process that has compiled and called others."""
    xp.eval(xp.exp(xp.ones(3)) + 1.0)

    def bind(*inputs: Array) -> Call:
        arrays = [xp.asarray(array) for array in inputs]
        return lambda: _evaluated(CHAINS[case.options["chain"]](xp, *arrays))

    return bind
