"""Values in core scratchpads in sharded layouts: random programs against NumPy."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import ShardLayout, te
from tecomp.compute import post_order
from tecomp.graph import parts_along
from tests.numerics import assert_close

Values = dict[te.Tensor, np.ndarray[Any, Any]]


@dataclass
class Made:
    """Random program: inputs, values in order, and the float64 NumPy result of each."""

    inputs: list[te.Tensor]
    values: list[te.Tensor]
    exact: Values = field(default_factory=dict)


def _numbers(seed: int, x: te.Tensor) -> np.ndarray[Any, Any]:
    """Return multiples of 1/64, which every dtype stores exactly."""
    return np.random.default_rng(seed).integers(-64, 64, x.shape) / 64


def _elementwise(result: Made, x: te.Tensor, rng: random.Random, name: str) -> te.Tensor:
    y: te.Tensor = te.compute(x.shape, lambda *i: x[i] * 0.5 + 1.0, name=name)
    result.exact[y] = result.exact[x] * 0.5 + 1.0
    return y


def _sum_of_two(result: Made, x: te.Tensor, rng: random.Random, name: str) -> te.Tensor:
    other = rng.choice([y for y in (*result.inputs, *result.values) if y.shape == x.shape])
    y: te.Tensor = te.compute(x.shape, lambda *i: x[i] - other[i], name=name)
    result.exact[y] = result.exact[x] - result.exact[other]
    return y


def _transposed(result: Made, x: te.Tensor, rng: random.Random, name: str) -> te.Tensor:
    *lead, rows, columns = x.shape
    y: te.Tensor = te.compute(
        (*lead, columns, rows), lambda *i: x[(*i[:-2], i[-1], i[-2])] * 2.0, name=name)
    result.exact[y] = np.swapaxes(result.exact[x], -1, -2) * 2.0
    return y


def _centred(result: Made, x: te.Tensor, rng: random.Random, name: str) -> te.Tensor:
    *_, columns = x.shape
    k = te.reduce_axis((0, columns), name="k")
    s = te.compute(x.shape[:-1], lambda *i: te.max(x[(*i, k)], axis=k), name=f"{name}_max")
    y: te.Tensor = te.compute(x.shape, lambda *i: x[i] - s[i[:-1]], name=name)
    result.exact[y] = result.exact[x] - result.exact[x].max(-1, keepdims=True)
    return y


def _product(result: Made, x: te.Tensor, rng: random.Random, name: str) -> te.Tensor:
    if len(x.shape) != 2:
        return _elementwise(result, x, rng, name)
    n = int(x.shape[1])
    w = te.placeholder((n, int(x.shape[0])), x.dtype, name=f"{name}_w")
    result.inputs.append(w)
    result.exact[w] = _numbers(n, w) / n
    k = te.reduce_axis((0, n), name="k")
    y: te.Tensor = te.compute(
        (x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name=name)
    result.exact[y] = result.exact[x] @ result.exact[w]
    return y


_STEPS = (_elementwise, _sum_of_two, _transposed, _centred, _product)


def program(rng: random.Random) -> Made:
    rank = rng.choice([2, 2, 2, 3])
    dtype = rng.choice(["float32", "float32", "float16"])
    shape = (*rng.sample([2, 3, 4], rank - 2), rng.choice([32, 64, 96, 100, 128, 256]),
             rng.choice([32, 40, 64, 128, 192]))
    x = te.placeholder(shape, dtype, name="x")
    result = Made([x], [])
    result.exact[x] = _numbers(rng.randrange(99), x)
    for n in range(rng.randint(1, 4)):
        before = rng.choice([x, *result.values])
        result.values.append(rng.choice(_STEPS)(result, before, rng, f"v{n}"))
    return result


def grids(x: te.Tensor) -> Iterator[ShardLayout]:
    """Yield all layouts of a value with computable shards, including collapsed axes."""
    shape = tuple(map(int, x.shape))
    for collapsed in (False, True):
        rank = 2 if collapsed else len(shape)
        intervals = [(0, -1)] if collapsed else []
        for rows in (1, 2, 3, 4, 6, 8):
            for columns in (1, 2, 4, 8):
                grid = (*[1] * (rank - 2), rows, columns)
                layout = ShardLayout(
                    shape, str(x.dtype), collapse_intervals=intervals, grid=grid, tile=(32, 32),
                    face=(16, 16),
                )
                count = parts_along(layout)
                if count is None or rows * columns > 64:
                    continue
                pairs = zip(shape[-2:], count[-2:], strict=True)
                cut = [(-(-n // parts), parts) for n, parts in pairs]
                if all(parts == 1 or part % 32 == 0 for part, parts in cut):
                    yield layout


def is_in_scratchpads(p: Any, x: te.Tensor) -> bool:
    """Return whether a value is internal to a kernel, or is a kernel parameter in `l1`."""
    if any(resident.tensor.name in (x.name, f"{x.name}_shards") for resident in p.memory.residents):
        return True
    names = {x.name, f"{x.name}_shards"}
    found = {
        param.scope for call in p.kernels for param in call.kernel.lowered.final.params
        if getattr(param, "name", "") in names
    }
    return "l1" in found


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(24))
def test_random_shards(seed: int) -> None:
    rng = random.Random(seed)
    result = program(rng)
    every = [*result.inputs, *result.values]
    outputs = list(dict.fromkeys((result.values[-1], rng.choice(result.values))))
    needed = {x for y in post_order([x.op for x in outputs]) for x in (*y.input_tensors, *y.outputs)}
    layouts: Mapping[te.Tensor, ShardLayout] = {
        x: rng.choice(list(grids(x))) for x in every if x in needed and rng.random() < 0.6
    }
    packed = [x for x in (*result.inputs, *outputs) if x in layouts and rng.random() < 0.3]

    p = tecomp.compile(
        outputs, result.inputs, rng.choice(["tensix_wh", "tensix_bh"]), layouts=layouts,
        packed=packed)

    inputs = [result.exact[x].astype(str(x.dtype)) for x in result.inputs]
    inputs = [layouts[x].pack(a) if x in packed else a for x, a in zip(result.inputs, inputs, strict=True)]
    found = p(*inputs)
    results = found if isinstance(found, tuple) else (found,)
    for x, y in zip(outputs, results, strict=True):
        actual = p.packed[x].unpack(y) if x in packed else y
        tolerance = 2e-2 if str(x.dtype) == "float16" else 1e-4
        assert_close(actual, result.exact[x], rtol=tolerance, atol=tolerance)
    used = {x for x in layouts if x in p.layouts}
    assert all(p.layouts[x].device_layout == layouts[x] for x in used)
    assert all(p.packed[x] == layouts[x] for x in packed)
    shown = {x.name for x in used if not is_in_scratchpads(p, x)}
    assert shown <= {x.name for x in result.inputs}, shown
    assert p.report().cycles > 0


@pytest.mark.exhaustive
def test_parts_of_random_grids() -> None:
    """Shards are recognized as equal boxes exactly where an element listing confirms it."""
    rng, boxes = random.Random(0), 0
    for _ in range(400):
        shape = tuple(rng.choice([1, 2, 3, 4, 6, 8]) for _ in range(rng.choice([1, 2, 3, 4])))
        grid = tuple(rng.choice([1, 2, 3, 4, 6, 8]) for _ in range(2))
        has_gaps = len(shape) == 3 and rng.random() < 0.5
        try:
            layout = ShardLayout(
                shape, "float32", (lambda i, j, k: [i * 8 + j, k]) if has_gaps else None, grid=grid)
        except tecomp.LayoutError:  # the grid has fewer axes
            continue
        found = parts_along(layout)
        assert found == listed_parts(layout), (shape, grid, layout.linear)
        boxes += found is not None
    assert boxes > 50


def listed_parts(layout: ShardLayout) -> tuple[int, ...] | None:
    """Return the parts along each axis, by listing the elements of each core."""
    shards: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for index in np.ndindex(*layout.shape):
        shards.setdefault(layout.core(index), []).append(index)
    corners = []
    for elements in shards.values():
        low, high = np.min(elements, axis=0), np.max(elements, axis=0)
        if len(elements) != np.prod(high - low + 1):
            return None
        corners.append((low, high))
    count = []
    for axis in range(len(layout.shape)):
        cuts = sorted({(int(low[axis]), int(high[axis])) for low, high in corners})
        part = cuts[0][1] + 1
        last = layout.shape[axis] - 1
        if cuts != [(k * part, min(k * part + part - 1, last)) for k in range(len(cuts))]:
            return None
        count.append(len(cuts))
    return tuple(count) if np.prod(count) == len(shards) == np.prod(layout.grid) else None
