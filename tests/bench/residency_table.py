"""Print the scratchpad table of docs/programs.md: `python -m tests.bench.residency_table`.

The table shows the bytes that all kernels of whole networks read and write in device memory, and
modelled cycles, with and without scratchpad residency of values between kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np

from tecomp import Target, te
from tecomp.compute import Operation
from tecomp.graph import ProgramPlan, ProgramReport, details_from, plan_program, validate_request
from tests.bench.layouts_table import Network, encoder, residual

MACHINES = ("stick128", "tensix_wh")


def reported(outline: ProgramPlan) -> ProgramReport:
    """Return the modelled cost of a program with the given residency."""
    return details_from(outline, is_final=True).report("program", outline.request.target, 0, measured=False)


def moved(report: ProgramReport) -> int:
    """Return the bytes that kernels read and write, without host transfers."""
    kernels = [kernel for kernel in report.kernels if not kernel.bound_by.startswith("host")]
    return sum(kernel.reads + kernel.writes for kernel in kernels)


def outlined(program: Network, machine: str) -> ProgramPlan:
    """Return the residency decisions of a program."""
    passed, constants, output = program
    values: Mapping[te.Tensor, object] = {
        x: np.zeros([int(n) for n in x.shape], str(x.dtype)) for x in constants
    }
    requested = validate_request([output], passed, Target.load(machine), values, "program", {}, [], relayouts=True)
    return plan_program(requested)


def row(name: str, program: Network, machine: str) -> str:
    """Return the traffic of a program on a machine, with and without residency."""
    near = outlined(program, machine)
    apart: dict[Operation, str] = {group.result: "left out" for group in near.parts}
    stays, stored = reported(near), reported(near.without(apart))
    values = sum(resident.bytes for resident in stays.residents)
    return (
        f"| {name} | {machine} | {len(stays.residents)} | {values:,} | {moved(stored):,} | "
        f"{moved(stays):,} | {stored.cycles:,.0f} | {stays.cycles:,.0f} |"
    )


def main() -> None:
    """Print the table."""
    print("| program | machine | values | their bytes | moved, before | after | cycles, before | after |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, program in (("encoder layer", encoder()), ("residual block", residual())):
        for machine in MACHINES:
            print(row(name, program, machine))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
