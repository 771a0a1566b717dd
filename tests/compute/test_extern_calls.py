"""Calls of external functions in definitions: arguments and errors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import DefinitionError
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4, 16), name="A")
W = te.placeholder((4, 16), "int32", name="W")
NAMES = ("test.add", "test.memcpy", "test.scale")


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    """Register a Python function and two C functions."""
    tecomp.register_func("test.add", lambda x, y, z: None)
    library = ctypes.CDLL(None)
    tecomp.register_func(
        "test.memcpy", tecomp.CFunction(library, "memcpy", ["handle", "const handle", "uint64"]))
    tecomp.register_func("test.scale", tecomp.CFunction(
        library, "abs", ["float32", "const float32*", "float32*", "int32", "bool"]))
    yield
    for name in NAMES:
        tecomp.remove_global_func(name)


def refused(fcompute: Any, inputs: Any = A) -> Diagnostic:
    with pytest.raises(DefinitionError) as error:
        te.extern((4, 16), inputs, fcompute, name="E", dtype="float32")
    return diagnostic(error.value)


def scale(*args: Any) -> Any:
    return te.call_extern("void", "test.scale", *args)


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


def test_arity_of_python_functions() -> None:
    assert refused(lambda ins, outs: te.call_packed("test.add", ins[0], outs[0])) == (
        Diagnostic(
            "external-function", where="te.call_packed", name="test.add", plain="(x, y, z)",
            count=2, plural="s",
        )
    )


def test_c_functions_are_registered_before() -> None:
    assert refused(lambda ins, outs: te.call_extern("int32", "test.scala", ins[0])) == (
        Diagnostic(
            "external-function", where="te.call_extern",
            remedy="no function is registered as 'test.scala'; write 'test.scale' if that is meant, or call tecomp.register_func('test.scala', f) first",
        )
    )


def test_each_kind_of_extern_call() -> None:
    assert refused(lambda ins, outs: te.call_extern("int32", "test.add", ins[0])) == (
        Diagnostic("external-function", where="te.call_extern", name="test.add")
    )
    assert refused(lambda ins, outs: te.call_packed("test.memcpy", outs[0], ins[0], 3)) == (
        Diagnostic("external-function", where="te.call_packed", name="test.memcpy")
    )


TAKES = "test.scale(float32, const float32*, float32*, int32, bool)"


def test_types_of_arguments() -> None:
    assert refused(lambda ins, outs: scale(2.0, ins[0])) == (
        Diagnostic(
            "external-function", where="te.call_extern", takes=TAKES, given_count=2, plural="s",
        )
    )
    assert refused(lambda ins, outs: scale(ins[0], ins[0], outs[0], 3, True)) == (
        Diagnostic(
            "external-function", where="te.call_extern", number=0, takes=TAKES,
            problem="an array of float32; pass a number",
        )
    )
    assert refused(lambda ins, outs: scale(2.0, 3, outs[0], 3, True)) == (
        Diagnostic(
            "external-function", where="te.call_extern", number=1, takes=TAKES,
            problem='a int64; pass an array, such as ins[0].access_ptr("r")',
        )
    )
    assert refused(lambda ins, outs: scale(2.0, ins[0], outs[0], 3, True), W) == (
        Diagnostic(
            "external-function", where="te.call_extern", number=1, takes=TAKES,
            problem="an array of int32; pass one of float32",
        )
    )
    assert refused(lambda ins, outs: scale(2.0, outs[0], outs[0], 3, True)) == (
        Diagnostic(
            "external-function", where="te.call_extern", number=1, takes=TAKES,
            problem='an array that is written to; pass access_ptr("r"), or declare it without const',
        )
    )
    assert refused(lambda ins, outs: scale(2.0, ins[0], outs[0], 3.0, True)) == (
        Diagnostic(
            "external-function", where="te.call_extern", number=3, takes=TAKES,
            problem='a float64; convert it with .astype("int32")',
        )
    )
    assert refused(lambda ins, outs: scale(2.0, ins[0], outs[0], ins[0][0, 0], True)) == (
        Diagnostic(
            "external-function", where="te.call_extern", number=3, takes=TAKES,
            problem='a float32; convert it with .astype("int32")',
        )
    )
    assert refused(lambda ins, outs: scale("two", ins[0], outs[0], 3, True)) == (
        Diagnostic(
            "external-function", where="te.call_extern", number=0, takes=TAKES,
            problem="the text 'two'; texts are passed to Python functions only",
        )
    )


def test_invalid_call_arguments() -> None:
    assert refused(lambda ins, outs: te.call_packed("test.add", ins, outs, 3)) == (
        Diagnostic(
            "external-function", where="te.call_packed test.add: argument 0", type="list",
            value='[Operand(buffer=A: Buffer("float32", (4, 16), scope=""), is_input=True)]',
        )
    )
    number: Any = 3
    assert refused(lambda ins, outs: te.call_packed(number, ins[0])) == (
        Diagnostic("external-function", where="te.call_packed", name=3)
    )


def test_accesses() -> None:
    assert refused(lambda ins, outs: ins[0].access_ptr("x")) == (
        Diagnostic("unknown-choice", where="operand A.access_ptr", access_mask="x")
    )
    assert refused(lambda ins, outs: ins[0].access_ptr("r", offset=0.5)) == (
        Diagnostic(
            "index-type", where="operand A.access_ptr: offset", value="float32(0.5)",
            dtype="float32",
        )
    )


@pytest.mark.parametrize(("argument", "start", "count"), [
    ({"offset": 65}, 65, -1), ({"offset": -1}, -1, 65), ({"offset": 60, "extent": 5}, 60, 5),
    ({"extent": -1}, 0, -1),
])
def test_accesses_outside(argument: dict[str, int], start: int, count: int) -> None:
    assert refused(lambda ins, outs: ins[0].access_ptr("r", **argument)) == (
        Diagnostic(
            "index-out-of-bounds", where="operand A.access_ptr", start=start, count=count, size=64,
        )
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

    assert diagnostic(error.value) == (
        Diagnostic("index-out-of-bounds", where="main", k=0, function="test.outside", size=4)
    )


def test_inputs_are_not_written_to() -> None:
    assert refused(lambda ins, outs: te.stmt_seq(
        te.call_packed("test.add", ins[0].access_ptr("w"), ins[0], outs[0])
    )) == (
        Diagnostic("statements", where="te.extern E", buffer="A")
    )
    assert refused(lambda ins, outs: te.call_packed("test.add", ins[0], ins[0], ins[0])) == (
        Diagnostic("statements", where="te.extern E", buffer="E")
    )
