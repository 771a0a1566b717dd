"""What a machine is: data read from target descriptions."""

from __future__ import annotations

from tecomp.machine.descriptor import Target
from tecomp.machine.memory import Memory
from tecomp.machine.registry import list_targets

__all__ = ["Memory", "Target", "list_targets"]
