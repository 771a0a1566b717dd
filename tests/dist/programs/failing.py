"""Placement whose unpickling fails on the receiving process."""

from __future__ import annotations

from typing import Any, NoReturn

from tecomp import dist


class Elsewhere(dist.Shard):
    """Sharded placement that can be used only on the process that creates it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return fail, ()


def fail() -> NoReturn:
    """Fail in place of unpickling the placement."""
    raise MemoryError("none is left")
