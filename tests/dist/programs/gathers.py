"""List the extension functions that gather all elements of a row-sharded matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tecomp.array import Array

TEAM = dist.world()
GATHERED = xp.statistics.counters.gathered

OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "linalg.cross": lambda f, x: f(x[:, :3], x[:, 1:]),
    "linalg.matmul": lambda f, x: f(x, x),
    "linalg.matrix_power": lambda f, x: f(x, 3),
    "linalg.matrix_norm": lambda f, x: f(x, ord=2),
    "linalg.outer": lambda f, x: f(x[0, :], x[:, 0]),
    "linalg.solve": lambda f, x: f(x, x[:, 0]),
    "linalg.tensordot": lambda f, x: f(x, x),
    "linalg.vecdot": lambda f, x: f(x, x),
    "fft.fftfreq": lambda f, x: f(4),
    "fft.rfftfreq": lambda f, x: f(4),
}
"""Calls of functions whose arguments are not a single matrix."""


def gathers(name: str) -> bool:
    """Return whether a function gathers."""
    x = xp.asarray(np.eye(4) * 4 + np.ones((4, 4)), team=TEAM)
    group, own = name.split(".")
    if name.startswith("fft.") and not name.endswith("n"):
        x = x[0, :]  # each process has whole rows, so use a vector that is cut
        x = xp.redistribute(x, [dist.Shard(0)])
    function = getattr(getattr(xp, group), own)
    GATHERED.clear()
    actual = OTHERS[name](function, x) if name in OTHERS else function(x)
    xp.eval(*[item for item in (actual if isinstance(actual, tuple) else (actual,)) if isinstance(item, Array)])
    return bool(GATHERED)


names = [
    f"{group}.{name}" for group in ("fft", "linalg") for name in getattr(xp, group).__all__
    if not name.endswith("Result")
]
found = [name for name in names if gathers(name)]
if TEAM.rank == 0:
    print(len(names), *found)
