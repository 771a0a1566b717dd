"""Schedules for targets with scratchpads: placement, blocks, work division."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.schedules.scratchpad.core_exchange import (
        outline_partial,
        parts_of_depth,
        schedule_partial,
    )
    from tecomp.schedules.scratchpad.footprint import work_of
    from tecomp.schedules.scratchpad.generic import plan
    from tecomp.schedules.scratchpad.placement import Placement, placement_of, sizes_of
    from tecomp.schedules.scratchpad.work_division import (
        DivisionSpec,
        divide,
        divide_depth,
        shares_of,
    )

__getattr__, __dir__ = lazy_names(__name__)
