"""Several groups in one loop over cores: what one makes for the next stays in the scratchpads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tecomp import CapacityError, ScheduleError, te
from tecomp.schedules.programs.groups import Group, Program
from tecomp.schedules.programs.groups_on_cores import groups_on_cores
from tecomp.schedules.programs.ways_on_cores import ways
from tecomp.schedules.scratchpads.placement import Placement, sizes_of
from tecomp.schedules.structure.sizes import ceil_div
from tecomp.schedules.structure.trials import first_taken


@dataclass(frozen=True)
class Member:
    """What is computed for one value that stays, or for the result.

    Attributes:
        groups: the last one's result is that; what others make is in the memory of the device.
        program: the stages of all of them.
        where: the machine, with the room that other values leave.
    """

    groups: Sequence[Group]
    program: Program
    where: Placement


def together(s: te.Schedule, p: Program, where: Placement) -> te.Schedule:
    """The schedule of a program with one result, of which some values stay in the scratchpads.

    Each of these is computed inside of the loops over cores of the result: what a core needs of it.

    Args:
        s: the schedule.
        p: the program.
        where: the machine, with the values that stay, and how they and the result are cut.

    Raises:
        ScheduleError: a value is computed step by step, or is needed before these loops; or there
            are several results, or a value is not divided.
        CapacityError: there is no room for the values that stay.
    """
    result = _result_of(p, where)
    heads = [x for x in p.stages if x in where.near or x == result]
    given = {y for stage in s.stages for y in stage.op.outputs if not stage.op.input_tensors}
    for member in _members(heads, p, where):
        whole = {*given, *heads, *(group.output for group in member.groups)}
        for group in member.groups:
            s = _scheduled(s, group, member, whole, where)
    where.put_arguments(s)
    # Inside of the innermost of its loops over cores.
    attached = (partial(_attach, heads, axis) for axis in reversed(where.target.grid))
    found: te.Schedule | None = first_taken(s, attached)
    assert found is not None
    return found


def _result_of(p: Program, where: Placement) -> te.Tensor:
    """The one result for which values stay.

    Raises:
        ScheduleError: there are several, or something is not divided, or not computed here.
    """
    if len(p.results) > 1:
        raise ScheduleError(
            f"auto: values stay in the scratchpads for one result, and there are {len(p.results)}; "
            "leave near out, or schedule them one by one",
            kind="not-divided",
        )
    result: te.Tensor = next(iter(p.results))
    for x in (*where.near, result):
        if x not in p.stages:
            raise ScheduleError(
                f"auto: {x.name} is to stay in the scratchpads, and is no value that is computed "
                f"for {result.name}; leave it out of near",
                kind="not-divided",
            )
        if x not in where.cuts:
            raise ScheduleError(
                f"auto: values stay in the scratchpads for {result.name}, and nothing says which "
                f"part of {x.name} a core has; give a Cut for it in division",
                kind="not-divided",
            )
    return result


def _scheduled(
    s: te.Schedule, group: Group, member: Member, whole: Collection[te.Tensor], where: Placement
) -> te.Schedule:
    is_last = group is member.groups[-1]
    every = ways(group, member.program, whole, member.where if is_last else where)
    found: te.Schedule | None = first_taken(s, [way.walk for way in every])
    if found is None:
        raise ScheduleError(
            f"auto: {group.output.name} is computed step by step, so that no value stays in the "
            "scratchpads for it; leave near out",
            kind="not-divided",
        )
    return found


def _attach(heads: Sequence[te.Tensor], axis: str, s: te.Schedule) -> None:
    for x in heads[:-1]:
        s[x].compute_at(s[heads[-1]], te.thread_axis(axis))


def _members(heads: Sequence[te.Tensor], p: Program, where: Placement) -> Iterator[Member]:
    """What is computed for each value that stays, and for the result, producers first.

    Raises:
        ScheduleError: a value is needed before.
        CapacityError: there is no room.
    """
    own = {head: _stages_of(head, heads, p) for head in heads}
    for k, head in enumerate(heads):
        readers = {x: [y for y in p.readers[x] if y in own[head]] for x in own[head]}
        program = Program(tuple(own[head]), readers, frozenset({head}))
        groups = groups_on_cores(program, where)
        _check_before(groups, program, heads)
        taken = sum(_bytes_near(x, where) for x in _live(k, heads, own))
        room = where.room - taken
        if room <= 0:
            raise CapacityError(
                f"auto: {taken} bytes stay in memory `{where.scratchpad}` while {head.name} is "
                f"computed, of which each core of target {where.target.name} has {where.room}; "
                "divide them among more cores, or leave the largest out of near"
            )
        yield Member(groups, program, replace(where, room=room))


def _check_before(
    groups: Sequence[Group], program: Program, heads: Collection[te.Tensor]
) -> None:
    """Refuse values that stay where what is made before the loops over cores reads them."""
    outputs = {group.output for group in groups}
    for group in groups[:-1]:
        todo = [group.output]
        for x in todo:
            for y in x.op.input_tensors:
                if y in heads:
                    raise ScheduleError(
                        f"auto: {y.name} stays in the scratchpads, and {group.output.name}, which "
                        "reads it, does not; name both in near, or neither",
                        kind="not-divided",
                    )
                if y in program.readers and y not in outputs and y not in todo:
                    todo.append(y)


def _live(
    k: int, heads: Sequence[te.Tensor], own: Mapping[te.Tensor, Sequence[te.Tensor]]
) -> list[te.Tensor]:
    """What stays in the scratchpads while a member is computed."""
    later = {y for head in heads[k:] for x in own[head] for y in x.op.input_tensors}
    return [x for i, x in enumerate(heads[:-1]) if i == k or (i < k and x in later)]


def _bytes_near(x: te.Tensor, where: Placement) -> int:
    """What the part of one core takes of its scratchpad."""
    cores = where.cuts[x].cores
    part = [ceil_div(n, cores.get(axis, 1)) for axis, n in enumerate(sizes_of(x))]
    return int(where.bytes(part, x.dtype))


def _stages_of(head: te.Tensor, heads: Sequence[te.Tensor], p: Program) -> list[te.Tensor]:
    """The stages that are computed for one value, producers first."""
    own, todo = {head}, [head]
    while todo:
        new = {y for y in todo.pop().op.input_tensors if y in p.readers and y not in heads} - own
        own |= new
        todo += new
    return [x for x in p.stages if x in own]
