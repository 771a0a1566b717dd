"""Results and errors of te.placeholder, te.compute, te.reduce_axis and te.var."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tecomp import te
from tecomp.compute import ComputeOp, IterKind, PlaceholderOp, Reduce, Tensor
from tecomp.errors import DefinitionError
from tecomp.ir import Const, DType, Range
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4, 5), name="A")
n = te.var("n")
k = te.reduce_axis((0, 5), name="k")


def definition(tensor: Tensor) -> ComputeOp:
    assert isinstance(tensor.op, ComputeOp)
    return tensor.op


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((3, 4), (3, 4)),
        ([3, 4], (3, 4)),
        (7, (7,)),
        ((), ()),
        ((0,), (0,)),
        ((np.int64(3), np.uint8(4)), (3, 4)),
        (np.array([3, 4]), (3, 4)),
        ((te.const(3), te.const(4, "int64")), (3, 4)),
        (np.int32(6), (6,)),
        ((2**40,), (2**40,)),
        ((8 / 2, np.float32(3.0)), (4, 3)),
        (te.const(6.0), (6,)),
    ],
)
def test_shapes(shape: Any, expected: tuple[int, ...]) -> None:
    result = te.placeholder(shape)

    assert result.shape == expected
    assert all(type(extent) is int for extent in result.op.shape)


def test_integral_float_extents() -> None:
    whole: Any = 8 / 2
    B = te.compute((whole,), lambda i: A[i, 0])

    assert (B.shape, te.reduce_axis((1.0, 4.0)).extent) == ((4,), 3)


def test_default_dtype() -> None:
    assert te.placeholder((3,), None, "P").dtype == "float32"
    assert te.placeholder((3,), "int").dtype == "int32"


def test_an_extent_is_a_number() -> None:
    extent = te.compute((8, 4), lambda i, j: i).op.axis[0].dom.extent

    assert (int(extent), list(range(extent))) == (8, list(range(8)))
    assert bool(extent == 8)
    assert [axis.extent for axis in te.compute((extent,), lambda i: i).op.axis] == [8]


def test_the_tag_of_a_reduction_axis_is_preserved() -> None:
    axis = te.reduce_axis((0, 5), "k", thread_tag="threadIdx.x")

    assert (axis.thread_tag, te.reduce_axis((0, 5)).thread_tag) == ("threadIdx.x", "")
    with pytest.raises(DefinitionError) as error:
        te.reduce_axis((0, 5), "k", 3)  # type: ignore[arg-type]
    assert diagnostic(error.value) == Diagnostic(
        "invalid-type", where="te.reduce_axis k: thread_tag", value=3, remedy="give a text",
    )


def test_symbolic_shapes() -> None:
    t = te.placeholder((n, n * 2 + 1, (n + 3) // 4), name="T")

    assert t.shape[0] is n
    assert repr(t) == (
        "Tensor(T, shape=(n, n * int32(2) + int32(1), (n + int32(3)) // int32(4)), dtype=float32)"
    )
    assert te.placeholder(n).shape[0] is n
    assert te.compute(t.shape, lambda i, j, k: t[i, j, k]).shape[1] is t.shape[1]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("int8", "int8"),
        ("bool", "bool"),
        ("bfloat16", "bfloat16"),
        ("float32x4", "float32x4"),
        (np.float64, "float64"),
        (np.dtype("uint16"), "uint16"),
        (DType("float16"), "float16"),
    ],
)
def test_element_types(dtype: Any, expected: str) -> None:
    assert te.placeholder((3,), dtype).dtype == expected


def test_a_placeholder_has_no_loops() -> None:
    assert A.op.axis == ()
    assert A.op.reduce_axis == ()


def test_a_placeholder() -> None:
    op = te.placeholder((n, 3), "int8", "P").op

    assert isinstance(op, PlaceholderOp)
    assert (op.name, op.dtype, op.num_outputs, op.input_tensors) == ("P", "int8", 1, ())
    assert str(op) == 'P = placeholder((n, 3), "int8")'
    assert op.location is not None
    assert op.location.text == 'te.placeholder((n, 3), "int8", "P")'
    assert te.placeholder((3,)).name == "placeholder"


@pytest.mark.parametrize(
    ("fcompute", "names"),
    [
        (lambda i, j: A[i, j], ["i", "j"]),
        (lambda *i: A(*i), ["i0", "i1"]),
        (lambda i, *rest: A(i, *rest), ["i", "i1"]),
        (lambda i, j, scale=2: A[i, j] * scale, ["i", "j"]),
        (partial(lambda scale, y, x: A[y, x] * scale, 3), ["y", "x"]),
        (A, ["i0", "i1"]),
    ],
)
def test_the_parameters_name_the_axes(fcompute: Callable[..., Any], names: list[str]) -> None:
    op = definition(te.compute((4, 5), fcompute))

    assert [axis.name for axis in op.axis] == names


def test_varargs_names() -> None:
    op = definition(te.compute((4, 5), lambda i, *r: A(i, *r), varargs_names=["column"]))

    assert [axis.name for axis in op.axis] == ["i", "column"]


def test_axes() -> None:
    op = definition(te.compute((4, n, 2**31), lambda i, j, x: A[i, j]))

    assert [axis.kind for axis in op.axis] == [IterKind.DATA] * 3
    assert [axis.iter_type for axis in op.axis] == [te.IterVar.DataPar] * 3 == [0] * 3
    assert [axis.dtype for axis in op.axis] == ["int32", "int32", "int64"]
    assert op.axis[0].extent == 4
    assert op.axis[1].extent is n
    assert op.axis[2].extent == 2**31
    assert op.axis[0].var is op.axis[0]
    assert isinstance(op.axis[0].dom.min, Const)
    assert op.axis[0].dom.min.value == 0


def test_an_axis_of_a_wide_size_is_wide() -> None:
    wide = te.var("wide", "int64")

    assert definition(te.compute(wide, lambda i: i)).axis[0].dtype == "int64"
    assert te.reduce_axis((0, te.var("u", "uint32"))).dtype == "int64"
    assert te.reduce_axis((0, te.var("s", "uint8"))).dtype == "int32"


@pytest.mark.parametrize(
    ("fcompute", "dtype"),
    [
        (lambda i: i, "int32"),
        (lambda i: i * 2.0, "float32"),
        (lambda i: 1, "int32"),
        (lambda i: 1.5, "float32"),
        (lambda i: True, "bool"),
        (lambda i: np.float64(3), "float64"),
        (lambda i: i < 2, "bool"),
        (lambda i: te.placeholder((4,), "float16")[i] * 2.0, "float32"),
        (lambda i: te.placeholder((4,), "float16")[i] * 2, "float16"),
        (lambda i: te.placeholder((4,), "uint8")[i] + te.placeholder((4,), "int8")[i], "uint8"),
        (lambda i: te.placeholder((4,), "int64")[i] + i, "int64"),
        (lambda i: te.placeholder((), "int16"), "int16"),
        (lambda i: n, "int32"),
    ],
)
def test_the_type_matches_the_element(fcompute: Callable[..., Any], dtype: str) -> None:
    assert te.compute((4,), fcompute).dtype == dtype


def test_a_compute() -> None:
    b = te.placeholder((5, 6), name="B")
    c = te.compute(
        (4, 6),
        lambda i, j: te.sum(A[i, k] * b[k, j], axis=k),
        name="C",
        tag="gemm",
        attrs={"note": 1},
    )
    op = definition(c)

    assert (op.name, op.tag, dict(op.attrs), op.num_outputs) == ("C", "gemm", {"note": 1}, 1)
    assert op.reduce_axis == (k,)
    assert op.input_tensors == (A, b)
    assert c.shape == (4, 6)
    assert str(op) == "C[i, j] = sum(A[i, k] * B[k, j], axis=[k])"
    assert op.location is not None
    assert op.location.file == __file__
    assert te.compute((3,), lambda i: i).name == "compute"


def test_inputs_are_counted_once_in_order() -> None:
    b, c = te.placeholder((4,), name="B"), te.placeholder((4,), "int32", name="C")
    op = definition(
        te.compute((4,), lambda i: te.if_then_else(c[i] > 0, b[c[i]], b[i]) + A[i, 0] + b[0])
    )

    assert op.input_tensors == (c, b, A)


def test_shared_subexpressions_are_visited_once() -> None:
    def power(i: Any) -> Any:
        value = A[i, 0]
        for _ in range(12):
            value = value * value
        return value

    assert definition(te.compute((4,), power)).input_tensors == (A,)


def test_a_deep_expression() -> None:
    def total(i: Any) -> Any:
        value = A[i, 0]
        for step in range(8000):
            value = value + step
        return value

    assert definition(te.compute((4,), total)).input_tensors == (A,)


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (
            te.compute((), lambda: te.sum(A[0, k], axis=k), name="T"),
            "T[()] = sum(A[int32(0), k], axis=[k])",
        ),
        (te.compute((3,), lambda i: i < 2, name="T"), "T[i] = i < int32(2)"),
        (
            te.compute((3, 3), lambda i, j: te.placeholder((), name="c"), name="T"),
            "T[i, j] = c[()]",
        ),
    ],
)
def test_a_definition_is_printed(tensor: Tensor, text: str) -> None:
    assert str(tensor.op) == text


def test_several_outputs() -> None:
    p, q = te.compute((4, 5), lambda i, j: (A[i, j] + 1, A[i, j] > 0), name="P")

    assert p.op is q.op
    assert (p.op.num_outputs, p.value_index, q.value_index) == (2, 0, 1)
    assert (p.dtype, q.dtype, p.shape, q.shape) == ("float32", "bool", (4, 5), (4, 5))
    assert (p.name, q.name) == ("P_v0", "P_v1")
    assert p.op.output(1) is q
    assert str(p.op) == ("P_v0[i, j] = A[i, j] + float32(1.0)\nP_v1[i, j] = A[i, j] > float32(0.0)")
    assert definition(p).reduce_axis == ()


def test_a_list_of_one_is_one_tensor() -> None:
    result: Any = te.compute((4,), lambda i: [A[i, 0]], name="P")

    assert repr(result) == "Tensor(P, shape=(4,), dtype=float32)"


def test_operations_are_the_same_as_themselves_only() -> None:
    twins = [te.compute((4,), lambda i: A[i, 0]).op for _ in range(2)]

    assert twins[0] == twins[0]
    assert twins[0] != twins[1]
    assert len(set(twins)) == 2


@pytest.mark.parametrize(
    ("dom", "low", "extent"),
    [
        ((0, 5), 0, 5),
        ([2, 5], 2, 3),
        ((-3, 2), -3, 5),
        ((4, 4), 4, 0),
        (6, 0, 6),
        (np.int64(6), 0, 6),
        (Range(te.const(2), te.const(7)), 2, 7),
    ],
)
def test_domains_of_reduction_axes(dom: object, low: int, extent: int) -> None:
    axis = te.reduce_axis(dom, name="r")

    assert axis.kind is IterKind.REDUCE
    assert axis.iter_type == te.IterVar.CommReduce == 2
    assert axis.dtype == "int32"
    assert isinstance(axis.dom.min, Const)
    assert (axis.dom.min.value, axis.extent) == (low, extent)


def test_symbolic_domains_of_reduction_axes() -> None:
    assert te.reduce_axis((0, n)).extent is n
    assert str(te.reduce_axis((2, n)).extent) == "n - int32(2)"
    assert str(te.reduce_axis((n, n + 4)).dom.min) == "n"
    assert te.reduce_axis(n).name == "rv"


def test_variables() -> None:
    assert (te.var().name, te.var().dtype) == ("tindex", "int32")
    assert te.size_var("bias", "float32").dtype == "float32"
    assert (te.size_var("m", "int64").name, te.size_var("m", "int64").dtype) == ("m", "int64")
    assert te.var("x", "float16").dtype == "float16"
    assert te.const(3).dtype == "int32"
    assert te.const(3, "float64").dtype == "float64"
    assert te.const(True).dtype == "bool"


def test_reductions_keep_their_parts() -> None:
    body = definition(te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=k > i))).body[0]

    assert isinstance(body, Reduce)
    assert body.axis == (k,)
    assert str(body) == "sum(A[i, k], axis=[k], where=k > i)"
