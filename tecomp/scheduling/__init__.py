"""Schedules: pure primitives on a frozen state, and the objects that record their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.scheduling.compute_location import consumers_below
    from tecomp.scheduling.replay import CALLS
    from tecomp.scheduling.state import AtRoot, ComputedAt, Inline, StageState
    from tecomp.scheduling.threads import ThreadAxis
    from tecomp.scheduling.trace import Trace
    from tecomp.scheduling.transform_layout import physical_shape_of
else:
    __getattr__, __dir__ = lazy_names(__name__)
