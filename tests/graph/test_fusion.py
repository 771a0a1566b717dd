"""Fusion: programs and single kernels compute equal loop nests, and programs combine siblings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.schedules.fusion import groups_of, program_of
from tests.numerics import assert_close

Array = np.ndarray[Any, Any]
Tensors = list[te.Tensor]
WIDTH = 64


def mean(x: te.Tensor) -> te.Tensor:
    return topi.multiply(topi.sum(x, axis=1, keepdims=True), 1 / WIDTH)


def normalized(x: te.Tensor) -> te.Tensor:
    centered = topi.subtract(x, mean(x))
    variance = mean(topi.multiply(centered, centered))
    return topi.divide(centered, topi.sqrt(topi.add(variance, 1e-5)))


def exact_normalized(x: Array) -> Array:
    centered = x - x.mean(1, keepdims=True)
    exact: Array = centered / np.sqrt((centered * centered).mean(1, keepdims=True) + 1e-5)
    return exact


def softmax(x: te.Tensor) -> te.Tensor:
    powers = topi.exp(topi.subtract(x, topi.max(x, axis=1, keepdims=True)))
    return topi.divide(powers, topi.sum(powers, axis=1, keepdims=True))


def exact_softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(1, keepdims=True))
    exact: Array = powers / powers.sum(1, keepdims=True)
    return exact


def read_twice(
    define: Callable[[te.Tensor], te.Tensor], *readers: Callable[[te.Tensor], te.Tensor]
) -> Callable[..., Tensors]:
    """Return a function that defines a value and its readers."""
    def outputs(x: te.Tensor, *_: te.Tensor) -> Tensors:
        value = define(x)
        return [reader(value) for reader in readers]

    return outputs


def plus(x: te.Tensor) -> te.Tensor:
    return topi.add(x, 1.0)


def minus(x: te.Tensor) -> te.Tensor:
    return topi.subtract(x, 1.0)


def row_sum(x: te.Tensor) -> te.Tensor:
    return topi.sum(x, axis=1)


def low_bits(x: te.Tensor) -> te.Tensor:
    return topi.cast(topi.bitwise_and(topi.cast(topi.multiply(x, 8.0), "int32"), 7), "float32")


def exact_low_bits(x: Array) -> Array:
    return ((x.astype(np.float32) * 8).astype(np.int32) & 7).astype(float)


# Loop nests of a single kernel, kernels of a program, definition and exact values.
PROGRAMS: dict[str, tuple[int, int, Callable[..., Tensors], Callable[..., list[Array]]]] = {
    "softmax": (1, 1, lambda x, y, w: [softmax(x)], lambda x, y, w: [exact_softmax(x)]),
    "normalization": (
        1, 1, lambda x, y, w: [normalized(x)], lambda x, y, w: [exact_normalized(x)]),
    "chain": (
        1, 1, lambda x, y, w: [minus(topi.multiply(x, 3.0))], lambda x, y, w: [x * 3 - 1]),
    "exp read by a map and a sum": (
        3, 2, read_twice(topi.exp, plus, row_sum),
        lambda x, y, w: [np.exp(x) + 1, np.exp(x).sum(1)]),
    "product by 2 read by two maps": (
        2, 1, read_twice(lambda x: topi.multiply(x, 2.0), plus, minus),
        lambda x, y, w: [x * 2 + 1, x * 2 - 1]),
    "exp read by two maps": (
        3, 1, read_twice(topi.exp, plus, minus), lambda x, y, w: [np.exp(x) + 1, np.exp(x) - 1]),
    "product, bias and maximum": (
        1, 1, lambda x, y, w: [topi.nn.relu(plus(topi.matmul(x, w)))],
        lambda x, y, w: [np.maximum(x @ w + 1, 0)]),
    "product of a transposed operand": (
        1, 1, lambda x, y, w: [topi.matmul(x, y, transp_a=True)], lambda x, y, w: [x.T @ y]),
    "sum of a sum": (
        2, 2, lambda x, y, w: [topi.sum(topi.multiply(topi.sum(x, axis=0), 2.0))],
        lambda x, y, w: [x.sum() * 2]),
    "two sums": (
        2, 2, lambda x, y, w: [row_sum(x), row_sum(topi.multiply(x, x))],
        lambda x, y, w: [x.sum(1), (x * x).sum(1)]),
    "quotient by sums of columns": (
        2, 2, lambda x, y, w: [topi.divide(x, topi.sum(x, axis=0))], lambda x, y, w: [x / x.sum(0)]),
    "bits read by a map and a sum": (
        2, 2, read_twice(low_bits, plus, row_sum),
        lambda x, y, w: [exact_low_bits(x) + 1, exact_low_bits(x).sum(1)]),
}


def sized(rows: Any) -> Tensors:
    """Return the inputs of each program."""
    x, y = (te.placeholder((rows, WIDTH), name=name) for name in "xy")
    return [x, y, te.placeholder((WIDTH, WIDTH), name="w")]


def read_by(outputs: Tensors, inputs: Tensors) -> list[int]:
    """Return the positions of the inputs on which outputs depend."""
    reached, pending = set[te.Tensor](), [*outputs]
    while pending:
        x = pending.pop()
        reached.add(x)
        pending += x.op.input_tensors
    return [k for k, x in enumerate(inputs) if x in reached]


@pytest.mark.exhaustive(keep=4, most=24)
@pytest.mark.parametrize("rows", [512, te.var("n")], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_programs_are_loop_nests(name: str, rows: Any) -> None:
    num_nests, num_kernels, define, exact = PROGRAMS[name]
    inputs = sized(rows)
    outputs = define(*inputs)
    positions = read_by(outputs, inputs)
    program = tecomp.compile(outputs, [inputs[k] for k in positions])
    schedule = te.create_schedule([x.op for x in outputs])
    nests, _ = groups_of(program_of(schedule), tecomp.Target.load("cpu"))
    assert (len(nests), len(program.kernels)) == (num_nests, num_kernels)
    if num_kernels == num_nests:
        assert [call.group.result for call in program.kernels] == [x.output.op for x in nests]

    random = np.random.default_rng(0)
    values = [random.uniform(0.1, 1, (n, WIDTH)).astype("float32") for n in (512, 512, WIDTH)]
    results = program(*(values[k] for k in positions))
    wide = [x.astype(float) for x in values]
    results = results if len(outputs) > 1 else [results]
    for result, expected in zip(results, exact(*wide), strict=True):
        assert_close(result, expected, rtol=1e-5, atol=1e-5)
