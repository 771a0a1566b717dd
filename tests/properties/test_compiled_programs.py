"""Programs of many operations agree with NumPy, and kernels find their operands in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import ALIGNMENT
from tecomp.driver import CompiledProgram
from tecomp.graph import (
    bytes_of,
    compilation_steps,
    definitions_from,
    definitions_text,
    group_inputs,
)
from tests.numerics import assert_close
from tests.strategies.graphs import draw_program

Values = dict[te.Tensor, np.ndarray[Any, np.dtype[np.float32]]]


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("seed", range(30))
def test_programs_equal_numpy(seed: int) -> None:
    drawn = draw_program(seed, steps=2 + seed % 9)
    outputs = list(drawn.outputs)
    known = [x for k, x in enumerate(drawn.inputs) if k and seed % 2]
    inputs = [x for x in drawn.inputs if x not in known]

    program = tecomp.compile(outputs, inputs, constants={x: drawn.inputs[x] for x in known})
    found = program(*(drawn.inputs[x] for x in inputs))

    for array, tensor in zip(found if len(outputs) > 1 else [found], outputs, strict=True):
        assert_close(array, drawn.outputs[tensor], rtol=2e-4, atol=2e-4)
    _watch(program)


def _watch(program: CompiledProgram) -> None:
    """Check that no operand of a kernel is overwritten before the kernel reads it."""
    plan = program.memory
    places = {value.tensor: value for value in plan.values}
    owner = np.full(plan.bytes, -1)
    for call in program.kernels:
        for tensor in group_inputs(call.group):
            if (value := places.get(tensor)) is not None:
                assert (owner[value.offset :][: bytes_of(tensor)] == id(tensor.op)).all()
        for tensor in call.group.result.outputs:
            if (value := places.get(tensor)) is not None:
                assert value.offset % ALIGNMENT == 0
                owner[value.offset :][: value.bytes] = id(tensor.op)
    assert plan.bytes >= plan.lower_bound


@pytest.mark.parametrize("seed", range(40))
def test_definitions_round_trip_as_text(seed: int) -> None:
    outputs = tuple(draw_program(seed, steps=2 + seed % 9).outputs)
    text = definitions_text((outputs, tecomp.Target.load("cpu")))
    found, target = definitions_from(text)

    assert [str(x.op) for x in found] == [str(x.op) for x in outputs]
    assert definitions_text((found, target)) == text


def _squares(seed: int) -> tuple[te.Tensor, list[te.Tensor], te.Tensor, Values]:
    """Draw a program of square matrices in which a matrix product is often the last reader."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([5, 24, 33]))
    X, W = (te.placeholder((size, size), name=name) for name in "XW")
    values: Values = {x: rng.uniform(-1, 1, (size, size)).astype("float32") for x in (X, W)}
    for number in range(4 + seed % 3):
        results = [x for x in values if x != W]
        a, b = results[-1], results[-2 if len(results) > 1 and rng.integers(5) else -1]
        k = te.reduce_axis((0, size), name="k")
        P = te.compute(
            (size, size), lambda i, j, a=a, k=k: te.sum(a[i, k] * W[k, j], axis=k), name=f"P{number}"
        )
        is_turned = rng.integers(3) == 0
        R = te.compute(
            (size, size), lambda i, j, b=b, P=P, is_turned=is_turned:
            te.tanh(P[i, j]) + (b[j, i] if is_turned else b[i, j]) * 0.5, name=f"R{number}",
        )
        value = values[b].T if is_turned else values[b]
        values[R] = np.tanh(values[a] @ values[W]) + value * np.float32(0.5)
    return X, [W], list(values)[-1], values


@pytest.mark.exhaustive
def test_overwritten_values_were_read_before() -> None:
    count = 0
    for seed in range(10):
        X, constants, Y, values = _squares(seed)
        program = tecomp.compile(Y, [X], constants={x: values[x] for x in constants})

        assert_close(program(values[X]), values[Y], rtol=1e-3, atol=1e-3)
        _watch(program)
        count += sum("in_place" in call.kernel.lowered.functions for call in program.kernels)
    assert count >= 5


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(6))
def test_loaded_and_compiled_programs_agree(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs give equal results if compiled, cached or loaded from a directory."""
    monkeypatch.setenv("TECOMP_CACHE", "on")
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path / "cache"))
    drawn = draw_program(100 + seed, steps=5 + seed)
    known = [x for k, x in enumerate(drawn.inputs) if k and seed % 2]
    inputs = [x for x in drawn.inputs if x not in known]
    requested = list(drawn.outputs), inputs
    constants = {x: drawn.inputs[x] for x in known}
    compiled = tecomp.compile(*requested, constants=constants)
    monkeypatch.setattr(compilation_steps, "compile_native", None)  # make compilation impossible
    kept = tecomp.compile(*requested, constants=constants)
    compiled.save(tmp_path / "saved")
    loaded = tecomp.load(tmp_path / "saved")
    monkeypatch.undo()

    arrays = [drawn.inputs[x] for x in inputs]
    for program in (kept, loaded):
        for found, expected in zip(program(*arrays), compiled(*arrays), strict=True):
            np.testing.assert_array_equal(found, expected)
        assert program.picture() == compiled.picture()
        _watch(program)
