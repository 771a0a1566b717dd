"""Vectors inside an image are copied without the mask of its padding."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.codegen import branch_on_masks
from tecomp.ir import BufferLoad, BufferStore, IfThenElse, PrimFunc, evaluate, parse, walk


def padded(length: int, before: int, after: int) -> PrimFunc:
    """Return the vectors of rows of `length` elements between zeros, under a mask."""
    width = before + length + after
    return parse(f'''def main(A: Buffer("int64", ({3 * length},)), B: Buffer("int64", ({5 * width},))):
    for i in range(5):
        for j in range({width // 8}):
            B[ramp(i * {width} + j * 8, 1, 8)] = select(broadcast(i >= 1 and i < 4, 8) \
and ramp(j * 8, 1, 8) >= broadcast({before}, 8) and broadcast({before + length}, 8) > \
ramp(j * 8, 1, 8), A.load(ramp((i - 1) * {length} + j * 8 - {before}, 1, 8), \
where=broadcast(i >= 1 and i < 4, 8) and ramp(j * 8, 1, 8) >= broadcast({before}, 8) and \
broadcast({before + length}, 8) > ramp(j * 8, 1, 8)), broadcast(int64(0), 8))
''')


@pytest.mark.parametrize(("length", "before", "after"), [(22, 1, 1), (13, 2, 1), (8, 0, 0)])
def test_vectors_inside_need_no_mask(length: int, before: int, after: int) -> None:
    func = padded(length, before, after)
    branched = branch_on_masks(func)
    (branch,) = (node for node in walk(branched.body) if isinstance(node, IfThenElse))
    (inside,) = (node for node in walk(branch.then_case) if isinstance(node, BufferStore))
    assert [x.predicate for x in walk(inside.value) if isinstance(x, BufferLoad)] == [None]

    a = np.arange(1, 3 * length + 1)
    expected = np.pad(a.reshape(3, length), ((1, 1), (before, after))).ravel()
    for item in (func, branched):
        b = np.full_like(expected, -1)
        evaluate(item, [a, b])
        np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("mask", [
    "ramp(0, 1, 8) != broadcast(i, 8)",  # lanes in the middle decide
    "ramp(0, -1, 8) >= broadcast(i - 9, 8)",  # the ramp falls
    "ramp(0, 1, 8) < broadcast(A[i], 8)",  # the limit is data
])
def test_other_masks_remain(mask: str) -> None:
    func = parse(f'''def main(A: Buffer("int64", (64,)), B: Buffer("int64", (64,))):
    for i in range(8):
        B[ramp(i * 8, 1, 8)] = select({mask}, A.load(ramp(i * 8, 1, 8), where={mask}), \
broadcast(int64(0), 8))
''')
    assert not any(isinstance(node, IfThenElse) for node in walk(branch_on_masks(func).body))


@pytest.mark.parametrize("shape", [(2, 3, 7, 14), (1, 2, 9, 33), (1, 1, 1, 1)])
def test_padded_images(shape: tuple[int, ...]) -> None:
    X = te.placeholder(shape, name="X")
    Y = topi.nn.pad(X, [0, 0, 1, 2], [0, 0, 2, 1], pad_value=3.0)
    kernel = tecomp.build(Y, [X, Y], target="cpu")
    x = np.random.default_rng(0).random(shape, np.float32)
    y = np.empty([int(n) for n in Y.shape], np.float32)
    kernel(x, y)
    np.testing.assert_array_equal(
        y, np.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), constant_values=3.0)
    )
