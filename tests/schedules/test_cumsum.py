"""Cumulative sums equal NumPy's, along every axis and for all sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import auto, cumsum
from tecomp.schedules.analysis import is_scan
from tests.strategies.fenced import call_fenced
from tests.strategies.machines import CORES
from tests.strategies.pairwise import pairwise


def run(a: np.ndarray, axis: int, target: tecomp.Target, shape: Any = None,
        **options: Any) -> np.ndarray:
    A = te.placeholder(shape or a.shape, str(a.dtype), name="A")
    B = cumsum.define(A, axis, **options)
    kernel = tecomp.build(cumsum.schedule(B, target), [A, B])
    result = np.full(a.shape, 77, str(B.dtype))
    call_fenced(kernel, a, result)
    return result


def values(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Return integers, whose sums are exact in any order."""
    return np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)


@pytest.mark.exhaustive(keep=9)
@pairwise(n=[1, 2, 7, 8, 9, 127, 1000, 1023], axis=[0, 1], target=CORES)
def test_sizes(n: int, axis: int, target: tecomp.Target) -> None:
    a = values(n, 37) if axis == 0 else values(5, n)

    np.testing.assert_array_equal(run(a, axis, target), a.cumsum(axis))


@pytest.mark.exhaustive(keep=4)
@pairwise(
    shape=[(0, 5), (1, 5), (40, 3, 5), (9, 1, 70), (7, 0), (300, 1)], exclusive=[False, True],
    target=CORES,
)
def test_rows_from_rows(shape: tuple[int, ...], exclusive: bool, target: tecomp.Target) -> None:
    a = values(*shape)
    result = run(a, 0, target, exclusive=exclusive)
    np.testing.assert_array_equal(result, a.cumsum(0) - (a if exclusive else 0))
    sizes = [te.var(f"n{k}") for k in range(len(shape))]
    result = run(a, 0, target, shape=sizes, exclusive=exclusive)

    np.testing.assert_array_equal(result, a.cumsum(0) - (a if exclusive else 0))


@pytest.mark.exhaustive(keep=1, most=7)
@pairwise(
    shape=[(8, 1), (9, 0), (50, 3), (33, 10), (2, 3, 5, 7), (19, 130), (8, 255), (9, 256),
           (70, 300), (5, 13, 411)],
    exclusive=[False, True], target=CORES,
)
def test_several_rows_at_once(
    shape: tuple[int, ...], exclusive: bool, target: tecomp.Target
) -> None:
    a = values(*shape)
    result = run(a, -1, target, exclusive=exclusive)
    np.testing.assert_array_equal(result, a.cumsum(-1) - (a if exclusive else 0))
    sizes = [*(te.var(f"n{k}") for k in range(len(shape) - 1)), shape[-1]]
    result = run(a, -1, target, shape=sizes, exclusive=exclusive)

    np.testing.assert_array_equal(result, a.cumsum(-1) - (a if exclusive else 0))


def test_cumsum_of_empty_groups(target: tecomp.Target) -> None:
    a = values(3, 0, 5)

    result = run(a, -1, target, shape=[te.var("n"), 0, 5])
    np.testing.assert_array_equal(result, a.cumsum(-1))


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_an_element_may_be_left_out(axis: int, target: tecomp.Target) -> None:
    a = values(3, 40, 33)

    result = run(a, axis, target, exclusive=True)
    np.testing.assert_array_equal(result, a.cumsum(axis) - a)


@pytest.mark.exhaustive(keep=1)
@pairwise(
    shape=[(2, 129), (3, 2, 255), (1, 256), (9, 300), (5, 2049), (4111,)],
    types=[("float64", None), ("int8", "int64"), ("float16", "float32"), ("int32", "int16")],
    exclusive=[False, True], target=CORES,
)
def test_groups_of_long_rows(
    shape: tuple[int, ...], types: tuple[str, str | None], exclusive: bool,
    target: tecomp.Target,
) -> None:
    dtype, out_dtype = types
    a = values(*shape, dtype=dtype)
    result = run(a, -1, target, exclusive=exclusive, out_dtype=out_dtype)
    widened = a.astype(out_dtype or dtype)
    expected = widened.cumsum(-1, dtype=widened.dtype) - (widened if exclusive else 0)

    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("shape", "by"),
    [((64, 300), "rows"), ((63, 300), "groups"), ((100, 2047), "groups"), ((100, 2000), "rows"),
     ((100, 1020), "groups"), ((100, 1024), "groups"), ((100, 1040), "rows"), ((9, 255), "rows")],
)
def test_long_rows_are_transposed_unless_they_conflict_in_the_cache(
    shape: tuple[int, int], by: str
) -> None:
    B = cumsum.define(te.placeholder(shape, name="A"))
    scans = sum(map(is_scan, B.op.input_tensors))
    # One scan over transposed rows; or one within groups and one over their totals.
    assert scans == {"rows": 1, "groups": 2}[by]


