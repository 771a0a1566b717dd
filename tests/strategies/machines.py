"""The shipped machines as printed forms show them: the same on every processor."""

from __future__ import annotations

from tecomp import Target


def shipped(name: str) -> Target:
    """A target as it is shipped; of `cpu` one whose core and grid are not those of the host.

    Args:
        name: of the target.
    """
    if name != "cpu":
        return Target.load(name)
    core = {"count": 4, "vector_bytes": 32, "vector_registers": 16, "cache_bytes": [32768, 1 << 20]}
    return Target.load("cpu", core=core, grid={"core.x": 4})
