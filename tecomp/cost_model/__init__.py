"""Static cost model: traffic, work and cycles of a program on a target, without execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.cost_model.access_sequence import (
        NOTHING,
        AccessSequence,
        Granularity,
        concat_accesses,
        single,
    )
    from tecomp.cost_model.access_sites import (
        AccessSites,
        Site,
        contains_load,
        cycles_of,
        is_copy,
        operations,
        sites_of,
        sources_of,
        unit_of,
    )
    from tecomp.cost_model.interconnect import (
        cycles,
        distance,
        exchanges,
        hops,
        latency,
        link_between,
        outside_of_transfer,
        uses_of,
    )
    from tecomp.cost_model.iteration_counting import (
        CountedLoop,
        Counter,
        Frame,
        GuardCondition,
        Loop,
        Surroundings,
        depth_of,
        is_known,
        known_outside_loop,
        surroundings_of,
    )
    from tecomp.cost_model.report import CostReport
    from tecomp.cost_model.roofline import Roof, Roofline, RooflinePoint, roofline_of
    from tecomp.cost_model.timeline import (
        SLICES,
        Activity,
        Event,
        TimelineLane,
        last_slice,
        timelines,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
