"""Automatic scheduling of tensors without a schedule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tecomp.compute.tensor import Tensor
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import Extent
from tecomp.lazy_imports import load_upward
from tecomp.machine.descriptor import Target
from tecomp.progress import log_debug, log_duration
from tecomp.scheduling.schedule import Schedule

if TYPE_CHECKING:
    from tecomp.layout.core.layout import Layout
    from tecomp.poly.maps.index_map import IndexMap


def is_program(value: object) -> bool:
    """Return whether a value is a tensor or a non-empty list of tensors."""
    values = value if isinstance(value, list | tuple) else [value]
    return bool(values) and all(isinstance(item, Tensor) for item in values)


def build_default_schedule(
    outputs: Tensor | Sequence[Tensor], target: Target,
    layouts: Mapping[Tensor, Layout | IndexMap] = MappingProxyType({}),
    division: Mapping[Tensor, Any] = MappingProxyType({}),
    strides: Mapping[Tensor, Sequence[Extent]] = MappingProxyType({}),
    near: Collection[Tensor] = (),
    bounds: Mapping[Var, int] = MappingProxyType({}),
    constants: Collection[Tensor] = (),
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
        constants: Arguments that are equal in every call.
    """
    tensors = outputs if isinstance(outputs, list | tuple) else [outputs]
    names = ", ".join([tensor.name for tensor in tensors if isinstance(tensor, Tensor)])
    with log_duration(f"find a schedule of {names} for {target.name}"):
        hints = {
            name: value for name, value in (("bounds", bounds), ("constants", constants)) if value
        }
        schedule: Schedule = load_upward("driver.scheduler")(
            outputs, target, layouts, division, strides, near, **hints)
    log_debug(
        "the schedule of %s for %s:\n%s", names, target.name, lambda: str(schedule.trace).rstrip()
    )
    return schedule
