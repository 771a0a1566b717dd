"""A placement that fails where it arrives."""

from __future__ import annotations

from typing import Any, NoReturn

from tecomp import dist


class Elsewhere(dist.Shard):
    """Blocks, on the process that says so."""

    def __reduce__(self) -> tuple[Any, ...]:
        return fail, ()


def fail() -> NoReturn:
    """What other processes do in place of it."""
    raise MemoryError("none is left")
