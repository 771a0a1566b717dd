"""Who schedules programs that nobody scheduled.

The library of schedules lies above the driver and uses nothing but what `import tecomp` offers. So
the driver imports nothing of it: it knows the name of one function, as an entry point has it, and
loads that when it is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import Any

from tecomp.compute.tensor import Tensor
from tecomp.ir.language.stmt import Extent
from tecomp.layout.descriptions.layout import Layout
from tecomp.machine.descriptor import Target
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.schedule import Schedule
from tecomp.work import doing, tell

_SCHEDULER = EntryPoint("auto", "tecomp.schedules.auto:auto", "tecomp.schedulers")


def is_program(value: object) -> bool:
    """Whether it is a tensor, or are tensors, that a schedule can be made for."""
    values = value if isinstance(value, list | tuple) else [value]
    return bool(values) and all(isinstance(each, Tensor) for each in values)


def scheduled(
    outputs: Tensor | Sequence[Tensor], target: Target,
    layouts: Mapping[Tensor, Layout | IndexMap] = MappingProxyType({}),
    division: Mapping[Tensor, Any] = MappingProxyType({}),
    strides: Mapping[Tensor, Sequence[Extent]] = MappingProxyType({}),
    near: Collection[Tensor] = (),
) -> Schedule:
    """The schedule for results without one, layouts and strides of tensors, and a division.

    What is `near` stays in the scratchpads of cores.
    """
    many = outputs if isinstance(outputs, list | tuple) else [outputs]
    names = ", ".join(each.name for each in many if isinstance(each, Tensor))
    with doing(f"find a schedule of {names} for {target.name}"):
        made: Schedule = _SCHEDULER.load()(outputs, target, layouts, division, strides, near)
    tell("the schedule of %s for %s:\n%s", names, target.name, lambda: str(made.trace).rstrip())
    return made
