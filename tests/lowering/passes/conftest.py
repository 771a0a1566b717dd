"""Fixtures that run a pass on a printed function and check its text and its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from tecomp.ir import (
    Buffer,
    Expr,
    Extent,
    PrimFunc,
    Var,
    evaluate,
    index_value,
    parse,
    simplify,
    substitute,
    verify,
)

Array: TypeAlias = NDArray[Any]
Pass: TypeAlias = Callable[[PrimFunc], PrimFunc]
Results: TypeAlias = Callable[..., list[Array]]
Check: TypeAlias = Callable[..., PrimFunc]


def _shape(buffer: Buffer, sizes: dict[Var, Expr]) -> tuple[int, ...]:
    def number(extent: Extent) -> int:
        known = simplify(substitute(index_value(extent), sizes))
        return int(str(known))

    lanes = () if buffer.dtype.lanes == 1 else (buffer.dtype.lanes,)
    return (*(number(extent) for extent in buffer.shape), *lanes)


def _known(func: PrimFunc, sizes: dict[str, int]) -> dict[Var, Expr]:
    variables = [var for var in (*func.sizes, *func.params) if isinstance(var, Var)]
    return {var: index_value(sizes[var.name]) for var in variables if var.name in sizes}


def _arguments(func: PrimFunc, inputs: Sequence[Any], **sizes: int) -> list[Any]:
    """Return copies of the given arrays in the current shapes of the parameters."""
    known = _known(func, sizes)
    return [
        value.reshape(_shape(param, known)).copy() if isinstance(param, Buffer) else value
        for param, value in zip(func.params, inputs, strict=True)
    ]


def _random(func: PrimFunc, **sizes: int) -> list[Any]:
    """Return an argument for each parameter; arrays hold small integers, so that sums are exact."""
    rng = np.random.default_rng(0)
    known = _known(func, sizes)
    found: list[Any] = []
    for param in func.params:
        if isinstance(param, Var):
            found.append(sizes[param.name])
            continue
        shape = _shape(param, known)
        numbers = rng.integers(0 if param.dtype.kind == "uint" else -9, 10, prod(shape))
        found.append(numbers.reshape(shape).astype(param.dtype.numpy))
    return found


@pytest.fixture
def results() -> Results:
    """Return a function that evaluates a PrimFunc and returns all arrays afterwards, flattened."""

    def run(func: PrimFunc, arrays: Sequence[Any] | None = None, **sizes: int) -> list[Array]:
        data = _random(func, **sizes) if arrays is None else arrays
        used = _arguments(func, data, **sizes)
        evaluate(func, used)
        return [array.reshape(-1) for array in used if isinstance(array, np.ndarray)]

    return run


@pytest.fixture
def check(results: Results) -> Check:
    """Return a function that checks the result of a pass.

    The result must be well formed, print and parse back, equal the expected text, compute the same
    results as before, and stay unchanged when the pass runs again.
    """

    def run_pass(step: Pass, before: str, after: str, *sizes: dict[str, int],
                 flat: bool = True) -> PrimFunc:
        func = parse(before)
        verify(func)
        done = step(func)
        verify(done, flat=flat)
        assert str(done).strip() == after.strip()
        assert parse(str(done)) == done
        assert step(done) == done
        for item in sizes or ({},):
            arrays = _random(func, **item)
            expected = results(func, arrays, **item)
            for actual, want in zip(results(done, arrays, **item), expected, strict=True):
                np.testing.assert_array_equal(actual, want)
        return done

    return run_pass
