"""All cases, and their selection by name."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from tests.bench.case import BenchError, Case
from tests.bench.cases import (
    arrays,
    attention,
    building,
    drawn,
    images,
    layouts,
    machines,
    products,
    programs,
    relayouts,
    rows,
    threads,
)

CASES: tuple[Case, ...] = (
    *products.CASES, *images.CASES, *rows.CASES, *attention.CASES, *threads.CASES, *building.CASES,
    *layouts.CASES, *relayouts.CASES, *machines.CASES, *programs.CASES,
    *arrays.CASES,
)
FAMILIES = tuple(dict.fromkeys(case.family for case in CASES))


def choose(names: Sequence[str]) -> list[Case]:
    """Return the cases with the given names, families or patterns; all cases without names.

    Raises:
        BenchError: If a name matches no case.
    """
    chosen = [case for case in CASES if not names or any(_fits(case, name) for name in names)]
    for name in names:
        if not any(_fits(case, name) for case in CASES):
            raise BenchError(
                f"bench: no case is called {name!r}; families are {', '.join(FAMILIES)}, and "
                "--list shows what they hold"
            )
    return chosen


def find(name: str) -> Case:
    """Return the case with this name, including randomly drawn cases."""
    if name.startswith("random/"):
        return programs.random_case(name)
    return next(case for case in (*CASES, *drawn.CASES) if case.name == name)


def _fits(case: Case, name: str) -> bool:
    return name == case.family or fnmatchcase(case.name, name)
