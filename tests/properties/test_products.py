"""Matrix products in any form are recognized and correct with the library schedule."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import matmul
from tests.schedules.test_matmul import SMALL

CPU = tecomp.Target.load("cpu")


@dataclass(frozen=True)
class Drawn:
    """Product with its tensors and its NumPy `einsum` subscripts."""

    factors: tuple[te.Tensor, te.Tensor]
    output: te.Tensor
    total: te.Tensor
    subscripts: str
    steps: int


def draw(seed: int) -> Drawn:
    """Draw a product with several axes of each kind and random axis orders."""
    dice = random.Random(seed)
    most = 40 if seed % 4 == 0 else 9
    letters = iter("abcdefghij")
    kinds = {"batch": dice.randint(0, 2), "rows": dice.choice((1, 1, 2)),
             "columns": dice.choice((1, 1, 2)), "depth": dice.choice((1, 1, 2))}
    axes = {kind: [next(letters) for _ in range(count)] for kind, count in kinds.items()}
    sizes = {x: dice.randint(1, most if kind != "batch" else 3)
             for kind, many in axes.items() for x in many}
    column = axes["columns"][-1]
    a = [*axes["batch"], *axes["rows"], *axes["depth"]]
    b = [*axes["batch"], *axes["columns"], *axes["depth"]]
    c = [*axes["batch"], *axes["rows"], *axes["columns"][:-1]]
    for order in (a, b, c):
        dice.shuffle(order)
    c.append(column)
    if axes["batch"] and dice.random() < 0.3:
        # A batch axis of the result that the second operand does not have.
        b.remove(axes["batch"][0])
    wide = dice.choice(("float32", "float64"))
    narrow = wide if dice.random() < 0.7 else "float16"
    A = te.placeholder(tuple(sizes[x] for x in a), narrow, name="A")
    B = te.placeholder(tuple(sizes[x] for x in b), narrow, name="B")
    runs = {x: te.reduce_axis((0, sizes[x]), name=x) for x in axes["depth"]}

    def value(*index: te.Expr) -> te.Expr:
        at = dict(zip(c, index, strict=True)) | runs
        factors = [te.cast(A(*(at[x] for x in a)), wide), te.cast(B(*(at[x] for x in b)), wide)]
        if dice.random() < 0.5:
            factors.reverse()
        return te.sum(factors[0] * factors[1], axis=[runs[x] for x in axes["depth"]])

    total = te.compute(tuple(sizes[x] for x in c), value, name="total")
    output, steps = total, dice.choice((0, 0, 1, 2))
    for k in range(steps):
        output = te.compute(
            total.shape, lambda *i, x=output: x(*i) * 2 + 1, name=f"step{k}"
        )
    return Drawn((A, B), output, total, f"{''.join(a)},{''.join(b)}->{''.join(c)}", steps)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("seed", range(32))
def test_products_written_in_any_way(seed: int) -> None:
    drawn = draw(seed)
    numbers = np.random.default_rng(seed)
    inputs = [numbers.integers(-4, 5, t.shape).astype(str(t.dtype)) for t in drawn.factors]
    expected = np.einsum(drawn.subscripts, *(x.astype(np.float64) for x in inputs))
    for _ in range(drawn.steps):
        expected = expected * 2 + 1
    d = matmul.describe(drawn.output)
    kernel = tecomp.build(
        matmul.schedule(drawn.output, SMALL if seed % 2 else CPU), [*drawn.factors, drawn.output]
    )
    result = np.full(drawn.output.shape, np.nan, str(drawn.output.dtype))
    kernel(*inputs, result)

    np.testing.assert_array_equal(result, expected)
    assert d.total is drawn.total
    assert {d.rows.tensor, d.columns.tensor} == set(drawn.factors)
    assert d.column is drawn.total.op.axis[-1]
