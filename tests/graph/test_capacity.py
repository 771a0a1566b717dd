"""Diagnostics of programs that exceed a memory: values to evict and excess bytes are exact."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import CapacityError
from tecomp.graph import MemoryDemand, check_fits

MEMORY = tecomp.Target.load("cpu").memories["global"]


def drawn(seed: int) -> MemoryDemand:
    """Return values of random sizes and live ranges, some of which reuse the buffer of another."""
    rng = np.random.default_rng(seed)
    lives: dict[te.Tensor, tuple[int, int]] = {}
    sizes: dict[te.Tensor, int] = {}
    over: dict[te.Tensor, te.Tensor] = {}
    for number in range(10):
        tensor = te.placeholder((1,), name=f"V{number}")
        fit = [
            x for x, (first, last) in lives.items()
            if first < number == last and x not in over.values()
        ]
        sizes[tensor] = int(rng.integers(1, 2000))
        if fit and rng.random() < 0.5:
            over[tensor] = fit[0]
            sizes[tensor] = sizes[fit[0]]
        lives[tensor] = number, number + int(rng.integers(0, 5))
    return MemoryDemand(lives, sizes, over)


@pytest.mark.exhaustive(keep=59)
@pytest.mark.parametrize("seed", range(60))
def test_capacity_errors_name_values_to_remove(seed: int) -> None:
    needed = drawn(seed)
    named = {x.name: x for x in needed.lifetimes}
    rng = np.random.default_rng(seed)
    room = int(rng.integers(needed.plan.bytes))
    memory = replace(MEMORY, capacity_bytes=room)
    with pytest.raises(CapacityError) as error:
        check_fits("program", memory, 0, "nothing", needed, needed.plan)
    remedy = error.value.parameters["remedy"]
    found = re.match(r"without ([V0-9, ]+) it fits: (?:reduce its size by (\d+))?", remedy)

    assert found is not None
    removed = [named[name] for name in found[1].split(", ")]
    assert needed.without(removed).plan.bytes <= room
    for x in removed:
        left = [item for item in removed if item is not x]
        assert needed.without(left).plan.bytes > room
    if found[2]:
        (x,) = removed
        # The memory plan is heuristic, not optimal, so fewer bytes may be enough.
        assert needed.with_size(x, needed.sizes[x] - int(found[2])).plan.bytes <= room


def test_programs_that_fit_are_compiled() -> None:
    needed = drawn(0)
    memory = replace(MEMORY, capacity_bytes=needed.plan.bytes)

    check_fits("program", memory, 0, "nothing", needed, needed.plan)
