"""Results and remaining loops of split, tile, fuse, reorder and loop annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import IterKind, IterVar, Tensor
from tecomp.ir import ForKind
from tecomp.scheduling import StageState
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((10, 12), name="A")
k = te.reduce_axis((0, 12), name="k")


def elementwise() -> tuple[Schedule, Tensor]:
    C = te.compute((10, 12), lambda i, j: A[i, j] + 1.0, name="C")
    return te.create_schedule(C), C


def reduction() -> tuple[Schedule, Tensor]:
    C = te.compute((10,), lambda i: te.sum(A[i, k], axis=k), name="C")
    return te.create_schedule(C), C


def names(axes: tuple[IterVar, ...]) -> list[str]:
    return [axis.name for axis in axes]


def state_of(s: Schedule, tensor: Tensor) -> StageState:
    return s.state.stage(tensor.op)


def test_a_stage_starts_with_its_axes_reductions_innermost() -> None:
    s, C = reduction()

    assert s[C].leaf_iter_vars == (C.op.axis[0], k)
    assert s[C].all_iter_vars == (C.op.axis[0], k)


def test_split_by_factor() -> None:
    s, C = elementwise()
    i, j = s[C].op.axis

    outer, inner = s[C].split(j, factor=5)

    assert (outer.name, inner.name) == ("j.outer", "j.inner")
    assert (outer.extent, inner.extent) == (3, 5)
    assert s[C].leaf_iter_vars == (i, outer, inner)
    assert s[C].all_iter_vars == (i, j, outer, inner)


def test_a_tail_shifted_inwards_is_as_long_as_the_other_parts() -> None:
    s, C = elementwise()

    outer, inner = s[C].split(C.op.axis[0], factor=4, tail="shift_inwards")

    assert (outer.extent, inner.extent) == (3, 4)
    assert 's[C].split(i, factor=4, tail="shift_inwards")' in s.trace.to_python().replace("'", '"')
    replayed = tecomp.replay(s.trace.to_json(), C)
    assert replayed.trace.to_json() == s.trace.to_json()
    loops = str(tecomp.lower(s, [A, C], stop_after="nest").body)
    assert str(tecomp.lower(replayed, [A, C], stop_after="nest").body) == loops
    assert loops.count("min(6, i_outer * 4)") == 2


def test_split_by_parts() -> None:
    s, C = elementwise()

    outer, inner = s[C].split(C.op.axis[1], nparts=5)

    assert (outer.extent, inner.extent) == (5, 3)


def test_factor_is_the_second_parameter() -> None:
    s, C = elementwise()

    outer, inner = s[C].split(C.op.axis[0], 4)

    assert (outer.extent, inner.extent) == (3, 4)


def test_a_factor_longer_than_the_loop_is_cut_to_it() -> None:
    s, C = elementwise()

    outer, inner = s[C].split(C.op.axis[0], factor=64)

    assert (outer.extent, inner.extent) == (1, 10)


@pytest.mark.parametrize(
    ("argument", "extents"),
    [
        ({"nparts": 64}, (12, 1)), ({"nparts": 12}, (12, 1)), ({"nparts": 5}, (5, 3)),
        ({"factor": 64}, (1, 12)), ({"factor": 12}, (1, 12)), ({"factor": 5}, (3, 5)),
    ],
)
def test_no_part_has_more_iterations_than_the_loop(
    argument: dict[str, Any], extents: tuple[int, int]
) -> None:
    s, C = elementwise()

    outer, inner = s[C].split(C.op.axis[1], **argument)

    assert (outer.extent, inner.extent) == extents


n = te.var("n")


@pytest.mark.parametrize(
    ("extent", "argument"),
    [(12, {"factor": 4}), (12, {"nparts": 6}), (12, {"factor": 64}), (n * 4, {"factor": 4}),
     ((n + 7) // 8 * 8, {"factor": 8}), (n, {"factor": 1})],
)
def test_parts_of_one_length_need_no_predicate(extent: Any, argument: dict[str, Any]) -> None:
    C = te.compute((extent,), lambda i: i + 1, name="C")
    s = te.create_schedule(C)

    s[C].split(C.op.axis[0], disable_predication=True, **argument)

    assert "min(" not in str(tecomp.lower(s, [C]))
    assert "disable_predication=True" in s.trace.to_python()


def test_the_last_part_is_shifted_where_none_is_guarded(agrees: Any) -> None:
    C = te.compute((12,), lambda i: i + 1, name="C")
    s = te.create_schedule(C)

    outer, inner = s[C].split(C.op.axis[0], factor=5, disable_predication=True)
    s[C].vectorize(inner)

    assert (outer.extent, inner.extent) == (3, 5)
    assert tecomp.replay(s.trace.to_json(), C).trace.to_json() == s.trace.to_json()
    assert " in vectorized(5)" in str(tecomp.lower(s, [C], stop_after="nest"))
    agrees(s, [C], {C: np.arange(1, 13, dtype="int32")})


k = te.reduce_axis((0, 12), name="k")
TOTAL = te.compute((), lambda: te.sum(k, axis=k), name="T")


@pytest.mark.parametrize(
    ("tensor", "argument", "expected"),
    [
        (te.compute((12,), lambda i: i + 1, name="C"), {"nparts": 5},
         Diagnostic("conflicting-options", where="s[C].split(i)", option="disable_predication=True")),
        (te.compute((n,), lambda i: i + 1, name="C"), {"factor": 4},
         Diagnostic(
             "invalid-value", where="s[C].split(i)", option="disable_predication=True", factor=4,
             axis="i", extent="n",
         )),
        (TOTAL, {"factor": 5},
         Diagnostic(
             "not-parallelizable", where="s[T].split(k)", option="disable_predication=True", stage="T",
         )),
    ],
)
def test_parts_that_cannot_be_shifted(
    tensor: Any, argument: dict[str, Any], expected: Diagnostic, refusal: Any
) -> None:
    s = te.create_schedule(tensor)
    axis = s[tensor].leaf_iter_vars[0]

    error = refusal(s, lambda: s[tensor].split(axis, disable_predication=True, **argument))

    assert diagnostic(error) == expected


def test_parts_of_a_split_can_be_split() -> None:
    s, C = elementwise()
    i, j = C.op.axis
    outer, inner = s[C].split(j, factor=6)

    middle, innermost = s[C].split(inner, factor=2)

    assert names(s[C].leaf_iter_vars) == ["i", "j.outer", "j.inner.outer", "j.inner.inner"]
    assert s[C].leaf_iter_vars == (i, outer, middle, innermost)


def test_parts_of_a_reduction_are_reductions() -> None:
    s, C = reduction()

    outer, inner = s[C].split(k, factor=5)

    assert outer.kind is inner.kind is IterKind.REDUCE
    assert names(s[C].leaf_iter_vars) == ["i", "k.outer", "k.inner"]


@pytest.mark.parametrize(("extent", "factor", "outer"), [
    (8 * n, 8, "n"), (n * 8, 4, "int32(2) * n"), (8 * n + 16 * n * n, 8, "n + int32(2) * n * n"),
    (n * (12 - 4 * n), 4, "(int32(3) - n) * n"), (n, 1, "n"),
    (8 * n + 4, 8, '(cast("int64", int32(8) * n + int32(4)) + 7) // 8'),
    (n // 8, 8, '(cast("int64", n // int32(8)) + 7) // 8'),
])  # fmt: skip
def test_extents_of_multiples_are_simple(extent: Any, factor: int, outer: str) -> None:
    C = te.compute((extent,), lambda i: i, name="C")
    s = te.create_schedule(C)

    assert str(s[C].split(C.op.axis[0], factor=factor)[0].extent) == outer


def test_split_by_a_symbolic_factor() -> None:
    n = te.var("n")
    X = te.placeholder((n,), name="X")
    C = te.compute((n,), lambda i: X[i] + 1.0, name="C")
    s = te.create_schedule(C)

    outer, inner = s[C].split(C.op.axis[0], nparts=n)

    assert str(outer.extent) == "n"
    assert s[C].leaf_iter_vars == (outer, inner)


def test_tile_returns_outer_loops_then_inner_ones() -> None:
    s, C = elementwise()
    i, j = C.op.axis

    tiles = s[C].tile(i, j, 4, 5)

    assert names(tiles) == ["i.outer", "j.outer", "i.inner", "j.inner"]
    assert [axis.extent for axis in tiles] == [3, 3, 4, 5]
    assert s[C].leaf_iter_vars == tiles


def test_tile_by_named_arguments() -> None:
    s, C = elementwise()
    i, j = C.op.axis

    tiles = s[C].tile(x_parent=j, y_parent=i, x_factor=4, y_factor=2)

    assert names(tiles) == ["j.outer", "i.outer", "j.inner", "i.inner"]
    assert s[C].leaf_iter_vars == tiles


def test_fuse() -> None:
    s, C = elementwise()
    i, j = C.op.axis

    fused = s[C].fuse(i, j)

    assert (fused.name, fused.extent, fused.kind) == ("i.j.fused", 120, IterKind.DATA)
    assert s[C].leaf_iter_vars == (fused,)


def test_three_loops_are_fused_two_by_two() -> None:
    C = te.compute((2, 3, 4), lambda i, j, k: i, name="C")
    s = te.create_schedule(C)

    fused = s[C].fuse(*C.op.axis)

    assert (fused.name, fused.extent) == ("i.j.fused.k.fused", 24)


def test_fuse_keeps_the_position_of_other_loops() -> None:
    s, C = elementwise()
    i, j = C.op.axis
    xo, yo, xi, yi = s[C].tile(i, j, 2, 3)

    fused = s[C].fuse(yo, xi)

    assert s[C].leaf_iter_vars == (xo, fused, yi)
    assert fused.extent == 8


def test_fuse_of_data_and_reduction_is_a_reduction() -> None:
    s, C = reduction()

    fused = s[C].fuse(C.op.axis[0], k)

    assert fused.kind is IterKind.REDUCE
    assert fused.extent == 120


def test_fuse_of_one_axis_is_that_axis() -> None:
    s, C = elementwise()
    i, j = C.op.axis

    assert s[C].fuse(j) is j
    assert s[C].leaf_iter_vars == (i, j)


def test_fuse_of_nothing_is_an_outermost_loop_of_one_iteration() -> None:
    s, C = elementwise()
    i, j = C.op.axis

    single = s[C].fuse()

    assert (single.name, single.extent) == ("singleton", 1)
    assert s[C].leaf_iter_vars == (single, i, j)


def test_fuse_of_nothing_gives_a_0d_stage_a_loop() -> None:
    C = te.compute((), lambda: A[0, 0] + 1.0, name="C")
    s = te.create_schedule(C)

    single = s[C].fuse()
    s[C].parallel(single)

    assert s[C].leaf_iter_vars == (single,)


def test_reorder_permutes_only_its_arguments() -> None:
    s, C = elementwise()
    i, j = C.op.axis
    xo, yo, xi, yi = s[C].tile(i, j, 2, 3)

    s[C].reorder(yi, xo)

    assert s[C].leaf_iter_vars == (yi, yo, xi, xo)


@pytest.mark.parametrize("count", [0, 1])
def test_reorder_of_less_than_two_loops_changes_nothing(count: int) -> None:
    s, C = elementwise()

    s[C].reorder(*C.op.axis[:count])

    assert s[C].leaf_iter_vars == C.op.axis


def test_reorder_mixes_data_and_reduction_loops() -> None:
    s, C = reduction()
    outer, inner = s[C].split(k, factor=4)

    s[C].reorder(outer, C.op.axis[0], inner)

    assert s[C].leaf_iter_vars == (outer, C.op.axis[0], inner)


@pytest.mark.parametrize(
    ("primitive", "kind"),
    [
        ("vectorize", ForKind.VECTORIZED),
        ("unroll", ForKind.UNROLLED),
        ("parallel", ForKind.PARALLEL),
    ],
)
def test_a_mark_belongs_to_its_loop(primitive: str, kind: ForKind) -> None:
    s, C = elementwise()
    i, j = C.op.axis

    getattr(s[C], primitive)(j)

    assert state_of(s, C).marks == {j: kind}
    assert s[C].leaf_iter_vars == (i, j)


def test_a_reduction_can_be_unrolled() -> None:
    s, C = reduction()

    s[C].unroll(k)

    assert state_of(s, C).marks == {k: ForKind.UNROLLED}


def test_the_last_mark_counts() -> None:
    s, C = elementwise()
    j = C.op.axis[1]
    s[C].vectorize(j)

    s[C].unroll(j)

    assert state_of(s, C).marks == {j: ForKind.UNROLLED}


@pytest.mark.parametrize("thread", [te.thread_axis("blockIdx.x"), "blockIdx.x"])
def test_bind(thread: Any) -> None:
    s, C = elementwise()
    i, _ = C.op.axis

    s[C].bind(i, thread)

    assert state_of(s, C).threads == {i: "blockIdx.x"}


def test_a_reduction_can_be_bound_to_a_serial_thread() -> None:
    s, C = reduction()

    s[C].bind(k, te.thread_axis("threadIdx.x"))

    assert state_of(s, C).threads == {k: "threadIdx.x"}


def test_bind_to_as_many_threads_as_the_loop_has_iterations() -> None:
    s, C = elementwise()
    i, _ = C.op.axis
    assert isinstance(i.extent, int)
    s[C].bind(i, te.thread_axis(i.extent, "blockIdx.x"))

    assert state_of(s, C).threads == {i: "blockIdx.x"}


def test_thread_axis_forms() -> None:
    assert te.thread_axis("threadIdx.x").extent is None
    assert te.thread_axis((0, 64), "threadIdx.x").extent == 64
    assert te.thread_axis(32, tag="threadIdx.y").tag == "threadIdx.y"


def test_split_drops_the_annotations_of_the_split_loop() -> None:
    s, C = elementwise()
    i, j = C.op.axis
    s[C].vectorize(j)
    s[C].parallel(i)
    s[C].bind(j, "threadIdx.x")

    s[C].split(j, factor=4)

    assert state_of(s, C).marks == {i: ForKind.PARALLEL}
    assert state_of(s, C).threads == {}


def test_fuse_drops_the_annotations_of_the_fused_loops() -> None:
    s, C = elementwise()
    i, j = C.op.axis
    s[C].vectorize(j)
    s[C].bind(i, "blockIdx.x")

    s[C].fuse(i, j)

    assert state_of(s, C).marks == {}
    assert state_of(s, C).threads == {}


def test_each_stage_has_its_own_loops() -> None:
    P = te.compute((10, 12), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((10, 12), lambda i, j: P[i, j] + 1.0, name="C")
    s = te.create_schedule(C)

    s[P].split(P.op.axis[0], factor=3)

    assert names(s[P].leaf_iter_vars) == ["i.outer", "i.inner", "j"]
    assert s[C].leaf_iter_vars == C.op.axis


def test_a_schedule_does_not_touch_another_of_the_same_computation() -> None:
    s, C = elementwise()
    t = te.create_schedule(C)

    s[C].split(C.op.axis[0], factor=3)

    assert t[C].leaf_iter_vars == C.op.axis
