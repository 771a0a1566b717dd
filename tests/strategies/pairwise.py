"""Pairwise parametrization: test cases that cover every pair of values of two parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

import pytest


def pairwise(**values: Sequence[Any]) -> Callable[[Any], Any]:
    """Parametrize a test with a subset of all combinations that covers every pair of values.

    For any two parameters, each pair of their values occurs in a case. With `--every-combination`
    the test runs with all combinations instead.

    Args:
        values: Distinct values of each parameter.
    """
    mark: Callable[[Any], Any] = pytest.mark.pairwise(**values)
    return mark


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-combination", action="store_true",
        help="run what is tried in pairs of parameters with all combinations of them",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "pairwise(**values): each two values of two parameters meet")


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for mark in metafunc.definition.iter_markers("pairwise"):
        rows: Sequence[tuple[Any, ...]] = covering([*mark.kwargs.values()])
        if metafunc.config.getoption("--every-combination"):
            rows = [*product(*mark.kwargs.values())]
        cases = [pytest.param(*row, id=_name(row)) for row in rows]
        # A `parametrize` mark overrides a parametrized fixture of the same name.
        metafunc.definition.add_marker(pytest.mark.parametrize(tuple(mark.kwargs), cases))


def covering(values: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows with one value of each sequence that cover all pairs of values.

    A row starts with a pair that no earlier row covers. Each further value is chosen greedily: the
    first that covers the most new pairs. Sequences with the most values are chosen first.
    """
    order = sorted(range(len(values)), key=lambda k: -len(values[k]))
    axes = list(combinations(order, 2))
    missing = {
        (a, i, b, j) for a, b in axes for i, j in product(*(range(len(values[k])) for k in (a, b)))
    }
    rows = []
    while missing:
        a, i, b, j = min(missing, key=lambda pair: (order.index(pair[0]), order.index(pair[2]), pair))
        row = {a: i, b: j}
        for k in order:
            if k not in row:
                gains = [
                    sum(pair in missing for pair in _pairs({**row, k: n}, order))
                    for n in range(len(values[k]))
                ]
                row[k] = gains.index(max(gains))
        missing -= set(_pairs(row, order))
        rows.append(tuple(each[row[k]] for k, each in enumerate(values)))
    return rows


def _pairs(row: dict[int, int], order: Sequence[int]) -> list[tuple[int, int, int, int]]:
    known = [k for k in order if k in row]
    return [(a, row[a], b, row[b]) for a, b in combinations(known, 2)]


def _name(row: Sequence[Any]) -> str:
    return "-".join(str(getattr(value, "name", value)) for value in row)
