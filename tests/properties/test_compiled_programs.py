"""Programs of many operations give what NumPy gives, and find in memory what was made for them."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp.codegen.runtime.structures import ALIGNMENT
from tecomp.graph.definitions import definitions_from, definitions_text
from tecomp.graph.groups import border_of
from tecomp.graph.memory import bytes_of
from tecomp.graph.program import Program
from tests.strategies.graphs import draw_program


@pytest.mark.parametrize("seed", range(30))
def test_programs_equal_numpy(seed: int) -> None:
    drawn = draw_program(seed, steps=2 + seed % 9)
    outputs = list(drawn.outputs)
    known = [x for k, x in enumerate(drawn.inputs) if k and seed % 2]
    given = [x for x in drawn.inputs if x not in known]

    program = tecomp.compile(outputs, given, constants={x: drawn.inputs[x] for x in known})
    found = program(*(drawn.inputs[x] for x in given))

    for array, tensor in zip(found if len(outputs) > 1 else [found], outputs, strict=True):
        np.testing.assert_allclose(array, drawn.outputs[tensor], rtol=2e-4, atol=2e-4)
    _watch(program)


def _watch(program: Program) -> None:
    """Each kernel finds in memory what was made for it: nothing else was written there since."""
    plan = program.memory
    places = {value.tensor: value for value in plan.values}
    owner = np.full(plan.bytes, -1)
    for call in program.kernels:
        for tensor in border_of(call.group):
            if (value := places.get(tensor)) is not None:
                assert (owner[value.offset :][: bytes_of(tensor)] == id(tensor.op)).all()
        for tensor in call.group.result.outputs:
            if (value := places.get(tensor)) is not None:
                assert value.offset % ALIGNMENT == 0
                owner[value.offset :][: value.bytes] = id(tensor.op)
    assert plan.bytes >= plan.lower_bound


@pytest.mark.parametrize("seed", range(40))
def test_definitions_come_back_from_text(seed: int) -> None:
    outputs = tuple(draw_program(seed, steps=2 + seed % 9).outputs)
    text = definitions_text((outputs, tecomp.Target.load("cpu")))
    found, target = definitions_from(text)

    assert [str(x.op) for x in found] == [str(x.op) for x in outputs]
    assert definitions_text((found, target)) == text
