"""What te.placeholder, te.compute, te.reduce_axis and te.var refuse, in full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tecomp import te
from tecomp.errors import TecompError
from tecomp.ir.nodes.stmt import Range

A = te.placeholder((4, 5), name="A")
n = te.var("n")
k = te.reduce_axis((0, 5), name="k")


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(TecompError) as caught:
        action()
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    return caught.value.message


SHAPES: list[tuple[Any, str]] = [
    (
        (3, -1),
        "te.placeholder P: axis 1 of the shape is -1; an extent is at least 0",
    ),
    (
        -2,
        "te.placeholder P: the shape is -2; an extent is at least 0",
    ),
    (
        (2.5,),
        "te.placeholder P: axis 0 of the shape is 2.5 (float); write an integer, or an integer "
        "expression of te.var sizes",
    ),
    (
        3.5,
        "te.placeholder P: the shape is 3.5 (float); write an integer, or an integer expression "
        "of te.var sizes",
    ),
    (
        (float("nan"),),
        "te.placeholder P: axis 0 of the shape is nan (float); write an integer, or an integer "
        "expression of te.var sizes",
    ),
    (
        (True,),
        "te.placeholder P: axis 0 of the shape is True (bool); write an integer, or an integer "
        "expression of te.var sizes",
    ),
    (
        (3, None),
        "te.placeholder P: axis 1 of the shape is None (NoneType); write an integer, or an "
        "integer expression of te.var sizes",
    ),
    (
        (te.var("x", "float32"),),
        "te.placeholder P: axis 0 of the shape is x (float32); write an integer, or an integer "
        "expression of te.var sizes",
    ),
    (
        (n > 2,),
        "te.placeholder P: axis 0 of the shape is n > int32(2) (bool); write an integer, or an "
        "integer expression of te.var sizes",
    ),
    (
        (2**63,),
        "te.placeholder P: axis 0 of the shape is 9223372036854775808; the largest extent is "
        "9223372036854775807",
    ),
    (
        (k + 1,),
        "te.placeholder P: axis 0 of the shape is k + int32(1), which depends on axis k; a size "
        "is the same for all elements: restrict a reduction with where= instead",
    ),
    (
        (te.placeholder((), "int32", name="S") + 1,),
        "te.placeholder P: axis 0 of the shape is S[()] + int32(1), which is more than arithmetic "
        "of sizes; write an integer expression of te.var sizes",
    ),
    (
        ((n * 0.5).astype("int32"),),
        'te.placeholder P: axis 0 of the shape is cast("int32", cast("float32", n) * '
        "float32(0.5)), which is more than arithmetic of sizes; write an integer expression of "
        "te.var sizes",
    ),
    (
        None,
        "te.placeholder P: the shape is None (NoneType); a shape is a tuple of integers and "
        "te.var sizes",
    ),
    (
        "34",
        "te.placeholder P: the shape is '34' (str); a shape is a tuple of integers and te.var "
        "sizes",
    ),
    (
        {3},
        "te.placeholder P: the shape is {3} (set); a shape is a tuple of integers and te.var sizes",
    ),
    (
        A,
        "te.placeholder P: the shape is Tensor(A, shape=(4, 5), dtype=float32) (Tensor); a shape "
        "is a tuple of integers and te.var sizes",
    ),
]


@pytest.mark.parametrize(("shape", "message"), SHAPES)
def test_shapes_that_are_refused(shape: Any, message: str) -> None:
    assert refusal(lambda: te.placeholder(shape, name="P")) == message
    as_compute = message.replace("te.placeholder", "te.compute")
    assert refusal(lambda: te.compute(shape, lambda *i: 0, name="P")) == as_compute


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (
            "float33",
            "`float33` is no element type; the types are bool, int8, int16, int32, int64, uint8, "
            "uint16, uint32, uint64, float16, bfloat16, float32, float64",
        ),
        (
            float,
            "te.placeholder P: the type is <class 'float'> (type); write its name, such as "
            '"float32"',
        ),
        ("handle", "te.placeholder P: handle is the type of an address, not of an element"),
    ],
)
def test_types_that_are_refused(dtype: Any, message: str) -> None:
    assert refusal(lambda: te.placeholder((3,), dtype, "P")) == message


INDEX_FUNCTIONS: list[tuple[Any, str]] = [
    (
        lambda i: 0,
        "te.compute C: the shape has 2 axes, and the index function takes 1 (i); give it one "
        "parameter for each axis, or *indices",
    ),
    (
        lambda i, j, k: 0,
        "te.compute C: the shape has 2 axes, and the index function takes 3 (i, j, k); give it "
        "one parameter for each axis, or *indices",
    ),
    (
        lambda: 0,
        "te.compute C: the shape has 2 axes, and the index function takes 0 (none); give it one "
        "parameter for each axis, or *indices",
    ),
    (
        lambda i, j, k, *rest: 0,
        "te.compute C: the shape has 2 axes, and the index function takes 3 (i, j, k); give it "
        "one parameter for each axis, or *indices",
    ),
    (
        lambda i, j, *, scale: 0,
        "te.compute C: the index function has the keyword-only parameter scale; indices are "
        "passed by position",
    ),
    (
        A[0, 0],
        "te.compute C: the index function is A[int32(0), int32(0)] (TensorLoad); give a function "
        "of the indices, such as lambda i, j: A[i, j]",
    ),
    (
        None,
        "te.compute C: the index function is None (NoneType); give a function of the indices, "
        "such as lambda i, j: A[i, j]",
    ),
    (
        dict,
        "te.compute C: the parameters of <class 'dict'> cannot be read; wrap it: lambda i: f(i)",
    ),
    (
        lambda i, j: None,
        "te.compute C: the index function gives None (NoneType); it returns an expression, a "
        "number, or a tuple of them",
    ),
    (
        lambda i, j: (A[i, j], "x"),
        "te.compute C: the index function gives 'x' (str); it returns an expression, a number, or "
        "a tuple of them",
    ),
    (
        lambda i, j: (),
        "te.compute C: the index function gives no element; give one at least",
    ),
    (
        lambda i, j: A,
        "A is a tensor of shape (4, 5), not a number; index it: A[i, j]",
    ),
    (
        lambda i, j: A[i],
        "A has 2 axes, shape (4, 5), and is given 1 index; write A[i, j]",
    ),
    (
        lambda i, j: A[i, k],
        "te.compute C: the reduction axis k is used outside a reduction over it; write "
        "te.sum(..., axis=k)",
    ),
    (
        lambda i, j: te.sum(A[i, k] + te.reduce_axis((0, 2), name="r"), axis=k),
        "te.compute C: the reduction axis r is used outside a reduction over it; write "
        "te.sum(..., axis=r)",
    ),
    (
        lambda i, j: A[te.compute((4,), lambda y: y).op.axis[0], j],
        "te.compute C: y is an axis of another te.compute; use the variables that this index "
        "function is called with",
    ),
    (
        lambda i, j: te.sum(A[i, k], axis=k) / 5,
        "te.compute C: a reduction is part of a larger expression; give the reduction a "
        "te.compute of its own, and use its tensor here",
    ),
    (
        lambda i, j: te.max(te.sum(A[i, k], axis=k), axis=te.reduce_axis((0, 3))),
        "te.compute C: a reduction is part of a larger expression; give the reduction a "
        "te.compute of its own, and use its tensor here",
    ),
    (
        lambda i, j: (te.sum(A[i, k], axis=k), te.sum(A[i, k] * 2, axis=k)),
        "te.compute C: several outputs reduce together only as one reduction of a tuple; give "
        "each reduction a te.compute of its own, or combine a tuple with te.comm_reducer",
    ),
    (
        lambda i, j: (te.sum(A[i, k], axis=k), A[i, j]),
        "te.compute C: several outputs reduce together only as one reduction of a tuple; give "
        "each reduction a te.compute of its own, or combine a tuple with te.comm_reducer",
    ),
    (
        lambda i, j: (A[i, j], te.sum(A[i, k], axis=k)),
        "te.compute C: several outputs reduce together only as one reduction of a tuple; give "
        "each reduction a te.compute of its own, or combine a tuple with te.comm_reducer",
    ),
]


@pytest.mark.parametrize(("fcompute", "message"), INDEX_FUNCTIONS)
def test_index_functions_that_are_refused(fcompute: Any, message: str) -> None:
    assert refusal(lambda: te.compute((4, 5), fcompute, name="C")) == message


def test_varargs_names_that_do_not_fit() -> None:
    message = refusal(
        lambda: te.compute((4, 5), lambda *i: A(*i), name="C", varargs_names=["a", "b", "c"])
    )

    assert message == "te.compute C: varargs_names has 3 names (a, b, c) for 2 axes"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (
            lambda: te.reduce_axis((5, 3), name="r"),
            "te.reduce_axis r: the domain (5, 3) ends before it begins; write (low, high)",
        ),
        (
            lambda: te.reduce_axis((1, 2, 3), name="r"),
            "te.reduce_axis r: the domain is (1, 2, 3); write (low, high)",
        ),
        (
            lambda: te.reduce_axis(-1, name="r"),
            "te.reduce_axis r: the extent is -1; an extent is at least 0",
        ),
        (
            lambda: te.reduce_axis((0, 2.5), name="r"),
            "te.reduce_axis r: the high end is 2.5 (float); write an integer, or an integer "
            "expression of te.var sizes",
        ),
        (
            lambda: te.reduce_axis("k"),
            "te.reduce_axis rv: the extent is 'k' (str); write an integer, or an integer "
            "expression of te.var sizes",
        ),
        (
            lambda: te.reduce_axis(Range(te.const(0), te.const(-4)), name="r"),
            "te.reduce_axis r: the extent is -4; an extent is at least 0",
        ),
        (
            lambda: te.reduce_axis(0, 8),  # type: ignore[arg-type]
            "te.reduce_axis: the name is 8; write both ends as one domain, te.reduce_axis((0, 8))",
        ),
        (
            lambda: te.placeholder((3,), name=""),
            "te.placeholder: the name is ''; a name is a text, not empty",
        ),
        (
            lambda: te.compute((3,), lambda i: i, name=3),  # type: ignore[call-overload]
            "te.compute: the name is 3; a name is a text, not empty",
        ),
        (
            lambda: te.var("x", "float32x4"),
            "te.var x: the type is float32x4; a variable is one number",
        ),
    ],
)
def test_other_refusals(action: Callable[[], object], message: str) -> None:
    assert refusal(action) == message


def squared(times: int) -> Callable[[Any], Any]:
    """`x * x + 1` of itself, so often."""

    def element(i: Any) -> Any:
        x = te.placeholder((4,), name="A")[i]
        for _ in range(times):
            x = x * x + 1.0
        return x

    return element


def added(terms: int) -> Callable[[Any], Any]:
    def element(i: Any) -> Any:
        read = te.placeholder((4,), name="A")[i]
        total = read
        for _ in range(terms):
            total = total + read
        return total

    return element


@pytest.mark.parametrize(
    ("fcompute", "count"),
    [(squared(40_000), 80_000), (added(65_537), 65_537)],
)
def test_more_operations_than_can_be_compiled(fcompute: Callable[[Any], Any], count: int) -> None:
    assert refusal(lambda: te.compute((4,), fcompute, name="B")) == (
        f"te.compute B: the element has {count} operations, each shared part counted once, and "
        "65536 are the most that one expression can have; make parts of it te.computes of their own"
    )


def test_as_many_operations_as_can_be_compiled() -> None:
    assert te.compute((4,), squared(1000), name="B").shape == (4,)
    assert te.compute((4,), added(8192), name="B").shape == (4,)
