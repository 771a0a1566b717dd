"""`Program`: compiled operations that are called as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.compute.tensor import Tensor
from tecomp.driver.programs import compile
from tecomp.driver.sequence import Part
from tecomp.errors import CallError
from tecomp.graph.asked import Asked
from tecomp.graph.groups import Group, border_of
from tecomp.graph.memory import Plan, bytes_of
from tecomp.graph.native import Native
from tecomp.graph.report import KernelReport, ProgramReport, counted
from tecomp.model.report import Report


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel of a program, in the order in which they run.

    Attributes:
        group: the operations that it computes.
        part: its code; equal groups have the same.
    """

    group: Group
    part: Part


def _again(asked: Asked) -> Program:
    program: Program = compile(
        asked.outputs, asked.inputs, asked.target, constants=asked.constants, name=asked.name
    )
    return program


class Program:
    """Compiled operations; call it with arrays for the inputs.

    Calls from several threads at once are safe, and nothing is allocated but the results.

    Attributes:
        inputs: what it is called with, in order.
        outputs: what it gives, in order.
        kernels: the calls of kernels, in order.
        memory: where the values between kernels lie.
        target: the machine.
    """

    __slots__ = (
        "_asked", "_constants", "_kernel", "_native", "inputs", "kernels", "memory", "outputs",
        "target",
    )

    def __init__(
        self,
        asked: Asked,
        native: Native,
        kernels: Sequence[Call],
        memory: Plan,
    ) -> None:
        self._asked = asked
        self._native = native
        self._kernel = native.run.linked()
        self._constants = native.constants([*asked.constants.values()])
        self.inputs = asked.inputs
        self.outputs = asked.outputs
        self.kernels = tuple(kernels)
        self.memory = memory
        self.target = asked.target

    def __reduce__(self) -> tuple[Any, ...]:
        """As what was asked for: it is compiled where it is loaded."""
        return _again, (self._asked,)

    def __copy__(self) -> Program:
        return self

    def __deepcopy__(self, memo: object) -> Program:
        return self

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The outputs for these inputs.

        Args:
            arrays: for the inputs, in order.
            out: arrays that the outputs are written to, in order, or the one for a single output;
                new ones without it.

        Returns:
            The array of the output, or a tuple of them where there are several.

        Raises:
            CallError: an array does not fit; nothing is written then.
        """
        if len(arrays) != len(self.inputs):
            names = ", ".join(tensor.name for tensor in self.inputs)
            wanted = counted(len(self.inputs), "input")
            raise CallError(
                f"{self._kernel.name}: expected {wanted} ({names}), got {len(arrays)}; outputs are "
                "passed as `out`, and constants are known"
            )
        results = self._results(out)
        self._kernel(*arrays, *results, self._constants)
        return results[0] if len(results) == 1 else tuple(results)

    def _results(self, out: Any) -> Sequence[Any]:
        if out is None:
            return [_empty(tensor) for tensor in self.outputs]
        given = list(out) if isinstance(out, list | tuple) else [out]
        if len(given) != len(self.outputs):
            names = ", ".join(tensor.name for tensor in self.outputs)
            raise CallError(
                f"{self._kernel.name}: expected {counted(len(self.outputs), 'array')} in `out` "
                f"({names}), got {len(given)}"
            )
        return given

    def report(self, *, measure: bool = False) -> ProgramReport:
        """What the program is made of, and what its kernels cost.

        Args:
            measure: whether to run each kernel for a moment, on arrays of its own, and say how long
                it took beside how long it takes at least.

        Raises:
            LowerError: there is too much to count.
        """
        costs: dict[int, tuple[Report, float | None]] = {}
        for call in self.kernels:
            if id(call.part) not in costs:
                seconds = call.part.measured() if measure else None
                costs[id(call.part)] = call.part.report(), seconds
        kernels = tuple(_kernel_report(call, *costs[id(call.part)]) for call in self.kernels)
        return ProgramReport(
            self._kernel.name, self.target.name, kernels, len(costs), self.memory.bytes,
            self.memory.lower_bound, self._native.constant_bytes,
        )

    def __repr__(self) -> str:
        inputs = ", ".join(tensor.name for tensor in self.inputs)
        outputs = ", ".join(tensor.name for tensor in self.outputs)
        return f"<Program {self._kernel.name}({inputs}) -> {outputs}: {len(self.kernels)} kernels>"


def _kernel_report(call: Call, report: Report, seconds: float | None) -> KernelReport:
    group = call.group
    reads = sum(map(bytes_of, border_of(group)))
    return KernelReport(
        group.result.name, tuple(op.name for op in group.operations), reads,
        sum(map(bytes_of, group.result.outputs)), report.seconds, report.bound_by, seconds,
    )


def _empty(tensor: Tensor) -> np.ndarray[Any, Any]:
    shape = [extent for extent in tensor.shape if isinstance(extent, int)]
    return np.empty(shape, tensor.dtype.numpy)
