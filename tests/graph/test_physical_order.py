"""Values in permuted layouts on a processor: loops follow the order in memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

import tecomp
from tecomp import Layout, te, topi
from tecomp.driver import CompiledProgram
from tests.numerics import assert_close

NHWC, HWIO = (0, 2, 3, 1), (2, 3, 1, 0)


def permuted(x: te.Tensor, order: Sequence[int]) -> Layout:
    shape = [int(size) for size in x.shape]
    return Layout.of(shape, x.dtype, lambda *i: [i[k] for k in order])


def loops_of(program: CompiledProgram) -> list[str]:
    """Return the lowered functions of a program, with identifiers numbered by first occurrence."""
    texts = []
    for call in program.kernels:
        numbers: dict[str, str] = {}

        def numbered(found: re.Match[str], numbers: dict[str, str] = numbers) -> str:
            return numbers.setdefault(found[0], f"n{len(numbers)}")

        texts.append(re.sub(r"[^\W\d]\w*", numbered, str(call.kernel.lowered.final)))
    return texts


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("image", "filters", "stride", "padding"), [
    ((1, 24, 11, 13), (40, 24, 3, 3), 1, 1),
    ((2, 20, 9, 15), (36, 20, 3, 5), 2, 2),
    ((1, 3, 17, 19), (24, 3, 7, 7), 2, 3),
    ((3, 18, 10, 7), (33, 18, 1, 1), 1, 0),
])
def test_a_stored_convolution_has_the_loops_of_its_order(
    image: tuple[int, ...], filters: tuple[int, ...], stride: int, padding: int
) -> None:
    X, W = te.placeholder(image, name="X"), te.placeholder(filters, name="W")
    Y = topi.nn.conv2d_nchw(X, W, stride, padding, 1)
    orders = {X: NHWC, W: HWIO, Y: NHWC}
    stored = tecomp.compile(
        [Y], [X, W], "cpu", packed=[X, W, Y], layouts={x: permuted(x, o) for x, o in orders.items()}
    )
    Xn = te.placeholder([image[k] for k in NHWC], name="X")
    Wn = te.placeholder([filters[k] for k in HWIO], name="W")
    written = tecomp.compile(topi.nn.conv2d_nhwc(Xn, Wn, stride, padding, 1), [Xn, Wn], "cpu")

    random = np.random.default_rng(0)
    x = random.standard_normal(Xn.shape, dtype=np.float32)
    w = random.standard_normal(Wn.shape, dtype=np.float32)
    np.testing.assert_array_equal(stored(x, w), written(x, w))
    assert loops_of(stored) == loops_of(written)


def test_a_convolution_is_recognized_if_one_image_is_permuted() -> None:
    X, W = te.placeholder((2, 12, 9, 14), name="X"), te.placeholder((20, 12, 3, 3), name="W")
    Y = topi.nn.conv2d_nchw(X, W, 1, 0, 1)
    plain = tecomp.compile([Y], [X, W], "cpu")
    random = np.random.default_rng(1)
    x = random.standard_normal(X.shape, dtype=np.float32)
    w = random.standard_normal(W.shape, dtype=np.float32)
    for one in (X, Y):
        mixed = tecomp.compile(
            [Y], [X, W], "cpu", packed=[one], layouts={one: permuted(one, NHWC)}
        )
        found = mixed(x.transpose(NHWC).copy() if one is X else x, w)
        expected = plain(x, w)
        assert_close(
            found, expected.transpose(NHWC) if one is Y else expected, 1e-5,
            magnitude=np.abs(expected).max(),
        )
        (kernel,) = mixed.kernels
        # Only the schedule of convolutions packs the filters.
        assert "W_global" in str(kernel.kernel.lowered.final)


def random_program(random: np.random.Generator) -> tuple[te.Tensor, list[te.Tensor]]:
    """Return a random chain of operations on tensors of three axes."""
    shape = tuple(int(n) for n in random.integers(1, 9, 3))
    inputs = [te.placeholder(shape, name="A"), te.placeholder(shape, name="B")]
    values = [*inputs]
    for number in range(int(random.integers(2, 6))):
        x, name = values[int(random.integers(len(values)))], f"v{number}"
        order = [int(k) for k in random.permutation(3)]
        match int(random.integers(5)):
            case 0:
                y = values[int(random.integers(len(values)))]
                if y.shape != x.shape:
                    continue
                output = te.compute(x.shape, lambda *i, x=x, y=y: x[i] * 0.5 + y[i], name=name)
            case 1:
                turned = tuple(x.shape[k] for k in order)
                output = te.compute(
                    turned, lambda *i, x=x, o=order: x[tuple(i[o.index(k)] for k in range(3))],
                    name=name,
                )
            case 2:
                wide = (x.shape[0], x.shape[1] + 2, x.shape[2])
                output = te.compute(wide, lambda i, j, k, x=x: te.if_then_else(
                    te.all(j >= 1, j <= x.shape[1]), x[i, j - 1, k], 0.25), name=name)
            case 3:
                r = te.reduce_axis((0, x.shape[2]), name="r")
                output = te.compute(
                    x.shape, lambda i, j, k, x=x, r=r: te.max(x[i, j, r] - x[i, j, k], axis=r),
                    name=name,
                )
            case _:
                r = te.reduce_axis((0, x.shape[2]), name="r")
                output = te.compute(
                    (x.shape[0], x.shape[1], x.shape[1]),
                    lambda i, j, k, x=x, r=r: te.sum(x[i, j, r] * x[i, k, r], axis=r), name=name,
                )
        values.append(output)
    out = values[-1]
    result = te.compute(out.shape, lambda *i: out[i] + 1.0, name="result")
    return result, inputs


@pytest.mark.exhaustive(keep=2, most=24)
@pytest.mark.parametrize("seed", range(24))
def test_random_permuted_layouts(seed: int) -> None:
    random = np.random.default_rng(seed)
    result, inputs = random_program(random)
    every = [*inputs, result]
    orders = {
        x: list(permutations(range(3)))[int(random.integers(6))]
        for x in every if random.random() < 0.7
    }
    layouts = {x: permuted(x, order) for x, order in orders.items()}
    packed = [*layouts]
    program = tecomp.compile(result, inputs, "cpu", packed=packed, layouts=layouts)

    arrays = [random.standard_normal(x.shape, dtype=np.float32) for x in inputs]
    expected = np.empty(result.shape, np.float32)
    loops = tecomp.lower(te.create_schedule(result.op), [*inputs, result], stop_after="nest")
    tecomp.evaluate(loops, [*arrays, expected])
    operands = [
        a.transpose(orders[x]).copy() if x in orders else a
        for x, a in zip(inputs, arrays, strict=True)
    ]
    assert_close(
        program(*operands), expected.transpose(orders.get(result, (0, 1, 2))), 1e-5,
        magnitude=np.abs(expected).max(),
    )
