"""Programs of many operations give what NumPy gives, and no two live values share a byte."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import tecomp
from tecomp.graph.definitions import definitions_from, definitions_text
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
    for a, b in combinations(program.memory.values, 2):
        live = a.first <= b.last and b.first <= a.last
        assert not live or a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset


@pytest.mark.parametrize("seed", range(40))
def test_definitions_come_back_from_text(seed: int) -> None:
    outputs = tuple(draw_program(seed, steps=2 + seed % 9).outputs)
    text = definitions_text((outputs, tecomp.Target.load("cpu")))
    found, target = definitions_from(text)

    assert [str(x.op) for x in found] == [str(x.op) for x in outputs]
    assert definitions_text((found, target)) == text
