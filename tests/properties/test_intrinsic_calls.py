"""Tiled products of any extents under any loops, computed by calls of an intrinsic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import evaluate
from tests.strategies.draws import Dice, Draws
from tests.strategies.intrinsics import tile_product


def product(d: Draws, counts: Any, tile: Any) -> tuple[list[te.Tensor], te.Tensor]:
    """Define a product of tiled matrices; the second one may be stored without tiles."""
    (rows, columns, depth), (m, n, p) = counts, tile
    is_open, is_flat = d.below(2), d.below(2)
    extents = [te.var(name) for name in "mnp"] if is_open else tile
    multiply = tile_product(*extents, check="now" if is_open else "later")
    X = te.placeholder((rows, depth, m, p), name="X")
    Y = te.placeholder((depth * p, columns * n) if is_flat else (columns, depth, p, n), name="Y")
    k = te.reduce_axis((0, depth), name="k")

    def call(i: Any, j: Any) -> Any:
        part = Y[k * p:k * p + p, j * n:(j + 1) * n] if is_flat else Y[j, k, 0:p, 0:n]
        return multiply(X[i, k, 0:m], part, reduce_axis=k)

    return [X, Y], te.compute((rows, columns, m, n), call, name="C")


def scheduled(d: Draws, C: te.Tensor, inputs: list[te.Tensor]) -> te.Schedule:
    """Split and reorder loops, and transform the layouts of inputs and output."""
    s = te.create_schedule(C.op)
    for _ in range(d.below(3)):
        loops = list(s[C].leaf_iter_vars)
        leaf = d.pick(loops)
        if d.below(2):
            s[C].split(leaf, factor=1 + d.below(3))
        else:
            s[C].reorder(*sorted(loops, key=lambda _: d.below(5)))
    if d.below(2):
        s[C].transform_layout(lambda i, j, x, y: [j, x, i, y])
    if d.below(2) and len(inputs[1].shape) == 2:
        s[inputs[1]].transform_layout(lambda i, j: [j, i])
    if d.below(2):
        copy = s.cache_read(inputs[0], "local", C)
        s[copy].compute_at(s[C], d.pick(s[C].leaf_iter_vars))
    return s


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("seed", range(24))
def test_products_of_tiles(seed: int) -> None:
    d = Draws(Dice(seed=seed))
    counts = [1 + d.below(4) for _ in range(3)]
    tile = [1 + d.below(5) for _ in range(3)]
    inputs, C = product(d, counts, tile)
    s = scheduled(d, C, inputs)
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-4, 5, t.shape).astype("float32") for t in inputs)
    blocks = y if y.ndim == 4 else y.reshape(
        counts[2], tile[2], counts[1], tile[1]).transpose(2, 0, 1, 3)
    expected = np.einsum("ikmp,jkpn->ijmn", x, blocks)

    kernel = tecomp.build(s, [*inputs, C], check_bounds=True)
    arrays = [kernel.pack(t, a) for t, a in zip((*inputs, C), (x, y, np.zeros(expected.shape, "float32")),
                                               strict=True)]
    kernel(*arrays)
    np.testing.assert_array_equal(kernel.unpack(C, arrays[2]), expected)
    func = tecomp.lower(s, [*inputs, C], stop_after="nest")
    out = np.zeros(expected.shape, "float32")
    evaluate(func, [x, y, out])
    np.testing.assert_array_equal(out, expected)
