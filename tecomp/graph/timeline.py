"""Programs as traces for Perfetto: when each kernel runs, and how many bytes are held meanwhile."""

from __future__ import annotations

from typing import Any

from tecomp.drawing.trace import Trace, bar, lane_named, level, process_named, trace_of
from tecomp.graph.memory import Plan
from tecomp.graph.report import KernelReport, ProgramReport

_MOMENT = 1e-6
"""Seconds of a kernel of which nobody knows how long it takes."""


def trace(report: ProgramReport, plan: Plan) -> Trace:
    """The trace of a program.

    Args:
        report: the kernels in order, with the times that they took or take at least.
        plan: where the values between kernels are.
    """
    events = [
        process_named(0, f"{report.program} on {report.target}"), lane_named(0, 0, "kernels"),
    ]
    now = 0.0
    for number, kernel in enumerate(report.kernels):
        live = sum(value.bytes for value in plan.live(number))
        events.append(level("bytes between kernels", now * 1e6, "bytes", live))
        seconds = _seconds(kernel)
        events.append(bar(
            kernel.name, kernel.bound_by, now * 1e6, seconds * 1e6, said=_said(kernel)))
        now += seconds
    events.append(level("bytes between kernels", now * 1e6, "bytes", 0))
    return trace_of(events)


def _seconds(kernel: KernelReport) -> float:
    return kernel.seconds or kernel.bound or _MOMENT


def _said(kernel: KernelReport) -> dict[str, Any]:
    said = {
        "operations": " ".join(kernel.operations), "reads": kernel.reads, "writes": kernel.writes,
        "least": kernel.bound, "measured": kernel.seconds,
    }
    return {name: value for name, value in said.items() if value is not None}
