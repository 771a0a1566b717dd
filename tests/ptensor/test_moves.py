"""Creation and data movement operations: types, and print-parse round trips."""

from __future__ import annotations

import pytest

from tecomp.errors import (
    ArrayIndexError,
    ArrayTypeError,
    ArrayValueError,
    DeviceMismatchError,
    TecompError,
)
from tecomp.ptensor import (
    Apply,
    Arange,
    BroadcastOp,
    Combine,
    Create,
    CreateLike,
    ExpandDims,
    ExtractMask,
    ExtractSlice,
    ExtractTriangle,
    Eye,
    Flip,
    Function,
    InsertSlice,
    Linspace,
    Nonzero,
    Parameter,
    PermuteDims,
    PTensorOp,
    PTensorType,
    Repeat,
    Reshape,
    Roll,
    Squeeze,
    Take,
    TakeAlongAxis,
    TileOp,
)
from tecomp.ptensor.parse import parse
from tests.messages import Diagnostic, diagnostic

X = PTensorType((2, 3), "int8", device="cpu")
ONE = PTensorType((), "float64", device="cpu")
PLACES = PTensorType((4,), "int64", device="cpu")
PLACE = "device='cpu', team=None"

CASES: list[tuple[PTensorOp, list[PTensorType], str, str]] = [
    (Arange(0, 10, 3, "int64", "cpu"), [],
     f"arange(start=0, stop=10, step=3, dtype='int64', {PLACE})", "4xint64"),
    (Create((2, 3), "float32", "cpu"), [ONE],
     f"create(%x0, shape=(2, 3), dtype='float32', {PLACE})", "2x3xfloat32"),
    (CreateLike(None), [X, ONE], "create_like(%x0, %x1, dtype=None, device=None, team=None)", "2x3xint8"),
    (CreateLike("int16", "cpu"), [X, ONE], "create_like(%x0, %x1, dtype='int16', device='cpu', team=None)", "2x3xint16"),
    (Eye(2, 3, -1, "bool", "cpu"), [],
     f"eye(n_rows=2, n_cols=3, k=-1, dtype='bool', {PLACE})", "2x3xbool"),
    (Linspace(0.0, 1.0, 5, "float64", False, "cpu"), [],
     f"linspace(start=0.0, stop=1.0, n=5, dtype='float64', endpoint=False, {PLACE})", "5xfloat64"),
    (ExtractTriangle("lower", 1), [X], "extract_triangle{'lower'}(%x0, k=1)", "2x3xint8"),
    (ExtractSlice(((1, -1, 2), (0, 2, 2))), [X],
     "extract_slice(%x0, slice=((1, -1, 2), (0, 2, 2)))", "2x2xint8"),
    (InsertSlice(((0, 1, 1), (0, 1, 3))), [X, PTensorType((1, 3), "int8", device="cpu")],
     "insert_slice(%x0, %x1, slice=((0, 1, 1), (0, 1, 3)))", "2x3xint8"),
    (ExtractMask(), [X, PTensorType((2,), "bool", device="cpu")], "extract_mask(%x0, %x1)",
     "?x3xint8"),
    (Nonzero(), [X.like((4,))], "nonzero(%x0)", "?xint64"),
    (Take((1,), 1), [X, PLACES], "take(%x0, %x1, axis=(1,), place=1)", "2x4xint8"),
    (TakeAlongAxis(0), [X, PTensorType((5, 3), "int64", device="cpu")],
     "take_along_axis(%x0, %x1, axis=0)", "5x3xint8"),
    (BroadcastOp((4, 2, 3)), [X], "broadcast(%x0, shape=(4, 2, 3))", "4x2x3xint8"),
    (Combine("concat", 0), [X, X.like((1, 3), "int16")], "combine{'concat'}(%x0, %x1, axis=0)",
     "3x3xint16"),
    (Combine("stack", 2), [X, X], "combine{'stack'}(%x0, %x1, axis=2)", "2x3x2xint8"),
    (ExpandDims((0, 3)), [X], "expand_dims(%x0, axis=(0, 3))", "1x2x3x1xint8"),
    (Flip((1,)), [X], "flip(%x0, axis=(1,))", "2x3xint8"),
    (PermuteDims((1, 0)), [X], "permute_dims(%x0, axis=(1, 0))", "3x2xint8"),
    (Repeat(2, 1), [X], "repeat(%x0, repeats=2, axis=1)", "2x6xint8"),
    (Reshape((6,)), [X], "reshape(%x0, shape=(6,), copy=None)", "6xint8"),
    (Roll((1, 2), (0, 1)), [X], "roll(%x0, shift=(1, 2), axis=(0, 1))", "2x3xint8"),
    (Squeeze((0,)), [X.like((1, 3))], "squeeze(%x0, axis=(0,))", "3xint8"),
    (TileOp((2, 1, 1)), [X], "tile(%x0, repetitions=(2, 1, 1))", "2x2x3xint8"),
]


