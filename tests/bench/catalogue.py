"""All cases, and how they are chosen by name."""

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
    """The cases that are called by name, by family or by pattern; all without any.

    Raises:
        BenchError: nothing is called so.
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
    """The case of this name, also of those that are drawn."""
    if name.startswith("random/"):
        return programs.random_case(name)
    return next(case for case in (*CASES, *drawn.CASES) if case.name == name)


def _fits(case: Case, name: str) -> bool:
    return name == case.family or fnmatchcase(case.name, name)
