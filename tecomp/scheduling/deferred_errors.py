"""Attach late errors to the primitive call that caused them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tecomp.compute.iter_var import IterVar
from tecomp.compute.tensor import Tensor
from tecomp.errors import LowerError, TargetError
from tecomp.scheduling.schedule import Schedule
from tecomp.source_locations import Location

_CALL = re.compile(r"s\[([^]]+)\]\.(\w+)")
_UNROLLED = re.compile(r"lower: loop (\S+) is unrolled")
_BUFFER = re.compile(r"(?:.*? are needed at one time \()?([^\s:]+): ")
_INTO_MEMORY = ("set_scope", "cache_read", "cache_write")


@contextmanager
def attach_to_primitives(schedule: Schedule) -> Iterator[None]:
    """Set the location of lowering errors to the primitive call that caused them.

    The call is identified by the start of the message: `s[B].compute_at(...)`, an unrolled loop, or
    the name of a buffer in a memory of the target.
    """
    try:
        yield
    except (LowerError, TargetError) as error:
        if (place := _place(schedule, error)) is not None:
            error.location = place
        raise


def _place(schedule: Schedule, error: LowerError | TargetError) -> Location | None:
    message = error.message
    if found := _CALL.match(message):
        return last_primitive_call(schedule, found[2], found[1])
    if found := _UNROLLED.match(message):
        return last_primitive_call(schedule, "unroll", found[1]) or last_primitive_call(
            schedule, "pragma", found[1]
        )
    if isinstance(error, TargetError) and (found := _BUFFER.match(message)):
        # A message about several buffers that are live together names the largest one first.
        places = (last_primitive_call(schedule, call, found[1]) for call in _INTO_MEMORY)
        return next((place for place in places if place is not None), None)
    return None


def last_primitive_call(schedule: Schedule, call: str, name: str) -> Location | None:
    """Return the location of the last call of a primitive on a stage, tensor or loop by name."""
    place: Location | None
    for (_, after, each, stage, args, _, result), place in reversed(schedule.calls):
        own = [] if stage is None else [after.stage(stage).name]
        names = {*own, *_names((*args, result))}
        # Buffer names are Python identifiers, so compare with sanitized names too.
        if each == call and name in names | {re.sub(r"\W", "_", known) for known in names}:
            return place
    return None


def _names(values: tuple[Any, ...]) -> Iterator[str]:
    for value in values:
        if isinstance(value, tuple):
            yield from _names(value)
        elif isinstance(value, Tensor | IterVar):
            yield value.name
