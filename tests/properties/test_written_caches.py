"""Shapes and results of `cache_write` and `rfactor` after any splits, fusions and reorders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.compute import IterVar
from tecomp.ir import evaluate
from tests.strategies.draws import Draw

DEPTH = 6
argmax = te.comm_reducer(
    lambda x, y: [te.Select(x[1] >= y[1], x[n], y[n]) for n in (0, 1)],
    lambda index, value: [te.const(-1, index), te.min_value(value)],
    name="argmax",
)

# Body of a stage on the last axis of its input, with the NumPy equivalent.
KINDS: dict[str, tuple[Any, Any]] = {
    "map": (lambda a, k: a(2) * 3.0, lambda a: [a[..., 2] * 3]),
    "two": (lambda a, k: (a(2) * 3.0, a(0) + 1.0), lambda a: [a[..., 2] * 3, a[..., 0] + 1]),
    "sum": (lambda a, k: te.sum(a(k), axis=k), lambda a: [a.sum(-1)]),
    "where": (lambda a, k: te.sum(a(k), axis=k, where=a(k) > 0),
              lambda a: [np.where(a > 0, a, 0).sum(-1)]),
    "init": (lambda a, k: te.sum(a(k), axis=k, init=a(1)), lambda a: [a.sum(-1) + a[..., 1]]),
    "argmax": (lambda a, k: argmax((k, a(k)), axis=k),
               lambda a: [a.argmax(-1).astype(np.int32), a.max(-1)]),
}


def defined(kind: str, shape: tuple[int, ...]) -> tuple[te.Tensor, list[te.Tensor], Any]:
    """Return the input, the outputs and the NumPy equivalent."""
    A = te.placeholder((*shape, DEPTH), name="A")
    k = te.reduce_axis((0, DEPTH), name="k")
    body, right = KINDS[kind]
    result = te.compute(shape, lambda *i: body(lambda last: A[(*i, last)], k), name="C")
    return A, list(result) if isinstance(result, tuple) else [result], right


def shuffled(draw: Draw, stage: te.Stage, loops: list[IterVar]) -> list[IterVar]:
    """Split, fuse and reorder the adjacent `loops` at random, and return the resulting loops.

    The extents of split loops are checked against the rule of TVM.
    """
    for _ in range(draw(st.integers(0, 4))):
        match draw(st.sampled_from(("factor", "nparts", "fuse", "reorder"))):
            case "factor" | "nparts" as how:
                at = draw(st.integers(0, len(loops) - 1))
                count, extent = draw(st.integers(1, 12)), loops[at].extent
                assert isinstance(extent, int)
                parts = stage.split(loops[at], **{how: count})
                quotient = -(-extent // count)
                expected = (quotient, min(count, extent))
                assert tuple(p.extent for p in parts) == (
                    expected if how == "factor" else expected[::-1])
                loops[at : at + 1] = parts
            case "fuse" if len(loops) > 1:
                at = draw(st.integers(0, len(loops) - 2))
                loops[at : at + 2] = [stage.fuse(*loops[at : at + 2])]
            case "reorder" if loops:
                loops = list(draw(st.permutations(loops)))
                stage.reorder(*loops)
    return loops


def check(s: te.Schedule, A: te.Tensor, outputs: list[te.Tensor], right: Any) -> None:
    shape = tuple(int(str(n)) for n in A.shape)
    a = np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape).astype(np.float32)
    a -= 7
    kernel = tecomp.build(s, [A, *outputs], check_bounds=True)
    runs: list[Callable[[list[Any]], object]] = [
        lambda arrays: kernel(*arrays),
        lambda arrays: evaluate(kernel.lowered.functions["nest"], arrays),
    ]
    for run in runs:
        results = [np.full(shape[:-1], 77, t.dtype) for t in outputs]
        run([a, *results])
        for x, y in zip(results, right(a), strict=True):
            np.testing.assert_array_equal(x, y)


@given(st.data())
def test_a_cache_has_the_shape_of_the_loops(data: st.DataObject) -> None:
    draw = data.draw
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    A, outputs, right = defined(draw(st.sampled_from(list(KINDS))), shape)
    s = te.create_schedule(outputs[0].op)
    stage = s[outputs[0]]
    loops = shuffled(draw, stage, list(stage.op.axis))

    result = s.cache_write(outputs if len(outputs) > 1 else outputs[0], "local")

    cache = result[0] if isinstance(result, tuple) else result
    assert cache.shape == tuple(loop.extent for loop in loops)
    assert stage.leaf_iter_vars == outputs[0].op.axis
    if draw(st.booleans()):
        s[cache].compute_at(stage, draw(st.sampled_from(stage.op.axis)))
    if draw(st.booleans()):
        s[cache].vectorize(s[cache].op.axis[-1])
    check(s, A, outputs, right)


@given(st.data())
def test_partial_results_of_any_loop_of_a_reduction(data: st.DataObject) -> None:
    draw = data.draw
    A, outputs, right = defined(draw(st.sampled_from(("sum", "where", "argmax"))), (3,))
    s = te.create_schedule(outputs[0].op)
    stage = s[outputs[0]]
    loops = shuffled(draw, stage, list(stage.op.reduce_axis))

    s.rfactor(outputs[0], draw(st.sampled_from(loops)), draw(st.integers(-2, 1)))

    check(s, A, outputs, right)
