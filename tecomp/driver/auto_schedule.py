"""Automatic scheduling of tensors without a schedule, and the cache keys of such builds."""

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
from tecomp.driver.build_cache import BuildResult, keys_of, schedules
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import Buffer, Extent
from tecomp.lowering.stages.index_expressions import offsets_of
from tecomp.machine.descriptor import Target
from tecomp.progress import log_debug, log_duration
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.split_schedule import with_arguments

if TYPE_CHECKING:
    from tecomp.layout.core.layout import Layout
    from tecomp.lowering.pipeline import LoweringResult
    from tecomp.poly.maps.index_map import IndexMap

_SCHEDULER = EntryPoint("auto", "tecomp.schedules.auto:auto", "tecomp.schedulers")


def is_program(value: object) -> bool:
    """Return whether a value is a tensor or a non-empty list of tensors."""
    values = value if isinstance(value, list | tuple) else [value]
    return bool(values) and all(isinstance(each, Tensor) for each in values)


def build_default_schedule(
    outputs: Tensor | Sequence[Tensor], target: Target,
    layouts: Mapping[Tensor, Layout | IndexMap] = MappingProxyType({}),
    division: Mapping[Tensor, Any] = MappingProxyType({}),
    strides: Mapping[Tensor, Sequence[Extent]] = MappingProxyType({}),
    near: Collection[Tensor] = (),
    bounds: Mapping[Var, int] = MappingProxyType({}),
) -> Schedule:
    """Return the automatic schedule of outputs.

    Args:
        outputs: Output tensor or tensors.
        target: Target of the schedule.
        layouts: Layouts of tensors.
        division: Work division among cores, by tensor.
        strides: Strides of argument tensors.
        near: Tensors that stay resident in the scratchpads of cores.
        bounds: Expected upper bounds of symbolic sizes, which only affect performance.
    """
    many = outputs if isinstance(outputs, list | tuple) else [outputs]
    names = ", ".join([each.name for each in many if isinstance(each, Tensor)])
    with log_duration(f"find a schedule of {names} for {target.name}"):
        hints = {"bounds": bounds} if bounds else {}
        made: Schedule = _SCHEDULER.load()(
            outputs, target, layouts, division, strides, near, **hints)
    log_debug(
        "the schedule of %s for %s:\n%s", names, target.name, lambda: str(made.trace).rstrip()
    )
    return made


@dataclass(frozen=True)
class UnscheduledBuild:
    """Request of `tecomp.build` for outputs without a schedule.

    Attributes:
        outputs: Output tensor or tensors.
        args: Tensors and size variables, in the parameter order of the kernel.
        name: Name of the kernel.
        target: Target of the kernel.
        options: Code generation options.
        binds: Buffers with the strides and offsets of arguments.
        verify: Whether the interpreter checks each call.
        strides: Strides of each argument from `binds`, or None.
        bounds: Expected upper bounds of symbolic sizes.
    """

    outputs: Tensor | Sequence[Tensor]
    args: Sequence[object]
    name: str
    target: Target
    options: Options
    binds: Mapping[Tensor, Buffer]
    verify: bool
    strides: tuple[Sequence[Extent] | None, ...]
    bounds: tuple[tuple[Var, int], ...] = ()

    @cached_property
    def build(self) -> BuildResult:
        """Build request with the schedule of the automatic scheduler."""
        known = {
            arg: each for arg, each in zip(self.args, self.strides, strict=False)
            if isinstance(arg, Tensor) and each is not None
        }
        found = build_default_schedule(
            self.outputs, self.target, strides=known, bounds=dict(self.bounds)
        )
        whole = copy(with_arguments(found, self.args))
        return BuildResult(
            whole, self.args, self.name, self.target, self.options, self.binds, self.verify
        )

    def lowered(self) -> LoweringResult:
        """Return the function after each pass."""
        return self.build.lowered()

    def keys(self) -> Iterator[str]:
        """Yield the cache keys without and with source locations; none if it is not encodable."""
        if not isinstance(self.args, list | tuple):
            return
        outputs = (self.outputs,) if isinstance(self.outputs, Tensor) else tuple(self.outputs)
        yield from keys_of((
            "unscheduled", outputs, tuple(self.args), self.name, self.target, self.options,
            self.strides, offsets_of(self.binds, self.args), self.bounds,
        ), schedules())
