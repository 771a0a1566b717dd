"""Overlapped evaluation on boxes reads only elements that have arrived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tecomp.array.distributed import plan_overlap
from tecomp.array.graph import Box, OpGraph, RegionGraph, is_view, size_of, type_of, view_of
from tecomp.ptensor import (
    FUNCTIONS,
    BroadcastOp,
    Combine,
    Cumulative,
    Diff,
    ExpandDims,
    ExtractSlice,
    Flip,
    InsertSlice,
    MatrixTranspose,
    PermuteDims,
    PTensorOp,
    PTensorType,
    ReduceOp,
    Reshape,
    Roll,
    Shape,
    Squeeze,
)

Array = np.ndarray[Any, Any]
Random = np.random.Generator
NOT_THERE = -(10**12)


def sliced(random: Random, shape: Shape) -> tuple[tuple[int, int, int], ...]:
    """Draw `(start, step, count)` of a non-empty slice per axis, with steps of either sign."""
    found = []
    for n in shape:
        step = int(random.choice([1, 1, 1, 2, -1, -2]))
        count = int(random.integers(1, (n - 1) // abs(step) + 2))
        span = (count - 1) * abs(step)
        low = int(random.integers(0, n - span))
        found.append((low if step > 0 else low + span, step, count))
    return tuple(found)


def op_on(random: Random, shape: Shape) -> PTensorOp:
    """Draw an operation on one array."""
    axis = int(random.integers(len(shape)))
    created: list[Callable[[], PTensorOp]] = [
        lambda: ExtractSlice(sliced(random, shape)),
        lambda: Flip((axis,)),
        lambda: Roll((int(random.integers(-3, 4)),), (axis - len(shape),)),
        lambda: PermuteDims(tuple(random.permutation(len(shape)).tolist())),
        lambda: ExpandDims((int(random.integers(len(shape) + 1)),)),
        lambda: Cumulative("sum", axis),
        lambda: Diff(axis - len(shape)) if shape[axis] > 1 else Flip((axis,)),
        lambda: ReduceOp("sum", (axis,), True),
        lambda: BroadcastOp((int(random.integers(1, 3)), *shape)),
        lambda: Reshape(shape if random.integers(2) else (int(np.prod(shape)),)),
        lambda: MatrixTranspose() if len(shape) > 1 else Flip((axis,)),
        lambda: Squeeze((axis,)) if shape[axis] == 1 and len(shape) > 1 else Flip((axis,)),
        lambda: FUNCTIONS["square"],
    ]
    return created[random.integers(len(created))]()


def graph_of(random: Random) -> OpGraph:
    """Draw operations on two arrays; each operation reads inputs or earlier results."""
    shape = tuple([int(n) for n in random.integers(3, 9, random.integers(1, 4))])
    leaves = (PTensorType(shape, "int64"), PTensorType(shape, "int64"))
    steps: list[tuple[PTensorOp, tuple[int, ...]]] = []
    types: list[PTensorType] = []
    for _ in range(random.integers(1, 7)):
        places = [*range(-2, len(types))]
        x = int(random.choice(places))
        type = leaves[-1 - x] if x < 0 else types[x]
        like = [p for p in places if (leaves[-1 - p] if p < 0 else types[p]).shape == type.shape]
        y = int(random.choice(like))
        kind = random.integers(5)
        if kind == 0 and type.rank < 4:
            axis = int(random.integers(type.rank))
            step: Any = Combine(("concat", "stack")[random.integers(2)], axis), (x, y)
        elif kind <= 1:
            step = FUNCTIONS["add"], (x, y)
        elif kind == 2:
            where = tuple([(a, abs(s), n) if s > 0 else (a + s * (n - 1), -s, n)
                           for a, s, n in sliced(random, type.shape)])
            steps.append((ExtractSlice(where), (y,)))
            types.append(type_of(ExtractSlice(where), type))
            step = InsertSlice(tuple([
                (int(random.integers(0, n - s * (count - 1))), s, count)
                for (_, s, count), n in zip(where, type.shape, strict=True)
            ])), (x, len(types) - 1)
        else:
            step = op_on(random, type.shape), (x,)
        if type.rank > 4:
            continue
        steps.append(step)
        types.append(type_of(step[0], *[leaves[-1 - p] if p < 0 else types[p] for p in step[1]]))
    outputs = {len(steps) - 1, int(random.integers(len(steps)))} if steps else set()
    return OpGraph(leaves, tuple(steps), tuple(sorted(outputs)))


def computed(op: PTensorOp, xs: Sequence[Array]) -> Array:
    """Compute the result of an operation with NumPy."""
    if is_view(op):
        found = view_of(op, xs[0])
        return np.reshape(xs[0], op.shape) if found is None else found  # type: ignore[attr-defined]
    if isinstance(op, InsertSlice):
        result = xs[0].copy()
        result[tuple([slice(a, a + s * n, s) for a, s, n in op.slice])] = xs[1]
        return result
    if isinstance(op, Combine):
        return (np.concatenate if op.kind == "concat" else np.stack)(xs, axis=op.axis)
    if isinstance(op, Roll):
        return np.roll(xs[0], op.shift, op.axis)
    if isinstance(op, Cumulative):
        return np.cumsum(xs[0], op.axis)
    if isinstance(op, Diff):
        return np.diff(xs[0], axis=op.axis)
    if isinstance(op, ReduceOp):
        return np.sum(xs[0], op.axis, keepdims=True)
    return np.add(*xs) if len(xs) == 2 else np.square(xs[0])


def results(graph: OpGraph, leaves: Sequence[Array]) -> list[Array]:
    """Return the outputs of a graph, computed with NumPy."""
    created: list[Array] = []
    for op, places in graph.steps:
        created.append(computed(op, [created[p] if p >= 0 else leaves[-1 - p] for p in places]))
    return [created[p] if p >= 0 else leaves[-1 - p] for p in graph.outputs]


def put(each: RegionGraph, leaves: Sequence[Array], into: dict[int, Array], times: dict[int, Array]) -> None:
    """Compute the boxes of a graph, store them in `into` and count the writes in `times`."""
    inputs = [leaves[number][index] for number, index in each.leaves]
    for found, type in zip(inputs, each.graph.leaves, strict=True):
        assert found.shape == type.shape
    for (place, index), found in zip(each.boxes, results(each.graph, inputs), strict=True):
        assert found.shape == into[place][index].shape, (place, index)
        into[place][index] = found
        times[place][index] += 1


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("first", range(0, 3000, 1000))
def test_core_boxes_and_borders_partition_the_domain(first: int) -> None:
    """Each element is computed once, and the core reads only the local boxes."""
    cut = 0
    for seed in range(first, first + 1000):
        random = np.random.default_rng(seed)
        graph = graph_of(random)
        if not graph.steps:
            continue
        whole = [random.integers(0, 99, type.shape) for type in graph.leaves]
        boxes: list[Box] = [
            tuple([(0, n) if random.integers(3) else (1, max(n - 1, 2)) for n in type.shape])
            for type in graph.leaves
        ]
        cutting = plan_overlap(graph, tuple(boxes))
        if cutting is None:
            continue
        early = [np.full_like(x, NOT_THERE) for x in whole]
        for x, y, box in zip(early, whole, boxes, strict=True):
            at = tuple([slice(low, end) for low, end in box])
            x[at] = y[at]
        expected = dict(zip(graph.outputs, results(graph, whole), strict=True))
        result = {place: np.zeros_like(each) for place, each in expected.items()}
        times = {place: np.zeros_like(each) for place, each in expected.items()}
        put(cutting.core, early, result, times)
        for border in cutting.borders:
            put(border, whole, result, times)
        for place, each in expected.items():
            assert np.array_equal(result[place], each), (seed, graph, boxes)
            assert (times[place] == 1).all(), (seed, graph, boxes)
        cut += bool(cutting.borders) and size_of(boxes[0]) < whole[0].size
    assert cut > 100
