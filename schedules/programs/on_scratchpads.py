"""A schedule for any program on a machine with scratchpads.

Values that several results are made of are in the memory of the device. Each of them is computed
by the cores, part by part: products, convolutions and rows as the library has them, everything
else by what a part of it needs. What only runs one step after another, a scan or statements of the
user, runs there as well, where its values are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import ScheduleError, te
from tecomp.schedules.programs.groups import Group, Program, program_of
from tecomp.schedules.programs.groups_on_cores import groups_on_cores, whole_of
from tecomp.schedules.programs.together import together
from tecomp.schedules.programs.ways_on_cores import ways
from tecomp.schedules.scratchpads.placement import Placement
from tecomp.schedules.structure.stages import by_loops
from tecomp.schedules.structure.trials import first_taken


def on_scratchpads(results: Sequence[te.Tensor], where: Placement) -> te.Schedule:
    """The schedule of a program on the cores of a machine with scratchpads.

    Raises:
        CapacityError: there is no room for what a single element of a value is made of.
        TargetError: an extent is not known before the call, or a result cannot be cut as asked.
        ScheduleError: what is to be cut has no loops of its own.
    """
    s: te.Schedule = by_loops(results)
    where = where.within(s)
    p = program_of(s)
    if where.near:
        joined: te.Schedule = together(s, p, where)
        return joined
    groups = groups_on_cores(p, where)
    _check_cuts(groups, where)
    whole = whole_of(s, groups)
    for group in groups:
        s = _scheduled(s, group, p, whole, where)
    where.put_arguments(s)
    return s


def _check_cuts(groups: Sequence[Group], where: Placement) -> None:
    """Refuse to cut what has no loops of its own, or shares a kernel with what is not cut."""
    if not where.cuts:
        return
    outputs = [group.output for group in groups]
    for x, cut in where.cuts.items():
        chain = next((group.chain for group in groups if group.output == x), (x,))
        cut.check(x, len(chain[-1].op.reduce_axis))
        if x not in outputs:
            raise ScheduleError(
                f"auto: {x.name} is computed where it is used, and has no loops to divide; divide "
                "what reads it",
                kind="not-divided",
            )
    beside = [x for x in outputs if x not in where.cuts]
    beside += [x for group in groups for x in group.rows if group.output in beside]
    if beside:
        raise _is_beside(next(iter(where.cuts)), beside)


def _is_beside(x: te.Tensor, others: Sequence[te.Tensor]) -> ScheduleError:
    return ScheduleError(
        f"auto: {x.name} is to be divided, and is computed with "
        f"{', '.join(y.name for y in others)}, which have loops of their own; leave the division "
        "out",
        kind="not-divided",
    )


def _scheduled(
    s: te.Schedule, group: Group, p: Program, whole: set[te.Tensor], where: Placement
) -> te.Schedule:
    """The schedule with the loops of a group, of the first kind that it is."""
    found: te.Schedule | None = first_taken(s, [way.walk for way in ways(group, p, whole, where)])
    if found is not None:
        return found
    if not group.rows:
        if group.output in where.cuts:
            raise ScheduleError(
                f"auto: {group.output.name} is computed step by step, or by no core, and is not "
                "divided; leave its division out",
                kind="not-divided",
            )
        return s
    if group.output in where.cuts:
        raise _is_beside(group.output, group.rows)
    whole |= set(group.rows)
    for x in group.rows:
        s = _scheduled(s, Group(x, (x,)), p, whole, where)
    return _scheduled(s, Group(group.output, group.chain), p, whole, where)


