"""Random reductions of operands in different layouts are rejected, relaid out or follow the rules.

The reference for the lane rules checks the addresses of all elements with NumPy. The reference for
the values is NumPy.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
import pytest

import tecomp
import tecomp.array as xp
from tecomp import te
from tecomp.compute import ComputeOp, Reduce, TensorLoad
from tecomp.constraints import loads_of
from tecomp.errors import LayoutError
from tecomp.graph import ProgramLayouts
from tecomp.layout import Layout
from tests.numerics import assert_close

Array = np.ndarray[Any, Any]
LETTERS = "ijk"
TERMS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "product": lambda x: reduce(mul, x),
    "sum": lambda x: reduce(add, x),
    "difference of squares": lambda x: (x[0] - x[1]) * (x[0] + x[-1]),
    "product and sum": lambda x: x[0] * x[1] + x[-1],
}
REDUCERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (te.sum, np.sum), "max": (te.max, np.max), "min": (te.min, np.min),
}


@dataclass(frozen=True)
class Drawn:
    """Reduction, its operands, and hints for the axes that run along their lanes."""

    output: te.Tensor
    inputs: list[te.Tensor]
    arrays: list[Array]
    hints: list[Any]
    expected: Array
    text: str


def draw(seed: int) -> Drawn:
    """Draw a reduction of two or three operands, each with its axes in random order."""
    dice = random.Random(seed)
    sizes = {x: dice.choice((2, 3, 32, 64, 70, 128)) for x in LETTERS}
    reduced = dice.choice(("k", "k", "j", "jk", "i"))
    remaining = [x for x in LETTERS if x not in reduced]
    term, reducer = dice.choice(list(TERMS)), dice.choice(list(REDUCERS))
    orders = [_order(dice) for _ in range(dice.choice((2, 2, 3)))]
    # The first operand has every axis, so that the expression depends on all of them.
    orders[0] = dice.sample(LETTERS, len(LETTERS))
    numbers = np.random.default_rng(seed)
    arrays = [numbers.uniform(-1, 1, [sizes[x] for x in o]).astype("float16") for o in orders]
    inputs = [
        te.placeholder(a.shape, "float16", name=f"X{n}") for n, a in enumerate(arrays)
    ]
    runs = {x: te.reduce_axis((0, sizes[x]), name=x) for x in reduced}

    def value(*index: te.Expr) -> Any:
        at: Mapping[str, Any] = dict(zip(remaining, index, strict=True)) | runs
        reads = [
            te.cast(x(*(at[a] for a in order)), "float32")
            for x, order in zip(inputs, orders, strict=True)
        ]
        return REDUCERS[reducer][0](TERMS[term](reads), axis=list(runs.values()))

    output = te.compute([sizes[x] for x in remaining], value, name="Y")
    widened = [_in_order(a.astype("float32"), o) for a, o in zip(arrays, orders, strict=True)]
    terms = np.broadcast_to(TERMS[term](widened), [sizes[x] for x in LETTERS])
    expected = REDUCERS[reducer][1](terms, axis=tuple(map(LETTERS.index, reduced)))
    hints = [
        tecomp.hint(x, stick=dice.randrange(len(x.shape)), hard=True)
        for x in inputs if dice.random() < 0.8
    ]
    message = [f"{x.name}[{', '.join(o)}]" for x, o in zip(inputs, orders, strict=True)]
    text = f"{reducer} over {reduced} of {term} of {message}, {sizes}, {list(map(str, hints))}"
    return Drawn(output, inputs, arrays, hints, expected, text)


def _order(dice: random.Random) -> list[str]:
    return dice.sample(LETTERS, dice.choice((1, 2, 2, 3)))


def _in_order(array: Array, order: Sequence[str]) -> Array:
    """Transpose an array to the order of all letters, with size 1 for missing letters."""
    positions = sorted(order)
    array = array.transpose([order.index(x) for x in positions])
    return array[tuple(slice(None) if x in positions else None for x in LETTERS)]


def reductions(layouts: ProgramLayouts) -> Iterator[tuple[ComputeOp, list[Layout], Layout]]:
    """Yield reductions other than matrix products, with operand and result layouts."""
    for op in layouts.graph.operations:
        if not isinstance(op, ComputeOp) or not isinstance(op.body[0], Reduce):
            continue
        loads = loads_of(op.body[0])
        if _is_product(op, loads):
            continue
        read = []
        for load in loads:
            copied = (
                layout for slot, layout in layouts.reads[op]
                if slot.has(load.tensor, load.indices) and layout is not None
            )
            read.append(next(copied, layouts.of[load.tensor]))
        yield op, read, layouts.of[op.output(0)]


def _is_product(op: ComputeOp, loads: Sequence[TensorLoad]) -> bool:
    """Return whether a reduction is a product of two operands that have axes of their own."""
    if len(loads) != 2 or "*" not in str(op.body[0]) or "+" in str(op.body[0]):
        return False
    a, b = (set(map(str, load.indices)) & {axis.name for axis in op.axis} for load in loads)
    return str(op.body[0]).startswith("sum(") and a != b


def lanes_agree(op: ComputeOp, read: Sequence[Layout], out: Layout) -> bool:
    """Return whether one axis runs along the lanes of all operands that have lanes."""
    axes = [*op.axis, *op.reduce_axis]
    operands = [
        _addresses(layout, [_position(axes, index) for index in load.indices], len(axes))
        for layout, load in zip(read, loads_of(op.body[0]), strict=True)
    ]
    result = _addresses(out, range(len(op.axis)), len(axes))
    lanes = out.physical_shape[-1]
    for k, axis in enumerate(axes):
        is_kept = k < len(op.axis)
        every = [*operands, result] if is_kept else operands
        fits = all(_runs(x, k, axis.extent) or _is_one_lane(x, k) for x in every)
        if fits and (is_kept or not np.any(result[0] % lanes)):
            return True
    # No operand uses more than one lane.
    return all(np.unique(x % n).size == 1 for x, n in (*operands, result))


def _addresses(layout: Layout, dims: Sequence[int], rank: int) -> tuple[Array, int]:
    """Return the address that each loop iteration reads, and the number of lanes."""
    order = sorted(range(len(dims)), key=lambda n: dims[n])
    offsets = layout.offsets().transpose(order)
    index = tuple(slice(None) if k in dims else None for k in range(rank))
    return offsets[index], layout.physical_shape[-1]


def _position(axes: Sequence[te.IterVar], index: te.Expr) -> int:
    return next(k for k, axis in enumerate(axes) if axis is index)


def _runs(operand: tuple[Array, int], axis: int, extent: Any) -> bool:
    """Return whether the lane of each element equals the axis value modulo the stick length."""
    offsets, lanes = operand
    if offsets.shape[axis] != extent:
        return False
    steps = np.arange(extent).reshape([-1 if k == axis else 1 for k in range(offsets.ndim)])
    first = np.take(offsets, (steps // lanes * lanes).ravel(), axis=axis)
    return bool(np.all(offsets % lanes == steps % lanes) and np.all(offsets - first == steps % lanes))


def _is_one_lane(operand: tuple[Array, int], axis: int) -> bool:
    """Return whether an operand is constant along an axis and uses one lane of all sticks."""
    offsets, lanes = operand
    return offsets.shape[axis] == 1 and np.unique(offsets % lanes).size == 1


@pytest.mark.exhaustive(keep=1, most=5)
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh"])
@pytest.mark.parametrize("seed", range(24))
def test_operands_of_reductions_agree_in_their_lanes(machine: str, seed: int) -> None:
    drawn = draw(seed)
    try:
        program = tecomp.compile(drawn.output, drawn.inputs, machine, hints=drawn.hints)
    except LayoutError as error:
        refused = error.kind
        program = None
    if program is None:
        assert refused == "layout-requirement", drawn.text
        return

    assert program.layouts is not None
    for op, read, out in reductions(program.layouts):
        assert lanes_agree(op, read, out), f"{op} of {drawn.text}"
    assert_close(program(*drawn.arrays), drawn.expected, rtol=2e-2, atol=2e-2)


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("size", [128, 256])
@pytest.mark.parametrize(("reducer", "term"), [("sum", mul), ("sum", add), ("max", mul)])
def test_operands_of_different_layouts_cost_more(
    size: int, reducer: str, term: Callable[[Any, Any], te.Expr]
) -> None:
    """One operand is relaid out first, because no operation reads both layouts."""
    X, W = (te.placeholder((size, size), "float16", name=name) for name in "XW")
    k = te.reduce_axis((0, size), name="k")
    Y = te.compute(
        (size,), lambda i: REDUCERS[reducer][0](term(X[i, k], W[i, k]), axis=k), name="Y"
    )
    cycles = {}
    for sticks in ((0, 0), (1, 1), (0, 1), (1, 0)):
        hints = [tecomp.hint(x, stick=n, hard=True) for x, n in zip((X, W), sticks, strict=True)]
        program = tecomp.compile(Y, [X, W], "stick128", hints=hints)
        assert program.layouts is not None
        assert len(program.layouts.relayouts) == (sticks[0] != sticks[1])
        cycles[sticks] = program.report().cycles

    assert max(cycles[0, 0], cycles[1, 1]) < min(cycles[0, 1], cycles[1, 0])


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("axis", "copies"), [(1, 0), (0, 1)])
def test_dot_products_of_arrays(axis: int, copies: int) -> None:
    a, b = (np.random.default_rng(n).uniform(-1, 1, (128, 128)).astype("float16") for n in (1, 2))
    x = xp.asarray(a, device="stick128")
    w = xp.restickify(xp.asarray(b, device="stick128"), axis)
    xp.eval(x, w)
    y = xp.vecdot(x, w)

    assert str(xp.explain(y)).count("1 relayout") == copies
    expected = np.sum(a.astype("float32") * b.astype("float32"), -1)
    assert_close(np.asarray(y.to_device("cpu")), expected, rtol=2e-2, atol=2e-2)
