"""`kernel.roofline`: what the model says of a kernel, beside the rates of the machine."""

from __future__ import annotations

from collections.abc import Mapping

from tecomp.driver.calibrate import calibrate
from tecomp.driver.reporting import report_of
from tecomp.lowering.pipeline import Lowered
from tecomp.machine.descriptor import Target
from tecomp.model.roofline import Roofline, roofline_of
from tecomp.scheduling.state import State


def kernel_roofline(
    name: str, state: State, lowered: Lowered, target: Target, sizes: Mapping[str, int],
    seconds: float | None,
) -> Roofline:
    """The roofline of a kernel; the rates of the processor at hand are measured if need be.

    Args:
        name: how to call it.
        state: its schedule.
        lowered: its functions.
        target: the machine.
        sizes: of the program, by name.
        seconds: that it took, if that was measured.

    Raises:
        CallError: a size is missing, or no number.
        LowerError: there is too much to count.
    """
    is_here = target.core is not None and target.code.kind == "host"
    machine = calibrate(target) if is_here else target
    report = report_of(name, state, lowered, machine, sizes)
    return roofline_of(report, seconds)
