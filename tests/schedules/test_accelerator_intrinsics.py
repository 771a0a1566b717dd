"""Intrinsics of tile matrix units: properties from target descriptions, and results of NumPy."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import MatmulUnit, Target, list_targets, te
from tecomp.ir import DType
from tecomp.schedules.intrinsics import accelerator
from tecomp.schedules.scratchpad import sizes_of
from tests.numerics import assert_close
from tests.strategies.machines import ACCELERATORS, MATRIX_MACHINES


def products(target: Target) -> list[te.TensorIntrin]:
    return [intrinsic for intrinsic in accelerator.intrinsics(target) if intrinsic.unit == "matmul"]


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("machine", MATRIX_MACHINES)
def test_sizes_and_types_are_those_of_the_description(machine: str) -> None:
    target = Target.load(machine)
    unit: Any = target.engine["matmul"]

    found = products(target)

    assert [item.name for item in found] == [f"matmul_{dtype}" for dtype in unit.inputs]
    shapes = [(unit.m, unit.k), (unit.k, unit.n)]
    for item, dtype in zip(found, unit.inputs, strict=True):
        assert [(x.shape, x.dtype) for x in item.inputs] == [(shape, dtype) for shape in shapes]
        assert item.op.dtypes == (unit.accumulator,)


def test_the_package_offers_them() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    offered = project["project"]["entry-points"]["tecomp.intrinsics"]

    for machine in ACCELERATORS:
        module, _, function = offered[machine].partition(":")
        assert getattr(import_module(module), function) is accelerator.intrinsics


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("machine", MATRIX_MACHINES)
def test_operations_equal_numpy(machine: str) -> None:
    target = Target.load(machine)
    for intrin in products(target):
        a, b = (te.placeholder(x.shape, x.dtype, x.name) for x in intrin.inputs)
        k = te.reduce_axis((0, a.shape[1]), name="k")
        c = te.compute(
            intrin.op.output(0).shape,
            lambda i, j, a=a, b=b, k=k: te.sum(
                a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="c",
        )
        s = te.create_schedule(c)
        s[c].tensorize(c.op.axis[0], intrin)
        kernel = tecomp.build(s, [a, b, c])
        random = np.random.default_rng(0)
        kind = DType(a.dtype).numpy
        x, y = (random.standard_normal(sizes_of(t)).astype(kind) for t in (a, b))
        out = np.zeros(sizes_of(c), np.float32)

        kernel(x, y, out)

        exact = x.astype(np.float64) @ y.astype(np.float64)
        assert_close(out, exact, rtol=1e-5, atol=1e-4)


def with_small_tiles(target: Target) -> Target:
    """Return a target whose matrix units multiply tiles of at most 32 x 32 x 32.

    The interpreter takes minutes for a tile of 128 x 512 x 128. The statements are the same loops
    for all extents.
    """
    tiles = {
        name: {axis: min(getattr(unit, axis), 32) for axis in "mnk"}
        for name, unit in target.engine.items() if isinstance(unit, MatmulUnit)
    }
    return target.overridden(engine=tiles) if tiles else target


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("machine", list_targets())
def test_statements_of_all_operations_do_what_is_declared(machine: str) -> None:
    target = with_small_tiles(Target.load(machine))
    offered = tecomp.intrinsics(machine)
    found = {each.name: each for each in accelerator.intrinsics(target)} if target.engine else offered

    assert found.keys() == offered.keys()
    for intrin in found.values():
        assert intrin.check == "later"
        te.check_tensor_intrin(intrin)


def test_types_that_it_does_not_take() -> None:
    target = Target.load("stick128")

    assert accelerator.tile_product(target, ("float16", "bfloat16"), "float32") is None
    assert accelerator.tile_product(target, ("float16", "float16"), "float16") is None
    assert accelerator.tile_product(Target.load("vtcm2d"), ("float16", "float16"), "float32") is None
