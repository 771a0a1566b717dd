"""`tensorize` rejects loops that compute something else, with the position and the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tecomp
from tecomp import te
from tests.messages import Diagnostic, diagnostic


def intrinsic(
    op: te.Tensor, name: str, *, update: bool = True, scope: str = ""
) -> te.TensorIntrin:
    """Declare an intrinsic whose statements are irrelevant to the test."""

    def statements(ins: Any, outs: Any) -> Any:
        index = (0,) * len(outs[0].shape)
        store = outs[0].store(index, 0)
        return (store, store, store) if update else store

    requested = {"scope": scope} if scope else {}
    return te.decl_tensor_intrin(op.op, statements, name, default_buffer_params=requested, check="never")


def product_intrinsic(m: int, n: int, depth: int, **requested: Any) -> te.TensorIntrin:
    a, b = te.placeholder((m, depth), name="a"), te.placeholder((depth, n), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return intrinsic(c, "gemm", **requested)


def product(m: int = 8, n: int = 8, depth: int = 8) -> tuple[list[te.Tensor], te.Schedule]:
    A, B = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return [A, B, C], te.create_schedule(C)


def refused(call: Callable[[], object], kind: type[tecomp.TecompError]) -> Diagnostic:
    with pytest.raises(kind) as caught:
        call()
    return diagnostic(caught.value)


def lowered(s: te.Schedule, args: list[te.Tensor]) -> Diagnostic:
    return refused(lambda: tecomp.lower(s, args), tecomp.LowerError)


def test_another_reduction() -> None:
    (A, B, C), _ = product()
    k = te.reduce_axis((0, 8), name="k")
    D = te.compute((8, 8), lambda i, j: te.max(A[i, k] * B[k, j], axis=k), name="D")
    s = te.create_schedule(D)
    s[D].tensorize(D.op.axis[0], product_intrinsic(8, 8, 8))
    del C

    assert lowered(s, [A, B, D]) == (
        Diagnostic(
            "tensorize", where="s[D].tensorize(i, gemm)", body="max(A[i, k] * B[k, j], axis=[k])",
            name="gemm", intrin_body="sum(a[i, k] * b[k, j], axis=[k])",
        )
    )


def test_tiles_of_another_shape() -> None:
    args, s = product()
    (C,) = args[2:]
    _, _, i, _ = s[C].tile(C.op.axis[0], C.op.axis[1], 4, 8)
    s[C].tensorize(i, product_intrinsic(8, 4, 4))

    assert lowered(s, args) == (
        Diagnostic(
            "tensorize", where="s[C].tensorize(i.inner, gemm)", ours="i: 4, j: 8, k: 8",
            intrin="gemm", intrin_extents="i: 8, j: 4, k: 4",
        )
    )


def test_an_operand_that_depends_on_one_axis_more() -> None:
    """`b[k, j]` would be `B[k, i + j]`, no function of k and j; the error shows the point."""
    A = te.placeholder((8, 8), name="A")
    B = te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[k, i + j], axis=k), name="C")
    s = te.create_schedule(C)
    s[C].tensorize(C.op.axis[0], product_intrinsic(8, 8, 8))

    assert lowered(s, [A, B, C]) == (
        Diagnostic(
            "tensorize", where="s[C].tensorize(i, gemm)", tensor="b", intrin="gemm",
            load="B[k, i + j]", element="[0, 0]", tensor_name="B", first="[0, 0]",
            pair="(i=0, j=0, k=0)", second="[0, 1]", point_of_pair="(i=1, j=0, k=0)",
        )
    )


def test_data_dependent_index() -> None:
    A = te.placeholder((8, 8), name="A")
    P = te.placeholder((8,), "int32", name="P")
    B = te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[P[k], j], axis=k), name="C")
    s = te.create_schedule(C)
    s[C].tensorize(C.op.axis[0], product_intrinsic(8, 8, 8))

    assert lowered(s, [A, P, B, C]) == (
        Diagnostic("tensorize", where="s[C].tensorize(i, gemm)", index="P[k]", load="B[P[k], j]")
    )


def test_a_tail_that_is_not_neutral() -> None:
    a = te.placeholder((4,), name="a")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((1,), lambda i: te.max(a[k], axis=k), name="c")
    A = te.placeholder((6, 10), name="A")
    r = te.reduce_axis((0, 10), name="r")
    B = te.compute((6,), lambda i: te.max(A[i, r], axis=r), name="B")
    s = te.create_schedule(B)
    _, inner = s[B].split(r, 4)
    s[B].tensorize(inner, intrinsic(c, "row_max"))

    assert lowered(s, [A, B]) == (
        Diagnostic(
            "tensorize", where="s[B].tensorize(r.inner, row_max)",
            definition="tiles of 4 do not divide axis r of extent 10", intrin="row_max",
            read="a = float32(0.0)", combiner="max", source="a[k]", identity='float32("-inf")',
        )
    )


def test_a_split_reduction_needs_an_update() -> None:
    args, s = product()
    C = args[2]
    ko, ki = s[C].split(C.op.reduce_axis[0], 4)
    i, j = C.op.axis
    s[C].reorder(ko, i, j, ki)
    s[C].tensorize(i, product_intrinsic(8, 8, 4, update=False))

    assert lowered(s, args) == (
        Diagnostic("tensorize", where="s[C].tensorize(i, gemm)", intrin="gemm")
    )


def test_a_condition_of_the_reduction() -> None:
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((8,), lambda i: te.sum(A[k], axis=k, where=k <= i), name="B")
    a = te.placeholder((8,), name="a")
    r = te.reduce_axis((0, 8), name="r")
    c = te.compute((1,), lambda i: te.sum(a[r], axis=r), name="c")
    s = te.create_schedule(B)
    s[B].tensorize(k, intrinsic(c, "total"))

    assert lowered(s, [A, B]) == (
        Diagnostic("tensorize", where="s[B].tensorize(k, total)", condition="k <= i", name="total")
    )


def test_the_value_of_an_axis() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + i.astype("float32"), name="B")
    a = te.placeholder((8,), name="a")
    c = te.compute((8,), lambda i: a[i] + 1.0, name="c")
    s = te.create_schedule(B)
    s[B].tensorize(B.op.axis[0], intrinsic(c, "inc"))

    assert lowered(s, [A, B]) == (
        Diagnostic("tensorize", where="s[B].tensorize(i, inc)", stage="B", axis="i", name="inc")
    )


def test_memory_that_an_operand_has_to_be_in() -> None:
    args, s = product()
    s[args[2]].tensorize(args[2].op.axis[0], product_intrinsic(8, 8, 8, scope="local"))

    assert lowered(s, args) == (
        Diagnostic(
            "tensorize", where="s[C].tensorize(i, gemm)", buffer="a", scope="local", tensor="A",
            here="global",
        )
    )


def test_marks_inside() -> None:
    args, s = product()
    s[args[2]].vectorize(args[2].op.axis[1])
    s[args[2]].tensorize(args[2].op.axis[0], product_intrinsic(8, 8, 8))

    assert lowered(s, args) == (
        Diagnostic(
            "tensorize", where="s[C].tensorize(i, gemm)", leaf="j", call="vectorized",
            intrin="gemm",
        )
    )


def test_a_loop_that_is_split_later() -> None:
    args, s = product()
    s[args[2]].tensorize(args[2].op.axis[0], product_intrinsic(8, 8, 8))
    s[args[2]].split(args[2].op.axis[0], 4)

    assert lowered(s, args) == (
        Diagnostic(
            "unknown-loop", where="s[C].tensorize(i, gemm)", axis="i", stage="C",
            names="i.outer, i.inner, j, k",
        )
    )


def test_a_stage_computed_inside() -> None:
    args, s = product()
    A, _, C = args
    copy = s.cache_read(A, "local", [C])
    s[copy].compute_at(s[C], C.op.axis[1])
    s[C].tensorize(C.op.axis[0], product_intrinsic(8, 8, 8))

    assert lowered(s, args) == (
        Diagnostic(
            "tensorize", where="s[C].tensorize(i, gemm)", stage="A.local", leaf="j",
            intrin="gemm",
        )
    )


def test_errors_of_the_tensorize_call() -> None:
    args, s = product()
    C = args[2]
    i, j = C.op.axis
    source: Any = 3
    assert refused(lambda: s[C].tensorize(i, source), tecomp.ScheduleError) == (
        Diagnostic("invalid-type", where="s[C].tensorize(i)", intrin=3)
    )
    a = te.placeholder((8,), "int32", name="a")
    c = te.compute((8,), lambda i: a[i] + 1, name="c")
    assert refused(lambda: s[C].tensorize(i, intrinsic(c, "inc")), tecomp.ScheduleError) == (
        Diagnostic(
            "tensorize", where="s[C].tensorize(i)", stage="C", found="float32", intrin="inc",
            known="int32",
        )
    )
    s[C].tensorize(i, product_intrinsic(8, 8, 8))
    assert refused(
        lambda: s[C].tensorize(j, product_intrinsic(8, 8, 8)), tecomp.ScheduleError
    ) == (
        Diagnostic("primitive-order", where="s[C].tensorize(j)", stage="C", axis="i")
    )


def test_loops_of_symbolic_extent() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    a = te.placeholder((8,), name="a")
    c = te.compute((8,), lambda i: a[i] + 1.0, name="c")
    s = te.create_schedule(B)
    s[B].tensorize(B.op.axis[0], intrinsic(c, "inc"))

    assert lowered(s, [A, B]) == (
        Diagnostic("tensorize", where="s[B].tensorize(i, inc)")
    )
