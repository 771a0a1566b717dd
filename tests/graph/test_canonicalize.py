"""Mixed-dtype formulas on machines whose sticks have dtype-dependent lane counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.graph import extract_casts
from tecomp.machine import Target
from tecomp.schedules import matmul

SHAPE = (128, 128)
Formula = Callable[..., Any]

A = te.placeholder(SHAPE, "float16", name="A")
B = te.placeholder(SHAPE, name="B")
N = te.placeholder(SHAPE, "int8", name="N")
M = te.placeholder(SHAPE, "bool", name="M")
ROW = te.placeholder((128,), "float16", name="ROW")
TABLE = te.placeholder((5,), "float16", name="TABLE")
ARRAYS = {
    x: np.random.default_rng(0).integers(0, 2, x.shape).astype(str(x.dtype))
    for x in (A, B, N, M, ROW)
}

FORMULAS: dict[str, tuple[list[te.Tensor], Formula, Formula]] = {
    "scaled": ([A], lambda i, j: A[i, j] * 0.5, lambda a: a * np.float32(0.5)),
    "two types": ([A, B], lambda i, j: A[i, j] + B[i, j], lambda a, b: a + b),
    "three types": (
        [A, B, N], lambda i, j: A[i, j] + B[i, j] * N[i, j], lambda a, b, n: a + b * n
    ),
    "repeated": ([A, ROW], lambda i, j: A[i, j] * 0.5 + ROW[j], lambda a, r: a * 0.5 + r),
    "shifted, with a border": (
        [A],
        lambda i, j: te.if_then_else(i > 0, A[i - 1, j] * 0.5, 1.0),
        lambda a: np.concatenate([np.ones((1, 128)), a[:-1] * 0.5]),
    ),
    "masked": (
        [A, M],
        lambda i, j: te.if_then_else(M[i, j], A[i, j].astype("float32"), -1.0),
        lambda a, m: np.where(m, a, -1.0),
    ),
    "made narrow": (
        [B],
        lambda i, j: te.min(B[i, j] * 10.0, 127.0).astype("int8"),
        lambda b: np.minimum(b * 10, 127),
    ),
    "converted back": (
        [A, B],
        lambda i, j: (A[i, j] * 0.5 + B[i, j]).astype("float16"),
        lambda a, b: (a * np.float32(0.5) + b).astype("float16"),
    ),
    "compared": ([B], lambda i, j: B[i, j] > 0.5, lambda b: b > 0.5),
    "narrow values compared": ([A], lambda i, j: A[i, j] > te.const(0, "float16"), lambda a: a > 0),
    "compared, then chosen": (
        [B, N],
        lambda i, j: te.Select(B[i, j] > 0.5, N[i, j], te.const(-3, "int8")),
        lambda b, n: np.where(b > 0.5, n, -3),
    ),
    "chosen by narrow values": (
        [N, B],
        lambda i, j: te.Select(N[i, j] > te.const(0, "int8"), B[i, j], 0.5),
        lambda n, b: np.where(n > 0, b, 0.5),
    ),
    "conditions of three types": (
        [A, B, N, M],
        lambda i, j: te.any(te.all(M[i, j], A[i, j] > te.const(0, "float16")), B[i, j] > 0.5,
                            N[i, j] > te.const(0, "int8")),
        lambda a, b, n, m: (m & (a > 0)) | (b > 0.5) | (n > 0),
    ),
    "converted twice": (
        [N], lambda i, j: N[i, j].astype("float16").astype("float32") * 0.5, lambda n: n * 0.5
    ),
}


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("target", ["stick128", "vtcm2d", "texture2d", "tensix_wh"])
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_of_several_types_equal_numpy(name: str, target: str) -> None:
    inputs, formula, expected = FORMULAS[name]
    Y = te.compute(SHAPE, formula, name="Y")
    stored = Target.load(target).formats
    if not all(x.dtype in stored for x in (*inputs, Y)):
        pytest.skip("the machine does not store one of the types")
    arrays = [ARRAYS[x] for x in inputs]

    found = tecomp.compile(Y, inputs, target)(*arrays)

    np.testing.assert_array_equal(found, expected(*arrays))


def _apart(formula: Formula, target: str = "stick128") -> str:
    return str(extract_casts(Target.load(target))(te.compute(SHAPE, formula, name="Y").op))


def test_values_are_converted_before_formulas_of_other_lanes() -> None:
    assert _apart(lambda i, j: A[i, j] * 0.5) == "Y[i, j] = A_float32[i, j] * float32(0.5)"


UNCHANGED: dict[str, tuple[str, Formula]] = {
    "as many lanes": (
        "stick128", lambda i, j: te.if_then_else(M[i, j], A[i, j], te.const(0, "float16"))
    ),
    "no sticks": ("tensix_wh", lambda i, j: A[i, j] * 0.5),
    "looked up": ("stick128", lambda i, j: TABLE[te.min(N[i, j], 4)] * 0.5),
    "a conversion alone": ("stick128", lambda i, j: A[i, j].astype("float32")),
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_other_operations_are_unchanged(name: str) -> None:
    target, formula = UNCHANGED[name]
    op = te.compute(SHAPE, formula, name="Y").op

    assert extract_casts(Target.load(target))(op) is op


def test_a_value_is_converted_once() -> None:
    change = extract_casts(Target.load("stick128"))
    first, second = (
        change(te.compute(SHAPE, lambda i, j, by=by: A[i, j] * by, name="Y").op) for by in (2.0, 3.0)
    )

    assert first.input_tensors == second.input_tensors


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("target", ["texture2d", "vtcm2d", "stick128", "tensix_wh"])
def test_conditions_between_operations_need_no_type_of_their_own(target: str) -> None:
    """Boolean intermediates are stored as numbers where the machine cannot store bool."""
    K = te.compute(SHAPE, lambda i, j: B[i, j] > 0.5, name="K")
    transposed = te.compute(SHAPE, lambda i, j: K[j, i], name="turned")
    Y = te.compute(SHAPE, lambda i, j: te.Select(
        te.all(K[i, j], transposed[i, j]), B[i, j], -1.0), name="Y")
    b = np.random.default_rng(1).uniform(0, 1, SHAPE).astype("float32")

    found = tecomp.compile(Y, [B], target)(b)

    np.testing.assert_array_equal(found, np.where((b > 0.5) & (b.T > 0.5), b, -1))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", [(64, 64, 64), (8, 512, 64), (70, 96, 40)])
def test_products_of_converted_factors_run_on_the_matrix_unit(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    X, W = te.placeholder((m, k), "float16", name="X"), te.placeholder((k, n), "float16", name="W")
    C = matmul.define(X, W)
    random = np.random.default_rng(0)
    x, w = (random.integers(-2, 3, y.shape).astype("float16") for y in (X, W))

    program = tecomp.compile(C, [X, W], "stick128")

    np.testing.assert_array_equal(program(x, w), (x.astype("float64") @ w).astype("float16"))
    assert sum(kernel.tiles for kernel in program.report().kernels) > 0
    assert not any(call.group.result.name.endswith("_float32") for call in program.kernels)
