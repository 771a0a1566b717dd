"""Counters show that kernels compute each function, and libraries where documented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array import statistics
from tecomp.ir.interpreter import evaluate

X = np.random.default_rng(0).standard_normal((7, 7)) + 8 * np.eye(7)

BY_KERNELS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: xp.exp(x) * 2 + xp.where(x > 0, x, -x),
    "creation": lambda x: xp.arange(9) + xp.linspace(0, 1, 9),
    "data types": lambda x: xp.astype(x, xp.float32),
    "indexing": lambda x: x[1:, ::2] + xp.take(x, xp.asarray([1, 3, 5, 6]), axis=1)[:6],
    "index arrays": lambda x: x[xp.asarray([1, 2]), xp.asarray([0, 3])],
    "manipulation": lambda x: xp.concat([xp.flip(x), xp.roll(x, 2, axis=0)], axis=1),
    "products": lambda x: xp.matmul(x, x) + xp.tensordot(x, x.T, axes=1),
    "searching": lambda x: xp.argmax(x, axis=1),
    "statistical": lambda x: xp.mean(x, axis=0) / xp.std(x, axis=0),
    "running sums": lambda x: xp.cumulative_sum(x, axis=1),
    "utility": lambda x: xp.any(x > 3, axis=0),
    "norms": lambda x: xp.linalg.vector_norm(x, axis=1),
    "cross products": lambda x: xp.linalg.cross(x[:, :3], x[:, 3:6]),
}

BY_LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "numpy.sort": xp.sort,
    "numpy.argsort": xp.argsort,
    "numpy.searchsorted": lambda x: xp.searchsorted(x[0, :], x),
    "numpy.unique": xp.unique_values,
    "numpy.linalg.inv": xp.linalg.inv,
    "numpy.linalg.svd": lambda x: xp.linalg.svd(x)[1],
    "numpy.linalg.qr": lambda x: xp.linalg.qr(x)[1],
    "numpy.linalg.det": xp.linalg.det,
    "numpy.linalg.solve": lambda x: xp.linalg.solve(x, x),
    "numpy.linalg.cholesky": lambda x: xp.linalg.cholesky(x @ x.T),
    "numpy.linalg.eigvalsh": xp.linalg.eigvalsh,
    "numpy.fft.fft": lambda x: xp.fft.fft(xp.astype(x, xp.complex128)),
    "numpy.fft.rfftn": xp.fft.rfftn,
}


def counted(call: Callable[[Any], Any]) -> tuple[int, dict[str, int]]:
    """Return the number of kernel calls and the library calls of a computation."""
    x = xp.asarray(X)
    called, before = statistics.counters.called, statistics.counters.libraries.copy()
    xp.eval(call(x))
    return statistics.counters.called - called, dict(statistics.counters.libraries - before)


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("name", BY_KERNELS)
def test_kernels_compute(name: str) -> None:
    kernels, libraries = counted(BY_KERNELS[name])

    assert kernels >= 1
    assert libraries == {}


@pytest.mark.parametrize("name", BY_LIBRARIES)
def test_libraries_compute(name: str) -> None:
    _, libraries = counted(BY_LIBRARIES[name])

    assert libraries == {name: 1}


@pytest.mark.parametrize("name", ["elementwise", "products", "statistical", "running sums"])
def test_numpy_and_the_interpreter_compute_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = np.asarray(BY_KERNELS[name](xp.asarray(X)))

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("NumPy or the interpreter is called")

    for function in ("exp", "add", "multiply", "matmul", "dot", "tensordot", "sum", "mean", "std",
                     "cumsum", "cumulative_sum", "where", "einsum", "prod"):
        monkeypatch.setattr(np, function, refused)
    monkeypatch.setattr(evaluate, "bind", refused)  # the entry point of the interpreter
    found = BY_KERNELS[name](xp.asarray(X))
    xp.eval(found)
    monkeypatch.undo()

    np.testing.assert_array_equal(np.asarray(found), expected)