@pytest.mark.exhaustive(keep=1)
def test_cumsum_rows_are_independent(target: tecomp.Target) -> None:
    a = values(3, 300)
    a[0, 290], a[1, 7], a[1, 200], a[2, 0] = np.nan, np.inf, -np.inf, np.nan

    with np.errstate(invalid="ignore"):
        expected = a.cumsum(-1)
    np.testing.assert_array_equal(run(a, -1, target), expected)


@pytest.mark.exhaustive(keep=1)
def test_one_long_row(target: tecomp.Target) -> None:
    a = values(30_001)

    np.testing.assert_array_equal(run(a, 0, target), a.cumsum())


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("axis", [0, 1])
def test_types(axis: int, target: tecomp.Target) -> None:
    a = values(30, 100, dtype="int8")
    np.testing.assert_array_equal(
        run(a, axis, target, out_dtype="int32"), a.cumsum(axis, dtype="int32")
    )
    half = values(30, 100, dtype="float16")
    np.testing.assert_array_equal(run(half, axis, target), half.astype("float32").cumsum(axis))


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("axis", [0, 1])
def test_nan_and_infinity_count_from_where_they_are(axis: int, target: tecomp.Target) -> None:
    a = values(70, 70)
    a[13, 29], a[40, 50] = np.nan, np.inf

    np.testing.assert_array_equal(run(a, axis, target), a.cumsum(axis))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("axis", [0, 1])
def test_sizes_known_at_the_call(axis: int, target: tecomp.Target) -> None:
    A = te.placeholder((te.var("n"), te.var("m")), name="A")
    B = cumsum.define(A, axis)
    kernel = tecomp.build(cumsum.schedule(B, target), [A, B])
    for shape in ((1, 1), (3, 700), (65, 9)):
        a = values(*shape)
        result = np.full(shape, 77, np.float32)
        call_fenced(kernel, a, result)
        np.testing.assert_array_equal(result, a.cumsum(axis))


@pytest.mark.parametrize(("rows", "is_transposed"), [(te.var("m"), True), (20, True), (3, False)])
def test_rows_of_any_length_are_transposed_if_there_are_some(rows: Any, is_transposed: bool) -> None:
    B = cumsum.define(te.placeholder((rows, te.var("n")), name="A"))

    assert any(tecomp.accesses(x).is_scan for x in B.op.input_tensors) is is_transposed


def test_wrong_axes_are_refused() -> None:
    with pytest.raises(ValueError, match="axis=") as error:
        cumsum.define(te.placeholder((4, 5), name="A"), 2)

    assert str(error.value) == (
        "cumsum.define: axis=2 of 2 axes is out of bounds; pass a number from -2 to 1"
    )


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    ("shape", "options"),
    [((1000,), {}), ((64, 10000), {}), ((4, 4096), {"exclusive": True}),
     ((3, 5, 600), {"out_dtype": "float64"}), ((2, 300), {"out_dtype": "float16"})],
)
def test_without_a_schedule_groups_of_rows_are_found(
    shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    A = te.placeholder(shape, name="A")
    B = cumsum.define(A, -1, **options)

    loops = tecomp.lower(auto(B, "cpu"), [A, B])

    assert str(loops) == str(tecomp.lower(cumsum.schedule(B, "cpu"), [A, B]))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("also", ["sums", "formula", "groups"])
def test_groups_with_external_readers_are_preserved(also: str) -> None:
    """Grouped scans are not fused if their parts are outputs or have other readers."""
    A = te.placeholder((5, 1000), name="A")
    B = cumsum.define(A)
    sums = next(x for x in B.op.input_tensors if x.shape[0] == 16)
    C = te.compute(B.shape, lambda i, j: B[i, j] + A[i, j], name="C")
    results = {"sums": [sums, B], "formula": [C], "groups": [B, C]}[also]
    a = values(5, 1000)
    found = [np.full([int(str(n)) for n in x.shape], 7, np.float32) for x in results]

    tecomp.build(results, [A, *results])(a, *found)

    padded = np.zeros((5, 1024), np.float32)
    padded[:, :1000] = a
    inside = padded.reshape(5, 64, 16).cumsum(2).transpose(2, 0, 1)
    expected = {sums: inside, B: a.cumsum(1), C: a.cumsum(1) + a}
    for x, schedule in zip(results, found, strict=True):
        np.testing.assert_array_equal(schedule, expected[x])
