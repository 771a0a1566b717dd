"""Cases that hold every pair of values of two parameters, and far fewer than all combinations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

import pytest


def pairwise(**values: Sequence[Any]) -> Callable[[Any], Any]:
    """Run a test with some combinations of the values of its parameters, as `parametrize` does.

    Whatever two parameters are looked at, each value of the one meets each value of the other. With
    `--every-combination` it runs with all combinations instead.

    Args:
        values: of each parameter, different ones.
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
        # As a mark it takes the place of a fixture of that name that has parameters of its own.
        metafunc.definition.add_marker(pytest.mark.parametrize(tuple(mark.kwargs), cases))


def covering(values: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows of one value of each, in which every two values of different sequences meet.

    Each row is the first of those with the most pairs that none before has, as one value after
    another is chosen; the sequences with the most values come first.
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
