"""In-place execution: buffers are reused exactly where no element is read after its store."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.driver import CompiledProgram
from tecomp.graph import bytes_of, plan_memory, reuse_input_buffer
from tecomp.ir import evaluate
from tests.graph.test_compile import SIZE, arrays, product_of, with_memory
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

Formula = Callable[[te.Tensor, te.Tensor], te.Tensor]


def around(formula: Formula) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Return `X @ X`, a formula of this product and `(X @ X) @ X`, and the formula squared."""
    X = te.placeholder((SIZE, SIZE), name="X")
    P = product_of(X, X, "P")
    R = formula(P, product_of(P, X, "Q"))
    return P, R, product_of(R, R, "S")


def residual() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Return X, V and the square of `X @ X + relu(X @ V)`."""
    X = te.placeholder((SIZE, SIZE), name="X")
    P, V = product_of(X, X, "P"), te.placeholder((SIZE, SIZE), name="V")
    Q = product_of(X, V, "Q")
    R = te.compute(P.shape, lambda i, j: P[i, j] + te.max(Q[i, j], 0.0), name="R")
    return X, V, product_of(R, R, "S")


def compiled(formula: Formula) -> tuple[CompiledProgram, dict[str, int]]:
    """Return the compiled program and the memory offset of each value."""
    P, _, S = around(formula)
    (X,) = P.op.input_tensors
    program: CompiledProgram = tecomp.compile(S, [X])
    return program, {value.tensor.name: value.offset for value in program.memory.values}


def pointwise(body: Callable[..., te.Expr]) -> Formula:
    return lambda P, Q: te.compute(
        P.shape, lambda i, j: body(lambda *at: P[at], lambda *at: Q[at], i, j), name="R"
    )


def test_a_residual_is_computed_in_place() -> None:
    """The fused product and sum reads each row before the result overwrites it."""
    X, V, S = residual()
    program = tecomp.compile(S, [X, V])
    x, v = arrays((SIZE, SIZE), (SIZE, SIZE))
    offsets = {value.tensor.name: value.offset for value in program.memory.values}
    r = x @ x + np.maximum(x @ v, 0)

    assert [call.group.result.name for call in program.kernels] == ["Q", "R", "S"]
    assert offsets == {"Q": 0, "R": 0}
    assert program.memory.bytes == program.memory.lower_bound == 4 * SIZE * SIZE
    assert_close(program(x, v), r @ r, rtol=1e-4, atol=1e-4)


def test_values_in_one_place_are_counted_once() -> None:
    X, V, S = residual()
    size = 4 * SIZE * SIZE
    events = json.loads(tecomp.compile(S, [X, V]).timeline())["traceEvents"]
    sizes = [event["args"]["bytes"] for event in events if event["ph"] == "C"]

    assert sizes == [size, size, size, 0]


def test_in_place_values_are_removed_together() -> None:
    X, V, S = residual()
    size = 4 * SIZE * SIZE
    with pytest.raises(tecomp.errors.CapacityError) as error:
        tecomp.compile(S, [X, V], with_memory(4 * size - 1))

    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity",
            message="compile: program needs 9216 bytes of global, which has 9215: 6912 for inputs, outputs and constants, 2304 between kernels; Q (2304) is live at the peak",
            remedy="without Q, R it fits: reduce their sizes, or recompute them where they are read",
        )
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_most_that_is_held_is_the_least_of_any_plan(seed: int) -> None:
    """The peak memory of a plan with reused buffers equals the minimum over all plans."""
    rng = np.random.default_rng(seed)
    lives: dict[te.Tensor, tuple[int, int]] = {}
    over: dict[te.Tensor, te.Tensor] = {}
    for number in range(12):
        size = int(rng.integers(1, 5))
        tensor = te.placeholder((size * 16,), name=f"V{number}")
        lives[tensor] = number, number + int(rng.integers(0, 5))
        fit = [
            x for x, (first, last) in lives.items()
            if first < number == last and x.shape == tensor.shape and x not in over.values()
        ]
        if fit and rng.random() < 0.7:
            over[tensor] = fit[0]
    plan = plan_memory(lives, 64, {x: bytes_of(x) for x in lives}, over)
    sizes = [sum(value.bytes for value in plan.live(number)) for number in range(17)]

    assert max(sizes) == plan.lower_bound
    for number in range(17):
        spans = sorted((v.offset, v.offset + v.bytes) for v in plan.live(number))
        assert all(a[1] <= b[0] for a, b in pairwise(spans))


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(
    ("body", "by_numpy"),
    [
        (lambda P, Q, i, j: P(i, j) + Q(j, i), lambda p, q: p + q.T),
        (lambda P, Q, i, j: P(j, i) + Q(j, i), lambda p, q: p.T + q.T),
        (
            lambda P, Q, i, j: P(i, j) + P(SIZE - 1 - i, j) + Q(j, i),
            lambda p, q: p + p[::-1] + q.T,
        ),
        (
            lambda P, Q, i, j: te.if_then_else(i < 5, P(i, j), 1.0) * Q(j, i),
            lambda p, q: np.where(np.arange(SIZE)[:, None] < 5, p, 1) * q.T,
        ),
    ],
)
def test_formulas(
    body: Callable[..., te.Expr], by_numpy: Callable[..., np.ndarray[tuple[int, ...], np.dtype[np.float32]]]
) -> None:
    program, _ = compiled(pointwise(body))
    (x,) = arrays((SIZE, SIZE))
    p = x @ x
    r = by_numpy(p, p @ x)

    assert_close(program(x), r @ r, rtol=1e-3, atol=1e-4)


def kernel(tail: str, bound: int = 40) -> tuple[te.Schedule, list[te.Tensor]]:
    """Return a formula whose rows are split into blocks of 16."""
    A = te.placeholder((3, bound), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] * 2.0 + 1.0, name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(s[B].op.axis[1], factor=16, tail=tail)
    s[B].vectorize(inner)
    return s, [A, B]


def test_each_element_is_stored_once() -> None:
    lowered = tecomp.lower_all(*kernel("guard"))
    merged = reuse_input_buffer(lowered, 0)
    assert merged is not None

    (b,) = arrays((3, 40))
    expected = b * 2 + 1
    evaluate(merged.final, [b.reshape(-1)])
    assert_close(b, expected, rtol=1e-6, magnitude=np.abs(b) + 1)


def test_elements_that_are_stored_twice_are_not_read_again() -> None:
    """With shifted tails the last block starts earlier and would reread overwritten elements."""
    assert reuse_input_buffer(tecomp.lower_all(*kernel("shift_inwards")), 0) is None


def test_recomputed_values_are_not_read() -> None:
    A = te.placeholder((40,), name="A")
    B = te.compute((40,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((38,), lambda i: B[i] + B[i + 1] + B[i + 2], name="C")
    D = te.compute((40,), lambda i: A[i] * 2.0, name="D")
    s = te.create_schedule([C.op, D.op])
    outer, _ = s[C].split(s[C].op.axis[0], factor=4)
    s[B].compute_at(s[C], outer)

    assert reuse_input_buffer(tecomp.lower_all(s, [A, C, D]), 0) is None


def test_in_place_and_out_of_place_kernels_are_distinct() -> None:
    """Output kernels are not shared with in-place kernels: their buffer is the caller's array."""
    X = te.placeholder((SIZE, SIZE), name="X")
    values = [X]
    for number in range(3):
        P = product_of(values[-1], values[-1], f"P{number}")
        values.append(te.compute(
            P.shape, lambda i, j, P=P, x=values[-1]: P[i, j] * 0.1 + x[j, i], name=f"R{number}"
        ))
    program = tecomp.compile(values[-1], [X])
    (x,) = arrays((SIZE, SIZE))
    found = program(x)
    for _ in range(3):
        x = x @ x * 0.1 + x.T

    assert_close(found, x, rtol=1e-3, atol=1e-4)
