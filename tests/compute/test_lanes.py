"""Vector stores in statements: each lane has the value of the scalar computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import TypeMismatchError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

LAYOUTS: dict[str, Any] = {
    "rows": None,
    "columns": lambda i, j: [j, i],
    "tiles": lambda i, j: [i // 2, j // 4, i % 2, j % 4],
}
ONE = te.const(1.0, "float32x4")
VECTORS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum": (lambda v: v + ONE, lambda a: a + 1),
    "function": (te.sqrt, np.sqrt),
    "choice": (lambda v: te.Select(v > ONE, v, ONE * 2.0), lambda a: np.where(a > 1, a, 2)),
    "conversion": (lambda v: v.astype("int32x4"), lambda a: a.astype("int32")),
    "as it is": (lambda v: v, lambda a: a),
}


@pytest.mark.parametrize("of", VECTORS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_lanes_are_stored_side_by_side(of: str, layout: str) -> None:
    compute, expected = VECTORS[of]
    A = te.placeholder((4, 16), name="A")

    def body(ins: Any, outs: Any) -> Any:
        return te.for_range(0, 4, lambda i: te.for_range(0, 4, lambda j: outs[0].vstore(
            (i, j * 4), compute(ins[0].vload((i, j * 4), "float32x4")))))

    C = te.extern((4, 16), [A], body, name="C")
    s = te.create_schedule(C)
    if LAYOUTS[layout] is not None:
        s[C].transform_layout(LAYOUTS[layout])
    a = np.random.default_rng(0).integers(0, 5, (4, 16)).astype("float32")
    kernel = tecomp.build(s, [A, C])
    stored = kernel.empty(C)

    kernel(a, stored)

    assert_close(kernel.unpack(C, stored), expected(a), rtol=1e-6)


def test_lane_operations_require_vectors() -> None:
    A = te.placeholder((8,), "uint8", name="A")
    S = te.placeholder((), name="S")
    V = te.placeholder((2,), "float32x4", name="V")

    def message(inputs: Any, shape: Any, dtype: str, store: Callable[..., Any]) -> Diagnostic:
        with pytest.raises(TypeMismatchError) as error:
            te.extern(shape, inputs, store, dtype=dtype, name="C")
        return diagnostic(error.value)

    assert message(A, (2,), "uint32", lambda ins, outs: outs[0].store(
        0, te.reinterpret("uint32x2", ins[0].vload(0, "uint8x8")))) == (
        Diagnostic(
            "dtype", name="C",
            stored='call("reinterpret", join(join(join(A[0], A[1]), join(A[2], A[3])), join(join(A[4], A[5]), join(A[6], A[7]))), dtype="uint32x2")',
            dtype="uint32x2", subject_dtype="uint32",
        )
    )
    assert message(S, (), "float32", lambda ins, outs: outs[0].store((), ONE)) == (
        Diagnostic(
            "dtype", name="C", stored="broadcast(float32(1.0), 4)", dtype="float32x4",
            subject_dtype="float32",
        )
    )
    assert message(V, (8,), "float32", lambda ins, outs: outs[0].store(0, ins[0][0])) == (
        Diagnostic(
            "dtype", name="C", stored="V[0]", dtype="float32x4", subject_dtype="float32",
        )
    )


@pytest.mark.parametrize("mask", ["rw", "wr", 3])
def test_functions_that_read_and_write(mask: Any) -> None:
    seen: list[Any] = []

    def body(ins: Any, outs: Any) -> Any:
        seen.append(outs[0].access_ptr(mask))
        return outs[0].store(0, 1.0)

    te.extern((1,), te.placeholder((1,)), body)

    assert seen[0].is_written
