"""Gathers and masks agree with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.ir import SCALARS
from tests.messages import Diagnostic, diagnostic
from tests.topi.refusals import refused
from tests.topi.running import (
    Array,
    assert_close,
    assert_results,
    compiled,
    given,
    numpy_type,
    values,
)


def check(expected: dict[Any, Any], arrays: dict[te.Tensor, Array], **options: Any) -> None:
    assert_results(expected, arrays, **options)


@pytest.mark.exhaustive(keep=14)
@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)])
def test_take(kind: str, shape: tuple[int, ...]) -> None:
    a, i = values((3, 5, 2), "int32"), values(shape, kind, low=-4, high=9)
    A, Index = given(a), given(i, "i")
    expected = {
        topi.take(A, Index, axis, mode=mode): np.take(a, i, axis, mode=mode)
        for axis in (0, 1, -1, None) for mode in ("clip", "wrap")
    }
    inside = np.asarray(np.clip(i, 0, 1))
    check(expected, {A: a, Index: i})
    check({topi.take(A, Index, 1, mode="fast"): np.take(a, inside, 1)}, {A: a, Index: inside})


def test_take_in_batches() -> None:
    a, i = values((3, 5, 2), "int32"), values((3, 4), "int32", low=0, high=5)
    A, Index = given(a), given(i, "i")

    check({topi.take(A, Index, 1, batch_dims=1): np.stack([a[k][i[k]] for k in range(3)])},
          {A: a, Index: i})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(axis: int) -> None:
    a = values((3, 4, 5), "int32")
    i = np.random.default_rng(0).integers(0, a.shape[axis], (3, 4, 5)).astype("int64")
    A, Index = given(a), given(i, "i")

    check({topi.gather(A, axis, Index): np.take_along_axis(a, i, axis)}, {A: a, Index: i})


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_gather_nd(count: int) -> None:
    a = values((3, 4, 5), "int32")
    i = np.stack([values((2, 3), "int32", low=0, high=3, seed=k) for k in range(count)]) if (
        count) else np.zeros((0, 2, 3), "int32")
    A, Index = given(a), given(i, "i")
    expected = a[tuple(i)] if count else np.broadcast_to(a, (2, 3, 3, 4, 5))

    check({topi.gather_nd(A, Index): expected}, {A: a, Index: i})


def test_gather_nd_in_batches() -> None:
    a, i = values((3, 4, 5), "int32"), values((1, 3, 2), "int32", low=0, high=4)
    A, Index = given(a), given(i, "i")

    check({topi.gather_nd(A, Index, 1): np.stack([a[k][i[0, k]] for k in range(3)])},
          {A: a, Index: i})


def test_indices_are_broadcast() -> None:
    a, i, j = values((3, 4, 5), "int32"), values((2, 1), "int32", low=0, high=3), values(
        (4,), "int64", low=0, high=4)
    A, Row, Column = given(a), given(i, "i"), given(j, "j")

    check({topi.adv_index(A, [Row, Column]): a[i, j]}, {A: a, Row: i, Column: j})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(axis: int) -> None:
    i = np.array([[0, 2, 5], [4, -1, 1]], "int32")
    Index = given(i, "i")
    expected = np.moveaxis((i[..., None] == np.arange(5)) * 3 - 1, -1, axis).astype("int8")

    check({topi.one_hot(Index, 2, -1, 5, axis, "int8"): expected}, {Index: i})


@pytest.mark.parametrize("dtype", SCALARS)
def test_where(dtype: str) -> None:
    c, x, y = values((2, 1), "bool"), values((3,), dtype), values((4, 1, 1), dtype, seed=1)
    C, X, Y = given(c, "C"), given(x, "X"), given(y, "Y")

    check({topi.where(C, X, Y): np.where(c, x, y)}, {C: c, X: x, Y: y})
    if hasattr(np, dtype):
        check({topi.where(X, C, False): np.where(x, c, False)}, {C: c, X: x})


def test_masks_of_sequences() -> None:
    a, n = values((5, 3, 2), "float32"), np.array([2, 5, 0], "int32")
    A, N = given(a), given(n, "n")
    inside = np.arange(5)[:, None] < n
    check({topi.sequence_mask(A, N, -1.5): np.where(inside[..., None], a, np.float32(-1.5))},
          {A: a, N: n})
    b = a.transpose(1, 0, 2).copy()
    B = given(b, "B")
    check({topi.sequence_mask(B, N, 0, 1): np.where(inside.T[..., None], b, np.float32(0))},
          {B: b, N: n})


def test_sequences_in_reverse() -> None:
    a, n = values((3, 5, 2), "int32"), np.array([2, 9, 0], "int64")
    A, N = given(a), given(n, "n")
    expected = a.copy()
    expected[0, :2], expected[1] = a[0, 1::-1], a[1, ::-1]

    check({topi.reverse_sequence(A, N): expected}, {A: a, N: n})


@pytest.mark.parametrize("shape", [(3, 4, 5), (60,), (2, 1, 30)])
def test_numbers_of_elements(shape: tuple[int, ...]) -> None:
    i, extents = values((7,), "int32", low=0, high=60), np.array(shape, "int32")
    Index, Shape = given(i, "i"), given(extents, "s")
    expected = np.stack(np.unravel_index(i, shape)).astype("int32")

    check({topi.unravel_index(Index, Shape): expected}, {Index: i, Shape: extents})
    check({topi.unravel_index(Index, list(shape)): expected}, {Index: i})


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_triangles(dtype: str) -> None:
    a = values((2, 4, 5), dtype)
    A = given(a)
    check({topi.trilu(A, k, upper): (np.triu if upper else np.tril)(a, k)
           for k in (-5, -1, 0, 2, 9) for upper in (True, False)}, {A: a})


# Diagonals of the second matrix from the top, in rows as long as the longest one, for the
# alignments of TensorFlow.
@pytest.mark.parametrize(("align", "above", "below"), [
    ("RIGHT_LEFT", [0, 1], [1, 0]), ("LEFT_RIGHT", [1, 0], [0, 1]), ("LEFT_LEFT", [1, 0], [1, 0]),
    ("RIGHT_RIGHT", [0, 1], [0, 1])])
def test_diagonals_set(align: str, above: list[int], below: list[int]) -> None:
    a, d = values((2, 3, 3), "int32"), values((2, 3), "int32", seed=1) + 50
    A, D = given(a), given(d, "d")
    expected = a.copy()
    for k in range(3):
        expected[:, k, k] = d[:, k]
    check({topi.matrix_set_diag(A, D, align=align): expected}, {A: a, D: d})
    bands = values((2, 3, 3), "int32", seed=2) + 50
    Bands = given(bands, "bands")
    for k in range(2):
        expected[:, k, k + 1] = bands[:, 0, k + (above[0] == 0)]
        expected[:, k + 1, k] = bands[:, 2, k + (below[0] == 0)]
    for k in range(3):
        expected[:, k, k] = bands[:, 1, k]
    check({topi.matrix_set_diag(A, Bands, (-1, 1), align): expected}, {A: a, Bands: bands})


def test_matrix_set_diag_off_the_main_diagonal() -> None:
    a, d = values((3, 5), "int32"), values((3,), "int32", seed=1) + 50
    A, D = given(a), given(d, "d")
    expected = a.copy()
    expected[np.arange(3), np.arange(3) + 2] = d

    check({topi.matrix_set_diag(A, D, 2): expected}, {A: a, D: d})


@pytest.mark.parametrize(("arguments", "dtype"), [
    ((5,), "float32"), ((2, 10, 3), "int32"), ((10, 2, -3), "int64"), ((0, 1, 0.25), "float32"),
    ((5, 2, 1), "int8"), ((1, 4, 1), "float16"), ((0.5, 3, 0.5), "bfloat16"), ((-3, 3, 2), "float64"),
    ((0, 3, 0.5), "int32")])
def test_ranges(arguments: tuple[Any, ...], dtype: str) -> None:
    start, stop, step = arguments if len(arguments) == 3 else (*arguments, None, 1)[:3]
    program = tecomp.compile(topi.arange(start, stop, step, dtype), [])()

    assert_close(program, np.arange(*arguments).astype(numpy_type(dtype)))


def test_windows_of_signals() -> None:
    for periodic in (True, False):
        program = tecomp.compile(topi.hamming_window(9, periodic, 0.54, 0.46, "float32"), [])()
        assert_close(program, np.hamming(10 if periodic else 9)[:9].astype("float32"))


def test_extents_as_tensors() -> None:
    A, S = te.placeholder((3, 0, 5), name="A"), te.placeholder((), name="S")
    program = tecomp.compile([topi.shape(A), topi.ndarray_size(A, "int64"), topi.ndarray_size(S)], [])()

    assert_close(program[0], np.array([3, 0, 5], "int32"))
    assert_close(program[1], np.int64(0))
    assert_close(program[2], np.int32(1))


def test_compiled() -> None:
    a, i = values((6, 5), "float32"), values((4,), "int32", low=-2, high=9)
    A, Index = given(a), given(i, "i")
    inside = np.clip(i, 0, 5)
    check({topi.take(A, Index, 0): a[inside],
           topi.negative(topi.take(A, Index, -1, mode="wrap")): -a[:, i % 5]},
          {A: a, Index: i}, run=compiled)


def test_symbolic_sizes() -> None:
    n, m = te.var("n"), te.var("m")
    A, Index = te.placeholder((n, 5), name="A"), te.placeholder((m,), "int32", name="i")
    outputs = [topi.take(A, Index, 0), topi.one_hot(Index, 1, 0, n, -1, "int8"),
               topi.trilu(A, 1, False), topi.where(topi.greater(A, 0), A, 0), topi.shape(A)]
    kernel = tecomp.build(outputs, [A, Index, *outputs])
    for rows, count in [(1, 3), (4, 0), (7, 5)]:
        a, i = values((rows, 5), "float32"), values((count,), "int32", low=0, high=rows)
        expected = [a[i], (i[:, None] == np.arange(rows)).astype("int8"), np.tril(a, 1),
                  np.maximum(a, 0), np.array([rows, 5], "int32")]
        results = [np.full(x.shape, 77, x.dtype) for x in expected]
        kernel(a, i, *results)
        for result, right in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, right)


def test_places_outside_are_refused_at_run_time() -> None:
    a, i = values((6,), "float32"), np.array([0, 6], "int32")
    A, Index = given(a), given(i, "i")
    program = tecomp.compile(topi.take(A, Index, 0, mode="fast"), [A, Index])
    with pytest.raises(tecomp.CallError) as caught:
        program(a, i)

    found = diagnostic(caught.value)
    place, _, access = found.parameters["text"].rpartition(": ")
    assert found == Diagnostic("out-of-bounds", value=6, text=f"{place}: {access}")
    assert access == "A[i[i0]] (axis 0 of A[6])"
    assert place.startswith(__file__)


def test_refusals() -> None:
    A, i = te.placeholder((4, 6), name="A"), te.placeholder((3,), "int32", name="i")
    F = te.placeholder((3,), name="F")

    assert refused(lambda: topi.take(A, F, 0)) == (
        Diagnostic("dtype", where="topi.take", subject="indices", dtype="float32", x="F")
    )
    assert refused(lambda: topi.take(A, i, 2)) == (
        Diagnostic(
            "unknown-choice", where="topi.take", subject="axis", number=2,
            rank="the tensor has 2 axes; pass a number from -2 to 1",
        )
    )
    assert refused(lambda: topi.take(A, i, 0, mode="raise")) == (
        Diagnostic(
            "unknown-choice", where="topi.take", subject="mode", value="raise",
            known="'clip', 'wrap', 'fast'",
        )
    )
    assert refused(lambda: topi.take(A, i, 1, 1)) == (
        Diagnostic(
            "shapes", where="topi.take", shared=1, axis=1, shape="(4, 6)", indices_shape="(3,)",
        )
    )
    assert refused(lambda: topi.gather(A, 0, i)) == (
        Diagnostic(
            "shapes", where="topi.gather", data="A", shape="(4, 6)", indices_shape="(3,)",
            axis=0,
        )
    )
    assert refused(lambda: topi.gather_nd(A, i)) == (
        Diagnostic(
            "shapes", where="topi.gather_nd", a="A", shape="(4, 6)", indices_shape="(3,)",
            shared=0,
        )
    )
    assert refused(lambda: topi.where(i, A, F)) == (
        Diagnostic(
            "shapes", where="topi.where", shapes="(3,) and (4, 6) and (3,)", axis=-1, extent="3",
            other_extent="6",
        )
    )
    assert refused(lambda: topi.sequence_mask(A, i)) == (
        Diagnostic(
            "shapes", where="topi.sequence_mask", subject="valid_length", shape="(3,)", data="A",
            data_shape="(4, 6)", axis=1,
        )
    )
    assert refused(lambda: topi.trilu(F, 0, True)) == (
        Diagnostic("shapes", where="topi.trilu", data="F", shape="(3,)")
    )
    assert refused(lambda: topi.arange(0, te.var("n"), 0.5)) == (
        Diagnostic("dtype", low=0, high="n", step=0.5)
    )
    assert refused(lambda: topi.arange(0, 5, 0)) == (
        Diagnostic("invalid-value")
    )
    assert refused(lambda: topi.matrix_set_diag(A, A)) == (
        Diagnostic(
            "shapes", where="topi.matrix_set_diag", shape="(4, 6)", low=0, high=0, data="A",
            data_shape="(4, 6)", expected=1,
        )
    )
    assert refused(lambda: topi.adv_index(F, [i, i])) == (
        Diagnostic("count-mismatch", where="topi.adv_index", place_count=2, data="F", ndim=1)
    )
    assert refused(lambda: topi.one_hot(i, 1, 0, -4, -1, "int8")) == (
        Diagnostic("invalid-value", where="topi.one_hot", subject="depth", value=-4, minimum=0)
    )
    assert refused(lambda: topi.unravel_index(i, (3, 0))) == (
        Diagnostic("invalid-value", where="topi.unravel_index", subject="shape[1]", value=0, minimum=1)
    )
    assert refused(lambda: topi.one_hot(i, 1, 0, 5, 3, "int8")) == (
        Diagnostic(
            "unknown-choice", where="topi.one_hot", subject="axis", number=3,
            rank="the tensor has 2 axes; pass a number from -2 to 1",
        )
    )
