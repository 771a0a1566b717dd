"""IR of introductory programs after loop generation and after all passes.

Each form is compared with its golden file. The same program runs against NumPy, interpreted after
every pass and compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te

SEP = te.AXIS_SEPARATOR


@dataclass(frozen=True)
class Program:
    """Schedule with arguments and their values in the shape of the computation."""

    schedule: te.Schedule
    args: list[te.Tensor]
    values: dict[te.Tensor, NDArray[np.float32]]


def numbers(*shape: int) -> NDArray[np.float32]:
    """Return small integers, so that sums are exact in any order."""
    return np.random.default_rng(7).integers(-8, 9, shape).astype("float32")


def elementwise() -> Program:
    """Return a program of 12 full vectors and one vector of 4 elements, without masks."""
    A = te.placeholder((100,), name="A")
    B = te.compute((100,), lambda i: A[i] * 2.0 + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(s[B].op.axis[0], factor=8)
    s[B].parallel(outer)
    s[B].vectorize(inner)
    a = numbers(100)
    return Program(s, [A, B], {A: a, B: a * 2 + 1})


def elementwise_any_size() -> Program:
    """Return a program of symbolic size, whose tail is one masked vector after the loop."""
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0 + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(s[B].op.axis[0], factor=8)
    s[B].parallel(outer)
    s[B].vectorize(inner)
    a = numbers(103)
    return Program(s, [A, B], {A: a, B: a * 2 + 1})


def reduction() -> Program:
    """Return row sums with 16 partial sums each."""
    A = te.placeholder((10, 96), name="A")
    k = te.reduce_axis((0, 96), name="k")
    B = te.compute((10,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(k, factor=16)
    partial = s.rfactor(B, inner, factor_axis=1)
    assert isinstance(partial, te.Tensor)
    s[partial].compute_at(s[B], s[B].op.axis[0])
    s[partial].reorder(s[partial].op.reduce_axis[0], s[partial].op.axis[1])
    s[partial].vectorize(s[partial].op.axis[1])
    a = numbers(10, 96)
    return Program(s, [A, B], {A: a, B: a.sum(axis=1)})


def matmul_packed() -> Program:
    """Return a product with one operand in panels of 16 columns and 4x16 tiles in local memory."""
    A = te.placeholder((16, 24), name="A")
    B = te.placeholder((24, 32), name="B")
    k = te.reduce_axis((0, 24), name="k")
    C = te.compute((16, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "local")
    BB = s.cache_read(B, "global", [CC])
    panel = s[BB].transform_layout(lambda k, j: [j // 16, k, j % 16])
    s[BB].vectorize(panel[2])
    i, j = s[C].op.axis
    _, jo, _, ji = s[C].tile(i, j, 4, 16)
    s[C].vectorize(ji)
    s[CC].compute_at(s[C], jo)
    i, j = s[CC].op.axis
    s[CC].reorder(*s[CC].op.reduce_axis, i, j)
    s[CC].unroll(i)
    s[CC].vectorize(j)
    a, b = numbers(16, 24), numbers(24, 32)
    return Program(s, [A, B, C], {A: a, B: b, C: a @ b})


def conv_halo() -> Program:
    """Return a 3x3 filter where each result tile computes the padded input that it needs."""
    X = te.placeholder((16, 16), name="X")
    K = te.placeholder((3, 3), name="K")
    P = te.compute(
        (18, 18),
        lambda y, x: te.if_then_else(
            te.all(y >= 1, y < 17, x >= 1, x < 17), X[y - 1, x - 1], 0.0
        ),
        name="P",
    )
    dy, dx = te.reduce_axis((0, 3), name="dy"), te.reduce_axis((0, 3), name="dx")
    Y = te.compute(
        (16, 16), lambda y, x: te.sum(P[y + dy, x + dx] * K[dy, dx], axis=[dy, dx]), name="Y"
    )
    s = te.create_schedule(Y.op)
    y_, x_ = s[Y].op.axis
    _, xo, yi, xi = s[Y].tile(y_, x_, 4, 8)
    s[P].compute_at(s[Y], xo)
    s[Y].reorder(yi, dy, dx, xi)
    s[Y].vectorize(xi)
    x, k = numbers(16, 16), numbers(3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, 1), (3, 3))
    return Program(s, [X, K, Y], {X: x, K: k, Y: np.einsum("yxij,ij->yx", windows, k)})


def nchwc() -> Program:
    """Return the example of the transform_layout RFC."""
    A = te.placeholder((2, 6, 5, 12), name="A")
    B = te.compute(A.shape, lambda n, h, w, c: A[n, h, w, c] + 1.0, name="B")
    s = te.create_schedule(B.op)
    axes = s[B].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
    s[B].vectorize(axes[4])
    a = numbers(2, 6, 5, 12)
    return Program(s, [A, B], {A: a, B: a + 1})


def padded_layout() -> Program:
    """Return 14 columns in blocks of 8, so that each last block has two pad values."""
    A = te.placeholder((5, 14), name="A")
    T = te.compute(A.shape, lambda i, j: A[i, j] * 2.0, name="T")
    B = te.compute(A.shape, lambda i, j: T[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[T].transform_layout(lambda i, j: [j // 4, i, j % 4], pad_value=0.0)
    axes = s[B].transform_layout(lambda i, j: [j // 8, i, j % 8], pad_value=-1.0)
    s[B].vectorize(axes[2])
    a = numbers(5, 14)
    return Program(s, [A, B], {A: a, B: a * 2 + 1})


def texture() -> Program:
    """Return a convolution with its input in texture memory: rows of four-channel pixels."""
    X = te.placeholder((8, 8, 8), name="X")
    K = te.placeholder((3, 3, 8, 8), name="K")
    dy, dx = te.reduce_axis((0, 3), name="dy"), te.reduce_axis((0, 3), name="dx")
    c = te.reduce_axis((0, 8), name="c")
    Y = te.compute(
        (6, 6, 8),
        lambda y, x, o: te.sum(X[y + dy, x + dx, c] * K[dy, dx, c, o], axis=[dy, dx, c]),
        name="Y",
    )
    s = te.create_schedule(Y.op)
    XT = s.cache_read(X, "global.texture", [Y])
    axes = s[XT].transform_layout(lambda y, x, c: [c // 4, y, SEP, x, c % 4])
    s[XT].vectorize(axes[3])
    co, ci = s[Y].split(c, factor=4)
    y, x, o = s[Y].op.axis
    s[Y].reorder(y, x, co, dy, dx, ci, o)
    s[Y].vectorize(o)
    image, weights = numbers(8, 8, 8), numbers(3, 3, 8, 8)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(0, 1))
    return Program(
        s, [X, K, Y], {X: image, K: weights, Y: np.einsum("yxcij,ijco->yxo", windows, weights)}
    )


PROGRAMS = [
    elementwise, elementwise_any_size, reduction, matmul_packed, conv_halo, nchwc, padded_layout,
    texture,
]
each_program = pytest.mark.parametrize("make", PROGRAMS, ids=[make.__name__ for make in PROGRAMS])


@pytest.mark.exhaustive(keep=5)
@each_program
def test_printed(make: Callable[[], Program], golden: Callable[[object], None]) -> None:
    program = make()
    functions = tecomp.lower_all(program.schedule, program.args, make.__name__).functions

    texts = [f"# after {name}\n{functions[name]}" for name in ("nest", "simplify")]
    golden("\n\n".join(texts))
    for func in functions.values():
        assert tecomp.parse(str(func)) == func


@pytest.mark.exhaustive(keep=2)
@each_program
def test_runs(make: Callable[[], Program], agrees: Callable[..., Any]) -> None:
    program = make()

    agrees(program.schedule, program.args, program.values)


def test_pad_values_are_in_the_array_that_the_kernel_returns() -> None:
    """Returned arrays contain the pad values, which unpacking drops."""
    program = padded_layout()
    A, B = program.args
    kernel = tecomp.build(program.schedule, program.args)
    stored = kernel.empty(B)
    kernel(program.values[A], stored)

    assert stored.shape == (2, 5, 8)
    np.testing.assert_array_equal(stored[1, :, 6:], -1)
