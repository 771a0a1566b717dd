"""Reshapes, permutations, slices and concatenations agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given as draws
from hypothesis import strategies as st

import tecomp
from tecomp import te, topi
from tecomp.ir import SCALARS
from tests.messages import Diagnostic
from tests.numerics import assert_close
from tests.topi.refusals import refused
from tests.topi.running import SHAPES, Array, assert_results, compiled, given, values


def check(
    a: Array, cases: list[tuple[Callable[[te.Tensor], te.Tensor], Any]], **options: Any
) -> None:
    A = given(a)
    assert_results({result(A): expected for result, expected in cases}, {A: a}, **options)


@pytest.mark.parametrize("shape", SHAPES)
def test_new_axes(shape: tuple[int, ...]) -> None:
    a, rank = values(shape, "int32"), len(shape)
    check(a, [
        (partial(topi.expand_dims, axis=axis), np.expand_dims(a, axis))
        for axis in range(-rank - 1, rank + 1)
    ])
    check(a, [(lambda A: topi.expand_dims(A, 0, 2), a[None, None]),
              (lambda A: topi.squeeze(topi.expand_dims(A, -1), -1), a)])


def test_axes_left_out() -> None:
    a = values((1, 3, 1, 2), "int32")
    check(a, [
        (lambda A: topi.squeeze(A), a.squeeze()),
        (lambda A: topi.squeeze(A, -2), a.squeeze(-2)),
        (lambda A: topi.squeeze(A, (0, 2)), a.squeeze((0, 2))),
    ])
    one = values((1, 1), "int32")
    check(one, [(lambda A: topi.squeeze(A), one.squeeze())])


def test_repetition_to_the_shape_of_another() -> None:
    a, b = values((3,), "int32"), values((2, 3, 4), "int32")
    A, B = given(a), given(b, "B")
    result = topi.add(topi.expand_like(A, B, [0, -1]), B)

    assert_results({result: a[None, :, None] + b}, {A: a, B: b})


@pytest.mark.parametrize(("shape", "new"), [
    ((), (1, 1)), ((1,), ()), ((6,), (2, 3)), ((2, 3), (6,)), ((2, 3, 4), (4, 6)),
    ((4, 6), (2, 3, 4)), ((2, 3, 4), (3, -1)), ((0, 3), (3, 0, 2)), ((2, 1, 3), (1, 6, 1)),
    ((5, 0), (0,)), ((2, 3, 4), (-1,)), ((2, 6), (3, 4)), ((12,), (3, 2, 2)),
])
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_other_shapes(shape: tuple[int, ...], new: tuple[int, ...], dtype: str) -> None:
    a = values(shape, dtype)
    check(a, [(lambda A: topi.reshape(A, new), a.reshape(new))])


@pytest.mark.parametrize("rank", range(5))
def test_orders_of_axes(rank: int) -> None:
    a = values((2, 3, 4, 5)[:rank], "int8")
    orders = list(permutations(range(rank)))[::3]
    check(a, [(lambda A: topi.transpose(A), a.transpose()), *(
        (partial(topi.transpose, axes=order), a.transpose(order)) for order in orders)])
    if rank:
        negative = tuple(k - rank for k in orders[-1])
        check(a, [(lambda A: topi.transpose(A, negative), a.transpose(negative))])


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape])
def test_reverse_order(shape: tuple[int, ...]) -> None:
    a = values(shape, "int32")
    axes: list[Any] = [*range(-len(shape), len(shape)), tuple(range(len(shape)))]
    check(a, [(partial(topi.flip, axis=axis), np.flip(a, axis)) for axis in axes])


@pytest.mark.parametrize(("shape", "reps"), [
    ((), 3), ((3,), 2), ((3,), (2, 2)), ((2, 3), (2,)), ((2, 3), (1, 3, 2)), ((1, 3), (4, 1)),
    ((0, 2), (2, 3)), ((2,), 0), ((2, 3), ()),
])
def test_repetition_of_all(shape: tuple[int, ...], reps: Any) -> None:
    a = values(shape, "int32")
    check(a, [(lambda A: topi.tile(A, reps), np.tile(a, reps))])


@pytest.mark.parametrize(("shape", "count", "axis"), [
    ((3,), 2, 0), ((2, 3), 3, -1), ((2, 3), 2, 0), ((2, 1), 4, 1), ((2, 3), 1, 1), ((2, 3), 0, 1),
    ((0, 2), 2, 0),
])
def test_repetition_of_each(shape: tuple[int, ...], count: int, axis: int) -> None:
    a = values(shape, "int32")
    check(a, [(lambda A: topi.repeat(A, count, axis), np.repeat(a, count, axis))])


def test_windows() -> None:
    a = values((2, 7, 9), "int32")
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 2), (1, 2))[:, ::2, ::3]
    check(a, [(lambda A: topi.sliding_window(A, 1, (3, 2), (2, 3)), windows)])
    line = values((6,), "int32")
    check(line, [(lambda A: topi.sliding_window(A, -1, [6], [1]), line[None])])


SLICES = st.one_of(st.none(), st.integers(-8, 8))


@draws(st.lists(st.tuples(st.integers(0, 6), SLICES, SLICES, st.sampled_from([1, 2, 3, -1, -2])),
                min_size=1, max_size=3))
def test_slices(axes: list[tuple[int, Any, Any, int]]) -> None:
    a = values([n for n, *_ in axes], "int32")
    parts = tuple(slice(*bounds) for _, *bounds in axes)
    check(a, [(
        lambda A: topi.strided_slice(
            A, [s.start for s in parts], [s.stop for s in parts], [s.step for s in parts]),
        a[parts],
    )])


def test_slices_of_some_axes_and_by_size() -> None:
    a = values((6, 5, 7), "int32")
    check(a, [
        (lambda A: topi.strided_slice(A, [1], [4], axes=[-1]), a[:, :, 1:4]),
        (lambda A: topi.strided_slice(A, [4, 1], [0, 9], [-2, 2], axes=[2, 0]), a[1:9:2, :, 4:0:-2]),
        (lambda A: topi.strided_slice(A, [1, 2], [3, -1], slice_mode="size"), a[1:4, 2:]),
        (lambda A: topi.strided_slice(A, [1, 1], [5, 2]), a[1:5, 1:2]),
    ])


def test_slices_of_so_many_elements_at_the_call() -> None:
    n = te.var("n")
    A = te.placeholder((n,), "int32", name="A")
    B = topi.strided_slice(A, [1], [3], slice_mode="size")
    func = tecomp.lower(te.create_schedule(B.op), [A, B], stop_after="nest")
    for length in (0, 2, 9):
        a = np.arange(length, dtype="int32")
        result = np.full_like(a[1:4], 77)
        tecomp.evaluate(func, [a.copy(), result])
        np.testing.assert_array_equal(result, a[1:4])


@pytest.mark.exhaustive(keep=10, most=25)
@pytest.mark.parametrize("begin", [None, 0, 2, -3, 9])
@pytest.mark.parametrize("end", [None, 1, 4, -1, 99])
def test_slices_of_sizes_at_the_call(begin: int | None, end: int | None) -> None:
    n = te.var("n")
    A = te.placeholder((n,), "int32", name="A")
    outputs = [topi.strided_slice(A, [begin], [end], [step]) for step in (1, 2, -1)]
    func = tecomp.lower(te.create_schedule([x.op for x in outputs]), [A, *outputs], stop_after="nest")
    for length in (0, 1, 3, 7):
        a = np.arange(length, dtype="int32")
        expected = [a[begin:end:step] for step in (1, 2, -1)]
        results = [np.full_like(part, 77) for part in expected]
        tecomp.evaluate(func, [a.copy(), *results])
        for result, part in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, part)


def test_slices_whose_places_are_data() -> None:
    a, begin, steps = values((6, 5), "int32"), np.array([4, -5], "int64"), np.array([-2, 1], "int64")
    A, B, S = given(a), given(begin, "B"), given(steps, "S")

    assert_results(
        {topi.dynamic_strided_slice(A, B, B, S, (2, 3)): a[4::-2][:2, 0:3]},
        {A: a, B: begin, S: steps})


@pytest.mark.parametrize(("begin", "end", "strides"), [
    ([1], [4], None), ([1, -4], [6, 5], [2, 3]), ([-2, 3], [0, 0], [-2, -1]),
])
def test_slices_set(begin: list[int], end: list[int], strides: list[int] | None) -> None:
    a = values((6, 5), "int32")
    steps = strides or [1] * len(begin)
    where = tuple(map(slice, begin, end, steps))
    v = values(a[where].shape, "int32", seed=1) + 100
    given_arrays = {given(a): a, given(v, "V"): v} | {
        te.placeholder((len(x),), "int32", name=name): np.array(x, "int32")
        for name, x in (("b", begin), ("e", end), ("s", strides)) if x is not None
    }
    expected = a.copy()
    expected[where] = v

    assert_results({topi.strided_set(*given_arrays): expected}, given_arrays)


def test_slices_scattered() -> None:
    a, v = values((4, 7), "int32"), values((4, 3), "int32", seed=1) + 50
    A, V = given(a), given(v, "V")
    expected = a.copy()
    expected[:, 1:7:2] = v

    assert_results({topi.slice_scatter(A, V, 1, 7, 2, -1): expected}, {A: a, V: v})


@pytest.mark.parametrize("dtype", SCALARS)
def test_joins_of_all_types(dtype: str) -> None:
    parts = [values((n, 3), dtype, seed=n) for n in (2, 0, 1, 4, 1)]
    tensors = [given(a, f"A{k}") for k, a in enumerate(parts)]

    assert_results(
        {topi.concatenate(tensors): np.concatenate(parts)}, dict(zip(tensors, parts, strict=True)))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_joins(axis: int) -> None:
    shape = [2, 3, 4]
    parts = []
    for n in (1, 5, 2):
        shape[axis] = n
        parts.append(values(shape, "int32", seed=n))
    tensors = [given(a, f"A{k}") for k, a in enumerate(parts)]

    assert_results({topi.concatenate(tensors, axis): np.concatenate(parts, axis)},
                   dict(zip(tensors, parts, strict=True)))


@pytest.mark.parametrize(("shape", "axis"), [
    ((), 0), ((3,), 1), ((2, 3), 1), ((2, 3), -1), ((2, 3), -3), ((0, 2), 0)])
def test_stacks(shape: tuple[int, ...], axis: int) -> None:
    parts = [values(shape, "int32", seed=k) for k in range(3)]
    tensors = [given(a, f"A{k}") for k, a in enumerate(parts)]

    assert_results({topi.stack(tensors, axis): np.stack(parts, axis)},
                   dict(zip(tensors, parts, strict=True)))


@pytest.mark.parametrize(("where", "axis"), [
    ([1, 3], 0), ([], 0), ([2, 2], 1), ([0, 5], -1), (2, 0), (3, 0), (5, 1)])
def test_parts(where: Any, axis: int) -> None:
    a = values((6, 5), "int32")
    A = given(a)
    parts = topi.split(A, where, axis)
    expected = np.split(a, where, axis)

    assert_results(dict(zip(parts, expected, strict=True)), {A: a})


def test_the_last_part_may_be_smaller() -> None:
    shapes = [x.shape for x in topi.split(te.placeholder((10, 2), name="A"), 4)]

    assert shapes == [(3, 2), (3, 2), (3, 2), (1, 2)]


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_grids(indexing: Any) -> None:
    parts = [values((n,), "int32", seed=n) for n in (3, 4, 2)]
    for count in (1, 2, 3):
        tensors = [given(a, f"A{k}") for k, a in enumerate(parts[:count])]
        grids = topi.meshgrid(tensors, indexing)
        expected = np.meshgrid(*parts[:count], indexing=indexing)
        assert_results(dict(zip(grids, expected, strict=True)),
                       dict(zip(tensors, parts, strict=False)))


def test_layouts() -> None:
    a = values((2, 8, 3, 4), "int32")
    blocked = a.reshape(2, 2, 4, 3, 4).transpose(0, 1, 3, 4, 2)
    check(a, [
        (lambda A: topi.layout_transform(A, "NCHW", "NHWC"), a.transpose(0, 2, 3, 1)),
        (lambda A: topi.layout_transform(A, "NCHW", "NCHW4c"), blocked),
        (lambda A: topi.layout_transform(
            topi.layout_transform(A, "NCHW", "NCHW4c"), "NCHW4c", "NCHW2c"),
         a.reshape(2, 4, 2, 3, 4).transpose(0, 1, 3, 4, 2)),
    ])


def test_no_copy() -> None:
    """Views are fused into their reader: one kernel without intermediate storage."""
    a = values((4, 6), "float32")
    A = given(a)
    part = topi.strided_slice(topi.transpose(topi.reshape(A, (6, 4))), [1], [3])
    program = tecomp.compile(topi.exp(topi.flip(part, 1)), [A])
    joined = topi.concatenate([part, part], 1)

    assert_close(program(a), np.exp(a.reshape(6, 4).T[1:3][:, ::-1]), rtol=1e-6)
    assert len(program.kernels) == 1
    assert len(tecomp.compile(topi.negative(joined), [A]).kernels) == 1


def test_compiled() -> None:
    a = values((4, 6), "float32")
    check(a, [
        (lambda A: topi.concatenate([A, topi.flip(A, 1), A], 1), np.hstack([a, a[:, ::-1], a])),
        (lambda A: topi.tile(topi.repeat(A, 2, 0), (1, 2)), np.tile(np.repeat(a, 2, 0), (1, 2))),
        (lambda A: topi.reshape(A, (3, 8)), a.reshape(3, 8)),
    ], run=compiled)


def test_symbolic_sizes() -> None:
    n, m = te.var("n"), te.var("m")
    A, B = te.placeholder((n, m), name="A"), te.placeholder((n, 3), name="B")
    joined = topi.concatenate([A, B, A], 1)
    outputs = [topi.reshape(topi.expand_dims(A, 1), (-1,)), joined,
               topi.transpose(topi.tile(A, (1, 2))), *topi.split(joined, [m, m + 3], 1)]
    kernel = tecomp.build(outputs, [A, B, *outputs])
    for rows, columns in [(0, 2), (1, 1), (3, 5)]:
        a, b = values((rows, columns), "float32"), values((rows, 3), "float32", seed=1)
        expected = [a.ravel(), np.hstack([a, b, a]), np.tile(a, (1, 2)).T, a, b, a]
        results = [np.full(x.shape, 77, "float32") for x in expected]
        kernel(a, b, *results)
        for result, right in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, right)


def test_refusals() -> None:
    A, B = te.placeholder((4, 6), name="A"), te.placeholder((3, 5), name="B")
    n, m = te.var("n"), te.var("m")
    N = te.placeholder((n, 4), name="N")

    assert refused(lambda: topi.reshape(A, (5, 5))) == (
        Diagnostic(
            "shapes", where="topi.reshape", a="A", shape="(4, 6)", count=24, new_shape="(5, 5)",
            new_count=25,
        )
    )
    assert refused(lambda: topi.reshape(N, (m,))) == (
        Diagnostic(
            "shapes", where="topi.reshape", a="N", shape="(n, 4)", count="int32(4) * n",
            new_shape="(m,)", new_count="m",
        )
    )
    assert refused(lambda: topi.reshape(A, (-1, -1))) == (
        Diagnostic("shapes", where="topi.reshape", shape="(-1, -1)")
    )
    assert refused(lambda: topi.expand_dims(A, 3)) == (
        Diagnostic(
            "unknown-choice", where="topi.expand_dims", subject="axis", number=3,
            rank="the tensor has 3 axes; pass a number from -3 to 2",
        )
    )
    assert refused(lambda: topi.squeeze(A, 0)) == (
        Diagnostic("shapes", where="topi.squeeze", k=0, a="A", shape="(4, 6)", extent="4")
    )
    assert refused(lambda: topi.transpose(A, (0, 0))) == (
        Diagnostic("duplicate-argument", where="topi.transpose", axes=(0, 0), a="A", ndim=2)
    )
    assert refused(lambda: topi.concatenate([A, B])) == (
        Diagnostic(
            "shapes", where="topi.concatenate", shape="(4, 6)", k=1, x_shape="(3, 5)",
            but=" except along axis 0",
        )
    )
    assert refused(lambda: topi.stack([A, B])) == (
        Diagnostic("shapes", where="topi.stack", shape="(4, 6)", k=1, x_shape="(3, 5)", but="")
    )
    assert refused(lambda: topi.split(A, [3, 1])) == (
        Diagnostic("shapes", where="topi.split", positions=(3, 1), axis=0, ary="A", extent="4")
    )
    bad: Any = "x"
    assert refused(lambda: topi.strided_slice(A, [bad], [4])) == (
        Diagnostic(
            "invalid-type", where="topi.strided_slice", subject="begin[0]", value="x", type="str",
        )
    )
    assert refused(lambda: topi.strided_slice(A, bad, [4])) == (
        Diagnostic(
            "invalid-type", where="topi.strided_slice", subject="begin", bounds="x", type="str",
        )
    )
    assert refused(lambda: topi.strided_slice(A, [0], [4], [1, 1])) == (
        Diagnostic("count-mismatch", where="topi.strided_slice", strides=[1, 1], count=1)
    )
    assert refused(lambda: topi.strided_slice(A, [0], [4], [0])) == (
        Diagnostic("invalid-value", where="topi.strided_slice", k=0)
    )
    assert refused(lambda: topi.strided_slice(A, [0, 0, 0], [1, 1, 1])) == (
        Diagnostic(
            "count-mismatch", where="topi.strided_slice", begin_count=3, end_count=3, axes=(0, 1, 2),
            a="A", shape="(4, 6)",
        )
    )
    assert refused(lambda: topi.layout_transform(A, "NC", "NC4c")) == (
        Diagnostic(
            "shapes", where="topi.layout_transform", layout="NC4c", block=4, axis="C", extent="6",
        )
    )
    assert refused(lambda: topi.layout_transform(A, "NC", "N4c")) == (
        Diagnostic("unknown-choice", where="topi.layout_transform", layout="N4c")
    )
    assert refused(lambda: topi.meshgrid([A], "ij")) == (
        Diagnostic("shapes", where="topi.meshgrid", x="A", shape="(4, 6)")
    )
    assert refused(lambda: topi.meshgrid([A], "yx")) == (
        Diagnostic(
            "unknown-choice", where="topi.meshgrid", subject="indexing", value="yx",
            known="'ij', 'xy'",
        )
    )
    assert refused(lambda: topi.repeat(A, -1, 0)) == (
        Diagnostic("invalid-value", where="topi.repeat", subject="repeats", literal=-1, minimum=0)
    )
    assert refused(lambda: topi.flip(A, (0, -2))) == (
        Diagnostic("duplicate-argument", where="topi.flip", subject="axis", axis=(0, -2), rank=2)
    )
    assert refused(lambda: topi.sliding_window(A, 0, (5, 2), (1, 1))) == (
        Diagnostic(
            "shapes", where="topi.sliding_window", size=5, k=0, data="A", shape="(4, 6)",
            extent="4",
        )
    )