@pytest.mark.parametrize(("op", "operands", "text", "result"), CASES, ids=[c[2] for c in CASES])
def test_printed_forms(op: PTensorOp, operands: list[PTensorType], text: str, result: str) -> None:
    names = tuple(f"x{k}" for k in range(len(operands)))
    parameters = tuple(map(Parameter, names, operands))
    created = op.infer(*operands)
    function = Function("f", parameters, (Apply("y", op, names, tuple(operands), created),), ("y",))

    assert str(created) == f"ptensor<{result}, device='cpu'>"
    assert f"%y = ptensor.{text}: (" in str(function)
    assert parse(str(function)) == function


APART = PTensorType((2, 3), "int8", device="stick128")

REFUSED: list[tuple[type[TecompError], PTensorOp, list[PTensorType], Diagnostic]] = [
    (ArrayIndexError, ExtractSlice(((0, 1, 2),)), [X], Diagnostic(
        "array-index", where="extract_slice", shape=(2, 3), rank=2, slice_count=1,
    )),
    (ArrayIndexError, ExtractSlice(((0, 1, 2), (1, 1, 3))), [X], Diagnostic(
        "array-index", where="extract_slice", count=3, start=1, step=1, axis=1, extent=3,
    )),
    (ArrayIndexError, ExtractSlice(((0, -1, 2), (0, 1, 3))), [X], Diagnostic(
        "array-index", where="extract_slice", count=2, start=0, step=-1, axis=0, extent=2,
    )),
    (ArrayValueError, InsertSlice(((0, 1, 1), (0, 1, 3))), [X, X], Diagnostic(
        "array-shapes", name="insert_slice", counts=(1, 3), shape=(2, 3),
    )),
    (ArrayTypeError, ExtractMask(), [X, X], Diagnostic(
        "array-type", name="extract_mask", dtype="int8",
    )),
    (ArrayValueError, ExtractMask(), [X, X.like((3,), "bool")], Diagnostic(
        "array-shapes", name="extract_mask", shape=(2, 3), mask_shape=(3,),
    )),
    (ArrayIndexError, Flip((2,)), [X], Diagnostic(
        "array-index", where="flip", subject="axis", value=2, rank=2, numbers="from -2 to 1",
    )),
    (ArrayValueError, Squeeze((1, 0)), [X], Diagnostic("array-value", where="squeeze", axes=(1, 0))),
    (ArrayIndexError, Combine("stack", 3), [X, X], Diagnostic(
        "array-index", where="stack", subject="axis", value=3, rank=3, numbers="from -3 to 2",
    )),
    (ArrayIndexError, Roll((1,), (5,)), [X], Diagnostic(
        "array-index", where="roll", subject="axis", value=5, rank=2, numbers="from -2 to 1",
    )),
    (ArrayIndexError, Repeat(1, 2), [X], Diagnostic(
        "array-index", where="repeat", subject="axis", value=2, rank=2, numbers="from -2 to 1",
    )),
    (ArrayValueError, Create((2,), "int8", "cpu"), [X], Diagnostic(
        "array-shapes", where="create", shape=(2, 3),
    )),
    (ArrayTypeError, Create((2,), "int8", "cpu"), [X.like((), "complex64")], Diagnostic(
        "array-type", where="create", dtype="complex64", result_dtype="int8",
    )),
    *[
        (DeviceMismatchError, op, [X, APART], Diagnostic(
            "device-mismatch", where=op.where, first="ptensor<2x3xint8, device='cpu'>", k=1,
            other="ptensor<2x3xint8, device='stick128'>", device="cpu",
        ))
        for op in (InsertSlice(()), ExtractMask(), Take((0,), 0), TakeAlongAxis(0),
                   Combine("concat", 0), Combine("stack", 0))
    ],
]


@pytest.mark.parametrize(
    ("error", "op", "operands", "expected"), REFUSED, ids=[f"{c[1].name} {k}" for k, c in enumerate(REFUSED)]
)
def test_mismatched_operands_are_rejected(
    error: type[TecompError], op: PTensorOp, operands: list[PTensorType], expected: Diagnostic
) -> None:
    with pytest.raises(error) as caught:
        op.infer(*operands)
    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize("kind", [Combine, ExtractTriangle])
def test_unknown_kinds_are_refused(kind: type[Combine | ExtractTriangle]) -> None:
    known = "concat, stack" if kind is Combine else "lower, upper"
    with pytest.raises(ArrayTypeError) as caught:
        kind("other", 0)
    assert diagnostic(caught.value) == Diagnostic(
        "array-type", name=kind.name, form="other", kinds=known,
    )
