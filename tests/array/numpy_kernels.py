"""Computation of recorded operations with NumPy in place of compiled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ptensor.in_numpy import in_numpy


def run_in_numpy(work: Any, *_: Any) -> None:
    """Compute pending operations with NumPy."""
    values = {-1 - k: leaf.data for k, leaf in enumerate(work.leaves)}
    for k, (op, operands) in enumerate(work.steps):
        (found,) = in_numpy(op, *[values[position] for position in operands])
        values[k] = np.asarray(found).astype(work.nodes[k].type.dtype, copy=False)
    for position in work.outputs:
        work.nodes[position].computed(np.array(values[position]))


@pytest.fixture
def numpy_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute recorded operations with NumPy: tests of derivatives record many operations once."""
    monkeypatch.setattr("tecomp.array.kernels.execution_plan.run", run_in_numpy)
