"""Calls of intrinsics on tensor regions: results and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import (
    DefinitionError,
    LowerError,
    ScheduleError,
    TecompError,
    TypeMismatchError,
)
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.intrinsics import tile_product

A = te.placeholder((8, 32), name="A")
B = te.placeholder((8, 32), name="B")
n = te.var("n")


def vadd(count: Any = 16, dtype: str = "float32", **requested: Any) -> te.TensorIntrin:
    x, y = (te.placeholder((count,), dtype, name=name) for name in "xy")
    z = te.compute((count,), lambda i: x[i] + y[i], name="z")

    def statements(ins: Any, outs: Any) -> Any:
        return te.for_range(0, count, lambda i: outs[0].store(i, ins[0][i] + ins[1][i]))

    return te.decl_tensor_intrin(z.op, statements, "vadd", **requested)


def scaled(count: Any = 16) -> te.TensorIntrin:
    x, f = te.placeholder((count,), name="x"), te.var("f", "float32")
    z = te.compute((count,), lambda i: x[i] * f, name="z")

    def statements(ins: Any, outs: Any, numbers: Any) -> Any:
        return te.for_range(0, count, lambda i: outs[0].store(i, ins[0][i] * numbers[0]))

    return te.decl_tensor_intrin(z.op, statements, "scaled", scalar_params=[f])


def added(intrin: te.TensorIntrin | None = None) -> te.Tensor:
    add = vadd() if intrin is None else intrin
    return te.compute((8, 16), lambda i: add(A[i, 0:16], B[i, 16:32]), name="C")


def test_intrinsic_calls_return_expressions() -> None:
    C = added()
    s = te.create_schedule(C.op)

    assert isinstance(C.op, te.TensorComputeOp)
    assert (C.shape, C.dtype, C.op.input_tensors) == ((8, 16), "float32", (A, B))
    assert str(C.op) == "C[i, ax0] = A[i, ax0] + B[i, int32(16) + ax0] by vadd"
    assert [axis.name for axis in C.op.axis] == ["i", "ax0"]
    assert s[C].leaf_iter_vars == C.op.axis[:1]
    assert s[C].all_iter_vars == C.op.axis[:1]


def test_a_reduction_around() -> None:
    product = tile_product(4, 8, 2, transposed=True, name="gemm")
    X, Y = te.placeholder((3, 5, 4, 2), name="X"), te.placeholder((2, 5, 8, 2), name="Y")
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute((3, 2, 4, 8), lambda i, j: product(
        X[i, k, 0:4, 0:2], Y[j, k, 0:8, 0:2], reduce_axis=k), name="C")
    s = te.create_schedule(C.op)

    assert str(C.op) == (
        "C[i, j, ax0, ax1] = sum(X[i, k, ax0, k_1] * Y[j, k, ax1, k_1], axis=[k, k_1]) "
        "by gemm"
    )
    assert C.op.reduce_axis[0] is k
    assert s[C].leaf_iter_vars == (*C.op.axis[:2], k)


def test_the_operation_takes_the_place_of_a_tile() -> None:
    C = added()

    text = str(tecomp.lower(te.create_schedule(C.op), [A, B, C], stop_after="nest").body)

    assert text.splitlines()[0:2] == ["for i in range(8):", '    with TensorOp("vadd", tile=(16,)):']


DATA = np.random.default_rng(3).random((2, 8, 32)).astype("float32")


@pytest.mark.parametrize("count", [16, n, n + 1])
def test_numbers(agrees: Any, count: Any) -> None:
    C = added(vadd(count) if not isinstance(count, te.Expr) or count is n else vadd(n))

    agrees(te.create_schedule(C.op), [A, B, C], {
        A: DATA[0], B: DATA[1], C: DATA[0][:, :16] + DATA[1][:, 16:]})


def test_scheduled(agrees: Any) -> None:
    """Outer loops can be split, fused and bound, and operands and results relaid out."""
    C = added()
    D = te.compute((8, 16), lambda i, j: C[i, j] * 2.0, name="D")
    s = te.create_schedule(D.op)
    local = s.cache_read(A, "local", C)
    i, _ = D.op.axis
    outer, _ = s[D].split(i, factor=3)
    s[C].compute_at(s[D], outer)
    s[local].compute_at(s[C], s[C].op.axis[0])
    s[C].transform_layout(lambda i, j: [j, i])
    s[B].transform_layout(lambda i, j: [j // 8, i, j % 8])
    s[D].parallel(outer)

    agrees(s, [A, B, D], {A: DATA[0], B: DATA[1], D: 2 * (DATA[0][:, :16] + DATA[1][:, 16:])})


def test_numbers_that_an_intrinsic_takes(agrees: Any) -> None:
    scale = scaled()
    C = te.compute((8, 16), lambda i: scale(A[i, 8:24], 2), name="C")

    assert str(C.op) == "C[i, ax0] = A[i, int32(8) + ax0] * float32(2.0) by scaled"
    agrees(te.create_schedule(C.op), [A, C], {A: DATA[0], C: DATA[0][:, 8:24] * 2})


@pytest.mark.parametrize("scope", ["", "local"])
def test_intrinsics_may_read_a_cache(scope: str, agrees: Any) -> None:
    C = added(vadd(default_buffer_params={"scope": scope}) if scope else None)
    s = te.create_schedule(C.op)
    cached = s.cache_write(C, "local")
    if scope:
        for x in (A, B):
            s[s.cache_read(x, scope, cached)].compute_at(s[cached], cached.op.axis[0])
    i, j = C.op.axis
    outer, _ = s[C].split(i, factor=3)
    s[C].vectorize(j)
    s[cached].compute_at(s[C], outer)

    assert str(s[cached].op).startswith("C_local[i_c, ax0_c] = A")
    assert str(s[cached].op).endswith("by vadd")
    assert s[cached].leaf_iter_vars == cached.op.axis[:1]
    text = str(tecomp.lower(s, [A, B, C], stop_after="nest"))
    assert text.count('TensorOp("vadd"') == 1
    agrees(s, [A, B, C], {A: DATA[0], B: DATA[1], C: DATA[0][:, :16] + DATA[1][:, 16:]})


def test_a_cache_of_a_call_with_numbers(agrees: Any) -> None:
    scale = scaled()
    C = te.compute((8, 16), lambda i: scale(A[i, 8:24], i * 2), name="C")
    s = te.create_schedule(C.op)
    s.cache_write(C, "local")
    expected = DATA[0][:, 8:24] * (2 * np.arange(8, dtype="float32")[:, None])

    agrees(s, [A, C], {A: DATA[0], C: expected})


@pytest.mark.parametrize("split", [None, 3, 4])
def test_numbers_of_axes_around(split: int | None, agrees: Any) -> None:
    scale = scaled(n)
    x = te.var("x", "float32")
    C = te.compute((8, 16), lambda i: scale(A[i, 8:24], i * i * x + te.Select(i > 3, i, 7)), name="C")
    s = te.create_schedule(C.op)
    if split:
        s[C].split(C.op.axis[0], split)
    row = np.arange(8)
    expected = DATA[0][:, 8:24] * (row * row * 0.5 + np.where(row > 3, row, 7))[:, None]

    agrees(s, [A, x, C], {A: DATA[0], x: 0.5, C: expected.astype("float32")})


def test_one_part_twice(agrees: Any) -> None:
    add = vadd(n)
    C = te.compute((4, 16), lambda i: add(A[2 * i, i * 4:i * 4 + 16], A[2 * i, i * 4:i * 4 + 16]),
                   name="C")
    expected = np.stack([2 * DATA[0][2 * i, 4 * i:4 * i + 16] for i in range(4)])

    agrees(te.create_schedule(C.op), [A, C], {A: DATA[0], C: expected})


def test_a_row_is_a_part(agrees: Any) -> None:
    add = vadd(32)
    C = te.compute((8, 32), lambda i: add(A[i], B[7 - i]), name="C")

    agrees(te.create_schedule(C.op), [A, B, C],
           {A: DATA[0], B: DATA[1], C: DATA[0] + DATA[1][::-1]})


def test_by_loops(agrees: Any) -> None:
    C = added()
    s = te.create_schedule(C.op)
    s[C].expand()
    i, j = C.op.axis
    s[C].reorder(j, i)
    s[C].vectorize(i)
    replayed = tecomp.replay(s.trace.to_json(), C)

    assert replayed.trace.to_json() == s.trace.to_json()
    assert "TensorOp" not in str(tecomp.lower(s, [A, B, C], stop_after="nest"))
    agrees(s, [A, B, C], {A: DATA[0], B: DATA[1], C: DATA[0][:, :16] + DATA[1][:, 16:]})


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("target", tecomp.list_targets())
def test_programs_of_calls(target: str) -> None:
    C = added()
    D = te.compute((8, 16), lambda i, j: C[i, j] * 2.0, name="D")

    program = tecomp.compile([D], [A, B], target=target)

    expected = 2 * (DATA[0][:, :16] + DATA[1][:, 16:])
    assert_close(program(*DATA), expected, rtol=1e-2 if target != "cpu" else 1e-6)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("target", tecomp.list_targets())
def test_results_of_calls_have_the_layout_that_was_decided(target: str) -> None:
    add = vadd()
    rows = te.compute((8, 16), lambda i: add(A[i, 16:32], B[i, 0:16]), name="rows")
    tiles = te.compute((8, 2, 16), lambda i, j: add(
        A[i, j * 16:j * 16 + 16], B[i, j * 16:j * 16 + 16]), name="tiles")
    total = DATA[0] + DATA[1]

    for result, expected in [
        (rows, DATA[0][:, 16:] + DATA[1][:, :16]), (tiles, total.reshape(8, 2, 16)),
    ]:
        found = tecomp.compile(result, [A, B], target=target)(*DATA)
        assert_close(found, expected, rtol=1e-2 if target != "cpu" else 1e-6)


def test_open_sizes_at_a_loop(agrees: Any) -> None:
    add = vadd(n)
    D = te.compute((8, 32), lambda i, j: A[i, j] + B[i, j], name="D")
    s = te.create_schedule(D.op)
    _, inner = s[D].split(D.op.axis[1], factor=8)
    s[D].tensorize(inner, add)
    replayed = tecomp.replay(s.trace.to_json(), D, {"vadd": add})

    assert replayed.trace.to_json() == s.trace.to_json()
    agrees(s, [A, B, D], {A: DATA[0], B: DATA[1], D: DATA[0] + DATA[1]})


def refused(action: Callable[[], object], kind: type[TecompError] = DefinitionError) -> Diagnostic:
    with pytest.raises(kind) as error:
        action()
    return diagnostic(error.value)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda i: vadd()(A[i, 0:16]),
         Diagnostic("count-mismatch", where="vadd(...)", part_count=1, name_count=2, names="x, y")),
        (lambda i: vadd()(A[i, 0:16], B[i, 0:16], 3),
         Diagnostic("count-mismatch", where="vadd(...)", scalar_count=1, params="none")),
        (lambda i: scaled()(A[i, 0:16]),
         Diagnostic("count-mismatch", where="scaled(...)", scalar_count=0, params="f")),
        (lambda i: scaled()(A[i, 0:16], B[i, 0] * 2.0),
         Diagnostic("intrinsic", where="scaled(...)", var="f", read="B[i, int32(0)]")),
        (lambda i: vadd()(A[i, 0:8], B[i, 0:16]),
         Diagnostic(
             "intrinsic", where="vadd(...)", param="x", shape="(16,)", text="A[i, 0:8]",
             slice_shape="(8,)",
         )),
        (lambda i: vadd(n)(A[i, 0:8], B[i, 0:16]),
         Diagnostic(
             "intrinsic", where="vadd(...)", param="y", shape="(n,)", text="B[i, 0:16]",
             slice_shape="(16,)",
         )),
        (lambda i: vadd()(A[0:16, i], B[i, 0:16]),
         Diagnostic("index-out-of-bounds", where="vadd(...): A[0:16, i]: axis 0", end=16, extent="8")),
        (lambda i: vadd()(A[i, 16:0], B[i, 0:16]),
         Diagnostic("index-out-of-bounds", where="vadd(...): A[i, 16:0]: axis 1", first="16", last="0")),
        (lambda i: vadd()(A[i, -16:0], B[i, 0:16]),
         Diagnostic("index-out-of-bounds", where="vadd(...): A[i, -16:0]: axis 1", start=-16)),
        (lambda i: vadd(dtype="int32")(A[i, 0:16], B[i, 0:16]),
         Diagnostic(
             "intrinsic", where="vadd(...)", param="x", dtype="int32", text="A[i, 0:16]",
             tensor_dtype="float32",
         )),
        (lambda i: vadd()(A[i, 0:16], B[i, 0:16], reduce_axis=te.reduce_axis((0, 3))),
         Diagnostic("intrinsic", where="vadd(...)", name="vadd")),
        (lambda i: vadd()(A[i, 0:16], B[i, 0:16], reduce_axis=i),
         Diagnostic("intrinsic", where="vadd(...)", axis="i")),
        (lambda i: vadd()(A[i, 0:32:2], B[i, 0:16]),
         Diagnostic("index-type", tensor="A", axis=1, index="slice(0, 32, 2)")),
        (lambda i: vadd(8)(A[i, 0:8], B[i, 0:8]),
         Diagnostic("intrinsic", where="te.compute C", inside=[16], intrin="vadd", extents=['8'])),
        (lambda i: A[i, 0],
         Diagnostic("invalid-index-function", where="te.compute C", axes="2 axes", name_count=1, names="i")),
        (lambda i, j: vadd()(A[i, 0:16], B[i, 0:16]),
         Diagnostic("intrinsic", where="te.compute C", intrin="vadd")),
    ],
)
def test_calls_that_do_not_fit(call: Callable[..., object], expected: Diagnostic) -> None:
    assert refused(lambda: te.compute((8, 16), call, name="C")) == expected  # type: ignore[arg-type]


def test_a_part_is_no_number() -> None:
    assert refused(lambda: A[0, 0:16] + 1, TypeMismatchError) == (
        Diagnostic("tensor-as-scalar", tensor="A", indices="0, 0:16", example="A[i, j]")
    )
    assert repr(A[n, n:16]) == "TensorSlice(A[n, n:16] of shape (8, 32))"
    assert isinstance(A[n, :], te.TensorSlice)
    assert A[n, :].dtype == "float32"


def test_the_loops_of_a_tile_are_the_intrinsic_s() -> None:
    C = added()
    s = te.create_schedule(C.op)
    i, inner = C.op.axis

    assert refused(lambda: s[C].split(inner, 4), ScheduleError) == (
        Diagnostic(
            "unknown-loop", stage="C", call="split",
            reason="vadd replaces loop ax0; its loops are now i, and s[C].expand() restores the others",
        )
    )
    assert refused(lambda: s[C].tensorize(i, vadd()), ScheduleError) == (
        Diagnostic("pattern-mismatch", where="s[C].tensorize(i)", intrin="vadd", stage="C")
    )
    D = te.compute((8,), lambda i: A[i, 0])
    t = te.create_schedule(D.op)
    assert refused(lambda: t[D].expand(), ScheduleError) == (
        Diagnostic("pattern-mismatch", stage="compute")
    )


def test_inputs_of_intrinsics_are_stored() -> None:
    P = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="P")
    add = vadd()
    C = te.compute((8, 16), lambda i: add(P[i, 0:16], B[i, 0:16]), name="C")
    s = te.create_schedule(C.op)
    s[P].compute_inline()

    assert refused(lambda: tecomp.lower(s, [A, B, C]), LowerError) == (
        Diagnostic("requires-storage", name="P", stage="C", intrin="vadd")
    )
    s = te.create_schedule(te.compute((8, 16), lambda i, j: C[i, j] + 1.0).op)
    assert refused(lambda: s[C].compute_inline(), ScheduleError) == (
        Diagnostic(
            "requires-storage", where="s[C].compute_inline", stage="C", subject="is computed by vadd",
        )
    )


def test_tiles_of_a_cache_are_where_axes_say() -> None:
    C = added()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], 4)

    assert refused(lambda: s.cache_write(C, "local"), ScheduleError) == (
        Diagnostic("primitive-order", where="s.cache_write(C, 'local')", axis_kind="axis", missing="i")
    )


def test_sizes_that_loops_do_not_say() -> None:
    D = te.compute((8, 32), lambda i, j: A[i, j] + B[i, j], name="D")
    s = te.create_schedule(D.op)

    assert refused(lambda: s[D].tensorize(D.op.axis[0], vadd(n)), ScheduleError) == (
        Diagnostic(
            "tensorize", where="s[D].tensorize(i)", intrin="vadd", axis="i: n",
            inside="i: 8, j: 32",
        )
    )


def test_statements_with_symbolic_sizes_are_checked_at_use() -> None:
    x = te.placeholder((n,), name="x")
    z = te.compute((n,), lambda i: x[i] * 2.0, name="z")
    half = te.decl_tensor_intrin(z.op, lambda ins, outs: te.for_range(
        0, n // 2, lambda i: outs[0].store(i, ins[0][i] * 2.0)), "half")

    assert refused(lambda: te.check_tensor_intrin(half)) == (
        Diagnostic("intrinsic", intrin="half")
    )
    assert refused(lambda: te.compute((8, 4), lambda i: half(A[i, 0:4]))) == (
        Diagnostic(
            "intrinsic", intrin="half",
            found="the body stores 1.5 at z[2], where the definition gives -2.5, for x[2] = -1.25",
        )
    )


def test_address_requirements_are_accepted() -> None:
    add = vadd(default_buffer_params={"offset_factor": 16, "data_alignment": 64, "scope": "global"})

    assert add.scopes == ("global",) * 3
    assert refused(lambda: vadd(default_buffer_params={"offset_factor": 0})) == (
        Diagnostic("intrinsic", where="te.decl_tensor_intrin vadd", name="offset_factor", param=0)
    )


@pytest.mark.parametrize("use", [
    lambda call: call + 1, lambda call: -call, lambda call: te.exp(call), lambda call: 2.0 * call,
])
def test_a_call_is_no_number(use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeMismatchError) as error:
        te.compute((8, 16), lambda i: use(vadd()(A[i, 0:16], B[i, 16:32])))
    assert diagnostic(error.value) == (
        Diagnostic("tensor-as-scalar", intrin="vadd", parts="A[i, 0:16], B[i, 16:32]")
    )
