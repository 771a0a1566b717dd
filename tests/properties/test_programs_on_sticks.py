"""Random programs on targets with lane constraints, whose operations often violate them."""

from __future__ import annotations

import pytest

import tecomp
from tests.numerics import assert_close
from tests.strategies.te_programs import draw_program


@pytest.mark.exhaustive(keep=1, most=4)
@pytest.mark.parametrize(("machine", "seed"), [
    *(("stick128", seed) for seed in (21, 23, 31, 32, 35, 36, 37, 38)), ("vtcm2d", 2),
])
def test_programs_that_require_legalization(machine: str, seed: int) -> None:
    """Products with unit axes, strides along lanes and padded vectors are legalized."""
    drawn = draw_program(seed)
    output, expected = drawn.values[-1]
    inputs, source = drawn.needed([output])

    program = tecomp.compile(output, inputs, machine)

    assert_close(program(*source), expected, rtol=2e-3, atol=2e-4)
    assert program.layouts is not None
    certificate = program.layouts.certificate
    assert certificate.cost == certificate.lower_bound
