"""into_dots converts adjacent terms of a sum of products to exact dot products."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product as product_of
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import SCALARS, DType
from tecomp.scheduling.replay import replay
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.dtypes import WITH_ZERO

KINDS = [
    ("int8", "int8", "uint8x4", "int8x4"),
    ("int8", "int8", "int8x4", "uint8x4"),
    ("int8", "int8", "int8x4", "int8x4"),
    ("int8", "int8", "int16x2", "int16x2"),
    ("uint8", "int8", "uint8x4", "int8x4"),
    ("int8", "uint8", "int8x4", "uint8x4"),
    ("uint8", "uint8", "int8x4", "uint8x4"),
    ("uint8", "uint8", "uint8x4", "int8x4"),
    ("int16", "uint8", "int16x2", "int16x2"),
    ("bfloat16", "bfloat16", "bfloat16x2", "bfloat16x2"),
]


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    random = np.random.default_rng(seed)
    if dtype == "bfloat16":
        return random.integers(-8, 9, shape).astype(ml_dtypes.bfloat16)
    kind = np.iinfo(dtype)
    return random.integers(kind.min, kind.max, shape, dtype, endpoint=True)


def product(m: te.Expr | int, k: te.Expr | int, n: te.Expr | int, a: str, b: str) -> te.Tensor:
    total = "float32" if a == "bfloat16" else "int32"
    A, B = te.placeholder((m, k), a, "A"), te.placeholder((k, n), b, "B")
    r = te.reduce_axis((0, k), name="k")
    return te.compute(
        (m, n), lambda i, j: te.sum(te.cast(A[i, r], total) * te.cast(B[r, j], total), axis=r),
        name="C",
    )


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("depth", [1, 3, 8, 9])
@pytest.mark.parametrize(("a", "b", "first", "second"), KINDS)
def test_sums_match_the_terms(
    a: str, b: str, first: str, second: str, depth: int
) -> None:
    C = product(5, depth, 6, a, b)
    s = te.create_schedule(C)
    result = s.into_dots(C, s[C].op.reduce_axis[0], first, second)
    args = [*s[result[1]].op.input_tensors, *s[result[2]].op.input_tensors, C]
    x, y = numbers((5, depth), a, 1), numbers((depth, 6), b, 2)
    wide = np.float64 if a == "bfloat16" else np.int64
    expected = x.astype(wide) @ y.astype(wide)
    kernel = tecomp.build(s, args, check_bounds=True)
    c = np.zeros((5, 6), DType(str(C.dtype)).numpy)

    kernel(x, y, c)

    assert_close(c.astype(wide), expected, rtol=1e-6)
    for name in ("nest", "flatten_buffer", "pack_reads", "simplify"):
        c[:] = 0
        is_flat = name != "nest"
        arrays = [v.reshape(-1) if is_flat else v for v in (x, y, c)]
        tecomp.evaluate(kernel.lowered.functions[name], arrays)
        assert_close(c.astype(wide), expected, rtol=1e-6, err_msg=name)
    replayed = replay(s.trace.to_json(), C)
    assert str(replayed.trace) == str(s.trace)
    assert str(tecomp.lower(replayed, args)) == str(kernel.lowered.functions["simplify"])


def test_sizes_known_at_the_call() -> None:
    m, k, n = te.var("m"), te.var("k"), te.var("n")
    C = product(m, k, n, "int8", "int8")
    s = te.create_schedule(C)
    _, first, second, _ = s.into_dots(C, s[C].op.reduce_axis[0], "uint8x4", "int8x4")
    args = [*s[first].op.input_tensors, *s[second].op.input_tensors, C]
    kernel = tecomp.build(s, args, check_bounds=True)
    for depth in (0, 1, 4, 7):
        x, y = numbers((3, depth), "int8", 1), numbers((depth, 5), "int8", 2)
        c = np.ones((3, 5), np.int32)
        kernel(x, y, c)
        np.testing.assert_array_equal(c, x.astype(int) @ y.astype(int))


def test_windows_and_inlined_stages() -> None:
    X, W = te.placeholder((7, 6), "int8", "X"), te.placeholder((3, 6, 5), "int8", "W")
    widened = te.compute((7, 6), lambda y, c: te.cast(X[y, c], "int32"), name="X_wide")
    r, c = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 6), name="c")
    Y = te.compute(
        (5, 5), lambda y, k: te.sum(widened[y + r, c] * te.cast(W[r, c, k], "int32"), axis=[r, c]),
        name="Y",
    )
    s = te.create_schedule(Y)
    s[widened].compute_inline()
    s.into_dots(Y, c, "uint8x4", "int8x4")
    x, w = numbers((7, 6), "int8", 1), numbers((3, 6, 5), "int8", 2)
    y = np.zeros((5, 5), np.int32)

    tecomp.build(s, [X, W, Y], check_bounds=True)(x, w, y)

    windows = np.stack([x[i : i + 3] for i in range(5)]).astype(int)
    np.testing.assert_array_equal(y, np.einsum("yrc,rck->yk", windows, w.astype(int)))


A, B = te.placeholder((4, 8), "int8", "A"), te.placeholder((8, 4), "int8", "B")
F = te.placeholder((4, 8), "float32", "F")
k = te.reduce_axis((0, 8), name="k")
late = te.reduce_axis((2, 8), name="late")


def wide(x: te.Expr) -> te.Expr:
    return te.cast(x, "int32")


def narrow(x: te.Expr) -> te.Expr:
    return te.cast(te.cast(x, "bool"), "int32")


REFUSED: list[tuple[Callable[[te.Expr, te.Expr], te.Expr], te.IterVar, str, str, Diagnostic]] = [
    (lambda i, j: wide(A[i, j]), k, "int8x4", "int8x4",
     Diagnostic("pattern-mismatch", where="s.into_dots(C, k)", stage="C")),
    (lambda i, j: te.max(wide(A[i, k]) * wide(B[k, j]), axis=k), k, "int8x4", "int8x4",
     Diagnostic("pattern-mismatch", where="s.into_dots(C, k)", stage="C")),
    (lambda i, j: te.sum(wide(A[i, k]) * wide(B[k, j]), axis=k, where=k > i), k, "int8x4", "int8x4",
     Diagnostic("pattern-mismatch", where="s.into_dots(C, k)", stage="C")),
    (lambda i, j: te.sum(wide(A[i, late]) * wide(B[late, j]), axis=late), late, "int8x4", "int8x4",
     Diagnostic("unknown-loop", where="s.into_dots(C, late)", stage="C", axes="late")),
    (lambda i, j: te.sum(wide(A[i, k]) + wide(B[k, j]), axis=k), k, "int8x4", "int8x4",
     Diagnostic(
         "pattern-mismatch", where="s.into_dots(C, k)",
         source='cast("int32", A[i, k]) + cast("int32", B[k, j])',
     )),
    (lambda i, j: te.sum(wide(A[i, k]) * wide(k), axis=k), k, "int8x4", "int8x4",
     Diagnostic("pattern-mismatch", where="s.into_dots(C, k)", value="k")),
    (lambda i, j: te.sum(wide(A[i, k]) * narrow(B[k, j]), axis=k), k, "int8x4", "int8x4",
     Diagnostic(
         "pattern-mismatch", where="s.into_dots(C, k)", value='cast("bool", B[k, j])', dtype="int8",
     )),
    (lambda i, j: te.sum(wide(A[i, k]) * wide(B[7 - k, j]), axis=k), k, "int8x4", "int8x4",
     Diagnostic("pattern-mismatch", where="s.into_dots(C, k)", axis="k", value="B[int32(7) - k, j]")),
    (lambda i, j: te.sum(wide(A[i, k]) * wide(B[k, j]), axis=k), k, "bfloat16x2", "bfloat16x2",
     Diagnostic(
         "pattern-mismatch", where="s.into_dots(C, k)", vector_dtype="bfloat16x2", tensor="A", dtype="int8",
     )),
    (lambda i, j: te.sum(wide(A[i, k]) * wide(B[k, j]), axis=k), k, "int8x8", "int8x8",
     Diagnostic("pattern-mismatch", where="s.into_dots(C, k)", vector_dtype="int8x8", tensor="A", dtype="int8")),
    (lambda i, j: te.sum(wide(A[i, k]) * wide(B[k, j]), axis=k), k, "int8x4", "int16x2",
     Diagnostic(
         "pattern-mismatch", where="s.into_dots(C, k)", first_dtype="int8x4", second_dtype="int16x2",
         dtype="int32",
     )),
    (lambda i, j: te.sum(wide(A[i, k]) * wide(B[k, j]), axis=k), k, "uint8x4", "uint8x4",
     Diagnostic("pattern-mismatch", where="s.into_dots(C, k)", first_dtype="uint8x4", second_dtype="uint8x4")),
    (lambda i, j: te.sum(F[i, k] * F[j, k], axis=k), k, "bfloat16x2", "bfloat16x2",
     Diagnostic(
         "pattern-mismatch", where="s.into_dots(C, k)", vector_dtype="bfloat16x2", tensor="F",
         dtype="float32",
     )),
]


@pytest.mark.parametrize(("body", "axis", "first", "second", "expected"), REFUSED)
def test_non_dot_products_are_rejected(
    body: Callable[[te.Expr, te.Expr], te.Expr], axis: te.IterVar, first: str, second: str,
    expected: Diagnostic,
) -> None:
    C = te.compute((4, 4), body, name="C")
    s = te.create_schedule(C)
    before = s.state

    with pytest.raises(tecomp.ScheduleError) as caught:
        s.into_dots(C, axis, first, second)
    assert diagnostic(caught.value) == expected
    assert s.state is before


def test_a_sum_with_a_split_loop_is_refused() -> None:
    C = product(4, 8, 4, "int8", "int8")
    s = te.create_schedule(C)
    (axis,) = s[C].op.reduce_axis
    s[C].split(axis, factor=4)

    with pytest.raises(tecomp.ScheduleError) as caught:
        s.into_dots(C, axis, "uint8x4", "int8x4")
    assert diagnostic(caught.value) == (
        Diagnostic("primitive-order", where="s.into_dots(C, k)", missing="k")
    )


SAMPLES = {
    "int8": [-128, -3, 0, 1, 2, 127],
    "uint8": [0, 1, 2, 127, 128, 255],
    "int16": [-32768, -129, -1, 0, 2, 128, 256, 257, 32767],
    "bfloat16": [-1.5, 0.0, 1.0, 2.0**-120, 255.0, 65536.0, 2.0**120],
}


def cast_twice(A: te.Tensor, B: te.Tensor, between: str, total: str, is_left: bool) -> te.Tensor:
    """Define a matrix product with an intermediate cast of one factor."""
    r = te.reduce_axis((0, 2), name="k")

    def term(i: te.Var, j: te.Var) -> te.Expr:
        left, right = A[i, r], B[j, r]
        if is_left:
            left = te.cast(left, between)
        else:
            right = te.cast(right, between)
        return te.sum(te.cast(left, total) * te.cast(right, total), axis=r)

    return te.compute((A.shape[0], B.shape[0]), term, name="C")


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("a", "b", "first", "second"), KINDS)
def test_casts_on_the_way_to_the_sum_keep_the_values_or_are_refused(
    a: str, b: str, first: str, second: str
) -> None:
    """Results equal those of the plain schedule for every intermediate dtype that is accepted."""
    selected = set()
    for between, total, is_left in product_of(SCALARS, WITH_ZERO, (True, False)):
        if total == "bool":
            continue  # no sum has this dtype
        samples = np.array(SAMPLES[a if is_left else b])
        x = np.stack([samples, np.zeros_like(samples)], axis=1)
        rows, columns = (x, np.ones((1, 2))) if is_left else (np.ones((1, 2)), x)
        A, B = te.placeholder(rows.shape, a, "A"), te.placeholder(columns.shape, b, "B")
        C = cast_twice(A, B, between, total, is_left)
        plain, s = te.create_schedule(C), te.create_schedule(C)
        try:
            s.into_dots(C, s[C].op.reduce_axis[0], first, second)
        except tecomp.ScheduleError:
            continue
        selected.add((between, total))
        args = [rows.astype(A.dtype.numpy).reshape(-1), columns.astype(B.dtype.numpy).reshape(-1)]
        results = [np.zeros(len(x), C.dtype.numpy), np.ones(len(x), C.dtype.numpy)]
        for schedule, result in zip((plain, s), results, strict=True):
            tecomp.evaluate(tecomp.lower(schedule, [A, B, C]), [*args, result])
        expected, actual = results
        np.testing.assert_array_equal(actual, expected, f"{a}, {b} via {between} to {total}")
    total = "float32" if a == "bfloat16" else "int32"
    assert {kind for _, kind in selected} == {total}
    assert {a, b, total, "float64"} - {"int8", "uint8"} <= {kind for kind, _ in selected}


def test_a_stage_computed_inline_may_change_values() -> None:
    X, W = te.placeholder((4, 6), "int16", "X"), te.placeholder((6, 5), "int8", "W")
    r = te.reduce_axis((0, 6), name="k")
    low = te.compute((4, 6), lambda i, c: te.cast(X[i, c], "int8"), name="low")
    C = te.compute((4, 5), lambda i, j: te.sum(wide(low[i, r]) * wide(W[r, j]), axis=r), name="C")
    s = te.create_schedule(C)
    s[low].compute_inline()
    s.into_dots(C, r, "uint8x4", "int8x4")
    x, w = numbers((4, 6), "int16", 1), numbers((6, 5), "int8", 2)
    c = np.zeros((4, 5), np.int32)

    tecomp.build(s, [X, W, C], check_bounds=True)(x, w, c)

    np.testing.assert_array_equal(c, x.astype(np.int8).astype(int) @ w.astype(int))
