"""Random fusions of loops with symbolic extents agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tests.strategies.arrays import Array, Guarded
from tests.strategies.draws import Draws

SIZES = ((1, 1), (3, 2), (2, 5), (17, 3), (4, 9), (0, 2), (3, 0))
"""Values of the size variables in the calls of one kernel."""

Form = Callable[[Any, Any], Any]
FORMS: tuple[Form, ...] = (
    lambda n, m: n,
    lambda n, m: m,
    lambda n, m: n + n,
    lambda n, m: m * 3,
    lambda n, m: (n + 3) // 4,
    lambda n, m: n + m,
    lambda n, m: n * m,
    lambda n, m: 4,
    lambda n, m: 3,
)


@dataclass
class Program:
    """Definition of C = sum over k of P[i] + 2 * P[previous i] + B[permuted i], where P = 3 * A."""

    forms: list[Form]
    turned: list[int]
    depth: Form | None

    def define(self) -> tuple[te.Tensor, te.Tensor, list[Any]]:
        """Return the producer, the result and the arguments."""
        n, m = te.var("n"), te.var("m")
        shape = [form(n, m) for form in self.forms]
        depth = [] if self.depth is None else [self.depth(n, m)]
        A = te.placeholder((*shape, *depth), dtype="int32", name="A")
        B = te.placeholder([shape[k] for k in self.turned], dtype="int32", name="B")
        P = te.compute((*shape, *depth), lambda *x: A[x] * 3, name="P")

        def value(*x: te.Expr) -> Any:
            back = [te.max(x[0] - 1, 0), *x[1:]]
            return P[x] + P[tuple(back)] * 2

        def result(*x: te.Expr) -> Any:
            other = B[tuple(x[k] for k in self.turned)]
            if not depth:
                return value(*x) + other
            k = te.reduce_axis((0, depth[0]), name="k")
            return te.sum(value(*x, k) + other, axis=k)

        C = te.compute(shape, result, name="C")
        return P, C, [A, B, C, n, m]

    def wanted(self, a: Array, b: Array) -> Any:
        """Compute the expected result with NumPy."""
        back = np.maximum(np.arange(a.shape[0]) - 1, 0)
        value = a * 3 + a[back] * 6
        other = b.transpose(np.argsort(self.turned))
        return value + other if self.depth is None else (value + other[..., None]).sum(-1)


@st.composite
def programs(draw: Any) -> tuple[Program, Draws]:
    d = Draws(draw)
    rank = d.number(2, 4)
    forms = [d.pick(FORMS) for _ in range(rank)]
    turned = d.shuffled(range(rank)) if d.chance(40) else list(range(rank))
    return Program(forms, turned, d.pick(FORMS) if d.chance(35) else None), d


def schedule(program: Program, d: Draws) -> tuple[te.Schedule, list[Any]]:
    P, C, args = program.define()
    s = te.create_schedule(C)
    stage = s[C]
    loops = list(stage.op.axis)
    at = d.number(0, len(loops) - 2)
    if d.chance(30):
        outer, inner = stage.split(loops[-1], factor=d.pick((1, 2, 4)))
        loops[-1:] = [outer, inner]
    count = d.number(2, len(loops) - at)
    fused = stage.fuse(*loops[at : at + count])
    results = [fused]
    for _ in range(d.number(0, 2)):
        k = d.number(0, len(results) - 1)
        results[k : k + 1] = stage.split(results[k], factor=d.pick((2, 3, 8, 5)))
    loops[at : at + count] = results
    loops += stage.op.reduce_axis
    if d.chance(40):
        loops = d.shuffled(loops)
        stage.reorder(*loops)
    data = [x for x in loops if x not in stage.op.reduce_axis]
    if d.chance(40) and loops[0] in data:
        stage.parallel(loops[0])
    if d.chance(40) and loops[-1] in results[1:]:
        stage.vectorize(loops[-1])
    if d.chance(20) and program.depth is not None and loops[-1] is stage.op.reduce_axis[0]:
        stage.fuse(*loops[-2:])
        loops = loops[:-2]
    if d.chance(40) and loops:
        s[P].compute_at(stage, d.pick(loops))
        if d.chance(50):
            inner = s[P].fuse(*s[P].op.axis)
            s[P].vectorize(s[P].split(inner, factor=4)[1])
    elif d.chance(60):
        s[P].compute_inline()
    return s, args


@pytest.mark.exhaustive
@settings(max_examples=3 * settings().max_examples // 2)
@given(programs())
def test_fused_loops_of_any_sizes(case: tuple[Program, Draws]) -> None:
    program, draws = case
    s, args = schedule(program, draws)
    note(str(s.trace))
    kernel = tecomp.build(s, args)
    note(str(kernel.lowered.final))
    for n, m in SIZES:
        shape = [int(form(n, m)) for form in program.forms]
        depth = [] if program.depth is None else [int(program.depth(n, m))]
        random = np.random.default_rng(n * 100 + m)
        a = random.integers(-99, 99, (*shape, *depth)).astype("int32")
        b = random.integers(-99, 99, [shape[k] for k in program.turned]).astype("int32")
        c = Guarded(np.zeros(shape, "int32"))
        kernel(a, b, c.array, n, m)
        c.check()
        np.testing.assert_array_equal(c.array, program.wanted(a, b))
