"""Partitions of arrays over ranks, and the messages of redistributions; independent of MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.dist.partition.placements import (
        common,
        count_of,
        indices_as_array,
        select_indices,
        steps,
        window_positions,
    )

__getattr__, __dir__ = lazy_names(__name__)
