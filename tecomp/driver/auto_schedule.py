"""Build programs that have no schedule: default scheduler and its cache."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tecomp.codegen.llvm.ir_builder import Options
from tecomp.compute.tensor import Tensor
from tecomp.driver.build_cache import Build, keys_of, schedules
from tecomp.ir.nodes.stmt import Buffer, Extent
from tecomp.machine.descriptor import Target
from tecomp.progress import doing, tell
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.split_schedule import with_arguments

if TYPE_CHECKING:
    from tecomp.layout.core.layout import Layout
    from tecomp.lowering.pipeline import Lowered
    from tecomp.poly.maps.index_map import IndexMap

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


@dataclass(frozen=True)
class Unscheduled:
    """What `tecomp.build` was asked for, of results without a schedule, for a processor.

    Attributes:
        outputs: the results.
        args: as of a `Build`, and so are the others.
        name: of the kernel.
        target: the machine.
        options: how code is generated.
        binds: what says the strides of arguments.
        verify: whether the interpreter checks each call.
        strides: of each argument, as `binds` has them.
    """

    outputs: Tensor | Sequence[Tensor]
    args: Sequence[object]
    name: str
    target: Target
    options: Options
    binds: Mapping[Tensor, Buffer]
    verify: bool
    strides: tuple[Sequence[Extent] | None, ...]

    @cached_property
    def build(self) -> Build:
        """The same with the schedule that the library finds."""
        known = {
            arg: each for arg, each in zip(self.args, self.strides, strict=False)
            if isinstance(arg, Tensor) and each is not None
        }
        found = scheduled(self.outputs, self.target, strides=known)
        whole = copy(with_arguments(found, self.args))
        return Build(
            whole, self.args, self.name, self.target, self.options, self.binds, self.verify
        )

    def lowered(self) -> Lowered:
        """The function after each pass."""
        return self.build.lowered()

    def keys(self) -> Iterator[str]:
        """Names of the program: without, and with the places where it was written; or none."""
        if not isinstance(self.args, list | tuple):
            return
        outputs = (self.outputs,) if isinstance(self.outputs, Tensor) else tuple(self.outputs)
        yield from keys_of((
            "unscheduled", outputs, tuple(self.args), self.name, self.target, self.options,
            self.strides,
        ), schedules())
