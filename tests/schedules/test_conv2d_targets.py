"""Convolutions on scratchpad machines equal NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.driver import ScheduledKernel
from tecomp.ir import DType
from tecomp.schedules import activations, conv2d
from tests.strategies.fenced import call_fenced
from tests.strategies.machines import ACCELERATORS, MATRIX_MACHINES, VECTOR_MACHINES, shipped

# Images, height, width, channels, filters, filter height, filter width.
Shape = tuple[int, int, int, int, int, int, int]


def convolved(
    x: NDArray[Any], w: NDArray[Any], stride: int, padding: int, apart: int, groups: int
) -> NDArray[np.float64]:
    """Compute the NHWC convolution as one matrix product per filter tap."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    taps_y, taps_x, depth, k = w.shape
    rows, columns = (
        (size - apart * (taps - 1) - 1) // stride + 1
        for size, taps in ((x.shape[1], taps_y), (x.shape[2], taps_x))
    )
    out = np.zeros((x.shape[0], rows, columns, k))
    for r in range(taps_y):
        for s in range(taps_x):
            seen = x[:, r * apart :: stride, s * apart :: stride][:, :rows, :columns]
            for g in range(groups):
                filters = slice(g * k // groups, (g + 1) * k // groups)
                channels = seen[..., g * depth : (g + 1) * depth]
                out[..., filters] += channels @ w[r, s][:, filters]
    return out


def run(
    machine: str, shape: Shape, dtype: str = "float16", *, layout: conv2d.Layout = "NHWC",
    stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1, **options: Any,
) -> tuple[ScheduledKernel, te.Schedule]:
    """Build the convolution, run it on integers, and compare with NumPy."""
    n, height, width, c, k, taps_y, taps_x = shape
    target, first = shipped(machine), layout == "NCHW"
    random = np.random.default_rng(0)
    kind = DType(dtype).numpy
    x = random.integers(-4, 5, (n, height, width, c)).astype(kind)
    w = random.integers(-4, 5, (taps_y, taps_x, c // groups, k)).astype(kind)
    expected = convolved(x, w, stride, padding, dilation, groups)
    bias = options.get("bias")
    inputs = [x, w]
    if bias is not None:
        inputs.append(random.integers(-4, 5, bias.shape).astype(np.float32))
        expected = np.maximum(expected + inputs[2], 0)
    if first:
        inputs[0], inputs[1] = x.transpose(0, 3, 1, 2).copy(), w.transpose(3, 2, 0, 1).copy()
        expected = expected.transpose(0, 3, 1, 2)
    X, W = (te.placeholder(a.shape, dtype, name) for a, name in zip(inputs[:2], "XW", strict=True))
    Y = conv2d.define(
        X, W, layout=layout, stride=stride, padding=padding, dilation=dilation, groups=groups,
        out_dtype="float32", **options,
    )
    s = conv2d.schedule(Y, target)
    args = [X, W, *([] if bias is None else [bias]), Y]
    kernel = tecomp.build(s, args, target=target)
    inputs.append(np.zeros(expected.shape, np.float32))
    arrays = [kernel.pack(arg, array) for arg, array in zip(args, inputs, strict=True)]

    call_fenced(kernel, *arrays)

    np.testing.assert_array_equal(kernel.unpack(Y, arrays[-1]), expected)
    return kernel, s


@pytest.mark.exhaustive(keep=1, most=4)
@pytest.mark.parametrize("machine", MATRIX_MACHINES)
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((1, 10, 18, 64, 64, 3, 3), {}),
        ((1, 9, 9, 5, 7, 3, 3), {"padding": 1}),
        ((2, 11, 13, 33, 40, 3, 3), {"padding": 1, "stride": 2}),
        ((1, 9, 9, 8, 8, 3, 3), {"dilation": 2}),
        ((3, 1, 1, 1, 1, 1, 1), {}),
        ((1, 5, 33, 7, 100, 2, 1), {}),
    ],
)
def test_units(machine: str, shape: Shape, options: dict[str, int]) -> None:
    _, s = run(machine, shape, **options)  # type: ignore[arg-type]

    assert "tensorize" in str(s.trace)
    assert tecomp.check_constraints(s, machine) == ()


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", VECTOR_MACHINES)
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((1, 10, 18, 64, 20, 3, 3), {}),
        ((1, 9, 9, 5, 7, 3, 3), {"padding": 1}),
        ((2, 11, 13, 32, 40, 3, 3), {"padding": 1, "stride": 2}),
        ((3, 1, 1, 1, 1, 1, 1), {}),
    ],
)
def test_vectors(machine: str, shape: Shape, options: dict[str, int]) -> None:
    _, s = run(machine, shape, "float32", **options)

    assert "tensorize" not in str(s.trace)
    assert tecomp.check_constraints(s, machine) == ()


@pytest.mark.exhaustive(keep=1, most=5)
@pytest.mark.parametrize("machine", ACCELERATORS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("padding", [0, 1])
def test_channels_first(machine: str, dtype: str, padding: int) -> None:
    """NCHW inputs need a copy to move channels to the lanes, with and without zero padding."""
    _, s = run(machine, (1, 8, 9, 33, 20, 3, 3), dtype, layout="NCHW", padding=padding)

    # A rule of stick128 requires the same number of channel axes in both factors, as in NHWC.
    if machine != "stick128":
        assert tecomp.check_constraints(s, machine) == ()


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ACCELERATORS)
def test_groups_are_no_product_of_matrices(machine: str) -> None:
    _, s = run(machine, (1, 9, 9, 8, 12, 3, 3), groups=2)

    assert "tensorize" not in str(s.trace)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ACCELERATORS)
def test_bias_and_activation(machine: str) -> None:
    bias = te.placeholder((20,), "float32", name="bias")
    _, s = run(machine, (1, 6, 9, 8, 20, 3, 3), bias=bias, activation=activations.relu)

    assert tecomp.check_constraints(s, machine) == ()


@cache
def printed(machine: str) -> ScheduledKernel:
    """Return the kernel of the golden files, after a checked run."""
    dtype = "float16" if machine in MATRIX_MACHINES else "float32"
    return run(machine, (1, 6, 9, 20, 24, 3, 3), dtype, padding=1)[0]


@pytest.mark.exhaustive(keep=1, most=7)
@pytest.mark.parametrize("machine", ["cpu", *ACCELERATORS])
@pytest.mark.parametrize("shown", ["ir", "report"])
def test_printed(machine: str, shown: str, golden: Callable[[object], None]) -> None:
    """The printed program and its cost report equal the golden files."""
    kernel = printed(machine)

    golden(kernel.report() if shown == "report" else kernel.lowered.functions["nest"])
