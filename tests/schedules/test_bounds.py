"""All accesses of all schedules are within their buffers.

Generated bounds checks are off in production. Here they are run once for each form of a schedule,
at a small size with a remainder in each loop. All other tests run the code without checks.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import schedules, te
from tecomp.compute import PlaceholderOp, ScanOp
from tecomp.schedules import (
    activations,
    argreduce,
    attention,
    conv2d,
    cumsum,
    elementwise,
    matmul,
    norm,
    pool,
    reduce,
    softmax,
    stencil,
    transpose,
)
from tests.numerics import assert_close
from tests.strategies.machines import ACCELERATORS, shipped
from tests.strategies.reference import number

pytestmark = pytest.mark.numbers_alone

SMALL = tecomp.Target(
    "small", "short vectors, small caches so that little sizes are cut into many blocks, and dots",
    tecomp.Target.load("cpu").memories,
    tecomp.Core(2, 16, 16, (256, 8192), dots=("uint8*int8", "bfloat16*bfloat16")),
)
N, M, K = te.var("n"), te.var("m"), te.var("k")
SIZES = {N: 25, M: 19, K: 23}
LAPLACE = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]


def x(*shape: int | te.Var, dtype: str = "float32", name: str = "X") -> te.Tensor:
    """Return a placeholder."""
    return te.placeholder(shape, dtype, name=name)


def product(
    a: tuple[Any, ...], b: tuple[Any, ...], first: str = "float32", second: str = "", **options: Any
) -> te.Tensor:
    source = x(*a, dtype=first), x(*b, dtype=second or first, name="W")
    output: te.Tensor = matmul.define(*source, **options)
    return output


def convolution(
    image: tuple[Any, ...], taps: tuple[int, ...], first: str = "float32", second: str = "",
    **options: Any,
) -> te.Tensor:
    source = x(*image, dtype=first), x(*taps, dtype=second or first, name="W")
    output: te.Tensor = conv2d.define(*source, **options)
    return output


def seen(m: Any, n: Any, depth: int, width: int, **options: Any) -> te.Tensor:
    q, k, v = x(2, m, depth), x(2, n, depth, name="K"), x(2, n, width, name="V")
    output: te.Tensor = attention.define(q, k, v, **options)
    return output


def bias(columns: int) -> te.Tensor:
    return te.placeholder((columns,), name="bias")


Form = tuple[ModuleType, Callable[[], te.Tensor]]
FORMS: dict[str, Form] = {
    "argreduce-rows": (argreduce, lambda: argreduce.define(x(9, 301))),
    "argreduce-short-rows": (argreduce, lambda: argreduce.define(x(35, 10))),
    "argreduce-columns": (argreduce, lambda: argreduce.define(x(37, 21), 0, "argmin")),
    "argreduce-any": (argreduce, lambda: argreduce.define(x(N, M), 1)),
    "attention": (attention, lambda: seen(19, 37, 12, 9)),
    "attention-causal": (attention, lambda: seen(19, 37, 12, 9, causal=True)),
    "attention-any": (attention, lambda: seen(N, M, 16, 16)),
    "conv2d": (conv2d, lambda: convolution(
        (1, 7, 13, 3), (3, 3, 3, 7), padding=1, bias=bias(7), activation=activations.relu)),
    "conv2d-stride": (conv2d, lambda: convolution((1, 11, 9, 4), (3, 3, 4, 18), stride=2)),
    "conv2d-dilation": (conv2d, lambda: convolution((1, 9, 30, 3), (3, 3, 3, 7), dilation=2)),
    "conv2d-one-tap": (conv2d, lambda: convolution((1, 9, 10, 5), (1, 1, 5, 17))),
    "conv2d-depthwise": (conv2d, lambda: convolution((1, 7, 7, 12), (3, 3, 1, 12), groups=12)),
    "conv2d-phases": (conv2d, lambda: convolution(
        (1, 13, 36, 6), (3, 3, 1, 6), groups=6, stride=2, padding=1)),
    "conv2d-groups": (conv2d, lambda: convolution((1, 6, 7, 10), (3, 3, 5, 14), groups=2)),
    "conv2d-rest": (conv2d, lambda: convolution((1, 6, 57, 3), (3, 3, 3, 7), stride=2)),
    "conv2d-first": (conv2d, lambda: convolution(
        (1, 3, 7, 13), (7, 3, 3, 3), padding=1, layout="NCHW", bias=bias(7))),
    "conv2d-first-stride": (conv2d, lambda: convolution(
        (1, 4, 11, 9), (18, 4, 3, 3), stride=2, layout="NCHW")),
    "conv2d-first-depthwise": (conv2d, lambda: convolution(
        (1, 6, 13, 36), (6, 1, 3, 3), groups=6, stride=2, padding=1, layout="NCHW")),
    "conv2d-first-groups": (conv2d, lambda: convolution(
        (1, 10, 6, 7), (14, 5, 3, 3), groups=2, layout="NCHW")),
    "conv2d-bytes": (conv2d, lambda: convolution(
        (1, 8, 9, 8), (3, 3, 8, 17), "uint8", "int8", padding=1, out_dtype="int32")),
    "conv2d-bfloat16": (conv2d, lambda: convolution(
        (1, 3, 7, 13), (3, 3, 3, 3), "bfloat16", stride=2, layout="NCHW", out_dtype="float32")),
    "conv2d-any": (conv2d, lambda: convolution((1, N, M, 3), (3, 3, 3, 8))),
    "cumsum-columns": (cumsum, lambda: cumsum.define(x(37, 21), 0)),
    "cumsum-rows": (cumsum, lambda: cumsum.define(x(5, 127))),
    "cumsum-short-rows": (cumsum, lambda: cumsum.define(x(33, 10), exclusive=True)),
    "cumsum-groups": (cumsum, lambda: cumsum.define(x(3, 300))),
    "cumsum-wide-groups": (cumsum, lambda: cumsum.define(
        x(2, 2049, dtype="int8"), exclusive=True, out_dtype="int64")),
    "cumsum-any": (cumsum, lambda: cumsum.define(x(N, M))),
    "elementwise": (elementwise, lambda: elementwise.define(
        lambda a, b: a * b, x(9, 33), x(33, name="Y"))),
    "elementwise-any": (elementwise, lambda: elementwise.define(
        lambda a, b: a * b, x(N, M), x(M, name="Y"))),
    "matmul": (matmul, lambda: product(
        (19, 70), (70, 35), bias=bias(35), activation=activations.relu)),
    "matmul-batch": (matmul, lambda: product((3, 17, 20), (3, 20, 19))),
    "matmul-turned": (matmul, lambda: product(
        (30, 37), (21, 30), transpose_a=True, transpose_b=True)),
    "matmul-few-rows": (matmul, lambda: product((3, 300), (300, 41))),
    "matmul-few-rows-turned": (matmul, lambda: product((3, 300), (41, 300), transpose_b=True)),
    "matmul-few-columns": (matmul, lambda: product((90, 33), (33, 5))),
    "matmul-few-columns-turned": (matmul, lambda: product(
        (33, 90), (33, 5), transpose_a=True)),
    "matmul-bytes": (matmul, lambda: product(
        (19, 71), (71, 35), "uint8", "int8", out_dtype="int32")),
    "matmul-bytes-turned": (matmul, lambda: product(
        (19, 71), (35, 71), "int8", out_dtype="int32", transpose_b=True)),
    "matmul-bfloat16": (matmul, lambda: product(
        (3, 71), (71, 40), "bfloat16", out_dtype="float32")),
    "matmul-float16": (matmul, lambda: product((21, 70), (70, 35), "float16")),
    "matmul-any": (matmul, lambda: product((N, K), (K, M))),
    "layer-norm": (norm, lambda: norm.layer_norm(x(9, 127), x(127, name="scale"))),
    "layer-norm-short-rows": (norm, lambda: norm.layer_norm(x(33, 10))),
    "rms-norm-any": (norm, lambda: norm.rms_norm(x(N, M))),
    "pool": (pool, lambda: pool.define(x(1, 13, 19, 17), 3, stride=2, padding=1)),
    "pool-first": (pool, lambda: pool.define(
        x(1, 5, 13, 19), 3, "mean", stride=2, padding=1, count_padding=False, layout="NCHW")),
    "pool-dilation": (pool, lambda: pool.define(x(1, 15, 14, 8), 3, stride=1, dilation=2)),
    "pool-whole": (pool, lambda: pool.whole(x(2, 7, 6, 19), "mean")),
    "pool-any": (pool, lambda: pool.define(x(1, N, M, 5), 3, stride=2, padding=1)),
    "reduce-rows": (reduce, lambda: reduce.define(x(9, 301), 1)),
    "reduce-columns": (reduce, lambda: reduce.define(x(37, 21), 0, "max")),
    "reduce-few-columns": (reduce, lambda: reduce.define(x(101, 7), 0, "mean")),
    "reduce-all": (reduce, lambda: reduce.define(x(3, 40, 33), None)),
    "reduce-middle": (reduce, lambda: reduce.define(x(2, 5, 6, 19), (0, 2), keepdims=True)),
    "reduce-any": (reduce, lambda: reduce.define(x(N, M), 1, "mean")),
    "softmax": (softmax, lambda: softmax.define(x(9, 127))),
    "softmax-short-rows": (softmax, lambda: softmax.define(x(33, 10))),
    "softmax-any": (softmax, lambda: softmax.define(x(N, M))),
    "stencil": (stencil, lambda: stencil.define(x(2, 11, 37), LAPLACE)),
    "stencil-separable": (stencil, lambda: stencil.separable(x(35, 67), [1, 2, 1], [1, 0, -1])),
    "stencil-any": (stencil, lambda: stencil.separable(x(N, M), [1, 2, 1], [1, 0, -1])),
    "transpose": (transpose, lambda: transpose.define(x(35, 67))),
    "transpose-bytes": (transpose, lambda: transpose.define(x(35, 67, dtype="int8"))),
    "transpose-axes": (transpose, lambda: transpose.define(x(2, 17, 5, 24), (0, 3, 1, 2))),
    "transpose-any": (transpose, lambda: transpose.define(x(N, M))),
}


def inputs_of(output: te.Tensor) -> list[te.Tensor]:
    """Return the distinct inputs of a program."""
    found: dict[te.Tensor, None] = {}
    states: set[te.Tensor] = set()
    worklist = [output]
    while worklist:
        tensor = worklist.pop()
        if isinstance(tensor.op, PlaceholderOp):
            found[tensor] = None
        if isinstance(tensor.op, ScanOp):
            states |= set(tensor.op.states)
        worklist += tensor.op.input_tensors
    return [tensor for tensor in found if tensor not in states]


def shape_of(tensor: te.Tensor) -> list[int]:
    return [number(extent, SIZES) for extent in tensor.shape]


def given(tensor: te.Tensor) -> np.ndarray[Any, Any]:
    """Return small integers, so that sums are exact in any order."""
    values = np.random.default_rng(0).integers(0, 4, shape_of(tensor))
    return values.astype(tensor.dtype.numpy)


def check(output: te.Tensor, schedule: te.Schedule, target: tecomp.Target) -> None:
    """Run the schedule with bounds checks and compare with the unscheduled definition."""
    inputs = inputs_of(output)
    arrays = [given(tensor) for tensor in inputs]
    expected, actual = (np.zeros(shape_of(output), output.dtype.numpy) for _ in "ab")
    plain = te.create_schedule(output)
    tecomp.evaluate(tecomp.lower(plain, [*inputs, output], stop_after="nest"), [*arrays, expected])
    kernel = tecomp.build(schedule, [*inputs, output], target=target, check_bounds=True)
    packed = [kernel.pack(x, v) for x, v in zip([*inputs, output], [*arrays, actual], strict=True)]

    kernel(*packed)

    actual = kernel.unpack(output, packed[-1])
    near = 1e-3 if output.dtype == "float16" else 1e-5
    assert_close(actual.astype(np.float64), expected.astype(np.float64), near, near)


@pytest.mark.exhaustive(keep=2, most=6)
@pytest.mark.parametrize("form", FORMS)
def test_processors(form: str) -> None:
    module, make = FORMS[form]
    output = make()

    check(output, module.schedule(output, SMALL), SMALL)


@pytest.mark.exhaustive(keep=1, most=5)
@pytest.mark.parametrize("machine", ACCELERATORS)
@pytest.mark.parametrize("form", ["matmul-float16", "conv2d-stride", "softmax", "layer-norm"])
def test_machines(form: str, machine: str) -> None:
    module, make = FORMS[form]
    output, target = make(), shipped(machine)

    check(output, module.schedule(output, target), target)


def test_every_schedule_is_here() -> None:
    modules = (
        import_module(f"tecomp.schedules.{path.stem}")
        for path in Path(schedules.__path__[0]).glob("*.py") if path.stem != "__init__"
    )
    have = {item for item in modules if hasattr(item, "define") and hasattr(item, "schedule")}

    assert have <= {module for module, _ in FORMS.values()}
