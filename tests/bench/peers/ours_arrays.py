"""This compiler's arrays: `tecomp.array` as its users write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tecomp.array as xp
from tests.bench.case import Array, Case
from tests.bench.chains.written import CHAINS
from tests.bench.worker import Bind, Call

WARM = 20
"""Calls before any is measured, as of peers that compile first: sizes that come often are built in."""


def _evaluated(result: Any) -> Any:
    xp.eval(*(result if isinstance(result, tuple) else (result,)))
    return result


def chain(case: Case) -> Bind:
    """Recorded and computed in each call, or recorded once."""
    written = CHAINS[case.options["chain"]]

    def function(*arrays: Any) -> Any:
        return written(xp, *arrays)

    run: Callable[..., Any] = xp.jit(function) if case.options["is_jitted"] else function

    def bind(*inputs: Array) -> Call:
        given = [xp.asarray(array) for array in inputs]
        for _ in range(WARM):
            _evaluated(run(*given))
        return lambda: _evaluated(run(*given))

    return bind


def one_operation(case: Case) -> Bind:
    """A sum, as it is recorded, or computed too."""
    is_forced = case.options["is_forced"]

    def bind(*inputs: Array) -> Call:
        x, y = [xp.asarray(array) for array in inputs]
        return (lambda: _evaluated(x + y)) if is_forced else (lambda: x + y)

    return bind


def first_use(case: Case) -> Bind:
    """A chain that is new to a process, which has compiled and called other ones."""
    xp.eval(xp.exp(xp.ones(3)) + 1.0)

    def bind(*inputs: Array) -> Call:
        given = [xp.asarray(array) for array in inputs]
        return lambda: _evaluated(CHAINS[case.options["chain"]](xp, *given))

    return bind
