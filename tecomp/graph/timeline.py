"""Programs as traces for Perfetto: when each kernel runs, and how many bytes are held meanwhile."""

from __future__ import annotations

import json
from typing import Any

from tecomp.graph.memory import Plan
from tecomp.graph.report import KernelReport, ProgramReport

_MOMENT = 1e-6
"""Seconds of a kernel of which nobody knows how long it takes."""


def trace(report: ProgramReport, plan: Plan) -> str:
    """JSON that Perfetto and chrome://tracing open.

    Args:
        report: the kernels in order, with the times that they took or take at least.
        plan: where the values between kernels are.
    """
    title = f"{report.program} on {report.target}"
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": title}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "kernels"}},
    ]
    now = 0.0
    for number, kernel in enumerate(report.kernels):
        live = sum(value.bytes for value in plan.live(number))
        events.append({
            "ph": "C", "name": "bytes between kernels", "pid": 0, "ts": now * 1e6,
            "args": {"bytes": live},
        })
        seconds = _seconds(kernel)
        events.append({
            "ph": "X", "name": kernel.name, "cat": kernel.bound_by, "pid": 0, "tid": 0,
            "ts": now * 1e6, "dur": seconds * 1e6, "args": _said(kernel),
        })
        now += seconds
    end = {"ph": "C", "name": "bytes between kernels", "pid": 0, "ts": now * 1e6}
    events.append({**end, "args": {"bytes": 0}})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})


def _seconds(kernel: KernelReport) -> float:
    return kernel.seconds or kernel.bound or _MOMENT


def _said(kernel: KernelReport) -> dict[str, Any]:
    said = {
        "operations": " ".join(kernel.operations), "reads": kernel.reads, "writes": kernel.writes,
        "least": kernel.bound, "measured": kernel.seconds,
    }
    return {name: value for name, value in said.items() if value is not None}
