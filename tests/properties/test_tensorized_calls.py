"""External functions that replace loops on regions of random tensors agree with NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.ir import evaluate
from tests.strategies.draws import Draw


def copied(x: Any, z: Any) -> None:
    """Copy `x` to `z`."""
    z[...] = x


tecomp.register_func("test.drawn.copied", copied, override=True)
tecomp.register_func("test.drawn.memcpy", tecomp.CFunction(
    ctypes.CDLL(None), "memcpy", ["handle", "const handle", "uint64"]), override=True)

# Read index of an element and the NumPy equivalent, from the indices, a number and the last row and
# column.
READS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "rows": (lambda i, j, n, last: (i, j), lambda a: a),
    "columns": (lambda i, j, n, last: (j, i), lambda a: a.T),
    "every second": (lambda i, j, n, last: (i * 2, j), lambda a: a[::2]),
    "wide": (lambda i, j, n, last: (i, j * 2 + 1), lambda a: a[:, 1::2]),
    "reversed": (lambda i, j, n, last: (i, last[1] - j), lambda a: a[:, ::-1]),
    "upside down": (lambda i, j, n, last: (last[0] - i, j), lambda a: a[::-1]),
    "one row": (lambda i, j, n, last: (n, j), lambda a: a),
}
LAYOUTS: tuple[Any, ...] = (
    None, None,
    lambda i, j: [j, i],
    lambda i, j: [i // 3, j // 4, i % 3, j % 4],
    lambda i, j: [j // 5, i, j % 5],
    lambda i, j: [i, (i + j) % 64],
)


def operation(rows: int, columns: int, convention: str) -> te.TensorIntrin:
    """Declare an intrinsic that copies a tile by a Python or a C function."""
    x = te.placeholder((rows, columns), name="x")
    z = te.compute((rows, columns), lambda i, j: x[i, j], name="z")

    def statements(ins: Any, outs: Any) -> Any:
        if convention == "packed":
            return te.call_packed("test.drawn.copied", ins[0], outs[0])
        return te.call_extern(
            "handle", "test.drawn.memcpy", outs[0].access_ptr("w"), ins[0].access_ptr("r"),
            4 * rows * columns,
        )

    return te.decl_tensor_intrin(z, statements, name="moved")


@settings(max_examples=25)
@given(st.data())
def test_functions_take_parts_of_any_tensors(data: st.DataObject) -> None:
    draw: Draw = data.draw
    shape = draw(st.integers(1, 9)), draw(st.integers(1, 11))
    read = draw(st.sampled_from(sorted(READS)))
    index, right = READS[read]
    number = draw(st.integers(0, 3))
    source = {
        "columns": shape[::-1], "every second": (shape[0] * 2 - 1, shape[1]),
        "wide": (shape[0], shape[1] * 2), "one row": (number + 1, shape[1]),
    }.get(read, shape)
    A = te.placeholder(source, name="A")
    P = te.compute(source, lambda i, j: A[i, j] + 1.0, name="P")
    last = shape[0] - 1, shape[1] - 1
    B = te.compute(shape, lambda i, j: P[index(i, j, number, last)], name="B")
    C = te.compute(shape, lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C)
    convention = draw(st.sampled_from(("packed", "c")))
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    _, inside, inner, _ = s[B].tile(B.op.axis[0], B.op.axis[1], rows, columns)
    sizes = min(rows, shape[0]), min(columns, shape[1])
    s[B].tensorize(inner, operation(*sizes, convention))
    layouts = [draw(st.sampled_from(LAYOUTS)) for _ in "PB"]
    for tensor, layout in zip((P, B), layouts, strict=True):
        if layout is not None:
            s[tensor].transform_layout(layout, loops="logical")
    place = draw(st.sampled_from(("root", "inside", "aligned")))
    if place == "inside":
        s[P].compute_at(s[B], inside)
        s[B].compute_at(s[C], s[C].split(C.op.axis[0], rows)[0])
    elif place == "aligned" and layouts[0] is None:
        s[P].storage_align(P.op.axis[0], 8, 3)
    a = np.random.default_rng(0).integers(-9, 9, source).astype("float32")
    expected = 2 * (right(a + 1) if read != "one row" else np.tile(a[number] + 1, (shape[0], 1)))

    lowered = tecomp.lower(s, [A, C], stop_after="nest")
    found = [np.zeros(shape, "float32") for _ in range(2)]
    evaluate(lowered, [a, found[0]])
    tecomp.build(s, [A, C], check_bounds=True)(a, found[1])

    for actual in found:
        np.testing.assert_array_equal(actual, expected)
