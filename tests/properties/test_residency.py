"""Random programs on rows give the same results with and without scratchpad residency."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.driver import CompiledProgram
from tecomp.graph import Residency
from tests.numerics import assert_close

Array = np.ndarray[Any, Any]
Value = tuple[te.Tensor, Array]
ACME = str(Path(__file__).parents[1] / "plugins" / "acme" / "acme_target" / "acme.toml")
MACHINES = ("stick128", "tensix_wh", "vtcm2d", ACME)


class Rows:
    """Random program of values with the same rows, with NumPy counterparts."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.rows = int(self.rng.choice([32, 90, 256]))
        self.inputs: list[Value] = []
        self.values = [self.given(self.rows, int(self.rng.choice([32, 40, 64])))]
        for _ in range(int(self.rng.integers(4, 9))):
            self.values.append(self.drawn())

    def given(self, *shape: int) -> Value:
        array = self.rng.standard_normal(shape).astype("float32") / 4
        self.inputs.append((te.placeholder(shape, name=f"I{len(self.inputs)}"), array))
        return self.inputs[-1]

    def drawn(self) -> Value:
        name = f"T{len(self.values)}"
        x, a = self.values[-1 - min(int(self.rng.geometric(0.5)) - 1, len(self.values) - 1)]
        y, b = self.values[int(self.rng.integers(len(self.values)))]
        kind = int(self.rng.integers(4))
        if kind == 0 and x.shape[1] > 1:
            k = te.reduce_axis((0, x.shape[1]), name="k")
            result = te.compute(
                (self.rows, 1), lambda i, j: te.sum(x[i, k] * x[i, k], axis=k), name=name)
            return result, (a * a).sum(1, keepdims=True)
        if kind == 1 and x.shape[1] > 1:
            w, c = self.given(int(x.shape[1]), 32)
            k = te.reduce_axis((0, x.shape[1]), name="k")
            result = te.compute(
                (self.rows, 32), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name=name)
            return result, a @ c
        if kind == 2 and y.shape[1] in (1, x.shape[1]):
            is_value = y.shape[1] == 1
            result = te.compute(x.shape, lambda i, j: x[i, j] / (
                1.0 + te.abs(y[i, 0] if is_value else y[i, j])), name=name)
            return result, a / (1 + abs(b))
        return te.compute(x.shape, lambda i, j: te.tanh(x[i, j]), name=name), np.tanh(a)


def moved(program: CompiledProgram) -> int:
    return sum(kernel.reads + kernel.writes for kernel in program.report().kernels)


@pytest.mark.exhaustive(keep=1, most=4)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_on_rows(
    machine: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Rows(seed)
    output, expected = drawn.values[-1]
    inputs = [x for x, _ in drawn.inputs]
    arrays = [a for _, a in drawn.inputs]

    program = tecomp.compile(output, inputs, machine)
    monkeypatch.setattr(
        "tecomp.graph.planning.residency", lambda groups, *_: Residency(tuple(groups)))
    stored = tecomp.compile(output, inputs, machine)

    assert_close(program(*arrays), expected, rtol=2e-3, atol=2e-4)
    assert_close(program(*arrays), stored(*arrays), rtol=1e-5, atol=1e-6)
    near = {item.tensor.name: item.bytes for item in program.memory.residents}
    reads, left = (
        {(item.name, item.kind): (len(item.read_by), item.bytes) for item in run.report().edges}
        for run in (stored, program)
    )
    # Residency saves the store and all loads of a resident value, and repeated loads of values that
    # several kernels read.
    saved = sum(size * (1 + reads[name, "value"][0]) for name, size in near.items())
    saved += sum((reads[key][0] - count) * size for key, (count, size) in left.items())
    assert moved(stored) - moved(program) == saved
    # Every value that is kept in memory has a recorded reason.
    assert {x.tensor.name for x in stored.memory.values} == {
        *near, *(item.tensor.name for item in program.memory.spills)}
