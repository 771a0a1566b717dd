"""Latency of loading a target description in a new process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.bench.case import Array, Case, Goal

_SECONDS = 0.010
_CORES = {"neuroncore_v2": 2, "stick128": 32, "tensix_wh": 64, "tensix_bh": 130, "texture2d": 4,
          "vtcm2d": 4}


def _number(value: int) -> Callable[[Array], Array]:
    return lambda _: np.asarray(value, np.int64)


CASES = tuple(
    Case(
        f"target/{name}", f"description of {name}", "target", ((1,),), _number(cores),
        result_dtype="int64", options={"target": name}, goal=Goal(seconds=_SECONDS), is_fresh=True,
    )
    for name, cores in _CORES.items()
)
