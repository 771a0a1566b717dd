"""Hardware model: targets read from TOML descriptions."""

from __future__ import annotations

from tecomp.machine.components import Memory
from tecomp.machine.descriptor import Target
from tecomp.machine.registry import list_targets

__all__ = ["Memory", "Target", "list_targets"]
