"""Definitions and errors of `te.extern`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import DefinitionError, TypeMismatchError
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4,), name="A")
W = te.placeholder((4,), "int32", name="W")


def copy(ins: Any, outs: Any) -> Any:
    return te.for_range(0, 4, lambda i: te.stmt_seq(*(out.store(i, ins[0][i]) for out in outs)))


def test_one_shape_gives_a_tensor() -> None:
    E = te.extern((4,), A, copy, name="E", tag="copies", attrs={"key": 1})
    op: Any = E.op

    assert (E.name, E.shape, E.dtype) == ("E", (4,), "float32")
    assert str(op) == "E = extern(A)"
    assert (op.input_tensors, op.tag, op.attrs["key"]) == ((A,), "copies", 1)
    assert te.create_schedule(op)[op].leaf_iter_vars == ()


def test_a_list_of_shapes_gives_a_list() -> None:
    both = te.extern([(4,), (4,)], [A, W, A], copy, name="E", dtype=["float32", "int32"])

    assert [(t.name, t.shape, t.dtype) for t in both] == [
        ("E_v0", (4,), "float32"), ("E_v1", (4,), "int32"),
    ]
    assert str(both[0].op) == "E_v0, E_v1 = extern(A, W, A)"
    assert both[0].op.input_tensors == (A, W)


def test_shapes_may_differ() -> None:
    n = te.var("n")
    shapes: Any = [(4,), (2, n), ()]
    one, two, none = te.extern(
        shapes, A, lambda ins, outs: te.stmt_seq(
            outs[0].store(0, 1.0), outs[1].store((1, n - 1), ins[0][0]), outs[2].store((), 2.0)),
        name="E",
    )

    assert [t.shape for t in (one, two, none)] == [(4,), (2, n), ()]
    assert [t.ndim for t in (one, two, none)] == [1, 2, 0]
    assert (one.op.axis, one.op.shape) == ((), ())
    assert repr(two) == "Tensor(E_v1, shape=(2, n), dtype=float32)"


def test_a_bare_extent_is_a_shape() -> None:
    assert te.extern(4, [A], copy).shape == (4,)


def refused(fcompute: Any, shape: Any = (4,), inputs: Any = A, **options: Any) -> Diagnostic:
    with pytest.raises(DefinitionError) as error:
        te.extern(shape, inputs, fcompute, name="E", **options)
    return diagnostic(error.value)


def test_the_function_gives_no_statement() -> None:
    assert refused(lambda ins, outs: 3) == (
        Diagnostic("statements", where="te.extern E", statement=3, type="int")
    )


def test_extern_rejects_statements_on_other_buffers() -> None:
    other = te.placeholder((4,), name="other")
    i = te.compute((4,), lambda i: A[i]).op.axis[0]

    assert refused(lambda ins, outs: outs[0].store(0, other[0])) == (
        Diagnostic("statements", where="te.extern E", tensor="other")
    )
    assert refused(lambda ins, outs: outs[0].store(i, 1.0)) == (
        Diagnostic(
            "unbound-variable", where="te.extern E", var="i", remedy="bind it with te.for_range",
        )
    )


def test_stores_are_to_the_results() -> None:
    assert refused(lambda ins, outs: te.stmt_seq()) == (
        Diagnostic("statements", where="te.extern E", buffer="E")
    )
    assert refused(lambda ins, outs: ins[0].store(0, 1.0)) == (
        Diagnostic("statements", where="te.extern E", buffer="A")
    )


@pytest.mark.parametrize("index", [-1, 4, 10**30])
def test_indices_that_are_known_to_be_outside(index: int) -> None:
    assert refused(lambda ins, outs: outs[0].store(index, 1.0)) == (
        Diagnostic("index-out-of-bounds", where="operand E[...]: index 0", index=index, extent="4")
    )
    assert refused(lambda ins, outs: outs[0].store(0, ins[0][index])) == (
        Diagnostic("index-out-of-bounds", where="operand A[...]: index 0", index=index, extent="4")
    )


def test_empty_outputs_have_no_out_of_bounds_access() -> None:
    empty = te.placeholder((0,), name="empty")
    copy = te.extern(
        (0,), empty, lambda ins, outs: te.for_range(0, 0, lambda i: outs[0].store(0, ins[0][0])))
    assert tecomp.compile(copy, [empty])(np.zeros(0, "float32")).shape == (0,)


def test_shapes_and_types() -> None:
    assert refused(copy, inputs=[A, W]) == (
        Diagnostic("statements", where="te.extern E", known="float32, int32")
    )
    assert refused(copy, inputs=[]) == (
        Diagnostic("statements", where="te.extern E", known="none")
    )
    assert refused(copy, dtype=["float32", "int32"]) == (
        Diagnostic("count-mismatch", where="te.extern E", many_count=2, count=1)
    )
    assert refused(copy, inputs=[3]) == Diagnostic(
        "invalid-type", where="te.extern E", tensor=3, type="int",
    )


def test_operands_have_the_names_of_buffers() -> None:
    seen: list[str] = []

    def named(ins: Any, outs: Any) -> Any:
        seen.extend(each.name for each in (*ins, *outs))
        return copy(ins, outs)

    a, b = te.decl_buffer((4,), name="a"), te.decl_buffer((4,), "int32", name="b")
    E = te.extern((4,), A, named, name="E", in_buffers=a, out_buffers=[b])

    assert (seen, E.dtype, E.name) == (["a", "b"], "int32", "E")
    assert refused(copy, in_buffers=[a, b]) == (
        Diagnostic("count-mismatch", where="te.extern E: in_buffers", given_count=2, own_count=1)
    )
    assert refused(copy, in_buffers=[b]) == (
        Diagnostic(
            "statements", where="te.extern E: in_buffers",
            parameter='b: Buffer("int32", (4,), scope="")',
            buffer='A: Buffer("float32", (4,), scope="")',
        )
    )
    assert refused(copy, out_buffers=[te.decl_buffer((5,), name="c")]) == (
        Diagnostic(
            "statements", where="te.extern E: out_buffers",
            parameter='c: Buffer("float32", (5,), scope="")',
            buffer='E: Buffer("float32", (4,), scope="")',
        )
    )
    assert refused(copy, in_buffers=te.decl_buffer((4,), name="a", strides=[2])) == (
        Diagnostic("definition", where="te.extern E: in_buffers: a", axis=0, requested_stride=2, actual_stride="1")
    )
    assert refused(copy, in_buffers=te.decl_buffer((4,), name="a", elem_offset=2)) == (
        Diagnostic("invalid-type", where="te.extern E: in_buffers: a", elem_offset=2)
    )
    assert refused(copy, in_buffers=3) == (
        Diagnostic(
            "invalid-type", where="te.extern E: in_buffers", value=3,
            remedy="pass a list of buffers from te.decl_buffer",
        )
    )


def test_conditions_are_comparisons() -> None:
    with pytest.raises(TypeMismatchError) as error:
        te.if_stmt(te.const(1), te.stmt_seq())
    assert diagnostic(error.value) == (
        Diagnostic("dtype", condition="int32(1)", dtype="int32")
    )
