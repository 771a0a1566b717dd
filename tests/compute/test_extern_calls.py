"""Calls of functions in definitions: what they take, and what is refused where they are written."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import DefinitionError

A = te.placeholder((4, 16), name="A")
W = te.placeholder((4, 16), "int32", name="W")
NAMES = ("test.add", "test.memcpy", "test.scale")


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    """A Python function and two of C."""
    tecomp.register_func("test.add", lambda x, y, z: None)
    library = ctypes.CDLL(None)
    tecomp.register_func(
        "test.memcpy", tecomp.CFunction(library, "memcpy", ["handle", "const handle", "uint64"]))
    tecomp.register_func("test.scale", tecomp.CFunction(
        library, "abs", ["float32", "const float32*", "float32*", "int32", "bool"]))
    yield
    for name in NAMES:
        tecomp.remove_global_func(name)


def refused(fcompute: Any, inputs: Any = A) -> str:
    with pytest.raises(DefinitionError) as error:
        te.extern((4, 16), inputs, fcompute, name="E", dtype="float32")
    return error.value.message


def scale(*given: Any) -> Any:
    return te.call_extern("void", "test.scale", *given)


def test_printed_form() -> None:
    E: Any = te.extern((4, 16), [A, W], lambda ins, outs: te.stmt_seq(
        te.call_packed("test.add", ins[0], ins[1].access_ptr("r", offset=3), outs[0]),
        scale(2, ins[0], outs[0].access_ptr("w", offset=16, extent=8), 8, True),
    ), name="E", dtype="float32")

    assert str(E.op.statement).splitlines() == [
        'call_packed("test.add", reads(lambda i0, i1: A[i0, i1], (4, 16)), reads(lambda k: '
        'W[(3 + k) // 16, (3 + k) % 16], (61,)), writes(lambda i0, i1: E[i0, i1], '
        '(4, 16)))',
        'call_extern("test.scale", float32(2.0), reads(lambda i0, i1: A[i0, i1], (4, 16)), '
        'writes(lambda k: E[(16 + k) // 16, (16 + k) % 16], (8,)), int32(8), True)',
    ]


def test_a_function_may_be_registered_later() -> None:
    E = te.extern((4, 16), A, lambda ins, outs: te.call_packed("test.later", ins[0], outs[0]))

    assert E.shape == (4, 16)


def test_how_many_arguments_a_python_function_takes() -> None:
    assert refused(lambda ins, outs: te.call_packed("test.add", ins[0], outs[0])) == (
        "te.call_packed: test.add(x, y, z) is called with 2 arguments; pass as many as it takes"
    )


def test_c_functions_are_registered_before() -> None:
    assert refused(lambda ins, outs: te.call_extern("int32", "test.scala", ins[0])) == (
        "te.call_extern: no function is registered as 'test.scala'; write 'test.scale' if that is "
        "meant, or call tecomp.register_func('test.scala', f) first"
    )


def test_each_kind_has_its_call() -> None:
    assert refused(lambda ins, outs: te.call_extern("int32", "test.add", ins[0])) == (
        "te.call_extern: test.add is a Python function; call it with te.call_packed"
    )
    assert refused(lambda ins, outs: te.call_packed("test.memcpy", outs[0], ins[0], 3)) == (
        "te.call_packed: test.memcpy is a C function; call it with te.call_extern"
    )


TAKES = "test.scale(float32, const float32*, float32*, int32, bool)"


def test_types_of_arguments() -> None:
    start = "te.call_extern: argument"
    assert refused(lambda ins, outs: scale(2.0, ins[0])) == (
        f"te.call_extern: {TAKES} is called with 2 arguments; pass as many as it takes"
    )
    assert refused(lambda ins, outs: scale(ins[0], ins[0], outs[0], 3, True)) == (
        f"{start} 0 of {TAKES} is an array of float32; pass a number"
    )
    assert refused(lambda ins, outs: scale(2.0, 3, outs[0], 3, True)) == (
        f'{start} 1 of {TAKES} is a int64; pass an array, such as ins[0].access_ptr("r")'
    )
    assert refused(lambda ins, outs: scale(2.0, ins[0], outs[0], 3, True), W) == (
        f"{start} 1 of {TAKES} is an array of int32; pass one of float32"
    )
    assert refused(lambda ins, outs: scale(2.0, outs[0], outs[0], 3, True)) == (
        f"{start} 1 of {TAKES} is an array that is written to; pass access_ptr(\"r\"), or declare "
        "it without const"
    )
    assert refused(lambda ins, outs: scale(2.0, ins[0], outs[0], 3.0, True)) == (
        f'{start} 3 of {TAKES} is a float64; convert it with .astype("int32")'
    )
    assert refused(lambda ins, outs: scale(2.0, ins[0], outs[0], ins[0][0, 0], True)) == (
        f'{start} 3 of {TAKES} is a float32; convert it with .astype("int32")'
    )
    assert refused(lambda ins, outs: scale("two", ins[0], outs[0], 3, True)) == (
        f"{start} 0 of {TAKES} is the text 'two'; texts are passed to Python functions only"
    )


def test_what_is_no_argument() -> None:
    assert refused(lambda ins, outs: te.call_packed("test.add", ins, outs, 3)).startswith(
        "te.call_packed test.add: argument 0 is [Operand("
    )
    number: Any = 3
    assert refused(lambda ins, outs: te.call_packed(number, ins[0])) == (
        "te.call_packed: the name of the function is 3; give the text that it is registered as"
    )


def test_accesses() -> None:
    assert refused(lambda ins, outs: ins[0].access_ptr("x")) == (
        "operand A.access_ptr: the access is 'x'; say 'r', 'w' or 'rw'"
    )
    assert refused(lambda ins, outs: ins[0].access_ptr("r", offset=0.5)) == (
        "operand A.access_ptr: offset is float32(0.5) (float32); give an integer, or convert it "
        'with .astype("int64") if that is meant'
    )


@pytest.mark.parametrize(("given", "said"), [
    ({"offset": 65}, "offset 65 and extent -1"), ({"offset": -1}, "offset -1 and extent 65"),
    ({"offset": 60, "extent": 5}, "offset 60 and extent 5"), ({"extent": -1}, "offset 0 and extent -1"),
])
def test_accesses_outside(given: dict[str, int], said: str) -> None:
    assert refused(lambda ins, outs: ins[0].access_ptr("r", **given)) == (
        f"operand A.access_ptr: {said} are outside of the 64 elements; give those that are inside"
    )


def test_accesses_that_turn_out_to_be_outside() -> None:
    tecomp.register_func("test.outside", lambda x, y: None, override=True)
    X = te.placeholder((8,), name="X")
    Y = te.extern((4,), X, lambda ins, outs: te.for_range(0, 4, lambda i: te.call_packed(
        "test.outside", ins[0].access_ptr("r", offset=4 * i),
        outs[0].access_ptr("w", offset=i, extent=1))), name="Y")
    kernel = tecomp.build(te.create_schedule(Y.op), [X, Y])
    tecomp.remove_global_func("test.outside")

    with pytest.raises(tecomp.CallError) as error:
        kernel(np.zeros(8, "float32"), np.zeros(4, "float32"))

    assert error.value.message == (
        "main: argument 0 of test.outside begins 4 elements behind the end of its tensor; give "
        "access_ptr an offset inside"
    )


def test_inputs_are_not_written_to() -> None:
    assert refused(lambda ins, outs: te.stmt_seq(
        te.call_packed("test.add", ins[0].access_ptr("w"), ins[0], outs[0])
    )) == (
        "te.extern E: fcompute stores to the input A; store to its outputs, or to memory of te.allocate"
    )
    assert refused(lambda ins, outs: te.call_packed("test.add", ins[0], ins[0], ins[0])) == (
        "te.extern E: fcompute stores nothing to E; store all of each result"
    )
