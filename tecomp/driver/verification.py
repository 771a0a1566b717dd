"""Verification of kernel calls against the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tecomp.compute.tensor import Tensor
from tecomp.driver.layout_packing import LayoutPacker
from tecomp.driver.static_shapes import in_numbers
from tecomp.errors import CallError, InternalError
from tecomp.ir.interpreter.evaluate import evaluate
from tecomp.ir.nodes.stmt import Buffer, PrimFunc
from tecomp.lowering.pipeline import LoweringResult
from tecomp.scheduling.state import ScheduleState

_ROUNDINGS = 1024
"""Tolerance in units in the last place of the largest element. A multiply-add is rounded once or
twice, and mathematical functions are accurate to a few units."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """Comparison of kernel results with the interpreter.

    Attributes:
        name: Name of the kernel.
        args: Tensors and variables, in the parameter order of the kernel.
        state: State of the schedule, which contains the layouts.
        lowered: Function after each pass; `nest` has loops over tensors.
        packing: Function from a tensor to its packing.
        written: Positions of the output arguments.
    """

    name: str
    args: Sequence[object]
    state: ScheduleState
    lowered: LoweringResult
    packing: Callable[[Tensor], LayoutPacker]
    written: Sequence[int]

    def check(
        self, before: Sequence[Any], after: Sequence[Any], sizes: Mapping[str, int]
    ) -> None:
        """Compare the outputs of a call with the interpreted loops over tensors.

        Args:
            before: Arguments before the call.
            after: Arguments after the call.
            sizes: Sizes of the call, by name.

        Raises:
            InternalError: If an element differs; the message names the first pass that is wrong.
        """
        expected = self._results("nest", before, sizes)
        actual = self._elements(after, sizes)
        for position in self.written:
            index = _first_difference(actual[position], expected[position])
            if index is not None:
                difference = self._told(position, index, actual[position], expected[position])
                raise InternalError(
                    "{description}; {culprit}; report this program as a bug",
                    kind="verification-failed", description=difference,
                    culprit=self._culprit(before, expected, sizes),
                )

    def check_bounds(self, args: Sequence[Any], sizes: Mapping[str, int]) -> None:
        """Raise if a lowering pass introduced an out-of-bounds access.

        Faults that already occur in the loops over tensors, such as data-dependent indices, are
        left to the compiled code.

        Raises:
            InternalError: If the interpreter fails on the final function but not on the first one.
        """
        if self._fault("simplify", args, sizes) is None or self._fault("nest", args, sizes):
            return
        faults = ((name, self._fault(name, args, sizes)) for name in self.lowered.functions)
        name, fault = next((name, fault) for name, fault in faults if fault)
        raise InternalError(
            "{name}: after the pass {pass_name} the interpreter fails: {fault}; no result was "
            "computed; report this program as a bug",
            kind="verification-failed", name=self.name, pass_name=name, fault=fault,
        )

    def _fault(self, name: str, args: Sequence[Any], sizes: Mapping[str, int]) -> str | None:
        """Return the error of the interpreter on the function after a pass, or None."""
        try:
            self._results(name, args, sizes)
        except (CallError, InternalError) as error:
            return error.message.partition("; ")[0]
        return None

    def _told(
        self, position: int, index: tuple[int, ...], actual: NDArray[Any], expected: NDArray[Any]
    ) -> str:
        tensor = self.args[position]
        assert isinstance(tensor, Tensor)
        memory_index: list[Any] = list(index)
        for index_map in self.state.stage(tensor.op).layout.maps:
            memory_index = list(index_map.map_indices(memory_index))
        logical, physical = (f"[{', '.join(map(str, idx))}]" for idx in (index, memory_index))
        where = f", at {physical} in memory," if logical != physical else ""
        return (
            f"{self.name}: {tensor.name}{logical}{where} is {actual[index]}, but the interpreter "
            f"has {expected[index]}"
        )

    def _culprit(
        self, before: Sequence[Any], expected: Mapping[int, NDArray[Any]], sizes: Mapping[str, int]
    ) -> str:
        """Return text that names the first pass after which the results differ."""
        last: PrimFunc = self.lowered.functions["nest"]
        for name, func in self.lowered.functions.items():
            if func is last:
                continue
            last = func
            results = self._results(name, before, sizes)
            if any(_first_difference(results[k], expected[k]) is not None for k in self.written):
                return f"the results changed in the pass {name}"
        return (
            "the results are correct after all passes, but the code generated from the last one "
            "changes them"
        )

    def _results(
        self, name: str, before: Sequence[Any], sizes: Mapping[str, int]
    ) -> dict[int, NDArray[Any]]:
        """Return the arrays after interpreting the function of a pass, in logical shapes."""
        func = in_numbers(self.lowered.functions[name], sizes)
        if name == "nest":
            elements = self._elements(before, sizes)
            args = [elements.get(k, value) for k, value in enumerate(before)]
            evaluate(func, args)
            return elements
        stored = [
            value.copy() if isinstance(value, np.ndarray) else value for value in before
        ]
        evaluate(func, [
            value.reshape(param.shape) if isinstance(param, Buffer) else value
            for value, param in zip(stored, func.params, strict=True)
        ])
        return self._elements(stored, sizes)

    def _elements(
        self, stored: Sequence[Any], sizes: Mapping[str, int]
    ) -> dict[int, NDArray[Any]]:
        """Return copies of the arrays in logical shapes, by position."""
        return {
            k: self.packing(tensor).unpack(np.asarray(stored[k]), sizes)
            for k, tensor in enumerate(self.args) if isinstance(tensor, Tensor)
        }


def _first_difference(actual: NDArray[Any], expected: NDArray[Any]) -> tuple[int, ...] | None:
    """Return the first index at which elements differ by more than the tolerance, or None."""
    if actual.dtype.kind in "biu":
        differs = actual != expected
    else:
        kind = np.complex128 if actual.dtype.kind == "c" else np.float64
        a, b = actual.astype(kind), expected.astype(kind)
        finite = np.abs(b[np.isfinite(b)])
        largest = float(finite.max()) if finite.size else 0.0
        tolerance = _ROUNDINGS * float(_unit(actual.dtype)) * largest
        differs = ~(np.isclose(a, b, rtol=0.0, atol=tolerance, equal_nan=True))
    indices = np.argwhere(differs)
    return tuple(map(int, indices[0])) if len(indices) else None


def _unit(dtype: np.dtype[Any]) -> float:
    """Return the machine epsilon of a dtype: the distance from 1 to the next larger number."""
    if dtype.kind in "fc":
        return float(np.finfo(dtype).eps)
    # NumPy has no finfo for extension dtypes, so search the smallest distinguishable step.
    unit = 1.0
    while np.array(1.0 + unit / 2).astype(dtype) != np.array(1.0).astype(dtype):
        unit /= 2
    return unit
