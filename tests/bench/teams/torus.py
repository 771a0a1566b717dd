"""Stencil of the multi-process cases on distributed arrays."""

from __future__ import annotations

from typing import Any

import tecomp.array as xp


def stencil(u: Any, steps: int) -> Any:
    """Compute steps on a torus: the mean of four neighbours."""
    for _ in range(steps):
        u = 0.25 * (
            xp.roll(u, 1, axis=0) + xp.roll(u, -1, axis=0)
            + xp.roll(u, 1, axis=1) + xp.roll(u, -1, axis=1))
    return u
