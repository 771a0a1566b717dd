"""Loops of transform_layout, composition of calls, and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tecomp import IndexMap, build, lower, te
from tecomp.errors import LayoutError, ScheduleError
from tecomp.scheduling import physical_shape_of
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((8, 6), name="A")
k = te.reduce_axis((0, 6), name="k")
C = te.compute((8, 6), lambda i, j: A[i, j] + 1.0, name="C")
R = te.compute((8,), lambda i: te.sum(C[i, k], axis=k), name="R")

FORMS: dict[str, tuple[Callable[..., object], list[str], tuple[int, ...]]] = {
    "permuted": (lambda i, j: [j, i], ["j", "i"], (6, 8)),
    "blocked": (lambda i, j: [j // 4, i, j % 4], ["j.outer", "i", "j.inner"], (2, 8, 4)),
    "with a constant": (lambda i, j: [0, j, i], ["axis0", "j", "i"], (1, 6, 8)),
    "sheared": (lambda i, j: [i + j, j], ["axis0", "j"], (13, 6)),
    "of any rank": (lambda *a: [a[1], a[0]], ["j", "i"], (6, 8)),
    "the last by name": (lambda *a, c: [c, *a], ["j", "i"], (6, 8)),
    "in one axis": (lambda i, j: [i * 6 + j], ["axis0"], (48,)),
    "with xor": (lambda i, j: [i, j ^ (i % 2)], ["i", "axis1"], (8, 6)),
    "as a tuple": (lambda i, j: (j, i), ["j", "i"], (6, 8)),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_loops_that_a_map_makes(form: str) -> None:
    mapping, names, shape = FORMS[form]
    s = te.create_schedule(C)

    axes = s[C].transform_layout(mapping)

    assert [axis.name for axis in axes] == names
    assert tuple(axis.extent for axis in axes) == shape
    assert s[C].leaf_iter_vars == axes
    assert physical_shape_of(s.state.stage(C.op)) == shape


def test_the_empty_map_of_a_tensor_without_axes_is_the_identity() -> None:
    total = te.compute((), lambda: te.sum(A[k, k], axis=k), name="T")
    s = te.create_schedule(total)

    assert s[total].transform_layout(lambda: []) == ()
    kernel = build(s, [A, total])
    a, found = np.arange(48, dtype="float32").reshape(8, 6), np.empty((), "float32")
    kernel(a, found)
    assert found == np.trace(a)
    with pytest.raises(LayoutError) as error:
        s[A].transform_layout(lambda i, j: [])
    assert diagnostic(error.value) == Diagnostic("invalid-index-map")


def test_an_index_map_or_anything_that_has_one_will_do() -> None:
    class Named:
        index_map = IndexMap.from_func(lambda i, j: [j, i])

    s = te.create_schedule(R)
    s[C].transform_layout(Named())
    s[A].transform_layout(Named.index_map)

    assert str(s.state.stage(C.op).layout.maps[0]) == "lambda i, j: [j, i]"
    assert s.state.stage(A.op).layout.maps == s.state.stage(C.op).layout.maps


def test_a_placeholder_has_no_loops_to_return() -> None:
    s = te.create_schedule(C)

    assert s[A].transform_layout(lambda i, j: [j, i]) == ()


def test_reduction_loops_stay_inside() -> None:
    s = te.create_schedule(R)

    outer, inner = s[R].transform_layout(lambda i: [i // 4, i % 4])

    assert s[R].leaf_iter_vars == (outer, inner, k)
    assert s[R].all_iter_vars == (R.op.axis[0], k, outer, inner)


def test_loops_that_were_reordered_follow_the_layout() -> None:
    s = te.create_schedule(C)
    i, j = C.op.axis
    s[C].reorder(j, i)

    axes = s[C].transform_layout(lambda i, j: [i // 4, j, i % 4])

    assert s[C].leaf_iter_vars == axes


def test_annotations_of_replaced_loops_are_dropped() -> None:
    s = te.create_schedule(C)
    i, j = C.op.axis
    s[C].vectorize(j)
    s[C].bind(i, "blockIdx.x")

    s[C].transform_layout(lambda i, j: [j, i])

    assert s.state.stage(C.op).marks == {}
    assert s.state.stage(C.op).threads == {}


def test_logical_loops_are_left_alone() -> None:
    s = te.create_schedule(C)
    i, j = C.op.axis
    outer, inner = s[C].split(j, factor=4)

    returned = s[C].transform_layout(lambda i, j: [j, i], loops="logical")

    assert returned == (i, j)
    assert s[C].leaf_iter_vars == (i, outer, inner)


def test_calls_compose() -> None:
    s = te.create_schedule(C)
    s[C].transform_layout(lambda i, j: [j, i])

    axes = s[C].transform_layout(lambda j, i: [i // 4, j, i % 4])

    assert [axis.name for axis in axes] == ["i.outer", "j", "i.inner"]
    assert s[C].leaf_iter_vars == axes
    assert physical_shape_of(s.state.stage(C.op)) == (2, 6, 4)


def test_a_call_after_logical_loops_starts_from_the_axes_of_the_map() -> None:
    s = te.create_schedule(C)
    s[C].transform_layout(lambda i, j: [j, i], loops="logical")

    s[C].transform_layout(lambda j, i: [i // 4, j, i % 4], loops="logical")

    assert physical_shape_of(s.state.stage(C.op)) == (2, 6, 4)
    assert s[C].leaf_iter_vars == C.op.axis


def test_parts_can_be_split_after_the_layout() -> None:
    s = te.create_schedule(C)
    j, i = s[C].transform_layout(lambda i, j: [j, i])

    outer, inner = s[C].split(i, factor=3)

    assert s[C].leaf_iter_vars == (j, outer, inner)


@pytest.mark.parametrize(
    ("mapping", "separators"),
    [
        (lambda i, j: [i, te.AXIS_SEPARATOR, j], (0,)),
        (lambda i, j: [i, j // 2, te.AXIS_SEPARATOR, j % 2], (1,)),
        (lambda i, j: [i, te.AXIS_SEPARATOR, j // 2, te.AXIS_SEPARATOR, j % 2], (0, 1)),
        (lambda i, j: [i, j], ()),
    ],
)
def test_separators_are_numbered_by_the_axis_before_them(
    mapping: Any, separators: tuple[int, ...]
) -> None:
    s = te.create_schedule(C)

    s[C].transform_layout(mapping)

    assert s.state.stage(C.op).layout.axis_separators == separators


def test_separators_are_kept_until_a_call_has_its_own() -> None:
    s = te.create_schedule(C)
    s[C].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])
    s[C].transform_layout(lambda i, j: [i, j // 2, j % 2])
    assert s.state.stage(C.op).layout.axis_separators == (0,)

    s[C].transform_layout(lambda i, jo, ji: [i, jo, te.AXIS_SEPARATOR, ji])

    assert s.state.stage(C.op).layout.axis_separators == (1,)


@pytest.mark.parametrize(
    ("pad_value", "text"),
    [
        (0, "lambda p0, p1, p2: int32(0)"),
        (-1.5, "lambda p0, p1, p2: float32(-1.5)"),
        (lambda i, jo, ji: ji * 2, "lambda p0, p1, p2: p2 * 2"),
        (lambda *i: i[0] + 1, "lambda p0, p1, p2: p0 + 1"),
    ],
)
def test_pad_values(pad_value: Any, text: str) -> None:
    s = te.create_schedule(C)

    s[C].transform_layout(lambda i, j: [i, j // 4, j % 4], pad_value=pad_value)

    assert str(s.state.stage(C.op).layout.pad_value) == text


def test_a_constant_pad_value_is_kept_by_later_calls() -> None:
    s = te.create_schedule(C)
    s[C].transform_layout(lambda i, j: [i, j // 4, j % 4], pad_value=3.0)

    s[C].transform_layout(lambda i, jo, ji: [jo, i * 4 + ji])

    assert str(s.state.stage(C.op).layout.pad_value) == "lambda p0, p1: float32(3.0)"


def test_a_new_layout_drops_the_alignment_of_the_old_one() -> None:
    s = te.create_schedule(C)
    s[C].storage_align(C.op.axis[0], 8, 1)

    j, _ = s[C].transform_layout(lambda i, j: [j, i])
    assert s.state.stage(C.op).aligns == ()
    s[C].storage_align(j, 8, 2)

    assert s.state.stage(C.op).aligns == ((0, 8, 2),)


def nothing(s: Schedule) -> None:
    assert s.trace.steps == ()


def split(s: Schedule) -> None:
    assert s[C].split(C.op.axis[1], factor=4)


def fuse(s: Schedule) -> None:
    s[C].fuse(*C.op.axis)


def separated(s: Schedule) -> None:
    s[C].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])


def padded(s: Schedule) -> None:
    s[C].transform_layout(lambda i, j: [i, j // 4, j % 4], pad_value=lambda i, jo, ji: ji)


Error = type[LayoutError | ScheduleError]
REFUSED: dict[
    str, tuple[Callable[[Schedule], None], Callable[[Schedule], object], Error, Diagnostic]
] = {
    "not injective": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [i // 2, j]),
        LayoutError,
        Diagnostic(
            "not-injective", where="s[C].transform_layout", first=(0, 0), second=(1, 0), stage="C",
            shape="[8, 6]",
        ),
    ),
    "an axis left out": (
        nothing,
        lambda s: s[A].transform_layout(lambda i, j: [i]),
        LayoutError,
        Diagnostic(
            "not-injective", where="s[A].transform_layout", first=(0, 0), second=(0, 1), stage="A",
            shape="[8, 6]",
        ),
    ),
    "negative": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [i - 1, j]),
        LayoutError,
        Diagnostic("negative-address", expr="i - 1", value=-1, index=(0, 0), positive=1),
    ),
    "a size variable": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [te.var("n") - i, j]),
        LayoutError,
        Diagnostic(
            "unbound-variable", where="s[C].transform_layout", position=0,
            result='cast("int64", n) - i', var="n", names="i, j",
        ),
    ),
    "more places than indices count": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [i * 2**60, j]),
        LayoutError,
        Diagnostic(
            "limit-exceeded", where="s[C].transform_layout", stage="C",
            product="8070450532247928833 * 6",
        ),
    ),
    "not quasi-affine": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [i * j, j, i]),
        LayoutError,
        Diagnostic("invalid-index-map", node="i * j"),
    ),
    "too few parameters": (
        nothing,
        lambda s: s[C].transform_layout(lambda i: [i]),
        LayoutError,
        Diagnostic("invalid-index-map", given_count="1 index", listed=" (i)", ndim="2 axes"),
    ),
    "too many parameters": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j, c: [i, j, c]),
        LayoutError,
        Diagnostic("invalid-index-map", given_count="3 indices", listed=" (i, j, c)", ndim="2 axes"),
    ),
    "an index map of another rank": (
        nothing,
        lambda s: s[C].transform_layout(IndexMap.from_func(lambda i: [i])),
        LayoutError,
        Diagnostic("layout-shape-mismatch", where="s[C].transform_layout", count=1, rank=2),
    ),
    "the rank that the tensor had before": (
        padded,
        lambda s: s[C].transform_layout(IndexMap.from_func(lambda i, j: [j, i])),
        LayoutError,
        Diagnostic("layout-shape-mismatch", where="s[C].transform_layout", count=2, rank=3),
    ),
    "a float": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [i * 0.5, j]),
        LayoutError,
        Diagnostic(
            "invalid-index-map", position=0, result='`cast("float32", i) * float32(0.5)`',
            dtype="float32",
        ),
    ),
    "no function": (
        nothing,
        lambda s: s[C].transform_layout([1, 0]),
        LayoutError,
        Diagnostic("invalid-type", where="s[C].transform_layout", mapping=[1, 0]),
    ),
    "an empty group": (
        nothing,
        lambda s: s[C].transform_layout(
            lambda i, j: [i, te.AXIS_SEPARATOR, te.AXIS_SEPARATOR, j]
        ),
        LayoutError,
        Diagnostic(
            "layout",
            reason="axis separators [0, 0] do not split 2 axes into groups of at least one axis; they must be ascending, each the last axis of its group; write a constant 0 in the map for a group without axes",
        ),
    ),
    "separators that do not fit any more": (
        separated,
        lambda s: s[C].transform_layout(lambda i, j: [i * 6 + j]),
        LayoutError,
        Diagnostic("layout-shape-mismatch", where="s[C].transform_layout", separators=[0], rank=1),
    ),
    "loops of another kind": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [j, i], loops="both"),
        ScheduleError,
        Diagnostic("unknown-choice", where="s[C].transform_layout", loops="both"),
    ),
    "a split axis": (
        split,
        lambda s: s[C].transform_layout(lambda i, j: [j, i]),
        ScheduleError,
        Diagnostic("primitive-order", where="s[C].transform_layout", missing="j", stage="C"),
    ),
    "a fused axis": (
        fuse,
        lambda s: s[C].transform_layout(lambda i, j: [j, i]),
        ScheduleError,
        Diagnostic("primitive-order", where="s[C].transform_layout", missing="i", stage="C"),
    ),
    "pad_value of a placeholder": (
        nothing,
        lambda s: s[A].transform_layout(lambda i, j: [j, i], pad_value=0),
        ScheduleError,
        Diagnostic("pad-value", where="s[A].transform_layout", stage="A"),
    ),
    "pad_value that is no number": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [j, i], pad_value="x"),
        ScheduleError,
        Diagnostic("pad-value", where="s[C].transform_layout", value="x"),
    ),
    "pad_value of the logical indices": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [i, j // 4, j % 4], pad_value=lambda i, j: 0),
        ScheduleError,
        Diagnostic("pad-value", where="s[C].transform_layout", index_count=3),
    ),
    "pad_value of a function that makes no number": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [j, i], pad_value=lambda i, j: [i]),
        ScheduleError,
        Diagnostic("pad-value", where="s[C].transform_layout", value="[p0]"),
    ),
    "pad_value that reads a tensor": (
        nothing,
        lambda s: s[C].transform_layout(lambda i, j: [j, i], pad_value=lambda j, i: A[i, j]),
        ScheduleError,
        Diagnostic("pad-value", where="s[C].transform_layout", expr="A[p1, p0]"),
    ),
    "a second map after a pad_value of indices": (
        padded,
        lambda s: s[C].transform_layout(lambda i, jo, ji: [jo, i, ji]),
        ScheduleError,
        Diagnostic("pad-value", where="s[C].transform_layout"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, refusal: Any) -> None:
    before, action, kind, expected = REFUSED[case]
    s = te.create_schedule(R)
    before(s)

    error = refusal(s, lambda: action(s))

    assert type(error) is kind
    assert diagnostic(error) == expected
    assert error.location is not None
    assert Path(error.location.file) == Path(__file__)


def test_a_composed_map_is_traced_as_calls() -> None:
    wide = te.IndexMap.from_func(lambda i, j: [i, j % 16])
    sticks = te.IndexMap.from_func(lambda i, j: [j // 8, i, j % 8])
    whole, apart = te.create_schedule(C.op), te.create_schedule(C.op)

    whole[C].transform_layout(wide.then(sticks), pad_value=1.0)
    apart[C].transform_layout(wide)
    apart[C].transform_layout(sticks, pad_value=1.0)

    assert str(lower(whole, [A, C])) == str(lower(apart, [A, C]))
