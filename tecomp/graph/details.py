"""What a program is made of, besides the machine code that is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tecomp.compute.tensor import Tensor
from tecomp.drawing.trace import Trace
from tecomp.driver.parts import copy_rate
from tecomp.graph.call import Call
from tecomp.graph.edges import edges_of, relayouts_of
from tecomp.graph.groups import border_of
from tecomp.graph.labels import labels_of
from tecomp.graph.memory import Plan
from tecomp.graph.outcome import DivisionWish, Layouts
from tecomp.graph.report import KernelReport, ProgramReport
from tecomp.graph.sizes import bytes_of
from tecomp.graph.timeline import trace
from tecomp.layout.descriptions.layout import Layout
from tecomp.machine.descriptor import Target
from tecomp.model.report import Report


@dataclass(frozen=True, slots=True)
class Details:
    """What a program is made of, besides the code that is called.

    Attributes:
        inputs: what the caller passes.
        outputs: what it gets.
        kernels: the calls of kernels, in order.
        memory: where the values between kernels lie.
        layouts: of all values; none if the machine does not care.
        stored: the layouts of those in memory that are not in the order of NumPy.
        wishes: the hints about divisions, and what became of them.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    kernels: tuple[Call, ...]
    memory: Plan
    layouts: Layouts | None
    stored: Mapping[Tensor, Layout]
    wishes: tuple[DivisionWish, ...]

    def report(self, name: str, target: Target, constants: int, *, measured: bool) -> ProgramReport:
        """What the program costs.

        Args:
            name: of the program.
            target: the machine.
            constants: bytes.
            measured: whether to run each kernel for a moment.

        Raises:
            LowerError: there is too much to count.
        """
        costs: dict[int, tuple[Report, float | None]] = {}
        for call in self.kernels:
            if id(call.part) not in costs:
                seconds = call.part.measured() if measured else None
                costs[id(call.part)] = call.part.report(), seconds
        # Another machine's memory is not that of the host, which stands for it here.
        rate = copy_rate(target) if measured and target.core is not None else None
        labels = labels_of(self.kernels)
        kernels = tuple(
            _kernel_report(call, name, self.stored, *costs[id(call.part)], rate)
            for call, name in ((call, labels[call.group.result]) for call in self.kernels)
        )
        return ProgramReport(
            name, target.name, kernels, len(costs), self.memory.bytes, self.memory.lower_bound,
            constants, edges_of(self.inputs, self.outputs, self.kernels, self.stored),
            tuple(relayouts_of(self.layouts)), self.memory.residents, self.memory.spills, rate,
        )

    def timeline(self, report: ProgramReport) -> Trace:
        """The program as a trace, with the times of a report."""
        return trace(report, self.memory)


def _kernel_report(
    call: Call, name: str, stored: Mapping[Tensor, Layout], report: Report, seconds: float | None,
    copy_rate: float | None,
) -> KernelReport:
    group, target = call.group, call.part.build.target
    reads = sum(bytes_of(x, stored) for x in border_of(group))
    writes = sum(bytes_of(x, stored) for x in group.result.outputs)
    core = None if target is None else target.core
    # Without a core that has caches, there are many with memories of their own.
    room = 0 if core is None else max(core.cache_bytes, default=0)
    copied = (reads + writes) / copy_rate if copy_rate and reads + writes > room else None
    return KernelReport(
        name, tuple(op.name for op in group.operations), reads, writes,
        report.seconds, report.bound_by, seconds, report.cycles,
        len(report.cores) if core is None else 0, report.imbalance, sum(report.tiles.values()),
        copied, report.calls,
    )
