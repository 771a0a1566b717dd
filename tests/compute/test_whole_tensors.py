"""Operators on whole tensors: results and errors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import DefinitionError, TypeMismatchError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

A = te.placeholder((8, 4), name="A")
W = te.placeholder((8, 4), "int32", name="W")
b = te.placeholder((4,), name="b")
z = te.placeholder((), name="z")
n, m = te.var("n"), te.var("m")


@pytest.mark.parametrize(
    ("make", "name", "text", "tag"),
    [
        (lambda: A * b, "T_multiply", "A[ax0, ax1] * b[ax1]", "broadcast"),
        (lambda: 3 + A, "T_add", "float32(3.0) + A[ax0, ax1]", "elemwise"),
        (lambda: b - A, "T_subtract", "b[ax1] - A[ax0, ax1]", "broadcast"),
        (lambda: A / 2, "T_divide", "A[ax0, ax1] / float32(2.0)", "elemwise"),
        (lambda: A * z, "T_multiply", "A[ax0, ax1] * z[()]", "broadcast"),
        (lambda: z / A, "T_divide", "z[()] / A[ax0, ax1]", "broadcast"),
        (lambda: n + A, "T_add", 'cast("float32", n) + A[ax0, ax1]', "elemwise"),
        (lambda: np.float32(2) * A, "T_multiply", "float32(2.0) * A[ax0, ax1]", "elemwise"),
        (lambda: -A, "T_negative", "A[ax0, ax1] * float32(-1.0)", "elemwise"),
        (lambda: A.astype("int32"), "T_cast", 'cast("int32", A[ax0, ax1])', "elemwise"),
        (lambda: W // 3, "T_floor_divide", "W[ax0, ax1] // int32(3)", "elemwise"),
        (lambda: W << 1, "T_left_shift", "W[ax0, ax1] << int32(1)", "elemwise"),
        (lambda: te.add(A, 1), "T_add", "A[ax0, ax1] + float32(1.0)", "elemwise"),
        (lambda: te.subtract(1, A), "T_subtract", "float32(1.0) - A[ax0, ax1]", "elemwise"),
        (lambda: te.multiply(A, A), "T_multiply", "A[ax0, ax1] * A[ax0, ax1]", "broadcast"),
        (lambda: te.divide(1, A), "T_divide", "float32(1.0) / A[ax0, ax1]", "elemwise"),
    ],
)
def test_operators_on_tensors_return_tensors(make: Callable[[], Any], name: str, text: str, tag: str) -> None:
    tensor = make()

    assert isinstance(tensor, te.Tensor)
    op: Any = tensor.op
    assert (tensor.name, tensor.shape, op.tag) == (name, (8, 4), tag)
    assert str(tensor.op) == f"{name}[ax0, ax1] = {text}"
    assert [axis.name for axis in te.create_schedule(tensor.op)[tensor].leaf_iter_vars] == [
        "ax0", "ax1",
    ]


@pytest.mark.parametrize(
    ("make", "text", "tag"),
    [
        (lambda: z + 1, "T_add[()] = z[()] + float32(1.0)", "elemwise"),
        (lambda: 1 - z, "T_subtract[()] = float32(1.0) - z[()]", "elemwise"),
        (lambda: z * z, "T_multiply[()] = z[()] * z[()]", "broadcast"),
        (lambda: n + z, 'T_add[()] = cast("float32", n) + z[()]', "elemwise"),
        (lambda: te.add(z, n), 'T_add[()] = z[()] + cast("float32", n)', "elemwise"),
        (lambda: te.divide(z, 2), "T_divide[()] = z[()] / float32(2.0)", "elemwise"),
        (lambda: -z, "T_negative[()] = z[()] * float32(-1.0)", "elemwise"),
    ],
)
def test_tensors_without_axes_make_such(make: Callable[[], Any], text: str, tag: str) -> None:
    tensor = make()

    assert isinstance(tensor, te.Tensor)
    op: Any = tensor.op
    assert (str(op), op.tag, tensor.shape) == (text, tag, ())


def test_tensors_of_rank_0_convert_to_their_element() -> None:
    """In an expression, a tensor without axes stands for its value and needs no index."""
    C = te.compute((8, 4), lambda i, j: A[i, j] * (z + 1) + (2 - z), name="C")

    assert str(C.op) == "C[i, j] = A[i, j] * (z[()] + float32(1.0)) + (float32(2.0) - z[()])"
    assert str((A * (z + 1)).op) == "T_multiply[ax0, ax1] = A[ax0, ax1] * T_add[()]"
    assert isinstance(z < 3, te.Expr)
    assert str(te.multiply(2, n)) == "int32(2) * n"


def test_an_element_and_a_tensor_without_axes_are_a_tensor(agrees: Any) -> None:
    """Elements with constant indices give tensors as in TVM; with an axis they give expressions."""
    D, E = A[1, 2] * z, z - A[0, 0]
    assert [(type(tensor).__mro__[1], tensor.shape) for tensor in (D, E)] == [(te.Tensor, ())] * 2
    assert [str(D.op), str(E.op)] == [
        "T_multiply[()] = A[int32(1), int32(2)] * z[()]", "T_subtract[()] = z[()] - A[int32(0), int32(0)]"]

    def at(i: Any) -> Any:
        product = A[i, 0] * z
        assert isinstance(product, te.Expr)
        return product + A[0, 0] * z

    C = te.compute((8,), at, name="C")
    assert str(C.op) == "C[i] = A[i, int32(0)] * z[()] + A[int32(0), int32(0)] * z[()]"
    data = np.arange(32, dtype="float32").reshape(8, 4)
    two = np.array(2, "float32")

    agrees(te.create_schedule(D.op), [A, z, D], {A: data, z: two, D: np.array(12, "float32")})
    agrees(te.create_schedule(C.op), [A, z, C], {A: data, z: two, C: data[:, 0] * 2})


def test_numbers_of_tensors_without_axes(agrees: Any) -> None:
    D = (z + 1) * 2 - z
    value = np.array(3, "float32")

    agrees(te.create_schedule(D.op), [z, D], {z: value, D: np.array(5, "float32")})


def test_equal_symbolic_sizes_broadcast() -> None:
    X, Y = te.placeholder((n, m), name="X"), te.placeholder((n, 1), name="Y")

    assert str((X - Y).op) == "T_subtract[ax0, ax1] = X[ax0, ax1] - Y[ax0, int32(0)]"
    assert list(map(str, (Y - X).shape)) == ["n", "m"]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (lambda: A + te.placeholder((3,)),
         Diagnostic(
             "shapes", where="T_add", shapes="(8, 4) and (3,)", axis=-1, extent="4", other_extent="3",
         )),
        (lambda: te.placeholder((n,)) * te.placeholder((2, m)),
         Diagnostic(
             "shapes", where="T_multiply", shapes="(n,) and (2, m)", axis=-1, extent="n",
             other_extent="m",
         )),
    ],
)
def test_shapes_that_do_not_broadcast(action: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(DefinitionError) as error:
        action()
    assert diagnostic(error.value) == expected


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (lambda: te.compute((4,), lambda i: A[0, i] + b),
         Diagnostic("tensor-as-scalar", name="b", shape="(4,)", example="b[i]")),
        (lambda: te.compute((4,), lambda i: b + A[0, i]),
         Diagnostic("tensor-as-scalar", name="b", shape="(4,)", example="b[i]")),
        (lambda: te.compute((4,), lambda i: b + 1),
         Diagnostic("tensor-as-scalar", name="T_add", shape="(4,)", example="T_add[i]")),
        (lambda: A < 3, Diagnostic("tensor-as-scalar", name="A", shape="(8, 4)", example="A[i, j]")),
        (lambda: A[0] + b, Diagnostic(
            "index-count", tensor="A", axes="2 axes", shape="(8, 4)", count=1, noun="index",
            example="A[i, j]",
        )),
        (lambda: A & 3, Diagnostic("dtype", op="&", dtype="float32")),
        (lambda: W / 2, Diagnostic("dtype", dtype="int32")),
        (lambda: A + np.ones(4),
         Diagnostic("invalid-type", where="", shape=(4,), dtype="float64")),
    ],
)
def test_unsupported_tensor_operators(action: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(DefinitionError) as error:
        action()
    assert diagnostic(error.value) == expected
    assert isinstance(error.value, TypeMismatchError) or "axes" in expected.parameters


BINARY = (operator.add, operator.sub, operator.mul, operator.truediv)
SHAPES = [((8, 4), (4,)), ((4,), (8, 4)), ((3, 1), (1, 5)), ((2, 1, 3), (4, 1)), ((), (2, 3)),
          ((0, 3), (1, 3)), ((1,), (1,))]


@pytest.mark.exhaustive(keep=15)
@pytest.mark.parametrize("function", BINARY)
@pytest.mark.parametrize("shapes", SHAPES)
def test_numbers(agrees: Any, function: Any, shapes: Any) -> None:
    X, Y = (te.placeholder(shape, name=name) for shape, name in zip(shapes, "XY", strict=True))
    rng = np.random.default_rng(3)
    x, y = (rng.integers(1, 9, shape).astype("float32") for shape in shapes)
    Z = function(X, Y)

    agrees(te.create_schedule(Z), [X, Y, Z], {X: x, Y: y, Z: function(x, y)}, rtol=1e-6)


def test_a_program_of_whole_tensors(agrees: Any) -> None:
    rng = np.random.default_rng(4)
    a, v = (rng.random(shape).astype("float32") for shape in ((8, 4), (4,)))
    C: Any = 3 + A * b
    s = te.create_schedule(C.op)
    s[C.op.input_tensors[0]].compute_inline()
    expected = 3 + a * v

    agrees(s, [A, b, C], {A: a, b: v, C: expected}, rtol=1e-6)
    out = np.zeros((8, 4), "float32")
    tecomp.build(C, [A, b, C])(a, v, out)
    assert_close(out, expected, rtol=1e-6)
    assert_close(tecomp.compile([C], [A, b])(a, v), expected, rtol=1e-6)


def test_symbolic_sizes() -> None:
    X, Y = te.placeholder((n, 5), name="X"), te.placeholder((n, 1), name="Y")
    x, y = np.arange(15, dtype="float32").reshape(3, 5), np.ones((3, 1), "float32")
    Z = (X - Y) * 2
    out = np.zeros((3, 5), "float32")

    tecomp.build(te.create_schedule(Z), [X, Y, Z])(x, y, out)

    np.testing.assert_array_equal(out, (x - y) * 2)
