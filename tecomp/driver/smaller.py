"""Which smaller tile makes a schedule fit: the schedule with one factor changed, lowered again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.errors import TecompError
from tecomp.lowering.pipeline import Lowered, lower_all
from tecomp.scheduling.replay import replay
from tecomp.scheduling.schedule import Schedule

_MOST = 24
"""Schedules that are tried; each takes as long as a build."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A call of the trace with another factor."""

    step: int
    place: int | str
    old: int
    new: int
    text: str


def smaller_tile(
    schedule: Schedule,
    args: Sequence[object],
    name: str,
    needed: Callable[[Lowered], int],
    limit: int,
) -> str:
    """What to change so that it fits, as the end of a message.

    Args:
        schedule: what does not fit.
        args: parameters of the kernel.
        name: of the kernel.
        needed: the bytes that a lowered schedule needs.
        limit: the bytes there are.
    """
    found: list[tuple[int, _Choice]] = []
    tried = 0
    for options in _choices(schedule):
        for choice in options:
            if tried == _MOST:
                break
            tried += 1
            need = _need(schedule, args, name, choice, needed)
            if need is not None and need <= limit:
                found.append((need, choice))
                break
    if not found:
        return "use smaller tiles, or compute it closer to where it is used"
    need, choice = min(found, key=lambda pair: (pair[1].old / pair[1].new, -pair[0]))
    return f"{choice.text} instead of {choice.old} needs {need}"


def _choices(schedule: Schedule) -> Iterator[list[_Choice]]:
    """For each factor of a split or a tile, the greatest first, its halves, the greatest first."""
    found = [options for options in _factors(schedule) if options]
    yield from sorted(found, key=lambda options: -options[0].old)


def _factors(schedule: Schedule) -> Iterator[list[_Choice]]:
    """For each factor of a split or a tile its halves."""
    for k, step in enumerate(json.loads(schedule.trace.to_json())["steps"]):
        if step["call"] == "split":
            given = step["kwargs"].get("factor", step["args"][1] if len(step["args"]) > 1 else None)
            place: int | str = "factor" if "factor" in step["kwargs"] else 1
            yield _halves(k, place, given, _start(step, 0) + "factor=")
        elif step["call"] == "tile":
            for axis in (0, 1):
                if len(step["args"]) > 2 + axis:
                    given = step["args"][2 + axis]
                    yield _halves(k, 2 + axis, given, _start(step, axis) + f"{'xy'[axis]}_factor=")


def _halves(step: int, place: int | str, given: Any, text: str) -> list[_Choice]:
    if type(given) is not int:
        return []
    found = []
    new = given // 2
    while new >= 1:
        found.append(_Choice(step, place, given, new, f"{text}{new})"))
        new //= 2
    return found


def _start(step: Any, axis: int) -> str:
    """The call, up to the factor."""
    loop = step["args"][axis]
    shown = loop.get("axis", loop) if isinstance(loop, dict) else loop
    return f"s[{step['stage']}].{step['call']}({shown}, "


def _need(
    schedule: Schedule,
    args: Sequence[object],
    name: str,
    choice: _Choice,
    needed: Callable[[Lowered], int],
) -> int | None:
    """The bytes with that choice; None where there is no such schedule."""
    document = json.loads(schedule.trace.to_json())
    step = document["steps"][choice.step]
    step["kwargs" if isinstance(choice.place, str) else "args"][choice.place] = choice.new
    try:
        outputs = [op.output(0) for op in schedule.trace.operations.values()
                   if any(op is out for out in schedule.state.outputs)]
        changed = replay(json.dumps(document), outputs, schedule.trace.intrinsics)
        return needed(lower_all(changed, args, name))
    except TecompError:
        return None
