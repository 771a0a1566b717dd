"""Fusion of stages: groups, and their loop nests on CPUs and scratchpad targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.schedules.fusion.groups import (
        groups_of,
        groups_on_cores,
        materialized_tensors,
        program_of,
    )
    from tecomp.schedules.fusion.scratchpad import (
        CoreScheduleCandidate,
        core_schedule_candidates,
    )

__getattr__, __dir__ = lazy_names(__name__)
