"""Activity slices start as early as possible, and not before their predecessors end."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp.cost_model import SLICES, Activity, Event, TimelineLane, last_slice, timelines
from tecomp.cost_model.timeline import timeline
from tests.strategies.draws import Draw


@st.composite
def programs(draw: Draw) -> list[Activity]:
    """Draw statements of several steps with data dependences on earlier statements."""
    activities: list[Activity] = []
    for statement in range(draw(st.integers(1, 5))):
        sources = draw(st.sets(st.integers(0, statement - 1))) if statement else ()
        after = tuple((source, draw(st.sampled_from((1, 2, 3, 8, 20)))) for source in sources)
        for step in sorted(draw(st.sets(st.integers(0, 2), min_size=1))):
            for resource in sorted(draw(st.sets(st.sampled_from("abc"), min_size=1, max_size=2))):
                cycles = float(draw(st.integers(0, 20)))
                activities.append(Activity("T", resource, cycles, statement, step, after))
    return activities


def iterations_of(piece: int, count: int) -> set[int]:
    """Return the iterations that overlap a slice."""
    low, high = Fraction(piece, SLICES), Fraction(piece + 1, SLICES)
    return {k for k in range(count) if Fraction(k, count) < high and Fraction(k + 1, count) > low}


def needed(activities: list[Activity], at: Event) -> set[tuple[int, int]]:
    """Return the slices that must end before a slice starts."""
    activity = activities[at.activity]
    counts = dict(activity.dependences)
    found = {(at.activity, at.slice - 1)} if at.slice else set()
    for k, before in enumerate(activities):
        if before.statement == activity.statement:
            if before.step < activity.step:
                found.add((k, at.slice))
        elif before.statement in counts:
            count = counts[before.statement]
            actual = iterations_of(at.slice, count)
            found |= {
                (k, piece) for piece in range(SLICES)
                if min(iterations_of(piece, count)) <= max(actual)
            }
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 16, 50])
def test_slices_of_the_same_iterations(count: int) -> None:
    for piece in range(SLICES):
        actual = iterations_of(piece, count)
        shared = [k for k in range(SLICES) if min(iterations_of(k, count)) <= max(actual)]
        assert last_slice(piece, count) == max(shared)


@given(programs())
def test_activities_start_at_the_earliest_time(activities: list[Activity]) -> None:
    events = timeline(activities)

    assert sorted((e.activity, e.slice) for e in events) == [
        (k, piece) for k in range(len(activities)) for piece in range(SLICES)
    ]
    assert [e.start for e in events] == sorted(e.start for e in events)
    ends: dict[tuple[int, int], float] = {}
    free: dict[str, float] = defaultdict(float)
    for event in events:
        activity = activities[event.activity]
        waits = needed(activities, event)
        assert waits <= ends.keys()
        ready = max((ends[wait] for wait in waits), default=0.0)
        assert event.start == max(ready, free[activity.resource])
        assert event.end == event.start + activity.cycles / SLICES
        ends[event.activity, event.slice] = free[activity.resource] = event.end


@given(programs())
def test_busy_time_matches_counts(activities: list[Activity]) -> None:
    busy: dict[str, float] = defaultdict(float)
    for event in timeline(activities):
        busy[activities[event.activity].resource] += event.end - event.start
    cycles: dict[str, float] = defaultdict(float)
    for activity in activities:
        cycles[activity.resource] += activity.cycles

    assert busy == pytest.approx(cycles)


def test_core_and_chip_transfers_are_ordered() -> None:
    load, store = Activity("A.lx", "load", 8.0, 0, 0), Activity("B", "store", 8.0, 1, 0, ((0, 8),))
    read = Activity("A.lx", "ddr read", 80.0, 0, 0)
    write = Activity("B", "ddr write", 16.0, 1, 2, ((0, 8),))

    first, second, chip = timelines([TimelineLane((load, store))] * 2, TimelineLane((read, write)))

    assert first == second
    at = [{(event.activity, event.slice): event for event in lane} for lane in (first, chip)]
    for piece in range(SLICES):
        assert at[1][0, piece].end == at[0][0, piece].start
        assert at[0][0, piece].end == at[0][1, piece].start
        assert at[0][1, piece].end == at[1][1, piece].start


def test_cores_wait_for_data_of_other_cores_at_the_read() -> None:
    result = Activity("A", "compute", 8.0, 0, 1)
    own = Activity("B", "compute", 8.0, 1, 1, ((0, 1),))
    others = Activity("B", "compute", 8.0, 1, 1, ((0, 1),), (0,))

    for activity, start in ((own, 8.0), (others, 108.0)):
        first, _, _ = timelines([TimelineLane((result, activity)), TimelineLane((result,), 100.0)])
        assert min(event.start for event in first if event.activity == 1) == start
