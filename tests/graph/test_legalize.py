"""Legalization: operations that violate rules of a target run as several operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import Target, te
from tecomp.errors import LayoutError
from tecomp.graph import choose_layouts, graph_of
from tests.numerics import assert_close

Array = np.ndarray[Any, Any]
Case = tuple[te.Tensor, Sequence[te.Tensor], Sequence[Array], Array]
MADE_UP = str(Path(__file__).parents[1] / "bench" / "made_up.toml")
N, M = 34, 50
rng = np.random.default_rng(0)


def given(name: str, *shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name=name)


def values(*shape: int) -> Array:
    return rng.uniform(-1, 1, shape).astype("float32")


def steps_of_jacobi() -> Case:
    """Return one Jacobi step, whose neighbour reads cross lanes."""
    A, a = given("A", N, M), values(N, M)
    Y = te.compute((N - 2, M - 2), lambda i, j: (
        A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] + A[i + 1, j + 2]) * 0.25, name="Y")
    return Y, [A], [a], (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) / 4


def steps_with_a_border() -> Case:
    A, a = given("A", N, M), values(N, M)
    Y = te.compute((N, M), lambda i, j: te.if_then_else(
        te.all(i > 0, i < N - 1, j > 0, j < M - 1),
        (A[i, j - 1] + A[i, j + 1] + A[i - 1, j] + A[i + 1, j]) * 0.25, A[i, j]), name="Y")
    expected = a.copy()
    expected[1:-1, 1:-1] = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) / 4
    return Y, [A], [a], expected


def rows_below() -> Case:
    A, a = given("A", 70, 200), values(70, 200)
    Y = te.compute(A.shape, lambda i, j: te.if_then_else(i > 0, A[i - 1, j], 1.0), name="Y")
    return Y, [A], [a], np.concatenate([np.ones((1, 200)), a[:-1]])


def columns_beside() -> Case:
    A, a = given("A", 70, 200), values(70, 200)
    Y = te.compute(A.shape, lambda i, j: te.if_then_else(j > 0, A[i, j - 1], 1.0), name="Y")
    return Y, [A], [a], np.concatenate([np.ones((70, 1)), a[:, :-1]], 1)


def rows_moved_by_their_number() -> Case:
    A, a = given("A", N, M), values(N, M)
    Y = te.compute((N, M), lambda i, j: te.if_then_else(j >= i, A[i, j - i], 0.0) + A[i, j], name="Y")
    expected = a.copy()
    for i in range(N):
        expected[i, i:] += a[i, : M - i]
    return Y, [A], [a], expected


def padded_vector() -> Case:
    A, a = given("A", M), values(M)
    P = te.compute((M + 5,), lambda i: te.if_then_else(
        te.all(i >= 3, i < M + 3), A[i - 3], 0.0), name="P")
    Y = te.compute((M + 5,), lambda i: P[i] * 2.0 + 1.0, name="Y")
    return Y, [A], [a], np.pad(a, (3, 2)) * 2 + 1


def parts_of_vectors() -> Case:
    """Return a concatenation inside a formula: each operand covers a part of the indices."""
    A, B, a, b = given("A", M), given("B", N), values(M), values(N)
    Y = te.compute((M + N,), lambda i: te.if_then_else(i < M, A[i], B[i - M]) * 2.0, name="Y")
    return Y, [A, B], [a, b], np.concatenate([a, b]) * 2


def sum_of_row_and_column() -> Case:
    A, B, a, b = given("A", N), given("B", M), values(N), values(M)
    Y = te.compute((N, M), lambda i, j: A[i] + B[j], name="Y")
    return Y, [A, B], [a, b], np.add.outer(a, b)


def places_by_data() -> Case:
    A, a = given("A", N, M), values(N, M)
    places, at = given("places", N, M, dtype="int32"), rng.integers(0, M, (N, M)).astype("int32")
    Y = te.compute((N, M), lambda i, j: A[i, places[i, j]] * 2.0, name="Y")
    return Y, [A, places], [a, at], np.take_along_axis(a, at, 1) * 2


def places_in_a_product() -> Case:
    """Return a gather from a product, with full sticks so that all elements are compared."""
    A, B, a, b = given("A", N, 5), given("B", 5, M), values(N, 5), values(5, M)
    places, at = given("places", N, M, dtype="int32"), rng.integers(0, M, (N, M)).astype("int32")
    k = te.reduce_axis((0, 5), name="k")
    P = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="P")
    Y = te.compute((N, M), lambda i, j: P[i, places[i, j]], name="Y")
    return Y, [A, B, places], [a, b, at], np.take_along_axis(a @ b, at, 1)


def scan_of_a_reversed_vector() -> Case:
    A, a = given("A", M), values(M)
    T = te.compute((M,), lambda i: A[M - 1 - i], name="T")
    state = given("state", M)
    Y = te.scan(
        te.compute((1,), lambda t: T[0], name="start"),
        te.compute((M,), lambda t: state[t - 1] + T[t], name="step"), state, name="Y")
    assert isinstance(Y, te.Tensor)
    return Y, [A], [a], np.cumsum(a[::-1])


def product(
    a: tuple[int, ...], b: tuple[int, ...], of: Callable[..., te.Expr], letters: str
) -> Callable[[], Case]:
    """Return a maker of contractions over `k`, which is not the last axis of both operands."""

    def make() -> Case:
        A, B, x, y = given("A", *a), given("B", *b), values(*a), values(*b)
        expected = np.einsum(letters, x, y)
        first, second = letters.split("->")[0].split(",")
        depth = dict(zip(first, a, strict=True)) | dict(zip(second, b, strict=True))
        k = te.reduce_axis((0, depth["k"]), name="k")
        Y = te.compute(expected.shape, lambda *i: te.sum(of(A, B, k, *i), axis=k), name="Y")
        return Y, [A, B], [x, y], expected

    return make


CASES: dict[str, Callable[[], Case]] = {
    made.__name__: made for made in (
        steps_of_jacobi, steps_with_a_border, rows_below, columns_beside,
        rows_moved_by_their_number, padded_vector,
        parts_of_vectors, sum_of_row_and_column, scan_of_a_reversed_vector,
    )
} | {
    "matrix by vector": product((N, M), (M,), lambda A, B, k, i: A[i, k] * B[k], "ik,k->i"),
    "vector by matrix": product((M, N), (M,), lambda A, B, k, i: A[k, i] * B[k], "ki,k->i"),
    "column by row": product((N, 1), (1, M), lambda A, B, k, i, j: A[i, k] * B[k, j], "ik,kj->ij"),
    "row by column": product((1, M), (N, M), lambda A, B, k, i, j: A[i, k] * B[j, k], "ik,jk->ij"),
    "batches of one row": product(
        (3, N, 5), (3, 1, 5), lambda A, B, k, b, i, j: A[b, i, k] * B[b, j, k], "bik,bjk->bij"),
}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh", "texture2d", "vtcm2d", MADE_UP])
def test_operations_legalized_to_several(name: str, machine: str) -> None:
    Y, inputs, arrays, expected = CASES[name]()
    program = tecomp.compile(Y, inputs, machine)

    assert_close(program(*arrays), expected, rtol=1e-4, atol=1e-5)
    assert program.layouts is not None
    certificate = program.layouts.certificate
    assert certificate.cost == certificate.lower_bound
    assert program.layouts[Y].size == Y.shape


def test_gathers_use_sticks_of_one_element() -> None:
    Y, inputs, arrays, expected = places_by_data()
    program = tecomp.compile(Y, inputs, "stick128")

    np.testing.assert_array_equal(program(*arrays), expected)
    assert "StickFormat.Sparse" in str(program.layouts[inputs[0]])
    # The report shows which value causes the memory overhead.
    report = program.report()
    spread = [f"{edge.name} ({edge.bytes:_} bytes)" for edge in report.edges if edge.is_spread]
    line = "one element per stick or tile row: " + ", ".join(spread)
    assert inputs[0].name in {edge.name for edge in report.edges if edge.is_spread}
    assert line in str(report).splitlines()


def test_gathers_of_computed_indices_compare_indices() -> None:
    Y, inputs, arrays, expected = places_in_a_product()
    program = tecomp.compile(Y, inputs, "stick128")

    assert_close(program(*arrays), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh"])
def test_gathers_are_allowed_under_conditions(machine: str) -> None:
    """Data-dependent indices may be out of bounds where a condition excludes the element."""
    at, A = given("at", 6, dtype="int32"), given("A", 5, M)
    Y = te.compute((6, M), lambda i, j: te.if_then_else(
        te.all(at[i] < 5, j > 0), A[at[i], j - 1], 9.0), name="Y")
    places, a = np.array([0, 7, 2, 1, 4, 5], "int32"), values(5, M)
    expected = np.full((6, M), 9, "float32")
    for row, place in enumerate(places):
        if place < 5:
            expected[row, 1:] = a[place, :-1]
    program = tecomp.compile(Y, [at, A], machine)

    np.testing.assert_array_equal(program(places, a), expected)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("count", [1, 3, 64, 70])
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh"])
def test_inputs_are_packed_twice_if_no_relayout_converts(count: int, machine: str) -> None:
    """An input is laid out twice, sparse and dense, where no relayout converts between the two."""
    A = given("A", 1, count)
    T = te.compute((count, 1), lambda i, j: A[0, i], name="T")
    k = te.reduce_axis((0, 1), name="k")
    P = te.compute((count, count), lambda i, j: te.sum(T[i, k] * A[k, j], axis=k), name="P")
    program = tecomp.compile(P, [A], machine)
    a = values(1, count)

    np.testing.assert_array_equal(program(a), a.T @ a)
    found = program.layouts
    assert found.certificate.cost == found.certificate.lower_bound
    assert found.certificate.cost == sum(copy.elements for copy in found.relayouts)


def test_relayouts_move_elements_of_other_lanes_only() -> None:
    Y, inputs, _, _ = steps_of_jacobi()
    graph = graph_of([Y], inputs, [])
    found = choose_layouts(graph, Target.load("stick128"))

    assert [str(op).partition(" = ")[2] for op in found.graph.operations] == [
        "A[i0, i1 + int32(1)]", "A[i0 + int32(2), i1 + int32(1)]",
        "A[i0 + int32(1), i1 + int32(2)]",
        "(A_for_Y[i, j] + A_for_Y_1[i, j] + A[i + int32(1), j] + A_for_Y_2[i, j]) * float32(0.25)",
    ]
    assert found.certificate.cost == sum(copy.elements for copy in found.relayouts)


def test_legal_programs_are_unchanged() -> None:
    """Programs without violations are unchanged; factors keep their source order."""
    A, B = given("A", N, M), given("B", M, N)
    k = te.reduce_axis((0, M), name="k")
    Y = te.compute((N, N), lambda i, j: te.sum(B[k, j] * A[i, k], axis=k), name="Y")
    graph = graph_of([Y], [A, B], [])

    assert choose_layouts(graph, Target.load("stick128")).graph is graph


def test_propagation_alone_does_not_legalize() -> None:
    Y, inputs, _, _ = steps_of_jacobi()
    with pytest.raises(LayoutError):
        tecomp.compile(Y, inputs, "stick128", relayouts=False)
