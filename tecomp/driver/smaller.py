"""Which smaller tile makes a schedule fit: the schedule with one factor changed, lowered again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.errors import TecompError
from tecomp.ir.traversal.rewrite import walk
from tecomp.lowering.pipeline import Lowered, lower_all
from tecomp.scheduling.replay import replay
from tecomp.scheduling.schedule import Schedule

_MOST = 24
"""Schedules that are tried; each takes as long as a build."""
_MOST_NODES = 20_000
"""Nodes of lowered functions after which no other is tried: the message is due, and this is only
its end. It takes about five seconds to make them, on whichever machine the message is the same."""
_MOST_PARTS = 1 << 16
"""Parts of an axis that are tried."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A call of the trace with another factor, or number of parts."""

    step: int
    place: int | str
    old: int
    new: int
    text: str

    @property
    def times(self) -> float:
        """How much smaller the tile is."""
        return max(self.old / self.new, self.new / self.old)


def smaller_tile(
    schedule: Schedule,
    args: Sequence[object],
    name: str,
    needed: Callable[[Schedule, Lowered], int],
    limit: int,
) -> str:
    """What to change so that it fits, as the end of a message.

    Args:
        schedule: what does not fit.
        args: parameters of the kernel.
        name: of the kernel.
        needed: the bytes that a schedule needs, from it and what it is lowered to.
        limit: the bytes there are.
    """
    found: list[tuple[int, _Choice]] = []
    tried = nodes = 0
    for options in _choices(schedule):
        for choice in options:
            if tried == _MOST or nodes > _MOST_NODES:
                break
            tried += 1
            made = _lowered(schedule, args, name, choice)
            if made is None:
                continue
            nodes += sum(1 for _ in walk(made[1].final.body))
            need = _need(*made, needed)
            if need is not None and need <= limit:
                found.append((need, choice))
                break
    if not found:
        return "use smaller tiles, or compute it closer to where it is used"
    need, choice = min(found, key=lambda pair: (pair[1].times, -pair[0]))
    return f"{choice.text} instead of {choice.old} needs {need}"


def _choices(schedule: Schedule) -> Iterator[list[_Choice]]:
    """For each factor of a split or a tile, the greatest first, what may be there instead."""
    found = [options for options in _factors(schedule) if options]
    yield from sorted(found, key=lambda options: -options[0].old)


def _factors(schedule: Schedule) -> Iterator[list[_Choice]]:
    """For each factor of a split or a tile its halves, for parts their doubles, nearest first."""
    for k, step in enumerate(json.loads(schedule.trace.to_json())["steps"]):
        if step["call"] == "split":
            for position, (word, changed) in enumerate(_WAYS, 1):
                place: int | str = word if word in step["kwargs"] else position
                given = step["kwargs"].get(word, next(iter(step["args"][position:]), None))
                if type(given) is int:
                    text = f"{_start(step, 0)}{word}="
                    yield [_Choice(k, place, given, n, f"{text}{n})") for n in changed(given)]
        elif step["call"] == "tile":
            for axis in (0, 1):
                if len(step["args"]) > 2 + axis:
                    given = step["args"][2 + axis]
                    text = f"{_start(step, axis)}{'xy'[axis]}_factor="
                    if type(given) is int:
                        yield [_Choice(k, 2 + axis, given, n, f"{text}{n})") for n in halves(given)]


def halves(number: int) -> list[int]:
    """A half of a number, a quarter and so on.

    >>> halves(12)
    [6, 3, 1]
    """
    return [number >> k for k in range(1, number.bit_length())]


def doubles(number: int) -> list[int]:
    """Twice a number, four times and so on, as far as parts are likely to be.

    >>> doubles(12)[:3]
    [24, 48, 96]
    """
    return [number << k for k in range(1, _MOST_PARTS.bit_length() - number.bit_length())]


_WAYS = (("factor", halves), ("nparts", doubles))


def _start(step: Any, axis: int) -> str:
    """The call, up to the factor."""
    loop = step["args"][axis]
    shown = loop.get("axis", loop) if isinstance(loop, dict) else loop
    return f"s[{step['stage']}].{step['call']}({shown}, "


def _lowered(
    schedule: Schedule, args: Sequence[object], name: str, choice: _Choice
) -> tuple[Schedule, Lowered] | None:
    """The schedule with that choice, and what it is lowered to; None where there is no such."""
    document = json.loads(schedule.trace.to_json())
    step = document["steps"][choice.step]
    step["kwargs" if isinstance(choice.place, str) else "args"][choice.place] = choice.new
    try:
        outputs = [op.output(0) for op in schedule.trace.operations.values()
                   if any(op is out for out in schedule.state.outputs)]
        changed = replay(json.dumps(document), outputs, schedule.trace.intrinsics)
        return changed, lower_all(changed, args, name)
    except TecompError:
        return None


def _need(
    schedule: Schedule, lowered: Lowered, needed: Callable[[Schedule, Lowered], int]
) -> int | None:
    """The bytes that it needs; None where it cannot run."""
    try:
        return needed(schedule, lowered)
    except TecompError:
        return None
