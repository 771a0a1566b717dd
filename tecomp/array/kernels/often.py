"""After how many calls with the same sizes a kernel for these alone is worth its compilation."""

from __future__ import annotations

from math import ceil

_FEWEST = 16
_COMPILED = 0.05
"""Seconds that it takes to compile a kernel."""
_CALLED = 15e-6
"""Seconds that a call of a kernel takes, whatever it computes."""
_COMPUTED = 1e-9
"""Seconds that a point of its loops takes."""


def calls_that_pay(kernels: int, points: int) -> int:
    """The calls that together take as long as to compile what the sizes are built into.

    Nobody knows how many more there will be. So compiling takes no longer than all calls did, and
    what it would have saved by then is no more than it takes. Calls are counted and not measured:
    sums may be added in another order from there on, which no clock may decide.

    Args:
        kernels: that are called.
        points: how often something is computed in all of them.
    """
    return max(_FEWEST, ceil(kernels * _COMPILED / (kernels * _CALLED + points * _COMPUTED)))
