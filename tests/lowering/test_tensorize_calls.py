"""Intrinsics that call functions: arrays have the required form, wherever the operands are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tests.messages import Diagnostic, diagnostic

Agrees = Callable[..., Any]

ROWS, COLUMNS = 4, 8


def gemv(w: Any, x: Any, z: Any) -> None:
    """Add the product of a matrix and a vector to the output."""
    z += np.asarray(w) @ np.asarray(x)


def zero(z: Any) -> None:
    """Set the initial value of a sum."""
    z[...] = 0


def copied(x: Any, z: Any) -> None:
    """Copy an array."""
    z[...] = x


tecomp.register_func("test.tensorize.gemv", gemv, override=True)
tecomp.register_func("test.tensorize.zero", zero, override=True)
tecomp.register_func("test.tensorize.copied", copied, override=True)
tecomp.register_func("test.tensorize.memcpy", tecomp.CFunction(
    ctypes.CDLL(None), "memcpy", ["handle", "const handle", "uint64"]), override=True)


def multiplied(rows: int, columns: int) -> te.TensorIntrin:
    """Declare a matrix-vector product that calls a Python function."""
    w, x = te.placeholder((rows, columns), name="w"), te.placeholder((columns,), name="x")
    k = te.reduce_axis((0, columns), name="k")
    z = te.compute((rows,), lambda i: te.sum(w[i, k] * x[k], axis=k), name="z")

    def statements(ins: Sequence[te.Operand], outs: Sequence[te.Operand]) -> Any:
        reset = te.call_packed("test.tensorize.zero", outs[0])
        update = te.call_packed("test.tensorize.gemv", ins[0], ins[1], outs[0])
        return te.stmt_seq(reset, update), reset, update

    return te.decl_tensor_intrin(z, statements, name="gemv")


def moved(rows: int, columns: int, convention: str) -> te.TensorIntrin:
    """Declare a copy of a tile that calls a Python or a C function."""
    x = te.placeholder((rows, columns), name="x")
    z = te.compute((rows, columns), lambda i, j: x[i, j], name="z")

    def statements(ins: Sequence[te.Operand], outs: Sequence[te.Operand]) -> Any:
        if convention == "packed":
            return te.call_packed("test.tensorize.copied", ins[0].data, outs[0].data)
        return te.call_extern(
            "handle", "test.tensorize.memcpy", outs[0].access_ptr("w"), ins[0].access_ptr("r"),
            4 * rows * columns,
        )

    return te.decl_tensor_intrin(z, statements, name="moved")


def numbers(*shape: int) -> Any:
    return np.random.default_rng(1).integers(-4, 5, shape).astype("float32")


LAYOUTS: dict[str, Callable[..., Any] | None] = {
    "rows": None,
    "columns": lambda i, j: [j, i],
    "tiles": lambda i, j: [i // 2, j // 4, i % 2, j % 4],
    "diagonals": lambda i, j: [i, (i + j) % 16],
}


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize(
    ("convention", "source", "target"),
    [(c, a, b) for c, (a, b) in product(("packed", "c"), product(LAYOUTS, repeat=2))
     if "rows" in (a, b) or a == b],
)
def test_tiles_in_any_layout(convention: str, source: str, target: str, agrees: Agrees) -> None:
    A = te.placeholder((8, 16), name="A")
    B = te.compute((8, 16), lambda i, j: A[i, j], name="B")
    s = te.create_schedule(B)
    _, _, inner, _ = s[B].tile(B.op.axis[0], B.op.axis[1], ROWS, COLUMNS)
    s[B].tensorize(inner, moved(ROWS, COLUMNS, convention))
    for tensor, layout in ((A, LAYOUTS[source]), (B, LAYOUTS[target])):
        if layout is not None:
            s[tensor].transform_layout(layout, **({"loops": "logical"} if tensor is B else {}))
    a = numbers(8, 16)

    agrees(s, [A, B], {A: a, B: a})


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("convention", ["packed", "c"])
@pytest.mark.parametrize("shape", [(8, 16), (7, 16), (8, 13), (5, 11), (3, 5)])
def test_tiles_that_are_not_full(convention: str, shape: tuple[int, int], agrees: Agrees) -> None:
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda i, j: A[i, j], name="B")
    s = te.create_schedule(B)
    _, _, inner, _ = s[B].tile(B.op.axis[0], B.op.axis[1], ROWS, COLUMNS)
    s[B].tensorize(inner, moved(ROWS, COLUMNS, convention))
    a = numbers(*shape)

    agrees(s, [A, B], {A: a, B: a})


@pytest.mark.parametrize("convention", ["packed", "c"])
def test_rows_that_are_read_backwards(convention: str, agrees: Agrees) -> None:
    A = te.placeholder((8, 16), name="A")
    B = te.compute((8, 16), lambda i, j: A[7 - i, 15 - j], name="B")
    s = te.create_schedule(B)
    _, _, inner, _ = s[B].tile(B.op.axis[0], B.op.axis[1], ROWS, COLUMNS)
    s[B].tensorize(inner, moved(ROWS, COLUMNS, convention))
    a = numbers(8, 16)

    agrees(s, [A, B], {A: a, B: a[::-1, ::-1]})


@pytest.mark.parametrize("convention", ["packed", "c"])
def test_memory_with_gaps_and_parts_of_memory(convention: str, agrees: Agrees) -> None:
    A = te.placeholder((8, 16), name="A")
    P = te.compute((8, 16), lambda i, j: A[i, j] + 1.0, name="P")
    B = te.compute((8, 16), lambda i, j: P[i, j], name="B")
    C = te.compute((8, 16), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C)
    _, _, inner, _ = s[B].tile(B.op.axis[0], B.op.axis[1], ROWS, COLUMNS)
    s[B].tensorize(inner, moved(ROWS, COLUMNS, convention))
    s[P].storage_align(P.op.axis[0], 32, 3)
    s[B].compute_at(s[C], s[C].split(C.op.axis[0], 4)[0])
    a = numbers(8, 16)

    agrees(s, [A, C], {A: a, C: 2 * (a + 1)})


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("split", [None, 8, 5])
@pytest.mark.parametrize("turned", [False, True])
def test_products_by_a_python_function(split: int | None, turned: bool, agrees: Agrees) -> None:
    A = te.placeholder((3, 16), name="A")
    B = te.placeholder((16, 8) if turned else (8, 16), name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute(
        (3, 8), lambda i, j: te.sum((B[k, j] if turned else B[j, k]) * A[i, k], axis=k), name="C")
    s = te.create_schedule(C)
    i, j = C.op.axis
    outer, inner = s[C].split(j, ROWS)
    if split is None:
        s[C].tensorize(inner, multiplied(ROWS, 16))
    else:
        ko, ki = s[C].split(k, split)
        s[C].reorder(i, outer, ko, inner, ki)
        s[C].tensorize(inner, multiplied(ROWS, split))
    a, b = numbers(3, 16), numbers(*(int(n) for n in B.shape))

    agrees(s, [A, B, C], {A: a, B: b, C: a @ (b if turned else b.T)})


def test_operands_of_matching_layout_are_not_copied() -> None:
    A = te.placeholder((8, COLUMNS), name="A")
    B = te.compute((8, COLUMNS), lambda i, j: A[i, j], name="B")
    s = te.create_schedule(B)
    s[B].tensorize(s[B].split(B.op.axis[0], ROWS)[1], moved(ROWS, COLUMNS, "c"))

    assert str(tecomp.lower(s, [A, B]).body) == (
        "for i_outer in range(2):\n"
        '    call_extern("test.tensorize.memcpy", writes(lambda i0, i1: B[i_outer * 32 + i0 * 8 + '
        "i1], (4, 8)), reads(lambda i0, i1: A[i_outer * 32 + i0 * 8 + i1], (4, 8)), uint64(128))"
    )


def test_missing_intrinsic_functions_are_refused() -> None:
    x = te.placeholder((4,), name="x")
    z = te.compute((4,), lambda i: x[i] + 1.0, name="z")

    intrin = te.decl_tensor_intrin(
        z, lambda ins, outs: te.call_packed("test.tensorize.later", ins[0], outs[0]), name="late")

    with pytest.raises(tecomp.DefinitionError) as error:
        te.check_tensor_intrin(intrin)
    assert diagnostic(error.value) == Diagnostic(
        "external-function", where="evaluate",
        remedy="no function is registered as 'test.tensorize.later'; write 'test.tensorize.zero' if "
               "that is meant, or call tecomp.register_func('test.tensorize.later', f) first",
    )


def test_strides_of_operands_match_the_arrays_that_calls_get() -> None:
    w = te.placeholder((2, 3, 4), name="w")
    z = te.compute((2, 3, 4), lambda i, j, k: w[i, j, k], name="z")
    requested = te.decl_buffer(
        w.shape, w.dtype, "W", offset_factor=16, data_alignment=64, elem_offset=te.var("offset"),
        strides=[te.var("s0"), te.var("s1"), 1],
    )
    found: list[Any] = []

    def statements(ins: Sequence[te.Operand], outs: Sequence[te.Operand]) -> Any:
        assert ins[0].elem_offset == 0
        found.append((ins[0].strides, outs[0].strides[0].value))  # type: ignore[union-attr]
        return te.call_packed("test.tensorize.copied", ins[0], outs[0])

    te.decl_tensor_intrin(z, statements, binds={w: requested})

    assert found == [((12, 4, 1), 12)]


@pytest.mark.parametrize("offset", [0, te.var("offset")])
def test_a_bound_buffer_begins_where_the_array_of_the_call_does(offset: Any) -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    requested = te.decl_buffer((4,), "float32", "A", strides=[te.var("s")], elem_offset=offset)
    kernel = tecomp.build(te.create_schedule(B), [A, B], binds={A: requested})
    source, result = np.arange(16, dtype="float32"), np.zeros(4, "float32")
    kernel(source[5:13:2], result)
    np.testing.assert_array_equal(result, source[5:13:2] * 2)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ({"strides": 4}, Diagnostic("invalid-type", where="te.decl_buffer W", value=4)),
        ({"strides": [4, 1.5]}, Diagnostic(
            "extent", where="te.decl_buffer W: the stride of axis 1", value=1.5, type_name="float",
        )),
        ({"strides": [1]}, Diagnostic(
            "count-mismatch", where="te.decl_buffer W", extent_count=2, given_count=1,
        )),
        ({"offset_factor": "a"},
         Diagnostic("invalid-type", where="te.decl_buffer W", subject="offset_factor", number="a")),
        ({"data_alignment": 1.5},
         Diagnostic("invalid-type", where="te.decl_buffer W", subject="data_alignment", number=1.5)),
        ({"elem_offset": "a"},
         Diagnostic("extent", where="te.decl_buffer W: elem_offset", value="a", type_name="str")),
        ({"elem_offset": -1},
         Diagnostic("extent", where="te.decl_buffer W: elem_offset", value=-1, minimum=0)),
    ],
)
def test_buffer_requirements(argument: dict[str, Any], expected: Diagnostic) -> None:
    with pytest.raises(tecomp.TecompError) as error:
        te.decl_buffer((2, 4), "float32", "W", **argument)

    assert diagnostic(error.value) == expected
