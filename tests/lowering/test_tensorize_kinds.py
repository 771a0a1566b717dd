"""Intrinsics for vectors, copies, bytes and maxima, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te

Agrees = Callable[..., Any]


def numbers(*shape: int) -> NDArray[Any]:
    """Return small random integers, so that sums are exact in any order."""
    return np.random.default_rng(5).integers(-4, 5, shape).astype("float32")


def vector(lanes: int) -> te.TensorIntrin:
    """Declare `z = alpha * x + y` on a vector."""
    x, y = (te.placeholder((lanes,), name=name) for name in "xy")
    alpha = te.var("alpha", "float32")
    z = te.compute((lanes,), lambda i: alpha * x[i] + y[i], name="z")

    def body(
        ins: Sequence[te.Operand], outs: Sequence[te.Operand], scalars: Sequence[te.Var]
    ) -> Any:
        return te.for_range(
            0, lanes,
            lambda i: outs[0].store(i, ins[0][i] * scalars[0] + ins[1][i]), "lane", "vectorized",
        )

    return te.decl_tensor_intrin(z.op, body, name="axpy", scalar_params=[alpha])


@pytest.mark.parametrize("n", [32, 37, 5])
def test_elementwise_with_a_scalar(n: int, agrees: Agrees) -> None:
    X, Y = (te.placeholder((n,), name=name) for name in "XY")
    Z = te.compute((n,), lambda i: Y[i] + X[i] * 3.0, name="Z")
    s = te.create_schedule(Z)
    _, inner = s[Z].split(Z.op.axis[0], 8)
    s[Z].tensorize(inner, vector(8))
    x, y = numbers(n), numbers(n) + 1

    agrees(s, [X, Y, Z], {X: x, Y: y, Z: y + 3 * x})


@pytest.mark.parametrize("inputs", ["int32", "int64"])
def test_a_number_that_is_computed_from_arguments(inputs: str, agrees: Agrees) -> None:
    x = te.placeholder((8,), "int32", name="x")
    number = te.var("number", "int32")
    z = te.compute((8,), lambda i: x[i] + number, name="z")

    def body(
        ins: Sequence[te.Operand], outs: Sequence[te.Operand], scalars: Sequence[te.Var]
    ) -> Any:
        return te.for_range(0, 8, lambda i: outs[0].store(i, ins[0][i] + scalars[0]))

    intrin = te.decl_tensor_intrin(z.op, body, name="add", scalar_params=[number])
    n = te.var("n", inputs)
    X = te.placeholder((16,), "int32", name="X")
    Z = te.compute((16,), lambda i: X[i] + te.cast(n * 3 - 1, "int32"), name="Z")
    s = te.create_schedule(Z)
    s[Z].tensorize(s[Z].split(Z.op.axis[0], 8)[1], intrin)
    values = np.arange(16, dtype="int32")

    kernel = agrees(s, [n, X, Z], {n: 5, X: values, Z: values + 14})

    assert 'with TensorOp("add", tile=(8,)):' in str(kernel.lowered.functions["nest"])


def test_loops_that_are_fused(agrees: Agrees) -> None:
    """8 lanes of one fused loop are two whole rows of 4."""
    X, Y = (te.placeholder((6, 4), name=name) for name in "XY")
    Z = te.compute((6, 4), lambda i, j: X[i, j] * 2.0 + Y[i, j], name="Z")
    s = te.create_schedule(Z)
    fused = s[Z].fuse(*Z.op.axis)
    _, inner = s[Z].split(fused, 8)
    s[Z].tensorize(inner, vector(8))
    x, y = numbers(6, 4), numbers(6, 4) + 1

    agrees(s, [X, Y, Z], {X: x, Y: y, Z: y + 2 * x})


def test_a_copy_that_gathers_with_strides(agrees: Agrees, golden: Callable[[object], None]) -> None:
    """The intrinsic copies every third element, in transposed 4 x 4 tiles."""
    a = te.placeholder((4, 4), name="a")
    b = te.compute((4, 4), lambda i, j: a[i, j], name="b")
    copy = te.decl_tensor_intrin(
        b.op,
        lambda ins, outs: te.for_range(0, 4, lambda i: te.for_range(
            0, 4, lambda j: outs[0].store((i, j), ins[0][i, j]))),
        name="copy",
    )
    A = te.placeholder((24, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[3 * j + 1, i], name="B")
    s = te.create_schedule(B)
    _, _, i, _ = s[B].tile(B.op.axis[0], B.op.axis[1], 4, 4)
    s[B].tensorize(i, copy)
    x = numbers(24, 8)

    kernel = agrees(s, [A, B], {A: x, B: x[1::3].T})

    golden(kernel.lowered.functions["nest"])


def bytes_dot() -> te.TensorIntrin:
    """Declare the sum of four products of signed bytes, added to a 32-bit sum."""
    a, b = (te.placeholder((4,), "int8", name=name) for name in "ab")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((1,), lambda i: te.sum(
        a[k].astype("int32") * b[k].astype("int32"), axis=k), name="c")

    def statements(ins: Any, outs: Any) -> tuple[Any, Any, Any]:
        (x, y), (z,) = ins, outs

        def term(d: int) -> Any:
            return x[d].astype("int32") * y[d].astype("int32")

        total = term(0) + term(1) + term(2) + term(3)
        return z.store(0, total), z.store(0, 0), z.store(0, z[0] + total)

    return te.decl_tensor_intrin(c.op, statements, name="dot4")


@pytest.mark.parametrize("depth", [16, 18])
def test_dot_product_of_four_bytes(depth: int, agrees: Agrees) -> None:
    A = te.placeholder((5, depth), "int8", name="A")
    B = te.placeholder((3, depth), "int8", name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute(
        (5, 3),
        lambda i, j: te.sum(A[i, k].astype("int32") * B[j, k].astype("int32"), axis=k), name="C",
    )
    s = te.create_schedule(C)
    _, inner = s[C].split(k, 4)
    s[C].tensorize(inner, bytes_dot())
    a, b = (np.random.default_rng(1).integers(-128, 128, shape, "int8")
            for shape in ((5, depth), (3, depth)))
    expected = a.astype("int32") @ b.T.astype("int32")

    agrees(s, [A, B, C], {A: a, B: b, C: expected})


def row_max(depth: int) -> te.TensorIntrin:
    a = te.placeholder((depth,), name="a")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((1,), lambda i: te.max(a[k], axis=k), name="c")

    def update(ins: Any, outs: Any) -> tuple[Any, Any, Any]:
        step = te.for_range(
            0, depth, lambda d: outs[0].store(0, te.max(outs[0][0], ins[0][d])), "d"
        )
        return None, outs[0].store(0, -np.inf), step

    return te.decl_tensor_intrin(c.op, update, name="row_max")


def test_a_tail_that_is_padded_with_a_neutral_value() -> None:
    """Padding exists only after its pass; the neutral value makes masks unnecessary."""
    A = te.placeholder((6, 10), name="A")
    k = te.reduce_axis((0, 10), name="k")
    B = te.compute((6,), lambda i: te.max(A[i, k], axis=k), name="B")
    s = te.create_schedule(B)
    copy = s.cache_read(A, "global", [B])
    s[copy].transform_layout(
        lambda i, j: [i, j // 4, j % 4], pad_value=-np.inf
    )
    _, inner = s[B].split(k, 4)
    s[B].tensorize(inner, row_max(4))
    a = -1 - np.abs(numbers(6, 10))

    kernel = tecomp.build(s, [A, B])
    b, c = np.zeros(6, "float32"), np.zeros(6, "float32")
    kernel(a, b)
    tecomp.evaluate(kernel.lowered.functions["fill_padding"], [a, c])

    np.testing.assert_array_equal(b, a.max(axis=1))
    np.testing.assert_array_equal(c, a.max(axis=1))
    assert "where=" not in str(kernel.lowered.functions["fill_padding"].body)
