"""Matrix and tensor products agree with NumPy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.schedules import matmul
from tests.messages import Diagnostic
from tests.numerics import assert_product
from tests.strategies.dtypes import WITH_ZERO
from tests.topi.refusals import refused
from tests.topi.running import arrays_of, assert_results, compiled, values

operands = partial(arrays_of, dtype="int32")


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("one", "other"), [
    ((3, 4), (4, 5)), ((1, 1), (1, 1)), ((0, 4), (4, 2)), ((3, 0), (0, 2)), ((2, 3, 4), (2, 4, 5)),
    ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (3, 4, 2))])
def test_matrices(
    one: tuple[int, ...], other: tuple[int, ...], transposed: tuple[bool, bool]
) -> None:
    shapes = [
        (*shape[:-2], shape[-1], shape[-2]) if swapped else shape
        for shape, swapped in zip((one, other), transposed, strict=True)]
    arrays = operands(*shapes)
    a, b = (x.swapaxes(-1, -2) if swapped else x
            for x, swapped in zip(arrays.values(), transposed, strict=True))
    A, B = arrays

    assert_results({topi.matmul(A, B, *transposed): a @ b}, arrays)


@pytest.mark.parametrize("dtype", WITH_ZERO)
def test_types(dtype: str) -> None:
    arrays = operands((3, 4), (4, 5), dtype=dtype)
    a, b = arrays.values()
    kind = "int32" if dtype == "bool" else a.dtype
    exact = "int64" if dtype == "bool" or "int" in dtype else "float64"
    expected = (a.astype(exact) @ b.astype(exact)).astype(kind)
    A, B = arrays

    assert_results({topi.matmul(A, B): expected, topi.tensordot(A, B, 1): expected,
                    topi.einsum("ij,jk->ik", A, B): expected}, arrays)


@pytest.mark.parametrize(("one", "other", "axes"), [
    ((3, 4), (4, 5), 1), ((3, 4), (2,), 0), ((2, 3, 4), (3, 4, 5), 2), ((2, 3), (2, 3), 2),
    ((3, 4, 5), (5, 4, 6), ((1, 2), (1, 0))), ((3, 4, 5), (4, 6), (1, 0)), ((3,), (3,), (0, 0)),
    ((2, 0), (0, 3), 1), ((3, 4), (3, 4), ((-1,), (-1,))), ((), (3,), 0)])
def test_tensors(one: Any, other: Any, axes: Any) -> None:
    arrays = operands(one, other)
    (A, B), (a, b) = arrays, arrays.values()

    assert_results({topi.tensordot(A, B, axes): np.tensordot(a, b, axes)}, arrays)


@pytest.mark.parametrize(("subscripts", "shapes"), [
    ("ij,jk->ik", [(3, 4), (4, 5)]), ("ij,jk", [(3, 4), (4, 5)]), ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]), ("i,j->ij", [(2,), (3,)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]), ("...ij,...jk", [(2, 1, 3, 4), (3, 4, 5)]),
    ("i...->...", [(3, 2, 2)]), ("...", [(2, 3)]), ("ij,ij,ij->i", [(2, 3)] * 3), ("ba", [(2, 3)]),
    ("abc,cd,bd->a", [(2, 3, 4), (4, 5), (3, 5)]), ("i,i", [(0,), (0,)]), (" i j , j -> i ", [(2, 3), (3,)]),
    (",ij", [(), (2, 3)]), ("ij...,j->...i", [(2, 3, 4, 2), (3,)])])
def test_sums_of_einstein(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = operands(*shapes)
    expected = np.einsum(subscripts, *arrays.values())

    assert_results({topi.einsum(subscripts, *arrays): expected,
                    topi.einsum(subscripts, list(arrays)): expected}, arrays)


def test_products_have_the_schedule_of_products() -> None:
    A, B = te.placeholder((64, 32), name="A"), te.placeholder((32, 48), name="B")

    for product in (topi.matmul(A, B), topi.tensordot(A, B, 1), topi.einsum("ij,jk", A, B)):
        assert [axis.extent for axis in matmul.describe(product).depth] == [32]


def test_compiled() -> None:
    arrays = operands((20, 30), (30, 40), (40, 3), dtype="float32")
    a, b, c = arrays.values()
    A, B, C = arrays

    assert_results({topi.einsum("ij,jk,kl->li", A, B, C): (a @ b @ c).T,
                    topi.matmul(A, B): a @ b}, arrays, run=compiled, rtol=1e-4)


def test_symbolic_sizes() -> None:
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    outputs = [topi.matmul(A, B), topi.einsum("ij,jk->ki", A, B)]
    kernel = tecomp.build(outputs, [A, B, *outputs])
    for sizes in [(1, 1, 1), (3, 5, 7), (2, 0, 3), (17, 9, 33)]:
        a, b = values(sizes[:2], "float32"), values(sizes[1:], "float32", seed=1)
        results = [np.full((sizes[0], sizes[2]), 77, "float32"),
                   np.full((sizes[2], sizes[0]), 77, "float32")]
        kernel(a, b, *results)
        assert_product(results[0], a, b)
        assert_product(results[1], b.T, a.T)


def test_refusals() -> None:
    A, B = te.placeholder((4, 6), name="A"), te.placeholder((5, 6), name="B")
    V = te.placeholder((6,), name="V")

    assert refused(lambda: topi.matmul(A, B)) == (
        Diagnostic(
            "shapes", where="topi.matmul", a="A", shape="(4, 6)", a_transposed="", b="B",
            b_shape="(5, 6)", b_transposed="", depth="6", other="5",
        )
    )
    assert refused(lambda: topi.matmul(A, V)) == (
        Diagnostic("shapes", where="topi.matmul", shape="(4, 6)", b_shape="(6,)")
    )
    assert refused(lambda: topi.tensordot(A, B, 1)) == (
        Diagnostic(
            "shapes", where="topi.tensordot", k=1, a="A", shape="(4, 6)", j=0, b="B",
            b_shape="(5, 6)", extent="6", other_extent="5",
        )
    )
    assert refused(lambda: topi.tensordot(A, B, 3)) == (
        Diagnostic("count-mismatch", where="topi.tensordot", count=3, ndim=2, b_ndim=2)
    )
    assert refused(lambda: topi.tensordot(A, B, ((0, 1), (1,)))) == (
        Diagnostic("count-mismatch", where="topi.tensordot", axes="((0, 1), (1,))")
    )
    assert refused(lambda: topi.einsum("...j->j", A)) == (
        Diagnostic("index-count", where="topi.einsum", subscripts="...j->j")
    )
    assert topi.einsum("...ij->ij", A).shape == A.shape
    assert refused(lambda: topi.einsum("ij,jk->ik", A, B)) == (
        Diagnostic(
            "shapes", where="topi.einsum", named="j", known="6", extent="5", tensor="B",
            shape="(5, 6)",
        )
    )
    assert refused(lambda: topi.einsum("ij->ik", A)) == (
        Diagnostic("duplicate-argument", where="topi.einsum", subscripts="ij->ik", unknown="k")
    )
    assert refused(lambda: topi.einsum("ijk->i", A)) == (
        Diagnostic("count-mismatch", where="topi.einsum", part="ijk", count=3, x="A", shape="(4, 6)")
    )
    assert refused(lambda: topi.einsum("i1", A)) == (
        Diagnostic("count-mismatch", where="topi.einsum", subscripts="i1", tensor_count=1)
    )
