"""Per-rank activity timeline."""

from __future__ import annotations

import json
import time
from typing import TypeAlias

import numpy as np

from tecomp.array.graph.evaluate import lane
from tecomp.array.single_controller.protocol import collective
from tecomp.dist.runtime.call_tracking import waits
from tecomp.dist.runtime.collectives import allgather
from tecomp.dist.runtime.team import AnyTeam, team_of
from tecomp.drawing.chrome_trace import ChromeTrace, bar, lane_named, process_named, trace_of

Did: TypeAlias = "tuple[str, str, float, float]"
"""Activity: kernel or wait, its name or cause, start time and end time."""


def lanes_of(team: AnyTeam, since: float) -> ChromeTrace:
    """Return the timeline of a team.

    This is a collective call: every rank must make it.

    Args:
        team: Team.
        since: Start time in seconds of `time.time`; earlier activity is omitted.
    """
    number = team_of(team).id
    all_lanes = lanes(number, since)
    first = min([start for activity in all_lanes for _, _, start, _ in activity], default=0.0)
    events = [process_named(0, f"team {number}")]
    for rank, activity in enumerate(all_lanes):
        events.append(lane_named(0, rank, f"rank {rank}"))
        events += [
            bar(name, kind, (start - first) * 1e6, (stop - start) * 1e6, lane=rank)
            for kind, name, start, stop in activity
        ]
    return trace_of(events)


@collective
def lanes(team: int, since: float) -> list[list[Did]]:
    """Return the activity of each rank of a team."""
    text = np.frombuffer(json.dumps(_own_activity(since)).encode(), np.uint8)
    ends = np.cumsum(allgather(team, np.array([text.size])))
    reports = np.split(allgather(team, text), ends[:-1])
    return [json.loads(chunk.tobytes()) for chunk in reports]


def _own_activity(since: float) -> list[Did]:
    """Return the activity of this process in chronological order, by the clock of its machine."""
    shift = time.time() - time.perf_counter()
    kinds = ("kernel", lane.spans or ()), ("waits", waits.spans)
    found = [
        (kind, name if kind == "kernel" else f"waits for {name}", start + shift, end + shift)
        for kind, spans in kinds for name, start, end in spans
    ]
    return sorted([entry for entry in found if entry[2] >= since], key=lambda entry: entry[2])
