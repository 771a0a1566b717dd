"""Extern call statements are printed, parsed, compared, simplified, verified and evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp.errors import CallError, InternalError
from tecomp.ir import (
    INT32,
    BufferLoad,
    Const,
    ExternCall,
    PrimFunc,
    Var,
    evaluate,
    parse,
    simplify,
    start_and_strides,
    substitute,
    verify,
    walk,
)
from tecomp.lowering import flatten_buffer
from tests.messages import Diagnostic, diagnostic

TEXT = """\
def f(A: Buffer("float32", (4, 8)), B: Buffer("float32", (8, 4)), n: "int64", x: "float64"):
    for i in range(2):
        call_packed("test.turned", reads(lambda i_1, j: A[i_1, j], (4, 8)), \
writes(lambda i_1, j: B[j, i_1], (4, 8)), n + i, x, "text", True)"""


@pytest.fixture(autouse=True)
def seen() -> Iterator[list[Any]]:
    """Register an external function that records its arguments, and yield the record."""
    found: list[Any] = []

    def turned(a: Any, b: Any, *rest: Any) -> None:
        found.append((a.strides, b.strides, a.flags.writeable, b.flags.writeable, *rest))
        b[...] = a * rest[0] + rest[1]

    tecomp.register_func("test.turned", turned)
    tecomp.register_func("len", len)
    yield found
    tecomp.remove_global_func("test.turned")
    tecomp.remove_global_func("len")


def call_of(func: PrimFunc) -> ExternCall:
    return next(node for node in walk(func.body) if isinstance(node, ExternCall))


def test_text_is_read_back() -> None:
    func = parse(TEXT)

    assert str(func) == TEXT
    assert parse(str(func)) == func
    assert parse(TEXT.replace('"text"', '"other"')) != func
    assert parse(TEXT.replace("writes", "reads")) != func
    assert parse(TEXT.replace("B[j, i_1]", "B[j, 0]")) != func
    assert parse(TEXT.replace("call_packed", "call_extern")) != func


def test_the_function_gets_views(seen: list[Any]) -> None:
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((8, 4), "float32")
    evaluate(parse(TEXT), [a, b, 3, 0.5])

    assert seen == [
        ((32, 4), (4, 16), False, True, 3, 0.5, "text", True),
        ((32, 4), (4, 16), False, True, 4, 0.5, "text", True),
    ]
    np.testing.assert_array_equal(b, (4 * a + 0.5).T)


def test_flat_memory_has_strides(seen: list[Any]) -> None:
    func = simplify(flatten_buffer(parse(TEXT)))
    verify(func, flat=True)
    a, b = np.arange(32, dtype="float32"), np.zeros(32, "float32")
    evaluate(func, [a, b, 3, 0.5])

    assert "writes(lambda i_1, j: B[j * 4 + i_1], (4, 8))" in str(func)
    assert seen[-1][:2] == ((32, 4), (4, 16))
    np.testing.assert_array_equal(b.reshape(8, 4), (4 * a.reshape(4, 8) + 0.5).T)
    _, out = call_of(func).arrays
    start, strides = start_and_strides(out)
    assert (list(map(str, start)), list(map(str, strides))) == (["0"], ["1", "4"])


def test_an_array_of_no_axes_is_no_copy(seen: list[Any]) -> None:
    func = parse('def f(A: Buffer("float32", ())):\n    call_packed('
                 '"test.turned", reads(lambda: A[()], ()), writes(lambda: A[()], ()), 1, 2)')  # fmt: skip
    a = np.zeros((), "float32")
    evaluate(func, [a])

    assert a == 2
    assert parse(str(func)) == func


def test_an_array_needs_strides() -> None:
    func = parse('def f(A: Buffer("float32", (8,))):\n    call_packed('
                 '"len", reads(lambda i: A[i // 4 + i % 4 * 2], (8,)))')  # fmt: skip
    (array,) = call_of(func).arrays

    text = "reads(lambda i: A[i // 4 + i % 4 * 2], (8,))"
    with pytest.raises(InternalError) as error:
        start_and_strides(array)
    assert diagnostic(error.value) == Diagnostic("internal", array=text)
    with pytest.raises(InternalError) as error:
        evaluate(func, [np.zeros(8, "float32")])
    assert diagnostic(error.value) == Diagnostic("internal", node=text)


def test_an_array_may_reach_outside_of_nothing() -> None:
    func = parse('def f(A: Buffer("float32", (8,))):\n    call_packed('
                 '"len", reads(lambda i: A[i * 2], (5,)))')  # fmt: skip

    with pytest.raises(CallError) as error:
        evaluate(func, [np.zeros(8, "float32")])
    assert diagnostic(error.value) == (
        Diagnostic("out-of-bounds", name="A", index="8", shape=(8,), start="")
    )


def test_array_variables_are_distinct() -> None:
    func = parse(TEXT)
    call = call_of(func)
    inside = call.arrays[0].variables[0]

    assert substitute(call, {inside: Var("other")}).arrays[0].variables[0] is inside
    assert sum(node is inside for node in walk(call)) == 1


def broken(func: PrimFunc, **changes: Any) -> Diagnostic:
    call = call_of(func)
    array = replace(call.arrays[0], **changes)
    body = replace(call, arguments=(array, *call.arguments[1:]))
    with pytest.raises(InternalError) as error:
        verify(replace(func, body=body))
    return diagnostic(error.value)


def test_malformed_extern_calls() -> None:
    func = parse(TEXT)
    array = call_of(func).arrays[0]
    place = array.element

    assert broken(func, shape=array.shape[:1]) == (
        Diagnostic("internal", function="f", node="reads(lambda i_1, j: A[i_1, j], (4,))")
    )
    assert broken(func, shape=(Const(4, INT32), array.shape[1])) == Diagnostic(
        "internal", function="f", node="reads(lambda i_1, j: A[i_1, j], (int32(4), 8))",
        dtype="int32", expected_dtype="int64",
    )
    assert broken(func, access=BufferLoad(place.buffer, (Var("free"), place.indices[1]))) == (
        Diagnostic(
            "internal", function="f", node="free",
            problem="variable is not bound where it is used",
        )
    )
    with pytest.raises(InternalError) as error:
        verify(replace(func, body=replace(
            call_of(func), arguments=(replace(array, access=place.indices[0]),))))
    assert diagnostic(error.value) == Diagnostic("internal", value="i_1")
