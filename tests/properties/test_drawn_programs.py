"""Small instances of the random benchmark programs agree with NumPy without a schedule."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tests.bench.programs import in_te
from tests.bench.programs.draw import BEGINNINGS, draw
from tests.bench.programs.in_arrays import oracle


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("kind", BEGINNINGS)
@pytest.mark.parametrize("seed", [100, 101])
def test_a_program_matches_numpy(kind: str, seed: int) -> None:
    program = draw(seed, kind, (1000, 1_500_000))
    inputs, output = in_te.tensors(program)
    source = program.values()
    widened = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in source]
    expected = oracle(program)(*widened)
    result = np.empty(in_te.sizes_of(output), str(output.dtype))

    tecomp.build(output, [*inputs, output])(*source, result)

    assert np.abs(result - expected).max() <= 2e-3 * max(np.abs(expected).max(), 1e-3)
