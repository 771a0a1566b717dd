"""Loops that survive rank failures by in-memory checkpoints on neighbour ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.dist.fault_tolerance.buddy_checkpoint import (
        BuddyCheckpoint,
        holders,
        shrink_partition,
    )

__getattr__, __dir__ = lazy_names(__name__)
