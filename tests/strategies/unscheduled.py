"""Random unscheduled programs: built as one kernel, or compiled as a program of several kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.compute import post_order
from tests.strategies import reference
from tests.strategies.agreement import random_input
from tests.strategies.arrays import Guarded, assert_equal, garbage
from tests.strategies.draws import Dice, Draw, Draws
from tests.strategies.programs import Program, draw_program, draw_program_of_sizes

Array: TypeAlias = NDArray[Any]
Call: TypeAlias = "Callable[[Sequence[int], Sequence[Array], Sequence[Array]], Sequence[Array]]"


@dataclass
class Unscheduled:
    """Random program without a schedule.

    Attributes:
        program: Random computation.
        names: Tensors and size variables of the program by name.
        is_compiled: Whether the program is compiled to several kernels instead of one.
    """

    program: Program
    is_compiled: bool
    names: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.names = self.program.define()

    @property
    def outputs(self) -> list[te.Tensor]:
        """Output tensors; if one output of an operation is requested, all of its outputs."""
        operations = dict.fromkeys(self.names[name].op for name in self.program.outputs)
        return [tensor for op in operations for tensor in op.outputs]

    @property
    def inputs(self) -> list[te.Tensor]:
        """Input tensors."""
        needed = set(post_order([x.op for x in self.outputs]))
        found = (self.names[name] for name in self.program.inputs)
        return [tensor for tensor in found if tensor.op in needed]

    def check(self) -> None:
        """Build or compile the program and compare it with its definition for all sizes."""
        sizes = [self.names[name] for name in self.program.sizes]
        call = self._compiled() if self.is_compiled else self._built(sizes)
        for values in zip(*self.program.sizes.values(), strict=True) if sizes else [()]:
            self._compare(call, dict(zip(sizes, values, strict=True)))

    def _compare(self, call: Call, sizes: Mapping[te.Var, int]) -> None:
        data = {x.op: random_input(self.program, x, sizes) for x in self.inputs}
        expected_result = reference.compute([x.op for x in self.outputs], data, sizes)
        expected = [expected_result[x.op, x.value_index] for x in self.outputs]
        arrays = [Guarded(x) for x in data.values()]
        results = [Guarded(garbage(x.shape, x.dtype)) for x in expected]
        found = call([*sizes.values()], [x.array for x in arrays], [x.array for x in results])
        for guarded in (*arrays, *results):
            guarded.check()
        for tensor, array, right in zip(self.outputs, found, expected, strict=True):
            assert_equal(array, right, f"{tensor.name}, sizes {sizes}")

    def _built(self, sizes: Sequence[te.Var]) -> Call:
        outputs = self.outputs
        kernel = tecomp.build(outputs, [*sizes, *self.inputs, *outputs])

        def call(
            values: Sequence[int], arrays: Sequence[Array], results: Sequence[Array]
        ) -> Sequence[Array]:
            kernel(*values, *arrays, *results)
            return results

        return call

    def _compiled(self) -> Call:
        program = tecomp.compile(self.outputs, self.inputs)

        def call(
            _: Sequence[int], arrays: Sequence[Array], results: Sequence[Array]
        ) -> Sequence[Array]:
            del results
            found = program(*arrays)
            return [found] if isinstance(found, np.ndarray) else found

        return call


def draw_unscheduled(draw: Draw | Dice) -> Unscheduled:
    """Draw a program of up to six stages; a compiled program has no symbolic sizes."""
    is_compiled = Draws(draw).chance(30)
    program = draw_program(draw, most_stages=6, has_sizes=not is_compiled)
    return Unscheduled(program, is_compiled)


def draw_unscheduled_of_sizes(draw: Draw | Dice) -> Unscheduled:
    """Draw a compiled program of several kernels, which is called with 20 values of its sizes."""
    return Unscheduled(draw_program_of_sizes(draw), is_compiled=True)
