"""Distributed arrays, sharded over the ranks of a team."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.array.distributed.overlap import plan_overlap
    from tecomp.array.distributed.partitions import windows_of
    from tecomp.array.distributed.sharding_rules import rule
    from tecomp.array.distributed.sorting import merge_runs

__getattr__, __dir__ = lazy_names(__name__)
